"""Layouts as the dialect spells them hold, core by core, the elements that `core.movement` says: on random plans."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from random import Random
from typing import Any

import pytest
from support.random_plans import random_plan
from support.random_specs import random_operator

from t10.core import movement
from t10.core.chunks import window_chunk
from t10.core.expression import AffineDim, Operand, OperatorSpec, Term
from t10.core.plan import OperatorPlan
from t10.core.schedule import ValueLayout
from t10.dialect.grid import Grid
from t10.dialect.layout import LinearLayout, RotatingLayout
from t10.dialect.layout_attr import layout_of, with_layout
from t10.dialect.mlir import ir, new_context
from t10.dialect.ods import Invalid
from t10.passes.bridge.layouts import PaddedView, operand_layout, padded_view

N_CASES = 120
N_CORES = 16

Case = tuple[OperatorSpec, OperatorPlan, int, Operand]


def cases() -> Iterator[Case]:
    """Yield every operand of random operators under random plans."""
    for seed in range(N_CASES):
        rng = Random(seed)
        spec = random_operator(rng)
        plan = random_plan(rng, spec, N_CORES)
        for number, operand in enumerate((*spec.operands, spec.output)):
            yield spec, plan, number, operand


@pytest.fixture(autouse=True)
def context() -> Iterator[Any]:
    with new_context() as made, ir.Location.unknown():
        yield made


def padded_shape(operand: Operand, view: PaddedView) -> list[int]:
    """Return the shape of an operand with the elements that its root reads outside of it."""
    return [low + n + high for low, n, high in zip(view.low, operand.shape, view.high, strict=True)]


def through_a_type(layout: RotatingLayout, shape: list[int]) -> RotatingLayout:
    """Return a layout as it is read back from the text of a tensor type."""
    type_ = with_layout(ir.RankedTensorType.get(shape, ir.F16Type.get()), layout)
    found = layout_of(ir.Type.parse(str(type_)))
    assert isinstance(found, RotatingLayout)
    return found


def coordinates(grid: Grid) -> list[dict[int, int]]:
    """Return the coordinates of every core, as the docstring of `#rtensor.grid` says."""
    sizes = [range(grid.f_op[axis]) for axis in grid.core_order]
    still = dict.fromkeys(range(len(grid.f_op)), 0)
    return [still | dict(zip(grid.core_order, where, strict=True)) for where in product(*sizes)]


def phase(grid: Grid, where: dict[int, int], axis: int) -> int:
    """Return where a core starts along an axis."""
    total = 0
    for term in grid.phases[axis]:
        sigma = 0
        for sharer in term.sharer_axes:
            sigma = sigma * grid.f_op[sharer] + where[sharer]
        digits = list(range(term.modulus))
        if term.is_folded:
            digits = [*digits[::2], *digits[1::2][::-1]]
        total += term.stride * digits.index((sigma // term.divisor) % term.modulus)
    return total % grid.lengths[axis]


def held(layout: RotatingLayout) -> list[set[tuple[int, ...]]]:
    """Return the indices that every core holds, scattering aside, as the docstring of `#rtensor.layout` says."""
    grid = layout.grid
    found: list[set[tuple[int, ...]]] = []
    for where in coordinates(grid):
        indices: list[set[int]] = []
        for axis, length in enumerate(grid.lengths):
            at = layout.at[axis] if layout.at else 0
            first = phase(grid, where, axis) + at * grid.pace(axis) if layout.ft[axis] > 1 else 0
            window = range(first, first + length // layout.ft[axis])
            indices.append({where[axis] * length + index % length for index in window})
        dims: list[set[int]] = []
        for dim in layout.dims:
            sums = {dim.offset}
            for term in dim.terms:
                sums = {s + term.coefficient * index for s in sums for index in indices[term.axis]}
            # A dim of several axes, or with a coefficient, is one run with its halo.
            dims.append(sums if dim.is_simple else set(range(min(sums), max(sums) + 1)))
        found.append(set(product(*dims)))
    return found


def expected(spec: OperatorSpec, plan: OperatorPlan, number: int, operand: Operand) -> list[set[int]]:
    """Return the elements that every core holds by the planner's arithmetic."""
    elements = movement.operand_elements(spec, plan, number).reshape(plan.n_cores, -1)
    return [set(row.tolist()) - {-1} for row in elements]


def flat(index: tuple[int, ...], view: PaddedView, operand: Operand) -> int:
    """Return the number of the element at an index of the padded operand, -1 for padding."""
    number = 0
    for i, low, extent in zip(index, view.low, operand.shape, strict=True):
        if not low <= i < low + extent:
            return -1
        number = number * extent + i - low
    return number


def test_cores_hold_the_elements_that_the_planner_counts_on() -> None:
    rotating = 0
    for spec, plan, number, operand in cases():
        view = padded_view(spec, operand)
        layout = through_a_type(operand_layout(spec, plan, number), padded_shape(operand, view))
        found = [{flat(index, view, operand) for index in indices} - {-1} for indices in held(layout)]
        assert found == expected(spec, plan, number, operand), (spec.name, number)
        rotating += layout.rotates
    assert rotating > N_CASES // 4


def test_what_is_scattered_is_a_chunk_of_the_window_by_rank() -> None:
    compared = 0
    for spec, plan, number, operand in cases():
        layout = operand_layout(spec, plan, number)
        if number != len(spec.operands) or plan.reduce != "scatter":
            continue
        n_copies = layout.n_copies
        scattered = ValueLayout(
            "operand", operand.name, plan.n_cores, operand.dtype, spec.name, number, plan, n_copies
        )
        rows = movement.layout_map(spec, scattered, prod(operand.shape)).elements
        whole = movement.operand_elements(spec, plan, number).reshape(plan.n_cores, -1).tolist()
        chunk = window_chunk(len(whole[0]), n_copies)
        rank: dict[tuple[int, ...], int] = {}
        for core, window in enumerate(whole):
            number_among = rank[tuple(window)] = rank.get(tuple(window), -1) + 1
            mine = window[number_among * chunk : (number_among + 1) * chunk]
            assert [e for e in rows[core].tolist() if e >= 0] == [e for e in mine if e >= 0]
        compared += 1
    assert compared > N_CASES // 20


def test_layouts_and_types_say_the_same() -> None:
    for spec, plan, number, operand in cases():
        shape = padded_shape(operand, padded_view(spec, operand))
        layout = operand_layout(spec, plan, number)
        assert through_a_type(layout, shape) == layout


def test_other_forms_go_to_a_type_and_back() -> None:
    type_ = ir.RankedTensorType.get([6, 8], ir.F16Type.get())
    assert layout_of(type_) is None
    placed = with_layout(type_, LinearLayout(3))
    assert layout_of(placed) == LinearLayout(3)
    assert with_layout(placed, None) == type_


def test_values_that_no_text_spells_are_refused() -> None:
    """Rules that the form of the attribute implies hold for values that are built as well."""
    grid = Grid((2, 3), (4, 6), (1, 3), (1,), (0, 1), ((), ()))
    rows = (AffineDim((Term(0, 1),)),)
    with pytest.raises(Invalid, match="layout has 1 temporal factors for a grid of 2 axes"):
        RotatingLayout(grid, rows, (1,))
    with pytest.raises(Invalid, match="layout indexes axis 2 of a grid of 2 axes"):
        RotatingLayout(grid, (AffineDim((Term(2, 1),)),), (1, 1))
    with pytest.raises(Invalid, match="ft = 3 along axis 1, which does not index the tensor, expected 1"):
        RotatingLayout(grid, rows, (1, 3))
