"""The space of operator partitions: every F_op worth trying.

Source: T10 §4.3.1 and its two constraints (parallelism, padding); compute-shift model §2, §3, §7.
"""

from __future__ import annotations

from math import prod

import numpy as np

from t10.core.arrays import Ints
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.lengths import line_axes, part_length
from t10.core.space import PartitionSpace, UnrotatedSpace
from t10.errors import InputError
from t10.plan.options import PlanOptions

RELAXATION_STEP = 0.1
LEAST_WASTE = 1
"""Padding by one element: of a short axis, hardly any number of parts does with less."""
FEW_PARTITIONS = 1_200
"""An operator with no more partitions than this in all is searched without constraints."""
MOST_CANDIDATES = 4_000
"""One with no more than this is looked at without constraints where nothing rotates."""
FEW_UNROTATED = 8_000
"""One with no more than this is searched without constraints where nothing rotates."""
MOST_UNROTATED = 20_000
"""Beyond these, plans without rotation must occupy as many cores as those that rotate."""
UNROTATED_CORES = 0.75
"""The part of the fewest cores that constraints demand which plans without rotation must occupy."""


def axis_factors(
    extent: int, most: int, padding: float, *, is_line: bool = False, waste: int = 0
) -> tuple[int, ...]:
    """Return the parts an axis may be cut in: per part length the smallest F, at most `most`, padding respected.

    However short the axis, it may be padded by `waste` elements.
    """
    factors: list[int] = []
    known: set[int] = set()
    f = 1
    while f <= min(extent, most):
        length = -(-extent // f)
        f = -(-extent // length)
        rounded = part_length(extent, f, is_line=is_line)
        is_kept = extent >= padding * (f * rounded) or f * rounded - extent <= waste
        if f <= most and is_kept and rounded not in known:
            factors.append(f)
            known.add(rounded)
        if length == 1:
            break
        f = -(-extent // (length - 1))
    return tuple(factors)


def operator_partitions(spec: OperatorSpec, n_cores: int, *, parallelism: float, padding: float) -> Ints:
    """Return every F_op, shape (n, axes), with at most `n_cores` parts that satisfies both constraints."""
    return _partitions(spec, n_cores, least_cores(spec, n_cores, parallelism), padding)


def partitions_within(spec: OperatorSpec, space: PartitionSpace) -> Ints:
    """Return every F_op of a space, in the order in which `searched_partitions` had them.

    Raises `InputError` where there are others than the space counts: it is that of another operator.
    """
    if space.f_op is not None:
        return np.array([space.f_op], np.int64)
    return _counted(spec, _partitions(spec, space.cores, space.least_cores, space.padding), space.n_f_op)


def unrotated_within(spec: OperatorSpec, space: PartitionSpace) -> Ints:
    """Return every F_op that a space has for plans without rotation only; raises as `partitions_within` does."""
    return _further(_unrotated_rows(spec, space), partitions_within(spec, space))


def _unrotated_rows(spec: OperatorSpec, space: PartitionSpace) -> Ints:
    """Return every F_op of the plans without rotation of a space."""
    within = space.unrotated
    if within is None:
        return np.empty((0, len(spec.axes)), np.int64)
    rows = _partitions(spec, space.cores, within.least_cores, within.padding, LEAST_WASTE)
    return _counted(spec, rows, within.n_f_op)


def _counted(spec: OperatorSpec, rows: Ints, n_rows: int) -> Ints:
    """Return the F_op of a space if they are as many as it says."""
    if len(rows) != n_rows:
        raise InputError(
            f"the space counts {n_rows} F_op, {len(rows)} are within its constraints",
            operator=spec.name,
            location=spec.location or None,
            hint="run --t10-partition anew",
        )
    return rows


def _further(rows: Ints, known: Ints) -> Ints:
    """Return the rows that are not among those known, in their order."""
    seen: set[AxisSizes] = {tuple(row) for row in known.tolist()}
    return rows[[tuple(row) not in seen for row in rows.tolist()]] if len(rows) else rows


def _partitions(spec: OperatorSpec, n_cores: int, least: float, padding: float, waste: int = 0) -> Ints:
    """Return every F_op of `least` to `n_cores` parts that pads no axis too much, in lexicographic order."""
    lines = line_axes(spec)
    per_axis = [
        axis_factors(axis.extent, n_cores, padding, is_line=number in lines, waste=waste)
        if axis.is_splittable
        else (1,)
        for number, axis in enumerate(spec.axes)
    ]
    rows = np.ones((1, 0), np.int64)
    products = np.ones(1, np.int64)
    # What the axes still to come can contribute at most decides early which rows cannot reach the parallelism.
    rest = [prod(max(f, default=1) for f in per_axis[i + 1 :]) for i in range(len(per_axis))]
    for number, factors in enumerate(per_axis):
        choices = np.array(factors or (1,), np.int64)
        product = products[:, None] * choices
        keep = (product <= n_cores) & (product * rest[number] >= least)
        parent, chosen = np.nonzero(keep)
        rows = np.column_stack([rows[parent], choices[chosen]])
        products = product[parent, chosen]
    return rows


def has_few_partitions(spec: OperatorSpec, n_cores: int, most: int = FEW_PARTITIONS) -> bool:
    """Return whether an operator has at most so many F_op, constraints left out."""
    n_by_parts = np.zeros(n_cores + 1, np.int64)
    n_by_parts[1] = 1
    lines = line_axes(spec)
    for number, axis in enumerate(spec.axes):
        finer = np.zeros_like(n_by_parts)
        is_line = number in lines
        factors = axis_factors(axis.extent, n_cores, 0.0, is_line=is_line) if axis.is_splittable else (1,)
        for factor in factors:
            coarser = n_by_parts[: n_cores // factor + 1]
            finer[: len(coarser) * factor : factor][: len(coarser)] += coarser
        n_by_parts = finer
    return int(n_by_parts.sum()) <= most


def least_cores(spec: OperatorSpec, n_cores: int, parallelism: float) -> float:
    """Return how many cores must work at least: a part of those that could each make results of their own.

    Cores that would only add up partial sums may be used but are not demanded: a reduction of few rows is fastest on
    few cores.
    """
    usable = prod(axis.extent for axis in spec.axes if axis.is_splittable and axis.kind == "parallel")
    return parallelism * min(n_cores, usable)


def searched_partitions(spec: OperatorSpec, n_cores: int, options: PlanOptions) -> tuple[Ints, float]:
    """Return every F_op within the constraints of `options`, and the padding constraint that ft must keep.

    A small operator divides badly, so its constraints are loosened: of n independent results, parallelism by
    n / (n + 2 cores) and padding by n / (n + cores), as the planner of T10's authors does with points for results.
    Without a partition they are relaxed further, see `relaxed_partitions`. An operator of few partitions is searched
    without constraints; `exhaustive` does without them for all.
    """
    if options.exhaustive or has_few_partitions(spec, n_cores):
        return operator_partitions(spec, n_cores, parallelism=0.0, padding=0.0), 0.0
    n_results = prod(axis.extent for axis in spec.axes if axis.kind == "parallel")
    return relaxed_partitions(
        spec,
        n_cores,
        parallelism=options.parallelism * n_results / (n_results + 2 * n_cores),
        padding=options.padding * n_results / (n_results + n_cores),
    )


def candidate_partitions(spec: OperatorSpec, n_cores: int, options: PlanOptions) -> Ints:
    """Return the F_op that a whole model chooses from without rotation: all, of a large operator those searched.

    Of those that occupy as many cores as they should, short axes padded by an element count too: 7 in two parts of 4.
    """
    if has_few_partitions(spec, n_cores, MOST_CANDIDATES):
        return operator_partitions(spec, n_cores, parallelism=0.0, padding=0.0)
    rows, padding = searched_partitions(spec, n_cores, options)
    least = least_cores(spec, n_cores, options.parallelism)
    padded = _partitions(spec, n_cores, least, padding, LEAST_WASTE)
    return np.unique(np.concatenate([rows, padded]), axis=0)


def unrotated_space(
    spec: OperatorSpec, n_cores: int, options: PlanOptions
) -> tuple[UnrotatedSpace | None, Ints]:
    """Return further F_op for plans that do not rotate, as constraints and as rows: those `searched_partitions` lacks.

    Rotation multiplies the plans of every F_op, so the constraints keep that space small. Without rotation there is one
    plan per F_op: of an operator with few partitions all are looked at, of another those that occupy three quarters
    of the cores demanded, with short axes padded by an element too: 7 in two parts of 4.
    """
    searched, padding = searched_partitions(spec, n_cores, options)
    if options.exhaustive or options.as_published or has_few_partitions(spec, n_cores):
        return None, searched[:0]
    if has_few_partitions(spec, n_cores, FEW_UNROTATED):
        rows, padding = operator_partitions(spec, n_cores, parallelism=0.0, padding=0.0), 0.0
    else:
        least = int(searched.prod(axis=1).min())
        rows = _partitions(spec, n_cores, UNROTATED_CORES * least, padding, LEAST_WASTE)
        if len(rows) > MOST_UNROTATED:
            rows = _partitions(spec, n_cores, least, padding, LEAST_WASTE)
    further = _further(rows, searched)
    if not len(further):
        return None, further
    return UnrotatedSpace(int(rows.prod(axis=1).min()), padding, len(rows)), further


def relaxed_partitions(
    spec: OperatorSpec, n_cores: int, *, parallelism: float, padding: float
) -> tuple[Ints, float]:
    """Return every F_op and the padding constraint it satisfies, constraints relaxed in steps until there is one.

    First parallelism is lowered, then padding; without constraints F_op = 1 always remains.
    """
    while True:
        floor = parallelism
        while True:
            rows = operator_partitions(spec, n_cores, parallelism=floor, padding=padding)
            if len(rows):
                return rows, padding
            if floor <= 0.5 * parallelism:
                break
            floor = max(floor - RELAXATION_STEP, 0.0)
        if padding <= 0:
            rows = operator_partitions(spec, n_cores, parallelism=0.0, padding=0.0)
            return rows, 0.0
        padding = max(padding - RELAXATION_STEP, 0.0)
