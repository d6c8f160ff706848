"""What a plan is lowered to computes what the plan does: every task and every copy, executed by their definitions."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from support import random_plans, random_specs, reference, specs, task_interpreter
from support.draw import seed_of_commit, so_many
from support.random_cases import Case, planned_case, small_case, small_chip

from t10.core.expression import Operand
from t10.cost import IpuCostModel
from t10.emit.lower import lower


def check(case: Case) -> None:
    """Lower a case and compare what it computes with the reference, exactly."""
    with task_interpreter.recording() as recorder:
        program = lower(case.plan, case.chip, IpuCostModel(case.chip))
    values = {tensor.name: case.arrays[tensor.name] for tensor in (*case.graph.weights, *case.graph.inputs)}
    got = task_interpreter.run(program, recorder, values)
    for name, due in reference.run(case.graph, case.arrays).items():
        assert got[name].dtype == due.dtype
        np.testing.assert_array_equal(got[name], due)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, (1 << 32) - 1))
def test_lowered_random_plans_compute_what_numpy_does(number: int) -> None:
    check(small_case(number))


@pytest.mark.parametrize("number", range(12))
def test_a_loop_that_goes_on_past_a_tensor_reads_its_padding(number: int) -> None:
    """Sums of rows of 7, of which the tensor holds 5: no window slides, and yet slots outside the tensor are read."""
    rng = Random(number)
    rows = specs.row_reduce(6, 7, "sum", dtype="f32")
    operand = Operand(rows.inputs[0].name, "activation", "f32", (6, 5), rows.inputs[0].dims, "2.0")
    graph = specs.one_operator_graph(replace(rows, inputs=(operand,)))
    chip = small_chip(8)
    arrays = random_specs.random_arrays(rng, graph)
    check(Case(number, chip, graph, random_plans.random_module(rng, graph, chip), arrays))


@pytest.mark.slow
@seed(seed_of_commit())
@settings(max_examples=so_many(60, 20), deadline=None)
@given(st.integers(0, (1 << 32) - 1))
def test_lowered_planned_models_compute_what_numpy_does(number: int) -> None:
    check(planned_case(number))
