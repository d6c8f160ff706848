"""The instruction set of an IPU tile: records, assembler, and the simulator that runs what it makes."""

from __future__ import annotations

from t10.isa.instructions import INSTRUCTIONS

__all__ = ["INSTRUCTIONS"]
