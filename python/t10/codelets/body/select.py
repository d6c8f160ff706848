"""Instruction selection: a scalar function in primitive operations for several points at once.

Values come in forms: `h`, lanes of 16 bits in one float register or a pair; `w`, lanes of 32 bits, a pair per two
lanes (a single register for one lane); `m`, one integer register per lane. Truth values are masks of all ones in `h`
and `w`, 0 or 1 in `m`. Instructions are made on demand, part by part, so that few values live at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from t10.codelets.body.code import Code
from t10.codelets.body.virtual import File, Operand, Slice
from t10.core.scalar import ScalarFunction, ScalarOp

Form = Literal["h", "w", "m"]
FORM_BY_DTYPE: dict[str, Form] = {"f16": "h", "f32": "w"}
FOLLOWING = frozenset(
    {"arith.cmpf", "arith.andi", "arith.ori", "arith.xori", "arith.addi", "arith.muli", "arith.select"}
    | {"arith.fptosi", "arith.fptoui"}
)
"""Operations whose truth values lie as their first operand does."""


def natural_form(dtype: str) -> Form:
    """Return the form in which values of a type are computed."""
    return FORM_BY_DTYPE.get(dtype, "m")


class Unselectable(Exception):
    """Raised where a function cannot be computed in the wanted shape; another shape or family may."""


class Sources(Protocol):
    """Where values from outside come from, as instructions added to code."""

    def load(self, code: Code, number: int, form: Form, part: int) -> Slice:
        """Return a part of an input."""
        ...

    def constant(self, code: Code, bits: int, target: Slice) -> None:
        """Load a constant word into a single register."""
        ...

    def index(self, code: Code, axis: int, lane: int) -> Slice:
        """Return the global index of an axis in an integer register."""
        ...

    def scratch(self, n_words: int) -> tuple[str, int]:
        """Return the base register and the number of the first of new words of the worker's scratch memory."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """How operations become instructions: handlers by form and opcode; how inputs load; how forms change.

    `direct` holds handlers for forms that are not the one in which a type usually is.
    """

    by_form: Mapping[Form, Mapping[str, Handler]]
    direct: Mapping[tuple[str, Form], Handler]
    load: Callable[[Selector, int, Form, int], Slice]
    convert: Callable[[Selector, int, Form, Form, int], Slice]
    constant_bits: Callable[[ScalarOp, Form], int]


@dataclass(slots=True)
class Selector:
    """Selects instructions for `lanes` points. Values of a lower level come from `outer`, which computes them once.

    `levels` gives every value's level. `reloaded` are constants that are loaded wherever they are used instead of
    living in a register. Values of levels below `uniform_below` (default: `level`) are the same for all lanes; those of
    levels between come from `outer` as they are.
    """

    code: Code
    function: ScalarFunction
    dtypes: Sequence[str]
    lanes: int
    sources: Sources
    rules: Rules
    levels: Sequence[int]
    input_forms: Sequence[Form]
    level: int = 0
    outer: Selector | None = None
    reloaded: frozenset[int] = frozenset()
    uniform_below: int | None = None
    known: dict[tuple[int, Form, int], Slice] = field(default_factory=dict[tuple[int, Form, int], Slice])
    splats: dict[tuple[int, Form], Slice] = field(default_factory=dict[tuple[int, Form], Slice])
    words: dict[tuple[int, File, int], Slice] = field(default_factory=dict[tuple[int, File, int], Slice])
    rows: dict[tuple[int, ...], Slice] = field(default_factory=dict[tuple[int, ...], Slice])
    masks: dict[tuple[int, Form, int], tuple[Slice, bool]] = field(
        default_factory=dict[tuple[int, Form, int], tuple[Slice, bool]]
    )

    # --- shapes -------------------------------------------------------------------------------------------------

    def n_parts(self, form: Form) -> int:
        """Return in how many registers (or groups) a value lies."""
        return 1 if form == "h" else self.lanes if form == "m" else max(1, self.lanes // 2)

    def width(self, form: Form) -> int:
        """Return the width of a part."""
        return 1 if form == "m" else max(1, self.lanes // 2) if form == "h" else min(self.lanes, 2)

    def new(self, form: Form) -> Slice:
        """Return a new register for a part."""
        return self.code.new("m" if form == "m" else "a", self.width(form))

    def form(self, value: int) -> Form:
        """Return the form in which a value is computed; a truth value takes that of what it comes from."""
        op = self.op(value)
        if op is None:
            return self.input_forms[value]
        if op.dtype != "i1":
            return FORM_BY_DTYPE.get(op.dtype, "m")
        return self.form(op.operands[0]) if op.opcode in FOLLOWING and op.operands else "m"

    def number(self, op: ScalarOp) -> int:
        """Return the number of the value that an operation computes."""
        return self.function.n_inputs + self.function.ops.index(op)

    def op(self, value: int) -> ScalarOp | None:
        """Return the operation that computes a value, None for an input."""
        number = value - self.function.n_inputs
        return self.function.ops[number] if number >= 0 else None

    def is_uniform(self, value: int) -> bool:
        """Return whether a value is the same for all lanes."""
        below = self.level if self.uniform_below is None else self.uniform_below
        return self.levels[value] < below

    # --- values -------------------------------------------------------------------------------------------------

    def get(self, value: int, form: Form, part: int) -> Slice:
        """Return a part of a value in a form, computing it where that has not been done."""
        if self.is_uniform(value):
            return self.splat(value, form)
        if self.levels[value] < self.level and self.outer is not None:
            return self.outer.get(value, form, part)
        key = (value, form, part)
        if key not in self.known:
            self.known[key] = self._computed(value, form, part)
        return self.known[key]

    def operand(self, value: int, form: Form, part: int) -> Operand:
        """Return a part of a value to read; zero needs no register."""
        if self.is_zero(value):
            return "$mzero" if form == "m" else "$azeros" if self.width(form) == 2 else "$azero"
        return self.get(value, form, part)

    def is_zero(self, value: int) -> bool:
        """Return whether a value is the constant of which all bits are 0."""
        op = self.op(value)
        return op is not None and op.opcode == "const" and self.rules.constant_bits(op, "w") == 0

    def scalar(self, value: int, form: Form) -> Slice:
        """Return a uniform value in a single register."""
        op = self.op(value)
        if op is not None and op.opcode == "const":
            return self.word(self.rules.constant_bits(op, form), form, is_reloaded=value in self.reloaded)
        if self.outer is None:
            raise AssertionError("a value of a lower level without an outer selector")
        if self.outer.is_uniform(value):
            return self.outer.scalar(value, form)
        return self.outer.get(value, form, 0)

    def splat(self, value: int, form: Form) -> Slice:
        """Return a uniform value as a part with all lanes alike."""
        op = self.op(value)
        if op is not None and op.opcode == "const":
            bits = self.rules.constant_bits(op, form)
            return self.word(bits, form, self.width(form), is_reloaded=value in self.reloaded)
        if self.width(form) == 1:
            return self.scalar(value, form)
        assert self.outer is not None
        if (value, form) not in self.splats:
            single = self.scalar(value, form)
            target = self.new(form)
            for i in range(target.width):
                self.outer.code.aux("mov", target.part(i), single)
            self.splats[value, form] = target
        return self.splats[value, form]

    def word(self, bits: int, form: Form, width: int = 1, *, is_reloaded: bool = False) -> Slice:
        """Return a constant word, `width` times: loaded here if `is_reloaded`, else once by the outermost selector."""
        if self.outer is not None and not is_reloaded:
            return self.outer.word(bits, form, width)
        file: File = "m" if form == "m" else "a"
        key = (bits, file, width)
        if is_reloaded or key not in self.words:
            target = self.code.new(file, width)
            for i in range(width):
                self.sources.constant(self.code, bits, target.part(i))
            if is_reloaded:
                return target
            self.words[key] = target
        return self.words[key]

    def word_group(self, bits: tuple[int, ...]) -> Slice:
        """Return constant words side by side, loaded once by the outermost selector."""
        if self.outer is not None:
            return self.outer.word_group(bits)
        if bits not in self.rows:
            self.rows[bits] = self.code.new("a", len(bits))
            for i, word in enumerate(bits):
                self.sources.constant(self.code, word, self.rows[bits].part(i))
        return self.rows[bits]

    def _computed(self, value: int, form: Form, part: int) -> Slice:
        op = self.op(value)
        natural = self.form(value)
        if op is None:
            is_natural = form == natural
            load, convert = self.rules.load, self.rules.convert
            return load(self, value, form, part) if is_natural else convert(self, value, natural, form, part)
        if op.opcode == "const":
            return self.splat(value, form)
        if form != natural:
            handler = self.rules.direct.get((op.opcode, form))
            return (
                handler(self, op, part) if handler else self.rules.convert(self, value, natural, form, part)
            )
        handler = self.rules.by_form[form].get(op.opcode)
        if handler is None:
            raise Unselectable(f"{op.opcode} of {op.dtype}")
        return handler(self, op, part)


Handler = Callable[[Selector, ScalarOp, int], Slice]
