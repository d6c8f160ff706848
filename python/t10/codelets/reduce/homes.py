"""Where a loop's control variables live: in registers while there are any, then in the worker's frame."""

from __future__ import annotations

from collections.abc import Callable

from t10.codelets.assembly import Assembly

TEMPORARIES = ("$m0", "$m1", "$m2")
POOL = (3, 4, 5, 6, 7, 8, 9, 10, 11)
MOST_FIXED = len(POOL) - 1
"""Variables that may all need registers: one is the frame's."""


class RegisterHomes:
    """Assigns variables in order: `fixed` ones must have registers; the frame's address takes one if it is needed."""

    def __init__(self, fixed: list[str], others: list[str]) -> None:
        """Raise `ValueError` where `fixed` are more than the registers."""
        pool = list(POOL)
        has_frame = len(fixed) + len(others) > len(pool)
        self.frame = f"$m{pool.pop()}" if has_frame else ""
        if len(fixed) > len(pool):
            raise ValueError(f"{len(fixed)} variables need registers, there are {len(pool)}")
        names = [*fixed, *others]
        self.register = {name: f"$m{number}" for name, number in zip(names, pool, strict=False)}
        self.slot = {name: i for i, name in enumerate(names[len(pool) :])}
        self.free = tuple(pool[len(names) :])

    def read(self, text: Assembly, name: str, temporary: str) -> str:
        """Return the register a variable is in, loading it into `temporary` where it has none."""
        if name in self.register:
            return self.register[name]
        text.op(f"ld32 {temporary}, {self.frame}, $mzero, {self.slot[name]}", name)
        return temporary

    def write(self, text: Assembly, name: str, register: str) -> None:
        """Set a variable from a register."""
        if name not in self.register:
            text.op(f"st32 {register}, {self.frame}, $mzero, {self.slot[name]}", name)
        elif self.register[name] != register:
            text.op(f"mov {self.register[name]}, {register}")

    def set(self, text: Assembly, name: str, load: Callable[[str], None]) -> None:
        """Set a variable by code that loads a register of its choice."""
        register = self.register.get(name, TEMPORARIES[0])
        load(register)
        self.write(text, name, register)
