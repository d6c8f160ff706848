"""The straight code of a reduction's body: constants, what changes from output to output, and one inner step."""

from __future__ import annotations

from t10.codelets.body.code import Code, Numbering
from t10.codelets.body.expand import expand
from t10.codelets.body.forms import RULES
from t10.codelets.body.rewrite import rewritten
from t10.codelets.body.select import FORM_BY_DTYPE, Form, Selector, Unselectable
from t10.codelets.body.virtual import Instruction
from t10.codelets.reduce.accumulators import (
    FLOAT_NAMES,
    Accumulator,
    Accumulators,
    Halves,
    Integers,
    Mask,
    Products,
    Squares,
    WordProducts,
    Words,
    unmasked,
)
from t10.codelets.reduce.shape import LEAST_REPEATED, NEVER, PER_LANE, PER_OUTPUT, PER_STEP, Shape
from t10.codelets.reduce.sources import Sources
from t10.core.task import Task


class Body:
    """The instructions of a task's body in a shape; `once` runs per vertex, `per_output` before each reduction."""

    def __init__(
        self,
        task: Task,
        shape: Shape,
        pointers: dict[int, str],
        outer_pointers: dict[int, str],
        paces: dict[int, str],
    ) -> None:
        """`pointers` are registers in the inner loop, `outer_pointers` those at an output's beginning."""
        self.task, self.shape, self.pointers, self.paces = task, shape, pointers, paces
        dtypes = tuple(operand.dtype for operand in task.inputs)
        input_levels = [shape.level_of_input(i) for i in range(len(dtypes))]
        indices = [PER_LANE] * len(task.extents)
        self.function, self.levels = rewritten(expand(task.body, dtypes), dtypes, input_levels, indices)
        self.dtypes = (*dtypes, *(op.dtype for op in self.function.ops))
        self.input_forms: tuple[Form, ...] = tuple(FORM_BY_DTYPE.get(dtype, "m") for dtype in dtypes)
        self.numbering = Numbering()
        self.once, self.per_output = Code(self.numbering), Code(self.numbering)
        still = Sources(task, shape, outer_pointers, {})
        self.s_once = self._selector(self.once, 1, still, NEVER, None)
        self.s_output = self._selector(self.per_output, 1, still, PER_OUTPUT, self.s_once)
        self.accumulator = self._accumulator()
        self.accumulator.start(self.per_output)

    def step(self, code: Code, mask: Mask = unmasked, *, is_stepping: bool = True) -> list[Instruction]:
        """Add one vector of contributions; return the instructions that count them."""
        sources = Sources(self.task, self.shape, self.pointers, self.paces if is_stepping else {})
        outer = self.s_output
        if PER_STEP in self.levels:
            outer = self._selector(code, 1, sources, PER_STEP, outer)
        inner = self._selector(code, self.shape.lanes, sources, PER_LANE, outer)
        return self.accumulator.add(code, inner, mask)

    def _selector(
        self, code: Code, lanes: int, sources: Sources, level: int, outer: Selector | None
    ) -> Selector:
        return Selector(code, self.function, self.dtypes, lanes, sources, RULES, self.levels, self.input_forms,
                        level, outer)  # fmt: skip

    def _accumulator(self) -> Accumulator:
        """Return what suits the combination and its types; raises `Unselectable` where nothing does."""
        task, lanes, result = self.task, self.shape.lanes, self.function.result
        combine, dtype = task.combine, task.acc_dtype
        # Partial sums of f16 come as f32, and are rounded once.
        is_partial = combine == "sum" and (self.dtypes[result], dtype) == ("f32", "f16")
        if self.dtypes[result] != dtype and not is_partial:
            raise Unselectable(f"{self.dtypes[result]} combined as {dtype}")
        if dtype not in FORM_BY_DTYPE:
            if dtype in ("ui32", "ui64", "i64", "index"):
                raise Unselectable(f"reduction of {dtype}")
            return Integers(self.per_output, combine, result, dtype)
        if combine not in FLOAT_NAMES:
            raise Unselectable(f"{combine} of floats")
        if combine == "sum":
            factors = self._half_factors(result) if self.shape.mode == "rows" and lanes == 4 else None
            if factors is not None:
                return Products(*factors)
            words = self._word_factors(result)
            if words is not None:
                first, second = words
                is_quad = first == second and lanes == 4 and self._is_computed(first)
                return Squares(first) if is_quad else WordProducts(first, second, lanes)
            if self.shape.is_wide and self.dtypes[result] == "f32" and self.dtypes[0] == "f32":
                return Accumulators(result, lanes, "w")
            half = result if self.dtypes[result] == "f16" else self._half_source(result)
            if half is not None and lanes >= 4 and self.levels[half] == PER_LANE:
                return Accumulators(half, lanes)
        else:
            half = result if dtype == "f16" else self._half_source(result) if combine != "prod" else None
            if half is not None and self.levels[half] == PER_LANE:
                is_widened = dtype == "f32"
                return Halves(self.per_output, combine, half, lanes, is_widened=is_widened)
        is_folded = self.shape.mode != "columns"
        return Words(
            self.per_output, combine, result, lanes, is_folded=is_folded, is_wide=self.dtypes[result] == "f32"
        )

    def _half_source(self, value: int) -> int | None:
        """Return the f16 value that a value widens, None where it is not such."""
        op = self.s_once.op(value)
        if op is None or op.opcode != "arith.extf" or self.dtypes[op.operands[0]] != "f16":
            return None
        return op.operands[0]

    def _half_factors(self, value: int) -> tuple[int, int] | None:
        """Return the f16 factors of a product of widened values, None where it is not such."""
        op = self.s_once.op(value)
        if op is None or op.opcode != "arith.mulf":
            return None
        halves = [self._half_source(v) for v in op.operands]
        first, second = halves
        if first is None or second is None or min(self.levels[first], self.levels[second]) < PER_LANE:
            return None
        return first, second

    def _word_factors(self, value: int) -> tuple[int, int] | None:
        """Return the f32 factors of a product that accumulators take along a row, None where they do not."""
        op = self.s_once.op(value)
        shape = self.shape
        if op is None or op.opcode != "arith.mulf" or self.dtypes[value] != "f32":
            return None
        if shape.mode != "rows" or shape.lanes < 2 or shape.steps < LEAST_REPEATED:
            return None
        first, second = op.operands
        return (first, second) if min(self.levels[first], self.levels[second]) == PER_LANE else None

    def _is_computed(self, value: int) -> bool:
        """Return whether a value is written by an instruction of its own."""
        op = self.s_once.op(value)
        return op is not None and op.opcode in ("arith.addf", "arith.subf", "arith.mulf")


def uses_accumulators(accumulator: Accumulator) -> bool:
    """Return whether the AACC registers hold running values."""
    return not accumulator.pinned
