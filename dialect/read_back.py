"""Reading back what is about to be written: a module that does not parse or breaks a rule never gets out."""

from __future__ import annotations

from typing import Any

from t10.dialect.mlir import ir
from t10.dialect.verify import verify_layouts
from t10.errors import T10Error

DIALECTS = ("rtensor", "ipu")


def names_own_dialects(written: str | bytes) -> bool:
    """Return whether what is written may hold something of this project's dialects."""
    if isinstance(written, bytes):
        return any(name.encode() in written for name in DIALECTS)
    return any(name in written for name in DIALECTS)


def read_back(written: str | bytes) -> Any:
    """Return the module that written text or bytecode is read as, in the current context.

    Raises `T10Error` where it does not parse or breaks a rule of its dialects.
    """
    try:
        module = ir.Module.parse(written)
    except (ir.MLIRError, ValueError) as error:
        lines = str(error).replace('error: "-":', "line ").strip().splitlines()
        raise T10Error(f"the module does not read back: {' '.join(lines[1:2] or lines)}") from None
    if not verify_layouts(module):
        raise T10Error("the module does not read back: its layouts or plans break the dialect's rules")
    return module
