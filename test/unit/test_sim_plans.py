"""Planned operators executed on every core give exactly what the expression says, in every way of sharing them out.

Values are small integers, so sums are exact in every type and the comparison is equality.
"""

from dataclasses import replace

import numpy as np
import pytest
from support import reference, specs
from support.simulation import Rows, chip_of, executed, plan_of, random_values, scheduled

from t10.core.chunks import window_chunk
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.graph import Graph, View
from t10.core.plan import OperatorPlan
from t10.cost import operator_cycles
from t10.cost.ipu import IpuCostModel
from t10.sim.result import SimResult


def run_one(
    spec: OperatorSpec,
    f_op: AxisSizes,
    ft: Rows | None = None,
    *,
    plan: OperatorPlan | None = None,
    idle_level: int = 0,
    high: int = 4,
    **chip_fields: int,
) -> tuple[OperatorPlan, SimResult]:
    """Execute one operator under a chosen partition and compare it with the reference, exactly."""
    chosen = plan or plan_of(spec, f_op, ft)
    graph = specs.one_operator_graph(spec)
    return chosen, run_graph(graph, (chosen,), (idle_level,), high, **chip_fields)


def run_graph(
    graph: Graph,
    plans: tuple[OperatorPlan, ...],
    idle: tuple[int, ...] | None = None,
    high: int = 4,
    **chip_fields: int,
) -> SimResult:
    """Execute a graph under chosen plans and compare it with the reference, exactly."""
    chip = chip_of(max(plan.n_cores for plan in plans), **chip_fields)
    given = random_values((*graph.inputs, *graph.weights), high=high)
    result = executed(scheduled(graph, plans, chip, idle), chip, given)
    for name, expected in reference.run(graph, given).items():
        assert result.outputs[name].dtype == expected.dtype
        np.testing.assert_array_equal(result.outputs[name], expected)
    return result


THREE_AGAINST_TWO: Rows = ((1, 1, 3), (1, 1, 2), (1, 1, 1))
CANNON: Rows = ((1, 1, 3), (1, 1, 3), (1, 1, 1))


@pytest.mark.parametrize("dtype", ["f16", "f32", "i32", "i64"])
def test_paper_example_with_unequal_factors_on_one_axis(dtype: str) -> None:
    # T10 figure 6: A is cut in three along k and B in two; one pace of two elements, three steps.
    plan, _ = run_one(specs.matmul(4, 6, 6, dtype), (2, 3, 1), THREE_AGAINST_TWO)
    assert (plan.rp[2], plan.steps[2]) == (2, 3)


def test_cannon_on_nine_cores() -> None:
    plan, result = run_one(specs.matmul(6, 9, 12), (3, 3, 1), CANNON)
    shifts = [record for record in result.timeline if record.kind == "shift"]
    # Every core passes a 2x4 block of A and a 4x3 block of B on, twice.
    assert [record.max_bytes for record in shifts] == [2 * (2 * 4 + 4 * 3)] * 2
    assert plan.n_sub_tasks == 3


def test_extents_that_no_factor_divides_are_padded_and_masked() -> None:
    run_one(specs.matmul(5, 7, 11), (2, 3, 1), THREE_AGAINST_TWO)
    run_one(specs.linear_relu(5, 7, 11), (2, 3, 2), ((1, 1, 3), (1, 1, 2), (1, 1, 1)))


@pytest.mark.parametrize("k_parts", [2, 3, 5])
def test_split_reduction_axis_is_reduced_and_scattered(k_parts: int) -> None:
    _, result = run_one(specs.linear_relu(6, 5, 20), (2, 1, k_parts))
    reduce = [record for record in result.timeline if record.kind == "reduce"]
    chunk = window_chunk(3 * 5, k_parts)
    assert [record.max_bytes for record in reduce] == [(k_parts - 1) * chunk * 4]


def test_more_members_than_output_elements() -> None:
    run_one(specs.matmul(1, 3, 16), (1, 1, 8))


def test_reduction_chunks_larger_than_the_shift_buffer_come_in_pieces() -> None:
    run_one(specs.linear_relu(12, 16, 6), (1, 1, 2), shift_buffer_bytes=64)


def test_output_rotates_through_its_sharers() -> None:
    # Partial sums of the columns pass around the cores that split k; no reduction phase is left.
    spec = specs.matmul(4, 6, 6)
    plan, result = run_one(spec, (1, 1, 3), ((1, 1, 1), (1, 1, 1), (1, 3, 1)))
    assert plan.steps[1] == 3
    assert result.bytes_by_kind["reduce"] == 0
    assert result.bytes_by_kind["shift"] > 0


def test_output_rotates_and_what_is_left_is_reduced() -> None:
    _, result = run_one(specs.linear_relu(4, 6, 8), (1, 1, 4), ((1, 1, 1), (1, 1, 1), (1, 2, 1)))
    assert result.bytes_by_kind["reduce"] > 0


def test_two_axes_rotate_in_serpentine_order() -> None:
    spec = specs.matmul(8, 6, 12)
    plan, _ = run_one(spec, (2, 4, 1), ((1, 1, 4), (1, 1, 2), (1, 1, 1)))
    assert plan.n_sub_tasks == 4
    plan, _ = run_one(specs.bmm(2, 8, 6, 12), (2, 4, 2, 1), ((1, 2, 1, 1), (1, 1, 1, 4), (1, 1, 1, 1)))
    assert plan.n_sub_tasks == 8


@pytest.mark.parametrize("buffer_bytes", [64, 80, 8192])
def test_shifts_in_rounds_of_the_shift_buffer(buffer_bytes: int) -> None:
    run_one(specs.matmul(8, 9, 24), (3, 3, 1), CANNON, shift_buffer_bytes=buffer_bytes)
    run_one(specs.matmul(8, 6, 24), (2, 3, 1), THREE_AGAINST_TWO, shift_buffer_bytes=buffer_bytes)


@pytest.mark.parametrize(("stride", "pad", "h"), [(1, 1, 8), (2, 1, 6), (1, 0, 5), (2, 3, 7)])
def test_convolution_reads_halos_and_padding(stride: int, pad: int, h: int) -> None:
    size = 7 if pad == 3 else 3
    spec = specs.conv2d(2, 4, h, h, 3, size, size, stride=stride, pad=pad)
    run_one(spec, (1, 2, 3, 2, 1, 1, 1))
    run_one(spec, (2, 1, 2, 1, 3, 1, 1))


def test_convolution_rotates_whole_blocks_with_their_halos() -> None:
    spec = specs.conv2d(1, 4, 8, 4, 2, 3, 3, pad=1)
    one = (1,) * 7
    plan, _ = run_one(spec, (1, 4, 1, 1, 1, 1, 1), ((1, 1, 4, 1, 1, 1, 1), one, one))
    assert plan.steps[2] == 4


def test_convolution_rotates_its_weights_over_output_positions() -> None:
    spec = specs.conv2d(1, 4, 6, 6, 4, 3, 3, pad=1)
    one = (1,) * 7
    run_one(spec, (1, 1, 3, 2, 1, 1, 1), (one, (1, 2, 1, 1, 3, 1, 1), one))


def test_output_of_a_convolution_rotates_while_its_input_stays() -> None:
    # Splitting c leaves partial sums; they rotate along h, an axis of the input's compound dim, which is whole there.
    spec = specs.conv2d(1, 2, 6, 4, 6, 3, 3, pad=1)
    one = (1,) * 7
    run_one(spec, (1, 1, 1, 1, 3, 1, 1), (one, one, (1, 1, 3, 1, 1, 1, 1)))


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_max_pooling_of_negative_values_ignores_padding(dtype: str) -> None:
    spec = specs.max_pool2d(1, 4, 5, 5, 3, dtype, pad=1)
    graph = specs.one_operator_graph(spec)
    plan = plan_of(spec, (1, 2, 3, 1, 1, 1))
    chip = chip_of(plan.n_cores)
    given = {name: -1 - value for name, value in random_values(graph.inputs).items()}
    result = executed(scheduled(graph, (plan,), chip), chip, given)
    np.testing.assert_array_equal(result.outputs["result"], reference.run(graph, given)["result"])


@pytest.mark.parametrize("combine", ["sum", "max"])
def test_split_rows_of_a_reduction(combine: str) -> None:
    spec = specs.row_reduce(6, 22, "max" if combine == "max" else "sum")
    run_one(spec, (2, 4))


@pytest.mark.parametrize(
    ("f_op", "ft"),
    [
        ((4, 2, 1), None),
        ((1, 1, 5), None),
        ((2, 1, 3), None),
        ((4, 1, 1), ((1, 1, 1), (1, 1, 4), (1, 1, 1))),
        ((2, 2, 3), ((1, 1, 1), (1, 1, 2), (1, 1, 1))),
    ],
)
def test_gather_with_the_table_split_or_rotating(f_op: AxisSizes, ft: Rows | None) -> None:
    run_one(specs.gather(9, 6, 23), f_op, ft, high=23)


def test_gather_whose_index_varies_along_the_selected_axis_compares_every_point() -> None:
    # o[i, d] = sum over v of [ids[i, v] = v] * table[v, d]
    spec = specs.gather(5, 4, 7, "i32")
    ids = Operand("ids", "activation", "i64", (5, 7), specs.dims(0, 2))
    run_one(replace(spec, inputs=(ids, spec.inputs[1])), (2, 1, 3), high=7)


@pytest.mark.parametrize("idle_level", [0, 1, 2, 3, 6])
def test_replicated_weights_rest_scattered_and_are_set_up(idle_level: int) -> None:
    _, result = run_one(specs.linear_relu(12, 4, 8), (6, 2, 1), idle_level=idle_level)
    assert (result.operators[0].cycles.setup == 0) == (idle_level == 1)


@pytest.mark.parametrize("rows", [CANNON, ((1, 1, 1), (1, 1, 3), (1, 1, 1))])
def test_weights_that_rotate_in_place_come_home(rows: Rows) -> None:
    spec = specs.matmul(6, 6, 12)
    _, away = run_one(spec, (3, 3, 1), rows, idle_level=0)
    _, home = run_one(spec, (3, 3, 1), rows, idle_level=1)
    n_shifts = [sum(r.kind == "shift" for r in result.timeline) for result in (away, home)]
    assert n_shifts == [2, 3]


def test_a_weight_at_home_serves_its_next_reader() -> None:
    # Both operators read w0 where it rests; the second computes garbage unless the first left every block at home.
    first = specs.matmul(6, 6, 6, name="first", a="x", b="w0", c="y")
    second = specs.matmul(6, 6, 6, name="second", a="y", b="w1", c="z")
    graph = specs.chain_graph("two", (first, second))
    plans = (plan_of(first, (3, 3, 1), CANNON), plan_of(second, (3, 3, 1), CANNON))
    plan = scheduled(graph, plans, chip_of(9), (1, 1))
    again = replace(second, inputs=(second.inputs[0], replace(second.inputs[1], name="w0")))
    shared = replace(graph, weights=graph.weights[:1], operators=(first, again))
    arrivals = tuple(
        replace(a, buffer="idle:w0") if a.buffer == "idle:w1" else a for a in plan.operators[1].arrivals
    )
    plan = replace(
        plan, graph=shared, operators=(plan.operators[0], replace(plan.operators[1], arrivals=arrivals))
    )
    given = random_values((*shared.inputs, *shared.weights), high=2)
    result = executed(plan, chip_of(9), given)
    np.testing.assert_array_equal(result.outputs["result"], given["x"] @ given["w0"] @ given["w0"])


def test_a_result_is_used_in_place_where_it_lies_right() -> None:
    add = specs.elementwise((6, 8), "arith.addf", name="add", a="x", b="y", o="s")
    relu = specs.map_unary((6, 8), "math.absf", name="abs", x="s", o="t")
    plans = (plan_of(add, (3, 2)), plan_of(relu, (3, 2)))
    graph = specs.chain_graph("pair", (add, relu))
    plan = scheduled(graph, plans, chip_of(6))
    assert [a.kind for a in plan.operators[1].arrivals] == ["in_place"]
    given = random_values(graph.inputs)
    result = executed(plan, chip_of(6), given)
    np.testing.assert_array_equal(result.outputs["result"], given["x"] + given["y"])


VIEWS = {
    "reshape": View("v", "reshape", ("s",), (8, 6), "f16"),
    "transpose": View("v", "transpose", ("s",), (8, 6), "f16", permutation=(1, 0)),
    "slice": View("v", "slice", ("s",), (3, 4), "f16", offsets=(0, 1), strides=(2, 2)),
    "concat": View("v", "concat", ("s", "x"), (12, 8), "f16", axis=0),
    "broadcast": View("v", "broadcast", ("s",), (6, 3, 8), "f16", dims=(0, 2)),
    "pad": View("v", "pad", ("s",), (8, 11), "f16", low=(1, 2), value="7.0"),
}


@pytest.mark.parametrize("kind", list(VIEWS))
def test_views_are_read_through_by_operators_and_outputs(kind: str) -> None:
    view = VIEWS[kind]
    first = specs.elementwise((6, 8), name="first", a="x", b="y", o="s")
    second = specs.elementwise(view.shape, name="second", a="v", b="v", o="t")
    graph = specs.chain_graph("viewed", (first, second), (view,))
    twice = View("u", "slice", ("t",), (1,) * len(view.shape), "f16", offsets=(1,) * len(view.shape),
                 strides=(1,) * len(view.shape))  # fmt: skip
    graph = replace(
        graph, views=(view, twice), outputs=(*graph.outputs, replace(graph.outputs[0], name="u", value="u"))
    )
    f_op = (2, 3) if len(view.shape) == 2 else (2, 1, 2)
    run_graph(graph, (plan_of(first, (3, 2)), plan_of(second, f_op)))


def test_a_view_of_a_scattered_result() -> None:
    first = specs.linear_relu(6, 4, 10, name="first", a="x", b="w", c="s")
    second = specs.matmul(4, 3, 6, name="second", a="v", b="u", c="t")
    view = View("v", "transpose", ("s",), (4, 6), "f16", permutation=(1, 0))
    graph = specs.chain_graph("scattered", (first, second), (view,))
    run_graph(graph, (plan_of(first, (2, 1, 5)), plan_of(second, (2, 1, 3))), high=2)


def test_cores_in_another_order_compute_the_same() -> None:
    spec = specs.matmul(4, 6, 6)
    plan = replace(plan_of(spec, (2, 3, 1), THREE_AGAINST_TWO), core_order=(1, 2, 0))
    run_one(spec, (2, 3, 1), plan=plan)


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_products_of_f16_are_summed_in_f32(dtype: str) -> None:
    # 4096 ones plus 4096 times 2^-12: f16 accumulation would stop at 2048.
    spec = specs.matmul(1, 1, 8192, dtype)
    graph = specs.one_operator_graph(spec)
    plan = plan_of(spec, (1, 1, 1))
    a = np.ones((1, 8192), dtype="float16" if dtype == "f16" else "float32")
    b = a.reshape(8192, 1).copy()
    b[4096:] = 2.0**-12
    chip = chip_of(1)
    result = executed(scheduled(graph, (plan,), chip), chip, {"a": a, "b": b})
    assert result.outputs["result"].tolist() == [[4096.0 if dtype == "f16" else 4097.0]]


def test_time_is_what_the_cost_model_predicts() -> None:
    spec = specs.linear_relu(12, 9, 24)
    plan, result = run_one(spec, (3, 3, 1), CANNON)
    predicted = operator_cycles(IpuCostModel(chip_of(9)), spec, plan)
    ran = result.operators[0].cycles
    assert (ran.compute, ran.shift, ran.reduce) == (predicted.compute, predicted.shift, predicted.reduce)
    assert result.cycles == sum(record.cycles for record in result.timeline)


def test_relayout_is_charged_as_planned() -> None:
    spec = specs.conv2d(1, 4, 6, 6, 2, 3, 3, pad=1)
    graph = specs.one_operator_graph(spec)
    plan = scheduled(graph, (plan_of(spec, (1, 2, 2, 2, 1, 1, 1)),), chip_of(8))
    result = executed(plan, chip_of(8), random_values((*graph.inputs, *graph.weights)))
    predicted = sum(a.cycles for a in plan.operators[0].arrivals if a.kind == "relayout")
    assert result.operators[0].cycles.relayout == predicted > 0
    assert result.peak_bytes == plan.peak_bytes


def test_body_of_several_operands_in_two_factors() -> None:
    # o[m, n] = sum_k (a[m, k] - s[m]) * b[k, n]: the first factor is a function of two operands.
    spec = specs.matmul(6, 4, 10, "f32")
    shift = Operand("s", "activation", "f32", (6,), specs.dims(0))
    body = specs.ScalarFunction(
        3, (specs.ScalarOp("arith.subf", (0, 1), "f32"), specs.ScalarOp("arith.mulf", (3, 2), "f32")), 4
    )
    spec = replace(spec, inputs=(spec.inputs[0], shift, spec.inputs[1]), body=body)
    run_one(spec, (3, 1, 4))
    run_one(spec, (2, 2, 1), ((1, 1, 2), (1, 1, 1), (1, 1, 2), (1, 1, 1)))


def test_body_that_ignores_the_points_it_counts() -> None:
    # o[m] = sum over k of x[m]: x is not indexed by k, yet every point of k counts once.
    spec = replace(
        specs.row_reduce(6, 10, "sum", "i32"),
        inputs=(Operand("x", "activation", "i32", (6,), specs.dims(0)),),
    )
    run_one(spec, (2, 4))


def test_progress_counts_sub_tasks_and_until_stops_early() -> None:
    first = specs.matmul(6, 6, 12, name="first", a="x", b="w0", c="y")
    second = specs.matmul(6, 6, 6, name="second", a="y", b="w1", c="z")
    graph = specs.chain_graph("two", (first, second))
    plans = (plan_of(first, (3, 3, 1), CANNON), plan_of(second, (3, 3, 1)))
    plan = scheduled(graph, plans, chip_of(9))
    given = random_values((*graph.inputs, *graph.weights), high=2)
    calls: list[tuple[int, int, str]] = []

    def note(step: int, n_steps: int, operator: str) -> None:
        calls.append((step, n_steps, operator))

    executed(plan, chip_of(9), given, progress=note)
    assert calls == [(1, 4, "first"), (2, 4, "first"), (3, 4, "first"), (4, 4, "second")]
    stopped = executed(plan, chip_of(9), given, until="first")
    assert list(stopped.outputs) == ["y"]
    np.testing.assert_array_equal(stopped.outputs["y"], given["x"] @ given["w0"])


def test_an_operator_without_inputs_computes_from_indices() -> None:
    # o[r, c] = 10 r + c
    ops = (
        specs.ScalarOp("index", (), "index", "0"), specs.ScalarOp("const", (), "index", "10"),
        specs.ScalarOp("arith.muli", (0, 1), "index"), specs.ScalarOp("index", (), "index", "1"),
        specs.ScalarOp("arith.addi", (2, 3), "index"), specs.ScalarOp("arith.index_cast", (4,), "i64"),
    )  # fmt: skip
    spec = OperatorSpec(
        name="iota",
        kind="elementwise",
        axes=specs.parallel(r=5, c=7),
        inputs=(),
        output=Operand("o", "output", "i64", (5, 7), specs.dims(0, 1)),
        combine="none",
        body=specs.ScalarFunction(0, ops, 5),
        acc_dtype="i64",
    )
    _, result = run_one(spec, (2, 3))
    assert result.outputs["result"][4].tolist() == [40, 41, 42, 43, 44, 45, 46]


@pytest.mark.parametrize("f_op", [(1, 1), (2, 3)])
def test_a_result_without_dims(f_op: AxisSizes) -> None:
    spec = OperatorSpec(
        name="total",
        kind="reduction",
        axes=specs.reduction(r=5, c=7),
        inputs=(Operand("x", "activation", "i32", (5, 7), specs.dims(0, 1)),),
        output=Operand("o", "output", "i32", (), ()),
        combine="sum",
        body=specs.identity(),
        acc_dtype="i32",
    )
    graph = specs.one_operator_graph(spec)
    plan = plan_of(spec, f_op)
    x = np.arange(35, dtype=np.int32).reshape(5, 7)
    result = executed(scheduled(graph, (plan,), chip_of(plan.n_cores)), chip_of(plan.n_cores), {"x": x})
    assert result.outputs["result"].tolist() == 35 * 34 // 2


def test_a_softmax_on_split_rows_is_numpys() -> None:
    graph = specs.softmax_graph(6, 20, "f32")
    plans = tuple(plan_of(spec, {2: (3, 4), 1: (3,)}[len(spec.axes)]) for spec in graph.operators)
    chip = chip_of(12)
    x = np.random.default_rng(1).standard_normal((6, 20)).astype(np.float32)
    result = executed(scheduled(graph, plans, chip), chip, {"x": x})
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(result.outputs["result"], e / e.sum(axis=1, keepdims=True), rtol=1e-5)
