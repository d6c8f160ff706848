"""Planning as T10's authors did: a setting to compare ours with."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.specs import matmul

from t10.arrays import read_arrays
from t10.chip import load_chip
from t10.cost import IpuCostModel
from t10.driver import Executable, compile
from t10.plan.options import PlanOptions
from t10.plan.search.operator import is_chain, plan_operator
from t10.reference import compare, default_tolerance, run_onnx_runtime, split_reference

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"


@pytest.fixture(scope="module")
def published() -> Executable:
    return compile(MODELS / "mlp.onnx", "test-16", options=PlanOptions(as_published=True), partials="f16")


@pytest.mark.sampled(1)
def test_no_operator_is_joined_to_another_and_algorithm_1_chooses(published: Executable) -> None:
    ours = compile(MODELS / "mlp.onnx", "test-16", partials="f16")
    assert len(published.plan.operators) > len(ours.plan.operators)
    assert published.plan.optimality is not None
    assert published.plan.optimality.method == "greedy"
    assert all(not spec.epilogue_inputs for spec in published.plan.graph.operators)


def test_its_plans_compute_what_the_model_does(published: Executable) -> None:
    inputs, _ = split_reference(read_arrays(MODELS / "mlp.npz"))
    expected = run_onnx_runtime(MODELS / "mlp.onnx", inputs)
    found = published.run(inputs)
    compared = compare(found, expected, default_tolerance(published.plan.graph))
    assert [each.name for each in compared if each.is_within] == list(published.output_names)


def test_parts_of_one_tensor_divide_those_of_the_next() -> None:
    assert is_chain(((2, 1), (4, 3), (1, 6)))
    assert not is_chain(((3, 1), (2, 1), (1, 1)))


def test_only_such_plans_are_searched() -> None:
    """On axis k of 2 x 3 cores, the paper's own example rotates 3 parts of A and 2 of B: it is left out."""
    chip = load_chip("test-16").model_copy(update={"n_cores": 6})
    spec, cost = matmul(2, 6, 3), IpuCostModel(chip)
    for options in (PlanOptions(as_published=True), PlanOptions(as_published=True, exhaustive=True)):
        assert all(is_chain(priced.plan.ft) for priced in plan_operator(spec, chip, cost, options))
