"""Every instruction of a tile, one record per form. A record's index in `INSTRUCTIONS` is its form number in images."""

from __future__ import annotations

from t10.isa.instructions.accumulate import ACCUMULATE
from t10.isa.instructions.control import CONTROL
from t10.isa.instructions.convert import CONVERT
from t10.isa.instructions.float16 import FLOAT16
from t10.isa.instructions.float32 import FLOAT32
from t10.isa.instructions.integer import INTEGER
from t10.isa.instructions.logic import LOGIC
from t10.isa.instructions.matrix import MATRIX
from t10.isa.instructions.memory import MEMORY
from t10.isa.instructions.pace import PACE
from t10.isa.instructions.permute import PERMUTE
from t10.isa.instructions.random import RANDOM
from t10.isa.instructions.system import SYSTEM
from t10.isa.record import Instruction

INSTRUCTIONS: tuple[Instruction, ...] = (
    *INTEGER,
    *PERMUTE,
    *LOGIC,
    *MEMORY,
    *PACE,
    *CONTROL,
    *SYSTEM,
    *FLOAT16,
    *FLOAT32,
    *CONVERT,
    *ACCUMULATE,
    *MATRIX,
    *RANDOM,
)
"""Facts restated from public sources (ISA reference); what those leave open is in each record's `assumption`."""
