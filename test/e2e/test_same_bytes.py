"""Same input, same bytes: a model compiled in two processes with different hash seeds gives equal files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.draw import drawn

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("model", drawn(["llama2_fp16", "resnet18_fp16"], 1))
def test_two_processes_write_the_same_files(model: str, tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for seed, folder in enumerate(folders):
        source = ROOT / "examples" / "models" / f"{model}.onnx"
        words = ["compile", str(source), "--chip", "test-64", "-o", str(folder), "--quiet"]
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT / "python")}
        subprocess.run([sys.executable, "-m", "t10.cli", *words], env=environment, check=True)
    program = sorted(path.name for path in (folders[0] / "program").iterdir())
    assert {"program.cpp", "codelets.S", "codelets.cpp", "tables.bin", "weights.bin"} <= set(program)
    assert program == sorted(path.name for path in (folders[1] / "program").iterdir())
    for name in ("plan.json", "module.mlir", "weights.npz", *(f"program/{name}" for name in program)):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name
