"""What a model does with its integer inputs: which values each can take, found by following it through the operators.

An index is known by the table it selects from, or by `i < 0 ? i + n : i`; a length by comparisons in an order; a mask
by `1 - m`, or a sum of it that selects; divisors, amounts of shifts and exponents by the operations that read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from t10.core.dtypes import is_float
from t10.core.expression import Operand, OperatorSpec
from t10.core.graph import Graph
from t10.core.scalar import ScalarFunction, ScalarOp, parse_constant

LIMITS = {"arith.minsi": "most", "arith.minui": "most", "arith.maxsi": "least", "arith.maxui": "least"}
CASTS = frozenset(
    f"arith.{name}"
    for name in ("index_cast", "index_castui", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi")
)
DIVISIONS = frozenset(
    f"arith.{name}" for name in ("divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui")
)
SHIFTS = frozenset(("arith.shli", "arith.shrsi", "arith.shrui"))
POWERS = frozenset(("math.ipowi", "math.fpowi", "math.powf"))
LARGEST_EXPONENT = 3


@dataclass(slots=True)
class Use:
    """How a model reads an integer input: `low` to `high` as an index, an amount or an exponent."""

    low: int | None = None
    high: int | None = None
    is_place: bool = False
    """Says where elements go: two must not go to one place."""
    is_mask: bool = False
    is_divisor: bool = False
    points: set[int] = field(default_factory=set[int])
    steps: set[int] = field(default_factory=set[int])
    """Constants it is compared with in an order."""

    def within(self, low: int, high: int) -> None:
        """Note that values must not be below `low` or above `high`."""
        self.low = low if self.low is None else max(low, self.low)
        self.high = high if self.high is None else min(high, self.high)

    @property
    def longest(self) -> int | None:
        """Return the greatest length, where steps 0, 1, 2, ... are compared with it."""
        is_length = len(self.steps) > 1 and self.steps == set(range(len(self.steps)))
        return len(self.steps) if is_length else None


@dataclass(frozen=True, slots=True)
class _State:
    """What a value is of an input: it plus `offset`, perhaps with `n` added where negative; or made of it somehow.

    `limits` are those of "most" and "least" that a constant sets to what is made of it.
    """

    kind: Literal["same", "wrapped", "derived", "summed"]
    offset: int = 0
    limits: frozenset[str] = frozenset()


_DERIVED, _SUMMED = _State("derived"), _State("summed")


def input_uses(graph: Graph) -> dict[str, Use]:
    """Return how every integer input is used, by name."""
    return {
        value.name: _followed(graph, value.name)
        for value in graph.inputs
        if value.dtype != "i1" and not is_float(value.dtype)
    }


def _followed(graph: Graph, name: str) -> Use:
    """Return the uses of one input: every operator is read that something of it reaches."""
    use, states = Use(), {name: _State("same")}
    for spec in graph.operators:
        reached = {
            operand.name: state
            for operand in spec.operands
            if (state := _least_known(states[s] for s in graph.sources_of(operand.name) if s in states))
        }
        if reached:
            result = _read(graph, spec, reached, use)
            if result is not None:
                states[spec.output.name] = result
    return use


def _least_known(states: Iterator[_State]) -> _State | None:
    """Return what is known of several values of one input that became one."""
    found = set(states)
    if len(found) < 2:
        return next(iter(found), None)
    return _SUMMED if _SUMMED in found else _DERIVED


def _read(graph: Graph, spec: OperatorSpec, reached: dict[str, _State], use: Use) -> _State | None:
    """Note what an operator does with values of an input, and return what its result is of it."""
    weights = {weight.name for weight in graph.weights}

    def limits_of(operands: Sequence[Operand]) -> list[int | None]:
        return [
            max(operand.shape, default=1) if set(graph.sources_of(operand.name)) <= weights else None
            for operand in operands
        ]

    limits = limits_of(spec.inputs)
    given = [reached.get(operand.name) for operand in spec.inputs]
    for selector in spec.selectors:
        index = _Function(spec, selector.index, given, limits, use).result
        _note_selection(use, index, spec.axes[selector.axis].extent)
    result = _Function(spec, spec.body, given, limits, use).result
    if result is not None and spec.combine != "none" and not spec.selectors:
        result = _SUMMED
    if spec.epilogue is None:
        return result
    later = [reached.get(operand.name) for operand in spec.epilogue_inputs]
    return _Function(
        spec, spec.epilogue, [result, *later], [None, *limits_of(spec.epilogue_inputs)], use
    ).result


def _note_selection(use: Use, index: _State | None, extent: int) -> None:
    """Note that what is made of an input selects one of `extent` elements."""
    if index is None:
        return
    if index.kind == "summed":
        use.is_mask = True
    elif index.kind != "derived":
        low = -extent if index.kind == "wrapped" else 0
        use.within(low - index.offset, extent - 1 - index.offset)
    elif use.low is None and len(index.limits) < len(set(LIMITS.values())):
        use.within(0, extent - 1)


class _Function:
    """What the values of a scalar function are of an input, and what its operations tell about it."""

    def __init__(
        self, spec: OperatorSpec, function: ScalarFunction, given: Sequence[_State | None],
        limits: Sequence[int | None], use: Use,
    ) -> None:  # fmt: skip
        self.use = use
        self.states: list[_State | None] = list(given)
        self.limits = list(limits)
        """Per value, how many numbers 0, 1, 2, ... it may count: an index of an axis, or a constant tensor's extent."""
        self.constants: dict[int, float] = {}
        self.axes = spec.axes
        for op in function.ops:
            self._note(op)
            self.states.append(self._state(op))
            self.limits.append(self._limit(op))
            if op.opcode == "const":
                self.constants[len(self.states) - 1] = float(parse_constant(op.attribute))
        self.result = self.states[function.result]

    def _limit(self, op: ScalarOp) -> int | None:
        if op.opcode == "index":
            return self.axes[int(op.attribute)].extent
        return self.limits[op.operands[0]] if op.opcode in CASTS else None

    def _state(self, op: ScalarOp) -> _State | None:
        found = [self.states[operand] for operand in op.operands]
        known = [state for state in found if state is not None]
        if not known or (op.dtype == "i1" and op.opcode.startswith("arith.cmp")):
            return None
        if op.opcode in CASTS:
            return known[0]
        if (
            op.opcode in LIMITS
            and known[0].kind != "summed"
            and any(o in self.constants for o in op.operands)
        ):
            return _State("derived", limits=known[0].limits | {LIMITS[op.opcode]})
        if op.opcode == "arith.addi" and known[0].kind == "same" and len(known) == 1:
            number = next((self.constants[o] for o in op.operands if o in self.constants), None)
            if number is not None:
                return _State("same", known[0].offset + int(number))
        if op.opcode == "arith.select" and len(known) == 2 and {s.kind for s in known} == {"same"}:
            offset, high = sorted(state.offset for state in known)
            return _State("wrapped" if offset < high else "same", offset)
        if _SUMMED in known:
            return _SUMMED
        # What is limited stays so where it is counted from the end if it is negative.
        keeps = op.opcode in ("arith.addi", "arith.select")
        limits = frozenset(limit for state in known for limit in state.limits if keeps)
        return _State("derived", limits=limits)

    def _note(self, op: ScalarOp) -> None:
        """Note what an operation tells about the input."""
        found = [self.states[operand] for operand in op.operands]
        if op.opcode == "arith.cmpi":
            self._compared(op)
        elif op.opcode == "arith.select" and all(s and s.kind == "same" for s in found[1:]):
            low, high = sorted(state.offset for state in found[1:] if state)
            if low < high:
                self.use.within(-high, high - 2 * low - 1)
        elif (
            op.opcode in ("arith.subf", "arith.subi") and found[1] and self.constants.get(op.operands[0]) == 1
        ):
            self.use.is_mask = True
        elif op.opcode in DIVISIONS and found[1]:
            self.use.is_divisor = True
        elif op.opcode in SHIFTS and found[1]:
            self.use.within(0, int(op.dtype.lstrip("ui")) - 1)
        elif op.opcode in POWERS and found[1]:
            self.use.within(0, LARGEST_EXPONENT)

    def _compared(self, op: ScalarOp) -> None:
        for one, other in (op.operands, op.operands[::-1]):
            state, number = self.states[one], self.constants.get(other)
            if state is None or state.kind not in ("same", "wrapped"):
                continue
            if number is None and op.attribute == "eq":
                self.use.is_place |= state.kind == "wrapped"
            if number is not None:
                self.use.points.add(int(number) - state.offset)
            if op.attribute in ("eq", "ne"):
                continue
            if number is not None:
                self.use.steps.add(int(number))
                continue
            # Of 0, 1, .. n - 1 those below a number are counted up to n, those up to it up to n - 1.
            is_below = op.attribute[1:] in (("gt", "le") if one == op.operands[0] else ("lt", "ge"))
            limit = (self.limits[other] or 0) - (not is_below)
            if limit < 1:
                continue
            if state.offset:
                self.use.within(max(0, -state.offset), max(0, limit - state.offset))
            else:
                self.use.steps |= set(range(limit))
