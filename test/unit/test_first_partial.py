"""Biases as first partials: which operators and plans have them, what cores then compute, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.models import save, weights
from support.specs import dims, linear_relu, matmul

import t10
from t10.backend import lowered, run_on_host, run_on_tiles, write_program
from t10.chip import load_chip
from t10.codelets.count import counted_cycles, run_cycles
from t10.core.costs import computed
from t10.core.expression import OperatorSpec
from t10.core.first_partial import (
    BLOCK_TERMS,
    MOST_NARROW_TERMS,
    begins_with_bias,
    begun,
    bias_number,
    may_begin,
    may_begin_many,
)
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.cost import IpuCostModel
from t10.cost.bound.step import sub_task_bound
from t10.cost.model import least_costs
from t10.cost.work import sub_task
from t10.plan.options import PlanOptions
from t10.plan.search.evaluate import evaluate
from t10.plan.search.operator import search_operator
from t10.reference import OnnxRuntime, load_onnx
from t10.sim.scalar_eval import evaluate as computed_value
from t10.tolerances import RELATIVE

CHIP = load_chip("test-4")
COST = IpuCostModel(CHIP)
M, N, K = 96, 16, 16
KINDS = ("f32", "mixed", "f16")


def layer(m: int = M, n: int = N, k: int = K, dtype: str = "f16") -> OperatorSpec:
    """c[m, n] = relu(sum of a[m, k] * b[n, k] + bias[n]): both factors lie along the sum."""
    spec = linear_relu(m, n, k, dtype)
    a, b = spec.inputs
    return replace(spec, inputs=(a, replace(b, shape=(n, k), dims=dims(1, 2))))


def narrow(spec: OperatorSpec, kind: str) -> OperatorSpec:
    """Return a layer whose sums are f16: as they grow, or (`mixed`) in what a core hands on."""
    if kind == "f32":
        return spec
    body = ScalarFunction(2, (ScalarOp("arith.mulf", (0, 1), "f16"),), 2)
    if kind == "mixed":
        widened = (ScalarOp("arith.extf", (0,), "f32"), ScalarOp("arith.extf", (1,), "f32"))
        rounded = (ScalarOp("arith.mulf", (2, 3), "f32"), ScalarOp("arith.truncf", (4,), "f16"))
        body = ScalarFunction(2, (*widened, *rounded), 5)
    added, zero = ScalarOp("arith.addf", (0, 1), "f16"), ScalarOp("const", (), "f16", "0.0")
    epilogue = ScalarFunction(2, (added, zero, ScalarOp("arith.maximumf", (2, 3), "f16")), 4)
    return replace(spec, body=body, acc_dtype="f16", epilogue=epilogue)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bias_that_is_added_first_may_begin_sums(kind: str) -> None:
    spec = narrow(layer(), kind)
    assert bias_number(spec) == 0
    rest = begun(spec)
    assert rest.first == spec.epilogue_inputs[0]
    assert rest.epilogue_inputs == ()
    assert begun(rest) == rest


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [None, (0, 1, 2), (1, 2, 0)])
def test_many_parts_may_begin_as_each_of_them_does(kind: str, order: tuple[int, int, int] | None) -> None:
    spec = narrow(layer(m=4096, n=4096, k=64), kind)
    spec = spec if order is None else in_two_parts(spec, order)
    dice = np.random.default_rng(3)
    sizes = np.array([1, 2, 7, 8, 15, 16, 17, 20, 24, 32, 64, 2048, 2056])
    lengths = dice.choice(sizes, (1600, len(spec.axes)))
    expected = [may_begin(spec, tuple(row)) for row in lengths.tolist()]
    assert may_begin_many(spec, lengths).tolist() == expected
    assert 5 < sum(expected) < 1595


def in_two_parts(spec: OperatorSpec, order: tuple[int, int, int]) -> OperatorSpec:
    """Return a layer whose rows, and whose terms, are those of two axes each; results lie by axes in this order."""
    m, n, k = spec.axes
    axes = (replace(m, name="b", extent=2), m, n, replace(k, name="j", extent=2), k)
    a, b = spec.inputs
    out, bias = spec.output, spec.epilogue_inputs[0]
    return replace(
        spec,
        axes=axes,
        inputs=(
            replace(a, shape=(2, m.extent, 2, k.extent), dims=dims(0, 1, 3, 4)),
            replace(b, shape=(n.extent, 2, k.extent), dims=dims(2, 3, 4)),
        ),
        output=replace(out, shape=tuple(axes[axis].extent for axis in order), dims=dims(*order)),
        epilogue_inputs=(replace(bias, dims=dims(2)),),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_of_an_epilogue_takes_the_sum(kind: str) -> None:
    spec = narrow(layer(), kind)
    rest = begun(spec).epilogue
    assert spec.epilogue is not None
    assert rest is not None
    dtype = np.float32 if kind == "f32" else np.float16
    sums = np.random.default_rng(0).standard_normal(64).astype(dtype)
    bias = np.random.default_rng(1).standard_normal(64).astype(np.float16)

    def nowhere(axis: int) -> np.ndarray:
        raise AssertionError(axis)

    whole = computed_value(spec.epilogue, [sums, bias], nowhere)
    parts = computed_value(rest, [sums + bias.astype(dtype)], nowhere)
    np.testing.assert_array_equal(whole, parts)


def _with_epilogue(spec: OperatorSpec, *ops: ScalarOp) -> OperatorSpec:
    return replace(spec, epilogue=ScalarFunction(2, ops, 1 + len(ops)))


def test_other_epilogues_begin_no_sums() -> None:
    spec = layer()
    widened, added = ScalarOp("arith.extf", (1,), "f32"), ScalarOp("arith.addf", (0, 2), "f32")
    halved = ScalarOp("arith.truncf", (3,), "f16")
    assert bias_number(_with_epilogue(spec, widened, added, halved)) == 0
    first_negated = (widened, ScalarOp("arith.negf", (0,), "f32"), ScalarOp("arith.addf", (3, 2), "f32"))
    assert bias_number(_with_epilogue(spec, *first_negated, replace(halved, operands=(4,)))) is None
    scaled = ScalarOp("arith.mulf", (0, 2), "f32")
    assert bias_number(_with_epilogue(spec, widened, scaled, halved)) is None
    twice = ScalarOp("arith.mulf", (3, 0), "f32")
    assert bias_number(_with_epilogue(spec, widened, added, twice, replace(halved, operands=(4,)))) is None
    assert bias_number(layer(dtype="f32")) is None
    assert bias_number(matmul(M, N, K)) is None
    everywhere = replace(spec.epilogue_inputs[0], shape=(M, N), dims=spec.output.dims)
    assert bias_number(replace(spec, epilogue_inputs=(everywhere,))) is None


@pytest.mark.parametrize(
    ("spec", "lengths", "expected"),
    [
        (layer(), (16, 8, 16), True),
        (layer(), (15, 8, 16), False),
        (layer(), (16, 12, 16), False),
        (layer(k=15), (16, 8, 16), False),
        (layer(k=17), (16, 8, 20), True),
        (layer(n=4096), (16, 4096, 16), False),
        (narrow(layer(), "f16"), (16, 16, 16), True),
        (narrow(layer(), "f16"), (16, 8, 16), False),
        (narrow(layer(k=128), "f16"), (16, 16, 128), True),
        (narrow(layer(k=144), "f16"), (16, 16, 144), False),
        (narrow(layer(k=32), "mixed"), (16, 8, 32), True),
        (narrow(layer(), "mixed"), (16, 8, 16), False),
        (narrow(layer(k=34), "mixed"), (16, 8, 34), False),
    ],
)
def test_parts_decide(spec: OperatorSpec, lengths: tuple[int, ...], expected: bool) -> None:
    assert may_begin(spec, lengths) == expected


def test_plans_of_whole_sums_alone_begin_so() -> None:
    spec = layer()
    front = search_operator(spec, CHIP, COST, PlanOptions()).front
    found = [begins_with_bias(spec, each.plan) for each in front]
    assert found[-1]
    for each in front:
        is_whole = each.plan.f_op[2] == 1 and max(each.plan.steps) == 1
        is_begun = begins_with_bias(spec, each.plan)
        assert is_whole or not is_begun
        assert (computed(COST, spec, each.plan).first is not None) == is_begun


def test_prices_are_those_of_all_plans_and_no_bound_is_above() -> None:
    spec = layer()
    pruned, whole = (
        search_operator(spec, CHIP, COST, PlanOptions(), is_pruning=p).front for p in (True, False)
    )
    assert pruned == whole
    rows = np.array([(m, n, k) for m in (1, 2, 4) for n in (1, 2) for k in (1, 2)], np.int64)
    ft = np.ones((len(rows), 3, 3), np.int64)
    exact, least = (evaluate(spec, cost, rows, ft) for cost in (COST, least_costs(COST)))
    assert (least.compute <= exact.compute).all()
    plain = evaluate(replace(spec, epilogue=begun(spec).epilogue, epilogue_inputs=()), COST, rows, ft)
    begins = np.array([k == 1 and may_begin(spec, (M // m, N // n, K)) for m, n, k in rows.tolist()])
    assert begins.any()
    # What is added first costs far less than half a cycle per element.
    elements = M * N // rows[:, :2].prod(axis=1)
    assert ((exact.compute - plain.compute)[begins] < 200 + elements[begins] / 2).all()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_steps_take_what_is_counted_and_no_less_than_their_bound(seed: int, kind: str) -> None:
    rng = Random(f"{seed} {kind}")
    terms = 4 * rng.randint(5, 25) if kind == "mixed" else rng.randint(16, 100)
    columns = 16 if kind == "f16" else 8
    box = rng.randint(16, 80), columns * rng.randint(1, 12), terms
    spec = narrow(layer(*box), kind)
    assert may_begin(spec, box)
    task = sub_task(begun(spec), box)
    assert task.first is not None
    cycles = counted_cycles(task)
    assert cycles == run_cycles(task)
    for is_whole in (False, True):
        bound = sub_task_bound(begun(spec), np.array([box], np.int64), is_whole=is_whole)
        assert bound[0] <= cycles


def test_a_bias_swallows_little_of_what_is_added_to_it_in_f16() -> None:
    bias, half_unit = np.float16(1000.0), 2.0**-11
    sums = bias
    for _ in range(MOST_NARROW_TERMS // BLOCK_TERMS):
        sums = np.float16(sums + np.float16(0.2))
    assert sums == bias
    assert MOST_NARROW_TERMS // BLOCK_TERMS * half_unit < RELATIVE["f16"]


def test_where_a_bias_is_all_that_follows_nothing_is_left() -> None:
    spec = narrow(layer(k=32), "mixed")
    spec = replace(spec, epilogue=ScalarFunction(2, (ScalarOp("arith.addf", (0, 1), "f16"),), 2))
    assert begun(spec).epilogue is None
    assert begun(spec).epilogue_inputs == ()
    whole = [
        each
        for each in search_operator(spec, CHIP, COST, PlanOptions()).front
        if begins_with_bias(spec, each.plan)
    ]
    assert whole
    for each in whole:
        counted = counted_cycles(sub_task(begun(spec), each.plan.lengths))
        assert counted is not None
        assert each.cycles.compute == CHIP.launch_cycles + counted


def _model(folder: Path, k: int) -> Path:
    """Write y = relu(x w + b) v + c."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["p"], name="wide"),
        helper.make_node("Relu", ["p"], ["r"]),
        helper.make_node("Gemm", ["r", "v", "c"], ["y"], name="narrow"),
    ]
    arrays = {
        "w": weights(0, k, 64, dtype="float16"), "b": weights(1, 64, dtype="float16"),
        "v": weights(2, 64, 32, dtype="float16"), "c": weights(3, 32, dtype="float16"),
    }  # fmt: skip
    half = TensorProto.FLOAT16
    return save(folder / "m.onnx", nodes, {"x": (half, [96, k])}, {"y": (half, [96, 32])}, **arrays)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [48, 63])
def test_every_engine_adds_the_bias_first(tmp_path: Path, k: int, kind: str) -> None:
    path = _model(tmp_path, k)
    executable = t10.compile(path, chip="test-4", partials=kind)
    program = lowered(executable)
    assert [each.name for each in program.program.codelets if "_first_" in each.name]
    x = weights(4, 96, k, dtype="float16")
    write_program(executable, program, tmp_path)
    tiles = run_on_tiles(executable, {"x": x})
    assert tiles.cycles == executable.report().total_cycles
    expected = OnnxRuntime(load_onnx(path), path).outputs({"x": x})["y"]
    for found in (
        tiles.outputs["y"],
        executable.run({"x": x})["y"],
        run_on_host(executable, tmp_path, {"x": x})["y"],
    ):
        np.testing.assert_allclose(found, expected, rtol=4e-3, atol=4e-3)
