"""What is computed of a sum once it is there: the task's epilogue, on the vectors that leave the accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

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
from t10.core.task import Task

MOST_LANES = 4
"""Points that are computed at once: eight sums of f16 come in two vectors."""
LOAD_BYTES, WORD_BYTES = 8, 4


class Further(Protocol):
    """Where an epilogue's inputs besides the sum come from; by the task's numbers."""

    def is_along(self, number: int) -> bool:
        """Return whether an input differs from lane to lane."""
        ...

    def load(self, code: Code, number: int, lanes: int, group: int) -> list[Slice]:
        """Add loading an input: its vector number `group` of `lanes`, or one element where all lanes are alike."""
        ...


def further_inputs(task: Task) -> tuple[int, ...]:
    """Return the numbers of the inputs that an epilogue reads besides the sum."""
    assert task.epilogue is not None
    n = len(task.inputs)
    return tuple(range(n - (task.epilogue.n_inputs - 1), n))


def with_epilogue(
    task: Task, code: Code, sums: Sequence[Slice], lanes: int, further: Further
) -> tuple[Slice, ...]:
    """Add the epilogue of an output's sums; return what is stored, vector by vector.

    Raises `Unselectable` where no instructions compute it.
    """
    function, out = task.epilogue, task.output.dtype
    assert function is not None
    if function.is_identity and out == task.acc_dtype:
        return tuple(sums)
    if out not in FORM_BY_DTYPE:
        raise Unselectable(f"an epilogue that ends in {out}")
    others = further_inputs(task)
    dtypes = (task.acc_dtype, *(task.inputs[number].dtype for number in others))
    input_levels = [PER_LANE, *(PER_LANE if further.is_along(number) else PER_OUTPUT for number in others)]
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

    def selector(lanes: int, sources: Operands, level: int, outer: Selector | None) -> Selector:
        return Selector(code, function, all_dtypes, lanes, sources, RULES, levels, forms, level, outer)

    for group in range(lanes // at_once):
        sources = Operands(task, further, others, sums[group * per_group :][:per_group], at_once, group)
        if uniform is None:
            uniform = selector(1, sources, PER_OUTPUT, selector(1, sources, NEVER, None))
        lane, form = selector(at_once, sources, PER_LANE, uniform), FORM_BY_DTYPE[out]
        results += [lane.get(function.result, form, part) for part in range(lane.n_parts(form))]
    return tuple(results)


@dataclass(slots=True)
class Operands:
    """The values that an epilogue reads: sums from registers, and further inputs.

    `others` are the task's numbers of the function's inputs but the first; `group` counts vectors of `lanes`.
    """

    task: Task
    further: Further
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
            other = self.others[number - 1]
            if self.task.inputs[other].dtype not in FORM_BY_DTYPE:
                raise Unselectable(f"{self.task.inputs[other].dtype} in an epilogue")
            self.loaded[number] = self.further.load(code, other, self.lanes, self.group)
        return self.loaded[number][0 if form == "h" else part]

    def constant(self, code: Code, bits: int, target: Slice) -> None:
        """Load a constant word."""
        set_constant(code, target, bits)

    def index(self, code: Code, axis: int, lane: int) -> Slice:
        """Raise `Unselectable`: epilogues that name an axis run by themselves."""
        raise Unselectable("an index in an epilogue behind sums")

    def scratch(self, n_words: int) -> tuple[str, int]:
        """Raise `Unselectable`: nothing goes through memory here."""
        raise Unselectable("a transfer between register files in an epilogue behind sums")


@dataclass(frozen=True, slots=True)
class InPlace:
    """Further inputs that are loaded from where pointers of a reduction's loops stand."""

    layout: RegisterLayout

    def is_along(self, number: int) -> bool:
        """Return whether an input differs from lane to lane; of one lane all do."""
        column = self.layout.shape.column
        if self.layout.shape.mode != "columns" or column is None:
            return True
        return bool(self.layout.shape.parallel[column].strides[number])

    def load(self, code: Code, number: int, lanes: int, group: int) -> list[Slice]:
        """Add loading a vector of an input, or one element."""
        dtype, pointer = self.layout.task.inputs[number].dtype, self.layout.still_pointers[number]
        lanes = lanes if self.is_along(number) else 1
        return loads_of(code, dtype, lanes, pointer, group, (f"in{number}",))


def loads_of(
    code: Code, dtype: str, lanes: int, pointer: str, group: int, streams: tuple[str, ...]
) -> list[Slice]:
    """Add loading vector number `group` of `lanes` elements behind a pointer; of one lane, always the first."""
    n_bytes = lanes * size_bytes(dtype)
    if n_bytes < WORD_BYTES:
        value = code.new("a")
        code.add(f"ldb16 {{}}, {pointer}, $mzero, 0", "o", value, is_main=True, streams=streams)
        return [value]
    each = min(n_bytes, LOAD_BYTES)
    parts = [code.new("a", each // WORD_BYTES) for _ in range(n_bytes // each)]
    for place, part in enumerate(parts, group * len(parts) if lanes > 1 else 0):
        load = "ld64" if part.width == 2 else "ld32"
        code.add(f"{load} {{}}, {pointer}, $mzero, {place}", "o", part, is_main=True, streams=streams)
    return parts
