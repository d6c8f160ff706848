"""Straight-line code over values, and their assignment to registers.

Every value is defined once. Where registers run out, the value whose next use is farthest goes to the worker's frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from t10.errors import T10Error

Bank = Literal["m", "a"]
NEVER = 1 << 30
TEMPORARY = re.compile(r"\{([tf]\d)\}")


@dataclass(frozen=True, slots=True)
class Value:
    """A 32-bit value in a register of one file."""

    number: int
    bank: Bank


@dataclass(frozen=True, slots=True)
class _Step:
    """Lines that belong together; `{name}` stands for the register of `names[name]`, `{L}` for a fresh label.

    The result of one line may take the register of an operand that is not needed any more; that of several may not.
    """

    lines: tuple[str, ...]
    uses: tuple[tuple[str, Value], ...]
    result: Value | None
    temporaries: tuple[tuple[str, Value], ...] = ()


@dataclass(slots=True)
class VirtualCode:
    """Code under construction; with `has_transfers` words go by the frame from one register file to the other."""

    steps: list[_Step] = field(default_factory=list[_Step])
    has_transfers: bool = False
    n_values: int = 0
    n_labels: int = 0

    def new(self, bank: Bank) -> Value:
        """Return a value that has no definition yet."""
        self.n_values += 1
        return Value(self.n_values - 1, bank)

    def a(self, *lines: str, **uses: Value) -> Value:
        """Add lines that define a value of the ARF, written `{d}`."""
        return self._define("a", lines, uses)

    def m(self, *lines: str, **uses: Value) -> Value:
        """Add lines that define a value of the MRF, written `{d}`."""
        return self._define("m", lines, uses)

    def effect(self, *lines: str, **uses: Value) -> None:
        """Add lines that define no value."""
        self.steps.append(_Step(lines, tuple(uses.items()), None, self._temporaries(lines)))

    def _define(self, bank: Bank, lines: tuple[str, ...], uses: dict[str, Value]) -> Value:
        result = self.new(bank)
        self.steps.append(_Step(lines, tuple(uses.items()), result, self._temporaries(lines)))
        return result

    def _temporaries(self, lines: tuple[str, ...]) -> tuple[tuple[str, Value], ...]:
        """Return the scratch registers that lines name: `{t0}`... of the MRF, `{f0}`... of the ARF."""
        names = sorted(set(TEMPORARY.findall(" ".join(lines))))
        return tuple((name, self.new("a" if name[0] == "f" else "m")) for name in names)


@dataclass(frozen=True, slots=True)
class Allocated:
    """Instructions with registers, and how many words of the frame they spill to."""

    lines: tuple[str, ...]
    n_slots: int


def allocate(
    code: VirtualCode, pools: dict[Bank, tuple[str, ...]], frame: str, first_slot: int, label: str
) -> Allocated:
    """Return the code with registers of `pools`; values that do not fit lie at words `first_slot`... of `frame`.

    Labels begin with `label`. Raises `T10Error` where one step needs more registers than a pool has.
    """
    return _Allocator(code, pools, frame, first_slot, label).run()


class _Allocator:
    """One pass over the steps: registers by value, values by register."""

    def __init__(
        self, code: VirtualCode, pools: dict[Bank, tuple[str, ...]], frame: str, first_slot: int, label: str
    ) -> None:
        self.code, self.pools, self.frame, self.first_slot, self.label = code, pools, frame, first_slot, label
        self.register: dict[Value, str] = {}
        self.slot: dict[Value, int] = {}
        self.lines: list[str] = []
        self.uses: dict[Value, list[int]] = {}
        for i, step in enumerate(code.steps):
            for _, value in step.uses:
                self.uses.setdefault(value, []).append(i)

    def run(self) -> Allocated:
        for i, step in enumerate(self.code.steps):
            self._step(i, step)
        return Allocated(tuple(self.lines), len(self.slot))

    def _next_use(self, value: Value, after: int) -> int:
        return next((i for i in self.uses.get(value, ()) if i > after), NEVER)

    def _step(self, i: int, step: _Step) -> None:
        names: dict[str, str] = {}
        held = {value for _, value in step.uses}
        for name, value in step.uses:
            if value not in self.register:
                self._take(value, i, held)
                self.lines.append(f"ld32 {self.register[value]}, {self.frame}, $mzero, {self._slot(value)}")
            names[name] = self.register[value]
        for name, value in step.temporaries:
            names[name] = self._take(value, i, held)
            held.add(value)
        if len(step.lines) == 1:
            self._release(i)
            held = {value for value in held if value in self.register}
        if step.result is not None:
            names["d"] = self._take(step.result, i, held)
        self._release(i, {value for _, value in step.temporaries})
        if step.result is not None and step.result not in self.uses:
            del self.register[step.result]
        names["L"] = f"{self.label}{i}"
        self.lines.extend(line.format(**names) for line in step.lines)

    def _release(self, i: int, also: set[Value] | None = None) -> None:
        """Free the registers of values that no later step uses."""
        also = also or set()
        defined = self.code.steps[i].result
        for value in [v for v in self.register if v in also or self._next_use(v, i) == NEVER]:
            if value != defined and (value in also or value in self.uses):
                del self.register[value]

    def _take(self, value: Value, i: int, held: set[Value]) -> str:
        """Return a register for a value, freeing one where all are taken."""
        taken = {register for v, register in self.register.items() if v.bank == value.bank}
        free = [register for register in self.pools[value.bank] if register not in taken]
        if not free:
            free = [self._evict(value.bank, i, held)]
        self.register[value] = free[0]
        return free[0]

    def _evict(self, bank: Bank, i: int, held: set[Value]) -> str:
        victims = [v for v in self.register if v.bank == bank and v not in held]
        if not victims:
            raise T10Error(f"step {self.code.steps[i].lines} needs more registers than there are")
        victim = max(victims, key=lambda v: (self._next_use(v, i - 1), v.number))
        register = self.register.pop(victim)
        if victim not in self.slot:
            self.lines.append(f"st32 {register}, {self.frame}, $mzero, {self._slot(victim)}")
        return register

    def _slot(self, value: Value) -> int:
        return self.first_slot + self.slot.setdefault(value, len(self.slot))
