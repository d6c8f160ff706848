"""Bundled models, compiled once in a run: they are kept in its folder for caches, which its workers share."""

from __future__ import annotations

import pickle
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from support.draw import dealt
from t10.cache_folder import default_cache_folder
from t10.core.atomic import replaced_file
from t10.driver import Executable, compile

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
ARCHITECTURES = ("bert", "vit", "resnet18", "nerf", "opt", "llama2", "retnet")
FIRST, SECOND = dealt([[f"{name}_{dtype}" for dtype in ("fp16", "fp32")] for name in ARCHITECTURES])
"""Every architecture in one precision, drawn by the commit, and in the other."""


@lru_cache(maxsize=16)
def compiled(name: str, chip: str, *, program: bool = False) -> Executable:
    """Return a bundled model for a chip, with room for its code where `program` is set."""
    folder = default_cache_folder()
    assert folder is not None
    kept = folder / "compiled" / sha256(f"{name} {chip} {program}".encode()).hexdigest()
    if kept.exists():
        return pickle.loads(kept.read_bytes())
    executable = compile(MODELS / f"{name}.onnx", chip, program=program)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(kept) as made:
        made.write_bytes(pickle.dumps(executable))
    return executable
