"""Our dialects in IRDL, MLIR's own language for dialects: what `mlir-opt --irdl-file` loads."""

from __future__ import annotations

from typing import Any

from t10.dialect import ipu, rtensor
from t10.dialect.mlir import ir, new_context
from t10.errors import InputError


def irdl_text(name: str) -> str:
    """Return the IRDL module of `rtensor` or `ipu`; raises `InputError` for another name.

    IRDL carries the structure of attributes and operations, neither traits nor verifiers written in Python.
    """
    dialects: dict[str, Any] = {"rtensor": rtensor.RTensor, "ipu": ipu.Ipu}
    if name not in dialects:
        raise InputError(f"no dialect named {name} of ours (expected one of {', '.join(dialects)})")
    with new_context(), ir.Location.unknown():
        return str(dialects[name]._emit_module()).rstrip("\n") + "\n"
