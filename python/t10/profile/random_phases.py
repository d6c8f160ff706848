"""Random exchange phases of every kind that programs have: who takes which elements from whom.

Relayouts go from a random layout of a random tensor to another one: cut along any dims, on several cores alike,
scattered over those or spread evenly, windows with halos, read through transposed and sliced views.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.core import movement
from t10.core.dtypes import size_bytes
from t10.core.expression import AffineDim, Axis, Operand, OperatorSpec, Term
from t10.core.movement import ElementMap
from t10.core.plan import OperatorPlan
from t10.core.scalar import identity
from t10.core.schedule import ValueLayout
from t10.emit import _routes

Random = np.random.Generator
Runs = NDArray[np.int32]
Shape = tuple[int, ...]

MOST_ELEMENTS_LOG2 = 19
MOST_SLOTS = 1 << 21
"""Slots of all cores together: larger layouts are drawn again."""
MOST_CORE_SLOTS = 40_000
NO_FILLS = np.zeros((0, 4), np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class RandomPhase:
    """A phase: `runs` and `fills` as `core.loads.phase_loads` takes them, elements of `item_bytes`."""

    kind: str
    item_bytes: int
    runs: Runs
    fills: Runs


Maker = Callable[[Random, int], RandomPhase | None]
"""From a random generator and the number of cores to a phase; None for one to be drawn again."""


def relayout(kind: str, dtypes: tuple[str, ...], random: Random, n_cores: int) -> RandomPhase | None:
    """Return a phase between two random layouts of one tensor."""
    dtype = str(random.choice(dtypes))
    shape = _shape(random)
    ids, source_shape = _view(random, shape)
    source = _layout(random, source_shape, dtype, n_cores, may_slide=False)
    target = _layout(random, shape, dtype, n_cores, may_slide=True)
    if source is None or target is None:
        return None
    lies, wanted = source[0], target[0]
    moves, fills = _routes.runs(
        (wanted.elements.astype(np.int64),),
        len(wanted.elements),
        ids,
        [(np.ascontiguousarray(lies.elements), lies.copies, prod(source_shape))],
        0,
        target[1],
    )
    return RandomPhase(kind, size_bytes(dtype), moves, np.ascontiguousarray(fills[:, [0, 3, 4, 5]]))


def multicast(random: Random, n_cores: int) -> RandomPhase:
    """Return a phase in which every core of a group takes what all others of the group have."""
    members = _groups(random, n_cores)
    n = int(2 ** random.uniform(0, 8))
    rows = [
        [0, source, 0, target, n * rank, n]
        for group in members.tolist()
        for rank, source in enumerate(group)
        for target in group
        if source != target
    ]
    return _phase("multicasts", 4, rows)


def all_to_all(random: Random, n_cores: int) -> RandomPhase:
    """Return a phase in which every core of a group takes another part from all others of the group."""
    members = _groups(random, n_cores)
    n = int(2 ** random.uniform(0, 8))
    rows = [
        [0, source, n * to, target, n * rank, n]
        for group in members.tolist()
        for rank, source in enumerate(group)
        for to, target in enumerate(group)
        if source != target
    ]
    return _phase("all to all", 4, rows)


def interleaved(item_bytes: int, random: Random, n_cores: int) -> RandomPhase:
    """Return a phase in which every core takes every so-many-th element from each core of its group."""
    size, count = int(random.choice([2, 4, 8])), int(2 ** random.uniform(1, 7))
    rows = [
        [0, base + k, core - base + i * size, core, k + i * size, 1]
        for core in range(n_cores)
        for base in [core // size * size]
        for k in range(min(size, n_cores - base))
        if base + k != core
        for i in range(count)
    ]
    return _phase(f"single elements of {item_bytes} bytes", item_bytes, rows)


def partners(random: Random, n_cores: int) -> RandomPhase:
    """Return a phase in which every core takes pieces of any length from a few others, anywhere."""
    rows: list[list[int]] = []
    n_partners = int(random.integers(1, 9))
    for core in range(n_cores):
        to = 0
        for other in random.choice(n_cores, n_partners, replace=False).tolist():
            n = int(2 ** random.uniform(0, 8))
            if other != core:
                rows.append([0, other, int(random.integers(0, 64)), core, to, n])
            to += n
    return _phase("random partners", 4, rows)


MAKERS: dict[str, Maker] = {
    "relayouts of words": partial(relayout, "relayouts of words", ("f32", "i32", "i64")),
    "relayouts of f16": partial(relayout, "relayouts of f16", ("f16",)),
    "relayouts of bytes": partial(relayout, "relayouts of bytes", ("i1",)),
    "multicasts": multicast,
    "all to all": all_to_all,
    "single elements of 4 bytes": partial(interleaved, 4),
    "single elements of 2 bytes": partial(interleaved, 2),
    "random partners": partners,
}


def random_phases(kind: str, n_cores: int, count: int, seed: int) -> list[RandomPhase]:
    """Return `count` phases of a kind on up to `n_cores` cores; the same for the same seed."""
    random = np.random.default_rng([seed, *kind.encode()])
    result: list[RandomPhase] = []
    while len(result) < count:
        n_used = n_cores if random.random() < 0.6 else int(random.integers(4, n_cores + 1))
        made = MAKERS[kind](random, n_used)
        if made is not None and len(made.runs):
            result.append(made)
    return result


def _phase(kind: str, item_bytes: int, rows: list[list[int]]) -> RandomPhase:
    ordered = sorted(rows, key=lambda row: (row[3], row[4]))
    return RandomPhase(kind, item_bytes, np.array(ordered, np.int32).reshape(-1, 6), NO_FILLS)


def _groups(random: Random, n_cores: int) -> NDArray[np.int64]:
    """Return cores in equal groups, (groups, members): consecutive or strided."""
    size = int(random.integers(2, min(n_cores, 64) + 1))
    used = n_cores // size * size
    cores: NDArray[np.int64] = np.arange(used, dtype=np.int64)
    return cores.reshape(-1, size) if random.random() < 0.5 else cores.reshape(size, -1).T


def _shape(random: Random) -> Shape:
    """Return a shape of one to four dims, round and odd extents alike."""
    rank = int(random.integers(1, 5))
    logs = random.dirichlet(np.ones(rank)) * random.uniform(8, MOST_ELEMENTS_LOG2)
    extents = np.maximum(2**logs, 1).astype(int)
    if random.random() < 0.5:
        extents = 2 ** np.round(np.log2(extents)).astype(int)
    return tuple(int(n) for n in extents)


def _view(random: Random, shape: Shape) -> tuple[NDArray[np.int64] | None, Shape]:
    """Return which element of its source every element of a tensor is, None for the same; and the source's shape."""
    choice = random.random()
    if choice < 0.6:
        return None, shape
    if choice < 0.85:
        order = random.permutation(len(shape))
        source = tuple(shape[int(np.flatnonzero(order == d)[0])] for d in range(len(shape)))
        return _numbers(source).transpose(order).reshape(-1).copy(), source
    first = tuple(int(n) for n in random.integers(0, 3, len(shape)))
    source = tuple(n + low for n, low in zip(shape, first, strict=True))
    cut = tuple(slice(low, low + n) for n, low in zip(shape, first, strict=True))
    return _numbers(source)[cut].reshape(-1).copy(), source


def _numbers(shape: Shape) -> NDArray[np.int64]:
    return np.arange(prod(shape), dtype=np.int64).reshape(shape)


def _layout(
    random: Random, shape: Shape, dtype: str, n_cores: int, *, may_slide: bool
) -> tuple[ElementMap, bool] | None:
    """Return a random layout of a tensor and whether its slots outside the tensor are filled; None if too large."""
    if random.random() < 0.15:
        linear = ValueLayout("linear", "x", n_cores, dtype)
        return movement.layout_map(None, linear, prod(shape)), False
    kernels = tuple(int(random.choice([1, 1, 3])) if may_slide and n >= 8 else 1 for n in shape)
    spec = _reader(shape, dtype, kernels)
    left = n_cores
    f_op = [1] * len(spec.axes)
    order: list[int] = random.permutation(len(shape) + 1).tolist()
    for axis in order:
        largest = min(left, spec.axes[axis].extent)
        f_op[axis] = int(2 ** random.uniform(0, float(np.log2(largest)))) if random.random() < 0.7 else 1
        left //= f_op[axis]
    n_axes = len(f_op)
    plan = OperatorPlan(
        f_op=tuple(f_op),
        lengths=tuple(-(-axis.extent // f) for axis, f in zip(spec.axes, f_op, strict=True)),
        ft=((1,) * n_axes,) * len(spec.rotatable),
        rp=(0,) * n_axes,
        steps=(1,) * n_axes,
        loop_order=(),
        phases=((),) * n_axes,
        core_order=tuple(random.permutation(n_axes).tolist()),
    )
    scatter = f_op[len(shape)] if random.random() < 0.3 and max(kernels) == 1 else 1
    layout = ValueLayout("operand", "x", plan.n_cores, dtype, "reader", 0, plan, scatter)
    n_slots = prod(
        length + kernel - 1 for length, kernel in zip(plan.lengths[: len(shape)], kernels, strict=True)
    )
    if n_slots * plan.n_cores > MOST_SLOTS or n_slots > MOST_CORE_SLOTS:
        return None
    return movement.layout_map(spec, layout, prod(shape)), movement.is_padded(spec, spec.inputs[0], plan)


def _reader(shape: Shape, dtype: str, kernels: Shape) -> OperatorSpec:
    """Return an operator that reads a tensor in windows of `kernels` points, for several outputs alike."""
    n = len(shape)
    axes = [Axis(f"d{d}", extent, "parallel") for d, extent in enumerate(shape)]
    axes.append(Axis("copies", 4096, "parallel"))
    dims: list[AffineDim] = []
    for d, kernel in enumerate(kernels):
        terms = [Term(d, 1)]
        if kernel > 1:
            terms.append(Term(len(axes), 1))
            axes.append(Axis(f"k{d}", kernel, "reduction", is_splittable=False))
        dims.append(AffineDim(tuple(terms), -(kernel // 2)))
    has_windows = max(kernels) > 1
    outputs = tuple(AffineDim((Term(d, 1),)) for d in range(n + 1))
    return OperatorSpec(
        name="reader",
        kind="pooling" if has_windows else "elementwise",
        axes=tuple(axes),
        inputs=(Operand("x", "activation", dtype, shape, tuple(dims)),),
        output=Operand("y", "output", dtype, (*shape, 4096), outputs),
        combine="max" if has_windows else "none",
        body=identity(),
        acc_dtype=dtype,
    )
