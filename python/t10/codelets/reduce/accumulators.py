"""What holds running values, and how contributions enter and results leave.

| kind | holds | takes | used for |
|---|---|---|---|
| `Words` | pairs of f32 registers | f32, or f16 widened | any combination of f32, sums of f16 |
| `Halves` | f16 registers | f16 | maxima and minima of f16, widened at the end or not; products of f16 |
| `Accumulators` | AACC[0, 2, 4, 6] | four f16, or f32 | sums of f16; of f32 that are loaded four at a time |
| `Products` | AACC[0, 2] | two vectors of four f16 | sums of products of f16 along a row |
| `WordProducts` | AACC[0, 2] | pairs of f32 | sums of products of f32 along a row |
| `Squares` | AACC[0, 2, 4, 6] | four f32 | sums of squares of f32 along a row |
| `Integers` | a register of the MRF | an integer | integers and truth values |

The maximum of a NaN and a number is the number to the instructions, a NaN to us (but for `maxnum` and `minnum`). Beside
running maxima and minima,
sums of magnitudes run along: infinities and large numbers make no NaN of such a sum, and a NaN stays in it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from t10.codelets.body.code import Code
from t10.codelets.body.select import Form, Selector
from t10.codelets.body.virtual import Instruction, Slice
from t10.codelets.loops.combining import INTEGERS, TRUTHS, neutral_text
from t10.core.expression import Combine
from t10.core.scalar import parse_constant

FLOAT_NAMES = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "maxnum": "max", "minnum": "min"}
AACC = "aacc"
"""The stream of instructions that use the accumulators."""

Mask = Callable[[Slice, int], Slice]
"""Makes the lanes of a register (part `n` of a vector) that are beyond a row neutral."""


def unmasked(x: Slice, part: int) -> Slice:
    """Return a part as it is."""
    return x


def family(form: Form, width: int) -> str:
    """Return the first part of the mnemonics that compute on registers of a form and width."""
    return ("f16v4" if width == 2 else "f16v2") if form == "h" else ("f32v2" if width == 2 else "f32")


class Accumulator(Protocol):
    """Running values of one output (or one vector of outputs)."""

    @property
    def form(self) -> Form:
        """Return the form in which contributions come, so that their tails can be masked."""
        ...

    @property
    def pinned(self) -> tuple[Slice, ...]:
        """Return the registers that hold running values."""
        ...

    def start(self, code: Code) -> None:
        """Add: no contribution so far."""
        ...

    def add(self, code: Code, s: Selector, mask: Mask) -> list[Instruction]:
        """Add the contributions of one vector; return the instructions that count them."""
        ...

    def folded(self, code: Code) -> Slice:
        """Add the folding of all lanes: one register, f32 (or f16 in both halves for `Halves`, or an integer)."""
        ...

    def vectors(self, code: Code, dtype: str) -> Iterable[Slice]:
        """Add reading all lanes as vectors of `dtype`, one by one as they are taken."""
        ...


def float_bits(text: str) -> int:
    """Return the f32 bits of a constant."""
    return int(struct.unpack("<I", struct.pack("<f", float(parse_constant(text))))[0])


def neutral_bits(combine: Combine, form: Form) -> int:
    """Return the neutral element as a register holds it: f32, or f16 twice."""
    value = float(parse_constant(neutral_text(combine, "f32")))
    if form == "h":
        return int(struct.unpack("<H", struct.pack("<e", value))[0]) * 0x10001
    return float_bits(neutral_text(combine, "f32"))


def is_watched(combine: Combine) -> bool:
    """Return whether the instruction of a combination drops NaNs."""
    return combine in ("max", "min")


def clear(code: Code, target: Slice) -> None:
    """Add setting a register or a pair to zero."""
    if target.width == 2:
        code.aux("zero", target)
    else:
        set_constant(code, target, 0)


def watch(code: Code, form: Form, watcher: Slice, value: Slice) -> None:
    """Add a value to a sum of magnitudes."""
    text = f"{family(form, watcher.width)}absadd {{}}, {{}}, {{}}"
    code.add(text, "oii", watcher, watcher, value, is_main=False)


def spread_nans(code: Code, form: Form, value: Slice, watcher: Slice) -> Slice:
    """Add making NaNs, in place, of those lanes whose sum of magnitudes is one: a mask of all ones is a NaN."""
    text = f"{family(form, value.width)}cmpne {{}}, {{}}, {{}}"
    code.add(text, "oii", watcher, watcher, watcher, is_main=False)
    text = f"{'or64' if value.width == 2 else 'or'} {{}}, {{}}, {{}}"
    code.add(text, "oii", value, value, watcher, is_main=False)
    return value


def combined(code: Code, combine: Combine, form: Form, x: Slice, y: Slice) -> Slice:
    """Add the combination of two values, in place of the second."""
    name = family(form, x.width)
    watcher = code.aux(name + "absadd", code.new("a", x.width), x, y) if is_watched(combine) else None
    code.add(f"{name}{FLOAT_NAMES[combine]} {{}}, {{}}, {{}}", "oii", y, x, y, is_main=False)
    return y if watcher is None else spread_nans(code, form, y, watcher)


def set_constant(code: Code, target: Slice, bits: int) -> None:
    """Add loading a constant into single registers."""
    file = target.register.file
    zero, is_main = ("$mzero", True) if file == "m" else ("$azero", False)
    low, high = bits & 0xFFFFF, bits & 0xFFF00000
    for i in range(target.width):
        one = target.part(i)
        if low or not high:
            code.add(f"setzi {{}}, {low:#x}", "o", one, is_main=is_main)
        if high:
            code.add(f"or {{}}, {{}}, {high:#x}", "oi", one, one if low else zero, is_main=is_main)


def drained(code: Code, lanes: int) -> Iterator[Slice]:
    """Add reading the accumulators of some lanes, two by two as they are taken, which clears them."""
    for _ in range(lanes // 2):
        pair = code.new("a", 2)
        code.add("f32v2gina {}, $azeros, 0", "o", pair, is_main=False, streams=(AACC,))
        yield pair


def added_up(code: Code, pairs: Iterator[Slice]) -> Slice:
    """Add adding up pairs of f32."""
    both = next(pairs)
    for other in pairs:
        both = code.aux("f32v2add", code.new("a", 2), both, other)
    return code.aux("f32add", code.new("a"), both.part(0), both.part(1))


class Words:
    """f32 registers, a pair per two lanes; along a row all parts share one."""

    form: Form = "w"

    def __init__(
        self, code: Code, combine: Combine, result: int, lanes: int, *, is_folded: bool, is_wide: bool
    ) -> None:
        """`result` is the body's result; `is_wide`: it is f32, else f16 to be widened."""
        self.combine: Combine = combine
        self.result, self.is_wide = result, is_wide
        self.width = min(lanes, 2)
        self.n_parts = max(1, lanes // 2)
        n_registers = 1 if is_folded else self.n_parts
        self.registers = tuple(code.new("a", self.width) for _ in range(n_registers))
        self.watchers = tuple(code.new("a", self.width) for _ in self.registers if is_watched(combine))

    @property
    def pinned(self) -> tuple[Slice, ...]:
        """Return the registers."""
        return (*self.registers, *self.watchers)

    def start(self, code: Code) -> None:
        """Set the neutral element."""
        for register in self.registers:
            if self.combine == "sum" and self.width == 2:
                code.aux("zero", register)
            else:
                set_constant(code, register, neutral_bits(self.combine, "w"))
        for watcher in self.watchers:
            clear(code, watcher)

    def add(self, code: Code, s: Selector, mask: Mask) -> list[Instruction]:
        """Combine part by part, across columns in the order in which they are loaded: the first part last."""
        counted: list[Instruction] = []
        mnemonic = family("w", self.width) + FLOAT_NAMES[self.combine]
        are_apart = len(self.registers) > 1
        for part in reversed(range(self.n_parts)) if are_apart else range(self.n_parts):
            value = mask(self._value(code, s, part), part)
            register = self.registers[part % len(self.registers)]
            text = f"{mnemonic} {{}}, {{}}, {{}}"
            counted.append(code.add(text, "oii", register, register, value, is_main=False))
            if self.watchers:
                watch(code, "w", self.watchers[part % len(self.watchers)], value)
        return counted

    def _value(self, code: Code, s: Selector, part: int) -> Slice:
        if self.is_wide:
            return s.get(self.result, "w", part)
        halves = s.get(self.result, "h", 0)
        mnemonic = "f16v2tof32" if self.width == 2 else "f16tof32"
        return code.aux(mnemonic, code.new("a", self.width), halves.part(part if halves.width > 1 else 0))

    def folded(self, code: Code) -> Slice:
        """Combine the two lanes."""
        (register,) = self.registers
        result = self._over_lanes(code, register, FLOAT_NAMES[self.combine])
        for watcher in self.watchers:
            result = spread_nans(code, "w", result, self._over_lanes(code, watcher, "absadd"))
        return result

    def _over_lanes(self, code: Code, register: Slice, name: str) -> Slice:
        if self.width == 1:
            return register
        return code.aux("f32" + name, code.new("a"), register.part(0), register.part(1))

    def vectors(self, code: Code, dtype: str) -> tuple[Slice, ...]:
        """Hand out the registers, rounded where they must be."""
        registers = self.registers
        if self.watchers:
            pairs = zip(registers, self.watchers, strict=True)
            registers = tuple(spread_nans(code, "w", register, watcher) for register, watcher in pairs)
        if dtype == "f32":
            return registers
        n = len(registers)
        target = code.new("a", n)
        for i, register in enumerate(registers):
            code.aux("f32v2tof16", target.part(i), register)
        return tuple(target.part(i, min(2, n)) for i in range(0, n, 2))


class Halves:
    """f16 registers: up to four lanes."""

    form: Form = "h"

    def __init__(self, code: Code, combine: Combine, result: int, lanes: int, *, is_widened: bool) -> None:
        """`result` is a f16 value; `is_widened`: results are f32."""
        self.combine: Combine = combine
        self.result = result
        self.width = max(1, lanes // 2)
        self.part_width = min(2, self.width)
        self.lanes = lanes
        self.is_widened = is_widened
        self.register = code.new("a", self.width)
        self.watchers = (code.new("a", self.width),) if is_watched(combine) else ()

    @property
    def pinned(self) -> tuple[Slice, ...]:
        """Return the registers."""
        return (self.register, *self.watchers)

    def start(self, code: Code) -> None:
        """Set the neutral element."""
        first = self.register.part(0)
        set_constant(code, first, neutral_bits(self.combine, "h"))
        for i in range(1, self.width):
            code.aux("mov", self.register.part(i), first)
        for watcher in self.watchers:
            for first in range(0, self.width, self.part_width):
                clear(code, watcher.part(first, self.part_width))

    def add(self, code: Code, s: Selector, mask: Mask) -> list[Instruction]:
        """Combine four lanes at once."""
        value = mask(s.get(self.result, "h", 0), 0)
        text = f"{family('h', self.part_width)}{FLOAT_NAMES[self.combine]} {{}}, {{}}, {{}}"
        counted: list[Instruction] = []
        for first in range(0, self.width, self.part_width):
            part, taken = self.register.part(first, self.part_width), value.part(first, self.part_width)
            counted.append(code.add(text, "oii", part, part, taken, is_main=False))
            for watcher in self.watchers:
                watch(code, "h", watcher.part(first, self.part_width), taken)
        return counted

    def folded(self, code: Code) -> Slice:
        """Combine pairs, then halves: the result is in both halves."""
        value = self._over_lanes(code, self.register, FLOAT_NAMES[self.combine])
        for watcher in self.watchers:
            value = spread_nans(code, "h", value, self._over_lanes(code, watcher, "absadd"))
        return code.aux("f16tof32", code.new("a"), value) if self.is_widened else value

    def _over_lanes(self, code: Code, value: Slice, name: str) -> Slice:
        if self.width == 2:
            value = code.aux("f16v2" + name, code.new("a"), value.part(0), value.part(1))
        if self.lanes > 1:
            swapped = code.aux("swap16", code.new("a"), value)
            value = code.aux("f16v2" + name, code.new("a"), value, swapped)
        return value

    def vectors(self, code: Code, dtype: str) -> Iterator[Slice]:
        """Hand out the register pair by pair, widened where it must be."""
        for first in range(0, self.width, self.part_width):
            part = self.register.part(first, self.part_width)
            for watcher in self.watchers:
                part = spread_nans(code, "h", part, watcher.part(first, self.part_width))
            if not self.is_widened:
                yield part
                continue
            for i in range(part.width):
                yield code.aux("f16v2tof32", code.new("a", 2), part.part(i))


class Accumulators:
    """AACC[0, 2, 4, ...]: zero between outputs, since reading shifts zeros in."""

    pinned: tuple[Slice, ...] = ()

    def __init__(self, result: int, lanes: int, form: Form = "h") -> None:
        """`result` is a value whose sums are kept in f32: f16 in four or eight `lanes`, or f32 in four."""
        self.result, self.lanes = result, lanes
        self.form: Form = form

    def start(self, code: Code) -> None:
        """Do nothing: they are zero."""

    def add(self, code: Code, s: Selector, mask: Mask) -> list[Instruction]:
        """Accumulate all lanes."""
        value = mask(s.get(self.result, self.form, 0), 0)
        kind = "f16" if self.form == "h" else "f32"
        return [code.add(f"{kind}v{self.lanes}acc {{}}", "i", value, is_main=False, streams=(AACC,))]

    def folded(self, code: Code) -> Slice:
        """Add the four or eight sums."""
        return added_up(code, drained(code, self.lanes))

    def vectors(self, code: Code, dtype: str) -> Iterator[Slice]:
        """Read them, which clears them."""
        if dtype == "f32":
            yield from drained(code, self.lanes)
            return
        for _ in range(self.lanes // 4):
            vector = code.new("a", 2)
            for i in range(2):
                code.add("f16v2gina {}, $azero, 0", "o", vector.part(i), is_main=False, streams=(AACC,))
            yield vector


class RowSums:
    """AACC[0, 2, ...]: sums along a row, of lanes that are folded; zero between outputs, as reading shifts zeros in."""

    lanes = 2
    pinned: tuple[Slice, ...] = ()

    def start(self, code: Code) -> None:
        """Do nothing: they are zero."""

    def folded(self, code: Code) -> Slice:
        """Add the sums of all lanes."""
        return added_up(code, drained(code, self.lanes))

    def vectors(self, code: Code, dtype: str) -> tuple[Slice, ...]:
        """Raise: lanes are not kept apart."""
        raise AssertionError("sums along a row have no lanes")


class Products(RowSums):
    """Sums of products of f16."""

    form: Form = "h"

    def __init__(self, first: int, second: int) -> None:
        """The factors are f16 values."""
        self.factors = (first, second)

    def add(self, code: Code, s: Selector, mask: Mask) -> list[Instruction]:
        """Accumulate four products; beyond a row both factors are zero, a NaN times zero is none."""
        x, y = (mask(s.get(factor, "h", 0), 0) for factor in self.factors)
        return [code.add("f16v4cmac {}, {}", "ii", x, y, is_main=False, streams=(AACC,))]


class WordProducts(RowSums):
    """Sums of products of f32; each is rounded as by itself."""

    form: Form = "w"

    def __init__(self, first: int, second: int, lanes: int) -> None:
        """The factors are f32 values."""
        self.factors, self.n_parts = (first, second), lanes // 2

    def add(self, code: Code, s: Selector, mask: Mask) -> list[Instruction]:
        """Accumulate part by part; beyond a row both factors are zero."""
        counted: list[Instruction] = []
        for part in range(self.n_parts):
            masked = {f: mask(s.get(f, "w", part), part) for f in dict.fromkeys(self.factors)}
            x, y = (masked[factor] for factor in self.factors)
            counted.append(code.add("f32v2mac {}, {}", "ii", x, y, is_main=False, streams=(AACC,)))
        return counted


class Squares(RowSums):
    """Sums of squares of f32, four lanes at once; each is rounded as by itself."""

    form: Form = "w"
    lanes = 4

    def __init__(self, root: int) -> None:
        """`root` is the f32 value that is squared, no input: what computes it writes half of four registers."""
        self.root = root

    def add(self, code: Code, s: Selector, mask: Mask) -> list[Instruction]:
        """Accumulate four lanes, of which two parts are computed side by side; masked parts one by one."""
        if mask is not unmasked:
            return WordProducts(self.root, self.root, self.lanes).add(code, s, mask)
        quad = code.new("a", self.lanes)
        for part in range(2):
            code.put_into(s.get(self.root, "w", part).register, quad.part(2 * part, 2))
        return [code.add("f32v4sqacc {}", "i", quad, is_main=False, streams=(AACC,))]


class Integers:
    """One integer register."""

    form: Form = "m"

    def __init__(self, code: Code, combine: Combine, result: int, dtype: str) -> None:
        """`result` is the body's result, of `dtype`."""
        self.mnemonic = (TRUTHS if dtype == "i1" else INTEGERS)[combine]
        self.neutral = int(parse_constant(neutral_text(combine, dtype))) & 0xFFFFFFFF
        self.result = result
        self.register = code.new("m")

    @property
    def pinned(self) -> tuple[Slice, ...]:
        """Return the register."""
        return (self.register,)

    def start(self, code: Code) -> None:
        """Set the neutral element."""
        set_constant(code, self.register, self.neutral)

    def add(self, code: Code, s: Selector, mask: Mask) -> list[Instruction]:
        """Combine one integer."""
        text = f"{self.mnemonic} {{}}, {{}}, {{}}"
        return [code.add(text, "oii", self.register, self.register, s.get(self.result, "m", 0), is_main=True)]

    def folded(self, code: Code) -> Slice:
        """Hand out the register."""
        return self.register

    def vectors(self, code: Code, dtype: str) -> tuple[Slice, ...]:
        """Raise: there is one lane."""
        raise AssertionError("integers have one lane")
