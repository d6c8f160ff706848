"""Our dialects in IRDL, MLIR's own language for dialects: what `mlir-opt --irdl-file` loads."""

from __future__ import annotations

from typing import Any

from t10.dialect import ipu, rtensor
from t10.dialect.mlir import ir, new_context
from t10.errors import InputError

LEAST_LLVM = 20
"""The oldest LLVM that reads our IRDL: that of 19 has no names of operands, results and parameters."""


def irdl_text(name: str) -> str:
    """Return the IRDL module of `rtensor` or `ipu`; raises `InputError` for another name.

    Its first line says which versions of LLVM read it. IRDL carries the structure of attributes and operations, neither
    traits nor verifiers written in Python.
    """
    dialects: dict[str, Any] = {"rtensor": rtensor.RTensor, "ipu": ipu.Ipu}
    if name not in dialects:
        raise InputError(f"no dialect named {name} of ours (expected one of {', '.join(dialects)})")
    with new_context(), ir.Location.unknown():
        text = str(dialects[name]._emit_module()).rstrip("\n")
    return f"// Dialect {name} for mlir-opt --irdl-file of LLVM {LEAST_LLVM} and newer.\n{text}\n"
