"""A run is what an epilogue's operands all walk evenly: rows where a bias begins anew, else everything."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from support import specs
from support.random_specs import random_operator

from t10.core.expression import AffineDim, Operand, OperatorSpec
from t10.core.geometry import partition_shape
from t10.core.runs import epilogue_run, epilogue_run_axes, even_run
from t10.core.task_nest import axis_strides

BIASED = specs.linear_relu(24, 40, 36)


def with_input(spec: OperatorSpec, *dims: AffineDim, shape: tuple[int, ...]) -> OperatorSpec:
    """Return the operator with another epilogue input in place of its bias."""
    return replace(spec, epilogue_inputs=(Operand("other", "activation", "f16", shape, dims),))


def test_without_epilogue_inputs_everything_is_one_run() -> None:
    spec = specs.conv2d(1, 16, 14, 14, 8, 3, 3, pad=1)
    assert epilogue_run_axes(spec) == tuple(dim.terms[0].axis for dim in spec.output.dims)
    windows = tuple(2 for _ in spec.axes)
    assert epilogue_run(spec, windows, 16) == 16


def test_a_bias_along_the_columns_makes_rows_of_runs() -> None:
    assert epilogue_run_axes(BIASED) == (1,)
    assert epilogue_run(BIASED, (6, 10, 36), 60) == 10


def test_what_lies_as_the_output_does_makes_no_rows() -> None:
    residual = with_input(BIASED, *specs.dims(0, 1), shape=(24, 40))
    assert epilogue_run_axes(residual) == (0, 1)
    turned = with_input(BIASED, *specs.dims(1, 0), shape=(40, 24))
    assert epilogue_run_axes(turned) == (1,)
    per_row = with_input(BIASED, *specs.dims(0), shape=(24,))
    assert epilogue_run_axes(per_row) == (1,)


def test_a_chunk_may_be_less_than_a_row() -> None:
    assert epilogue_run(BIASED, (6, 10, 36), 15) == 10
    assert epilogue_run(BIASED, (6, 10, 36), 7) == 7


def test_dims_over_no_axis_do_not_count() -> None:
    (rows, columns) = specs.dims(0, 1)
    operand = Operand("x", "output", "f16", (4, 1, 6, 1), (rows, AffineDim(()), columns, AffineDim(())))
    assert even_run(operand, (operand,), operand.axes) == (0, 1)


@pytest.mark.parametrize("seed", range(60))
def test_every_operand_steps_evenly_through_a_run(seed: int) -> None:
    spec = random_operator(Random(seed))
    rng = Random(seed)
    windows = tuple(rng.randint(1, axis.extent) for axis in spec.axes)
    axes = epilogue_run_axes(spec)
    for operand in (spec.output, *spec.epilogue_inputs):
        strides = axis_strides(operand, windows)
        for outer, inner in pairwise(axes):
            assert strides[outer] == strides[inner] * windows[inner]
    # The next axis further out would break it for one of them.
    others = [dim.terms[0].axis for dim in spec.output.dims if dim.terms][: -len(axes)] if axes else []
    if others and all(dim.is_simple for each in spec.epilogue_inputs for dim in each.dims):
        lengths = tuple(axis.extent + 1 for axis in spec.axes)
        walked = [axis_strides(each, lengths) for each in (spec.output, *spec.epilogue_inputs)]
        assert any(s[others[-1]] != s[axes[0]] * lengths[axes[0]] for s in walked)
    assert partition_shape(spec.output, windows)
