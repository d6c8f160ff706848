"""Parts of lines are whole numbers of what code takes at once, where little of them is padding."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from support import specs

from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.core.lengths import LINE_UNITS, line_axes, part_length
from t10.core.part_lengths import part_lengths
from t10.cost import cost_model
from t10.plan.options import PlanOptions
from t10.plan.search.alignment import align_pace
from t10.plan.search.operator import search_operator
from t10.plan.search.space import axis_factors
from t10.plan.search.temporal import TemporalSpace


@pytest.mark.parametrize(
    ("extent", "parts", "length"),
    [(63, 1, 64), (127, 1, 128), (91, 1, 96), (1024, 11, 96), (1000, 10, 104), (46, 1, 48), (41, 1, 41),
     (10, 1, 10), (64, 64, 1)],
)  # fmt: skip
def test_lines_are_rounded_up_where_a_sixteenth_is_padding_at_most(
    extent: int, parts: int, length: int
) -> None:
    assert part_length(extent, parts, is_line=True) == length
    assert part_length(extent, parts) == -(-extent // parts)


def test_many_lengths_are_those_of_one() -> None:
    rng = Random(3)
    for _ in range(200):
        extents = tuple(rng.randint(1, 3000) for _ in range(3))
        f_op = np.array([[rng.randint(1, n) for n in extents] for _ in range(4)])
        lines = frozenset(axis for axis in range(3) if rng.random() < 0.5)
        expected = [
            [
                part_length(n, f, is_line=axis in lines)
                for axis, (n, f) in enumerate(zip(extents, row, strict=True))
            ]
            for row in f_op.tolist()
        ]
        assert part_lengths(extents, lines, f_op).tolist() == expected


def test_an_axis_has_every_length_once() -> None:
    for extent in (63, 197, 1024, 5120):
        factors = axis_factors(extent, 1472, 0.9, is_line=True)
        lengths = [part_length(extent, f, is_line=True) for f in factors]
        assert len(set(lengths)) == len(lengths)
        assert all(extent >= 0.9 * f * length for f, length in zip(factors, lengths, strict=True))
    assert 96 in [part_length(1024, f, is_line=True) for f in axis_factors(1024, 1472, 0.9, is_line=True)]


def layer(m: int, n: int, k: int) -> OperatorSpec:
    """y[m, n] = x[m, k] W[n, k]."""
    like = specs.matmul(m, n, k)
    weights = specs.operand("w", "weight", "f16", (n, k), specs.dims(1, 2))
    return replace(like, inputs=(like.inputs[0], weights))


def test_lines_are_the_last_dims_of_operands() -> None:
    assert line_axes(layer(8, 8, 8)) == {1, 2}
    assert line_axes(specs.row_reduce(8, 16, "sum")) == {0, 1}


def test_temporal_factors_divide_what_is_rounded_up() -> None:
    spec = layer(6, 8, 63)
    space = TemporalSpace.of(spec)
    for ft in space.partitions((6, 1, 1), 0.0).tolist():
        pace = align_pace(spec, (6, 1, 1), tuple(map(tuple, ft)))
        assert pace.lengths[2] >= 64
        assert all(pace.lengths[2] % row[2] == 0 for row in ft)


def test_a_product_of_odd_lines_takes_whole_ones() -> None:
    chip = load_chip("test-16")
    cost = cost_model("ipu", chip)
    options = PlanOptions()
    fronts = [search_operator(layer(736, 64, k), chip, cost, options).front for k in (63, 64)]
    odd, even = (front[-1] for front in fronts)
    assert odd.plan.lengths[2] % min(LINE_UNITS) == 0
    assert odd.cycles.compute <= even.cycles.compute
