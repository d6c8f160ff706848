"""What is computed of a sum once it is there: the task's epilogue, on the vectors that leave the accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from t10.codelets.body.code import Code
from t10.codelets.body.expand import expand
from t10.codelets.body.forms import RULES
from t10.codelets.body.rewrite import rewritten
from t10.codelets.body.select import FORM_BY_DTYPE, Form, Selector, Unselectable
from t10.codelets.body.virtual import Slice
from t10.codelets.reduce.accumulators import set_constant
from t10.codelets.reduce.layout import RegisterLayout
from t10.codelets.reduce.shape import NEVER, PER_LANE, PER_OUTPUT
from t10.core.dtypes import size_bytes

MOST_LANES = 4
"""Points that are computed at once: eight sums of f16 come in two vectors."""
LOAD_BYTES, WORD_BYTES = 8, 4


def further_inputs(layout: RegisterLayout) -> tuple[int, ...]:
    """Return the numbers of the inputs that an epilogue reads besides the sum."""
    task = layout.task
    assert task.epilogue is not None
    n = len(task.inputs)
    return tuple(range(n - (task.epilogue.n_inputs - 1), n))


def with_epilogue(layout: RegisterLayout, code: Code, sums: Sequence[Slice]) -> tuple[Slice, ...]:
    """Add the epilogue of an output's sums; return what is stored, vector by vector.

    Raises `Unselectable` where no instructions compute it.
    """
    task, lanes = layout.task, layout.shape.lanes if layout.shape.mode == "columns" else 1
    function, out = task.epilogue, task.output.dtype
    assert function is not None
    if function.is_identity and out == task.acc_dtype:
        return tuple(sums)
    if out not in FORM_BY_DTYPE:
        raise Unselectable(f"an epilogue that ends in {out}")
    others = further_inputs(layout)
    dtypes = (task.acc_dtype, *(task.inputs[number].dtype for number in others))
    input_levels = [PER_LANE, *(_level(layout, number) for number in others)]
    indices = [PER_LANE] * len(task.extents)
    function, levels = rewritten(expand(function, dtypes), dtypes, input_levels, indices)
    all_dtypes = (*dtypes, *(op.dtype for op in function.ops))
    if all_dtypes[function.result] != out:
        raise Unselectable(f"an epilogue of {all_dtypes[function.result]} that ends in {out}")
    forms: tuple[Form, ...] = tuple([FORM_BY_DTYPE.get(dtype, "m") for dtype in dtypes])
    at_once = min(lanes, MOST_LANES)
    per_group = len(sums) * at_once // lanes
    uniform: Selector | None = None
    results: list[Slice] = []
    for group in range(lanes // at_once):
        sources = Operands(layout, others, sums[group * per_group :][:per_group], at_once, group)
        if uniform is None:
            uniform = Selector(code, function, all_dtypes, 1, sources, RULES, levels, forms, NEVER)
            uniform = Selector(
                code, function, all_dtypes, 1, sources, RULES, levels, forms, PER_OUTPUT, uniform
            )
        lane = Selector(
            code, function, all_dtypes, at_once, sources, RULES, levels, forms, PER_LANE, uniform
        )
        form = FORM_BY_DTYPE[out]
        results += [lane.get(function.result, form, part) for part in range(lane.n_parts(form))]
    return tuple(results)


def _level(layout: RegisterLayout, number: int) -> int:
    """Return in which loop an input of the epilogue changes: from lane to lane or from output to output."""
    column = layout.shape.column
    if layout.shape.mode != "columns" or column is None:
        return PER_LANE
    return PER_LANE if layout.shape.parallel[column].strides[number] else PER_OUTPUT


@dataclass(slots=True)
class Operands:
    """The values that an epilogue reads: sums from registers, further inputs from where their pointers are.

    `others` are the task's numbers of the function's inputs but the first; `group` counts vectors of `lanes`.
    """

    layout: RegisterLayout
    others: tuple[int, ...]
    sums: Sequence[Slice]
    lanes: int
    group: int
    loaded: dict[int, list[Slice]] = field(default_factory=dict[int, "list[Slice]"])

    def load(self, code: Code, number: int, form: Form, part: int) -> Slice:
        """Return a part of an input."""
        if number == 0:
            return self.sums[part]
        if number not in self.loaded:
            self.loaded[number] = self._load(code, self.others[number - 1])
        return self.loaded[number][0 if form == "h" else part]

    def _load(self, code: Code, number: int) -> list[Slice]:
        """Add loading an input: a vector, or one element where it is the same for all lanes."""
        dtype, pointer = self.layout.task.inputs[number].dtype, self.layout.still_pointers[number]
        streams = (f"in{number}",)
        lanes = self.lanes if _level(self.layout, number) == PER_LANE else 1
        if dtype not in FORM_BY_DTYPE:
            raise Unselectable(f"{dtype} in an epilogue")
        n_bytes = lanes * size_bytes(dtype)
        if n_bytes < WORD_BYTES:
            value = code.new("a")
            code.add(f"ldb16 {{}}, {pointer}, $mzero, 0", "o", value, is_main=True, streams=streams)
            return [value]
        each = min(n_bytes, LOAD_BYTES)
        first = self.group * n_bytes // each if lanes > 1 else 0
        parts = [code.new("a", each // WORD_BYTES) for _ in range(n_bytes // each)]
        for place, part in enumerate(parts, first):
            load = "ld64" if part.width == 2 else "ld32"
            code.add(f"{load} {{}}, {pointer}, $mzero, {place}", "o", part, is_main=True, streams=streams)
        return parts

    def constant(self, code: Code, bits: int, target: Slice) -> None:
        """Load a constant word."""
        set_constant(code, target, bits)

    def index(self, code: Code, axis: int, lane: int) -> Slice:
        """Raise `Unselectable`: epilogues that name an axis run by themselves."""
        raise Unselectable("an index in an epilogue behind sums")

    def scratch(self, n_words: int) -> tuple[str, int]:
        """Raise `Unselectable`: nothing goes through memory here."""
        raise Unselectable("a transfer between register files in an epilogue behind sums")
