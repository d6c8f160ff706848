"""The instruction set of an IPU tile: records, assembler, and instruction-set simulator."""

from __future__ import annotations

from t10.isa.instructions import INSTRUCTIONS

__all__ = ["INSTRUCTIONS"]
