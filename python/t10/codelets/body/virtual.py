"""Instructions on virtual registers: what is selected, before it is given times and registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

File = Literal["a", "m"]
N_REGISTERS: dict[File, int] = {"a": 8, "m": 12}


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register of a file; `width` neighbours (1, 2 or 4), the first a multiple of it."""

    number: int
    file: File
    width: int = 1

    def whole(self) -> Slice:
        """Return all of it."""
        return Slice(self, 0, self.width)


@dataclass(frozen=True, slots=True)
class Slice:
    """Neighbours within a virtual register."""

    register: Register
    first: int
    width: int

    def part(self, first: int, width: int = 1) -> Slice:
        """Return a part of it."""
        return Slice(self.register, self.first + first, width)

    @property
    def cells(self) -> tuple[tuple[Register, int], ...]:
        """Return its single registers."""
        return tuple((self.register, self.first + i) for i in range(self.width))


Operand = Slice | str
"""A part of a virtual register, or text as it is printed (a physical register, an immediate)."""


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One instruction: `text` with a `{}` per operand, and per operand `o` (written), `i` (read) or `b` (both).

    `streams` are orders it belongs to: instructions of one stream follow each other, also from one iteration to the
    next (accesses that step one pointer, a store and the load of what it stored). `slots` are issue slots.
    """

    text: str
    operands: tuple[Operand, ...]
    roles: str
    is_main: bool
    streams: tuple[str, ...] = ()
    slots: int = 1

    @property
    def reads(self) -> tuple[Slice, ...]:
        """Return the virtual registers it reads."""
        return tuple(
            o for o, r in zip(self.operands, self.roles, strict=True) if r != "o" and isinstance(o, Slice)
        )

    @property
    def writes(self) -> tuple[Slice, ...]:
        """Return the virtual registers it writes."""
        return tuple(
            o for o, r in zip(self.operands, self.roles, strict=True) if r != "i" and isinstance(o, Slice)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Fusion:
    """A load and a store that one instruction can do; `text` takes the load's operands, then the store's."""

    load: Instruction
    store: Instruction
    text: str


Placement = dict[Register, int]
"""The first physical register of every virtual one, within its file."""


def physical(slice_: Slice, placement: Placement) -> str:
    """Return a part of a virtual register as the assembler writes it."""
    first = placement[slice_.register] + slice_.first
    last = "" if slice_.width == 1 else f":{first + slice_.width - 1}"
    return f"${slice_.register.file}{first}{last}"


def printed(text: str, operands: tuple[Operand, ...], placement: Placement) -> str:
    """Return an instruction with physical registers."""
    return text.format(*(o if isinstance(o, str) else physical(o, placement) for o in operands))
