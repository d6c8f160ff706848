"""The last additions of a reduction and the epilogue behind them, as one loop nest.

```
Exchange(reduce)  Execute(combine)  Execute(epilogue)    ->    Exchange(reduce)  Execute(epilogue)
```

The last round of a reduction may bring all that a core still needs of what it ends with. The nests of the epilogue then
add the parts that have arrived to the core's own sums, and go on with the total: it is rounded as it would be stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

import numpy as np

from t10.core import geometry
from t10.core.chunks import window_chunk
from t10.core.dtypes import size_bytes
from t10.core.epilogue_nest import chunk_nests, epilogue_axes
from t10.core.expression import AxisSizes, Combine, OperatorSpec
from t10.core.products import with_unread
from t10.core.program import ReduceMode
from t10.core.reduction import Groups, Round, all_rounds, scatter_rounds, slots_at_once
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import TaskOperand
from t10.core.vertex_nest import Lie, VertexNest, Work

OPCODES: dict[Combine, str] = {
    "sum": "arith.addf",
    "prod": "arith.mulf",
    "max": "arith.maximumf",
    "min": "arith.minimumf",
    "maxnum": "arith.maxnumf",
    "minnum": "arith.minnumf",
}
FLOATS = frozenset({"f16", "f32"})


def may_fuse(spec: OperatorSpec) -> bool:
    """Return whether an operator's last additions and its epilogue may be one: floats, at any place alike."""
    is_float = {spec.acc_dtype, spec.output.dtype} <= FLOATS and spec.combine in OPCODES
    return is_float and not epilogue_axes(spec)


def last_round(
    mode: ReduceMode, who: Groups, n_slots: int, buffer_slots: int, item_bytes: int
) -> Round | None:
    """Return the last round of a reduction, None if others bring parts of what cores end with, too."""
    make = all_rounds if mode == "all" else scatter_rounds
    n_members = who.members.shape[1]
    n_parts = n_members if n_members > 2 else 1
    if mode == "all":
        is_one = n_slots <= slots_at_once(buffer_slots // n_parts, item_bytes)
    else:
        is_one = window_chunk(n_slots, n_members) <= buffer_slots
    if not is_one:
        return None
    *_, last = make(who, n_slots, buffer_slots, item_bytes)
    return last


def fused(
    spec: OperatorSpec, nests: Iterable[tuple[VertexNest, Work]], one: Round
) -> Iterator[tuple[VertexNest, Work]]:
    """Yield an epilogue's nests with the additions of the last round in front.

    Operands are the shift buffer, the accumulator unless the round replaces it, the epilogue's inputs, the result; they
    have numbers for names, of these with the accumulator.
    """
    for nest, work in nests:
        yield _fused(spec, nest, work, one)


def _fused(spec: OperatorSpec, nest: VertexNest, work: Work, one: Round) -> tuple[VertexNest, Work]:
    own, *others = [operand for _, operand in nest.operands]
    first = work.offsets[:, :1] - one.first[work.tiles, None] * size_bytes(spec.acc_dtype)
    if one.n_parts == 1:
        operands = [replace(own), own, *others]
        body = with_addition(nest.body, spec.combine, spec.acc_dtype)
        named = tuple((str(number), operand) for number, operand in enumerate(operands))
        offsets = np.concatenate([first, work.offsets], axis=1)
        return VertexNest(body, "none", (), named), replace(work, offsets=offsets)
    parts = TaskOperand(own.dtype, (one.stride, *own.strides))
    rest = [(number, replace(o, strides=(0, *o.strides))) for number, o in enumerate((own, *others), 1)]
    kept = rest[1:] if one.replaces else rest
    named = (("0", parts), *((str(number), operand) for number, operand in kept))
    made = VertexNest(
        body=with_unread(identity(), len(named) - 2),
        combine=spec.combine,
        reduction_axes=(0,),
        operands=named,
        first=None if one.replaces else 1,
        epilogue=nest.body,
    )
    offsets = np.concatenate([first, work.offsets[:, 1:] if one.replaces else work.offsets], axis=1)
    extents = np.column_stack([np.full(len(work.tiles), one.n_parts), work.extents])
    return made, replace(work, extents=extents, offsets=offsets)


def with_addition(function: ScalarFunction, combine: Combine, dtype: str) -> ScalarFunction:
    """Return an epilogue of a sum as a function of the two parts of it, and the other inputs."""
    n = function.n_inputs + 1
    added = ScalarOp(OPCODES[combine], (1, 0), dtype)

    def place(value: int) -> int:
        return n if value == 0 else value + 1 + (value >= function.n_inputs)

    ops = (added, *(replace(op, operands=tuple(map(place, op.operands))) for op in function.ops))
    return ScalarFunction(n, ops, place(function.result))


def names_of(nest: VertexNest, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the variables of a fused nest's operands; `names` are the shift buffer, the accumulator, and so on."""
    return tuple(names[int(number)] for number, _ in nest.operands)


def lie_of(nest: VertexNest, lie: Lie) -> Lie:
    """Return how the operands of a fused nest lie; `lie` counts the accumulator."""
    numbers = {int(number): place for place, (number, _) in enumerate(nest.operands)}
    return Lie(
        frozenset(numbers[n] for n in lie.interleaved if n in numbers),
        frozenset((numbers[a], numbers[b]) for a, b in lie.apart if a in numbers and b in numbers),
    )


def fused_chunks(
    spec: OperatorSpec, windows: AxisSizes, mode: ReduceMode, n_members: int, buffer_slots: int
) -> tuple[Round, tuple[tuple[VertexNest, Work], ...]] | None:
    """Return the last round among the first cores and the nests with which it is fused; None where they stay apart.

    `windows` are those of the output.
    """
    n_slots = prod(geometry.partition_shape(spec.output, windows))
    one = last_round(mode, Groups.one(n_members), n_slots, buffer_slots, size_bytes(spec.acc_dtype))
    if one is None or not may_fuse(spec):
        return None
    nests = chunk_nests(spec, windows, 1 if mode == "all" else n_members)
    return one, tuple(fused(spec, nests, one))
