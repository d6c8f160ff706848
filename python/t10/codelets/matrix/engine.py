"""The matrix engine as the family uses it: one entry per pair of input and output type (ISA reference §10, §11).

A block of weights (`columns` output channels of `BLOCK_WORDS` words of 8 bytes each) is resident; rows stream through
it. A row takes `phases` steps; its input is `BLOCK_WORDS` words, its outputs `phases` words, whatever the types.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.core.dtypes import size_bytes
from t10.core.products import BLOCK_BYTES, WORD_BYTES

BLOCK_WORDS = BLOCK_BYTES // WORD_BYTES
"""Words of input per row and block, and words of weights per channel: 16 elements of f16, 8 of f32."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A mode of the engine: the instruction, how many units it uses and how many steps a row takes.

    With `rounding`, the instruction of a sum's last block, sums are f32 in memory of their own until it rounds them.
    """

    in_dtype: str
    out_dtype: str
    instruction: str
    flag: str
    units: int
    phases: int
    columns: int
    macs_per_step: int
    rounding: str = ""

    @property
    def name(self) -> str:
        """Return the types, as in names of codelets."""
        return f"{self.in_dtype}_{'f32_' if self.rounding else ''}{self.out_dtype}"

    @property
    def in_bytes(self) -> int:
        """Return the bytes of an input element."""
        return size_bytes(self.in_dtype)

    @property
    def out_bytes(self) -> int:
        """Return the bytes of an output element."""
        return size_bytes(self.out_dtype)

    @property
    def sum_dtype(self) -> str:
        """Return the type of a sum as it grows."""
        return "f32" if self.rounding else self.out_dtype

    @property
    def sum_bytes(self) -> int:
        """Return the bytes of a sum as it grows."""
        return size_bytes(self.sum_dtype)

    @property
    def depth(self) -> int:
        """Return the reduced elements of a block."""
        return BLOCK_WORDS * self.word_elements

    @property
    def word_elements(self) -> int:
        """Return the input elements in a word."""
        return WORD_BYTES // self.in_bytes

    @property
    def store_columns(self) -> int:
        """Return the columns of sums in a word."""
        return WORD_BYTES // self.sum_bytes

    @property
    def words_per_store(self) -> int:
        """Return the words of sums that make a word of the output."""
        return 2 if self.rounding else 1

    @property
    def steps_per_word(self) -> int:
        """Return how many steps one word of input feeds: f32 enters one element at a time."""
        return self.phases // BLOCK_WORDS

    def unit(self, column: int) -> int:
        """Return the unit that computes a block's column: with both sets, pairs of columns alternate between them."""
        if self.units == 8:
            return column
        return 2 * (column // 4) + column % 4 if column % 4 < 2 else 8 + 2 * (column // 4) + column % 4 - 2

    def step(self, out: str, value: str, partial: str, phase: int, *, rounds: bool = False) -> str:
        """Return one step of the engine as text."""
        name = self.rounding if rounds else self.instruction
        return f"{name} {out}, {value}, {partial}, {self.flag}{phase}"


ENGINES: tuple[Engine, ...] = (
    Engine("f16", "f32", "f16v4sisoamp", "TAMP_F16V4_E4_P", 8, 4, 8, 32),
    Engine("f16", "f16", "f16v4hihov4amp", "TAMP_F16V4_E4_P", 16, 4, 16, 64),
    Engine("f32", "f32", "f32sisov2amp", "TAMP_F32_E4_P", 16, 8, 16, 16),
)
ROUNDING = Engine("f16", "f16", "f16v4sisoamp", "TAMP_F16V4_E4_P", 8, 4, 8, 32, "f16v4sihoamp")
"""The mode that sums in f32 and gives f16."""


def engine_for(in_dtype: str, out_dtype: str, *, rounds: bool = False) -> Engine | None:
    """Return the mode for inputs and output of these types, None where the engine has none.

    With `rounds`, that which has room for sums of more precision.
    """
    if rounds:
        return ROUNDING if (in_dtype, out_dtype) == (ROUNDING.in_dtype, ROUNDING.out_dtype) else None
    return next((e for e in ENGINES if (e.in_dtype, e.out_dtype) == (in_dtype, out_dtype)), None)
