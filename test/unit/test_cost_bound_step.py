"""Bounds of steps against what their code takes: never above it, and near it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from pathlib import Path
from random import Random

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.models import save
from support.random_products import Dims, product_of, random_product
from support.random_products import random_box as random_product_box
from support.random_steps import integer_map, random_box, random_epilogue, random_look_up, random_map
from support.specs import dim, row_reduce

from t10.chip import load_chip
from t10.codelets.count import cycles_of
from t10.core.chunks import window_chunk
from t10.core.expression import Axis, AxisSizes, Operand, OperatorSpec
from t10.core.fused_ends import with_addition
from t10.core.runs import epilogue_run
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand
from t10.core.task_nest import simplified
from t10.cost import IpuCostModel
from t10.cost.bound.step import combine_bound, epilogue_bound, sub_task_bound
from t10.cost.combine import combine_operator
from t10.cost.counted import CountedSteps
from t10.cost.trace import trace_table
from t10.cost.work import apart, step, sub_task
from t10.driver import compile
from t10.errors import UnsupportedOpError
from t10.profile.notation import operator
from t10.profile.operators import made_steps

SEED = 14
BOXES = 6
Ratios = list[float]


def _dims(*axes: tuple[int, ...]) -> Dims:
    return [dim(*((axis, 1) for axis in each)) for each in axes]


SUMS_IN_WINDOWS = (
    (
        (_dims((0,), (1,), (3,)), _dims((0,), (1,), (2,), (3,)), _dims((0,), (1,), (2,))),
        {3},
        ("f16", "f16"),
        (3, 2, 1, 8),
        ((3, 2, 1, 8), (3, 2, 1, 8), (3, 2, 3, 8)),
    ),
    (
        (
            _dims((0,), (1,), (3,), (4, 6), (5, 7)),
            _dims((1,), (2,), (6,), (7,), (3,)),
            _dims((0,), (1,), (2,), (4,), (5,)),
        ),
        {3, 6, 7},
        ("f16", "f32"),
        (1, 29, 1, 15, 16, 1, 7, 1),
        ((1, 29, 1, 15, 16, 3, 7, 2), (1, 29, 1, 15, 16, 1, 7, 1), (1, 29, 1, 15, 16, 1, 7, 1)),
    ),
    (
        (
            [*_dims((0,)), dim((1, 2), (4, 1)), dim((2, 2), (5, 1)), *_dims((3,))],
            _dims((4,), (5,), (3,)),
            _dims((0,), (1,), (2,), (3,)),
        ),
        {4, 5},
        ("f16", "f32"),
        (4, 19, 1, 16, 1, 3),
        ((4, 19, 1, 16, 2, 3), (4, 19, 1, 16, 1, 3), (4, 19, 1, 16, 1, 3)),
    ),
)
"""Operands, reduced axes, types, a box and windows; where operands are no longer than the box, code is slower."""


def _ratios(found: Iterator[tuple[OperatorSpec, AxisSizes, int, Task]]) -> Ratios:
    """Return bound / count of every task that fits a tile; none is above 1."""
    result: Ratios = []
    for spec, box, bound, task in found:
        try:
            count = cycles_of(task)
        except UnsupportedOpError:
            continue
        if count is not None:
            assert bound <= count, f"box {box} of {spec}: bound {bound}, counted {count}"
            result.append(bound / count)
    return result


def _drawn(
    make: Callable[[Random], OperatorSpec], n: int, seed: str
) -> Iterator[tuple[Random, OperatorSpec, AxisSizes]]:
    rng = Random(f"{SEED} {seed}")
    for _ in range(n):
        spec = make(rng)
        for _ in range(BOXES):
            yield rng, spec, random_box(rng, spec)


def _bound(spec: OperatorSpec, box: AxisSizes, *, is_whole: bool = False) -> int:
    return int(np.broadcast_to(sub_task_bound(spec, np.array([box], np.int64), is_whole=is_whole), (1,))[0])


@pytest.mark.slow
def test_maps_are_bounded_where_operands_are_as_large_as_the_box():
    drawn = _drawn(random_map, 60, "maps")
    found = _ratios(
        (spec, box, _bound(spec, box, is_whole=True), sub_task(spec, box)) for _, spec, box in drawn
    )
    assert len(found) > 300
    assert np.quantile(found, 0.5) >= 0.9
    assert np.quantile(found, 0.25) >= 0.6


@pytest.mark.slow
def test_maps_are_bounded_where_operands_lie_in_longer_windows():
    def tasks() -> Iterator[tuple[OperatorSpec, AxisSizes, int, Task]]:
        for rng, spec, box in _drawn(random_map, 60, "windows"):
            windows = tuple(tuple(n * rng.choice((1, 1, 2, 3)) for n in box) for _ in spec.rotatable)
            yield spec, box, _bound(spec, box), step(spec, box, windows)

    found = _ratios(tasks())
    assert len(found) > 300
    assert np.quantile(found, 0.5) >= 0.75


@pytest.mark.parametrize("box", [(9, 7, 45), (13, 15, 45), (7, 15, 61), (19, 13, 45), (19, 61, 45)])
def test_odd_rows_within_odd_loops_are_bounded(box: AxisSizes):
    """Rows of both operands then begin at the same part of a word, whichever way the loops are swapped."""
    swapped = next(each for each in made_steps() if "f16 to f16: b m d -> m b d" in each.spec.name)
    cycles = cycles_of(swapped.task(box))
    assert cycles is not None
    assert 0 < swapped.bound(box, is_whole=True) <= cycles


def map_of_integers(rng: Random) -> OperatorSpec:
    return integer_map(rng, rng.choice((2, 3)))


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_map, map_of_integers])
def test_few_rows_are_bounded(make: Callable[[Random], OperatorSpec]) -> None:
    def tasks() -> Iterator[tuple[OperatorSpec, AxisSizes, int, Task]]:
        for rng, spec, drawn in _drawn(make, 100, "few rows"):
            box = (*(min(n, rng.choice((1, 1, 2, 3, 6))) for n in drawn[:-1]), -(-drawn[-1] // 8) * 8)
            windows = tuple(tuple(n * rng.choice((1, 1, 2, 3)) for n in box) for _ in spec.rotatable)
            yield spec, box, _bound(spec, box), step(spec, box, windows)

    assert len(_ratios(tasks())) > 400


def test_few_rows_in_which_an_operand_stands_still_are_bounded() -> None:
    """x[a] - y[b, c, d] + z[a, d] over six short rows, operands in longer windows: workers find their parts sooner."""
    every = (0,), (1,), (2,), (3,)
    places = (("f16", ((0,),)), ("f32", every[1:]), ("f32", ((0,), (3,))), ("f16", every))
    *inputs, output = (
        Operand(f"t{n}", "activation", dtype, (64,) * len(dims), tuple(_dims(*dims)))
        for n, (dtype, dims) in enumerate(places)
    )
    ops = ("arith.truncf", (1,)), ("arith.subf", (0, 3)), ("arith.truncf", (2,)), ("arith.addf", (4, 5))
    body = ScalarFunction(3, tuple(ScalarOp(*op, "f16") for op in ops), 6)
    axes = tuple(Axis(name, 64, "parallel") for name in "abcd")
    spec = OperatorSpec("op", "elementwise", axes, tuple(inputs), output, "none", body, "f16")
    windows = ((1, 2, 6, 8), (3, 2, 3, 8), (2, 2, 9, 24), (1, 4, 3, 16))
    cycles = cycles_of(step(spec, (1, 2, 3, 8), windows))
    assert cycles is not None
    assert 0.9 * cycles < _bound(spec, (1, 2, 3, 8)) <= cycles


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_rows_of_few_points_that_stand_still_are_bounded(n: int) -> None:
    """x[n] over rows of up to three points, a row or two to a worker: 4 x 2 was bounded by 120 and takes 108."""
    spec = operator("elementwise", "n -> m n", "f16", "0", "none", {"m": 64, "n": 64})
    for m in range(1, 13):
        cycles = cycles_of(apart(step(spec, (m, n), ((1, n), (m, n)))))
        assert cycles is not None
        assert _bound(spec, (m, n)) <= cycles
        assert (m, n) != (4, 2) or _bound(spec, (m, n)) >= 0.9 * cycles


@pytest.mark.parametrize("box", [(7, 8, 105), (9, 7, 33), (15, 8, 105)])
def test_turns_of_four_points_are_bounded_where_their_instructions_are_joined(box: AxisSizes) -> None:
    """Four elements that lie apart are cast at once: that saves a slot of each turn."""
    moved = operator("elementwise", "c a b -> b c a", "f16", "0", "none", {"a": 64, "b": 64, "c": 128})
    spec = replace(moved, body=ScalarFunction(1, (ScalarOp("math.rsqrt", (0,), "f16"),), 1))
    names = [axis.name for axis in spec.axes]
    extents = tuple(box["abc".index(name)] for name in names)
    cycles = cycles_of(sub_task(spec, extents))
    assert cycles is not None
    assert 0.9 * cycles < _bound(spec, extents, is_whole=True) <= cycles


@pytest.mark.slow
def test_maps_of_whole_vectors_are_bounded_closely():
    """What planners cut: rows of multiples of eight points, of floats."""

    def tasks() -> Iterator[tuple[OperatorSpec, AxisSizes, int, Task]]:
        for _, spec, box in _drawn(random_map, 60, "whole vectors"):
            whole = (*box[:-1], -(-box[-1] // 8) * 8)
            if spec.acc_dtype in ("f16", "f32"):
                yield spec, whole, _bound(spec, whole, is_whole=True), sub_task(spec, whole)

    found = _ratios(tasks())
    assert np.quantile(found, 0.5) >= 0.95
    assert np.quantile(found, 0.1) >= 0.7


@pytest.mark.slow
@pytest.mark.parametrize("n_members", [1, 2, 3, 8])
def test_epilogues_are_bounded(n_members: int):
    steps = CountedSteps(load_chip("test-16"))
    found: list[float] = []
    for _, spec, box in _drawn(random_epilogue, 25, f"epilogues {n_members}"):
        windows = tuple(1 if axis in spec.reduction_axes else n for axis, n in enumerate(box))
        n_slots = window_chunk(prod(windows), n_members)
        run = epilogue_run(spec, windows, n_slots)
        slots, runs, members = (np.array([number]) for number in (n_slots, run, n_members))
        found_bound = epilogue_bound(spec, slots, runs, members, steps.chip.launch_cycles)
        bound = int(np.broadcast_to(found_bound, (1,))[0])
        # Ends that add have no bound but that of the additions.
        cycles = steps.end_apart(spec, (n_members, *windows))
        assert cycles is not None
        assert bound <= cycles, (spec, windows, bound, cycles)
        found.append(bound / cycles)
    assert len(found) > 100
    # What chunks take beside whole rows and what is left of one, other parts of rows, no bound knows.
    assert np.quantile(found, 0.5) >= (0.95 if n_members == 1 else 0.75)
    assert np.quantile(found, 0.25) >= (0.9 if n_members == 1 else 0.35)


def test_few_points_of_a_chunk_are_bounded():
    """A pair in one word may take less than a single point of it."""
    steps, n_pairs = CountedSteps(load_chip("test-16")), 0
    for _, spec, box in _drawn(random_epilogue, 20, "few points 2"):
        windows = tuple(1 if axis in spec.reduction_axes else min(n, 8) for axis, n in enumerate(box))
        n_members = -(-prod(windows) // 2)
        n_slots = window_chunk(prod(windows), n_members)
        if n_members == 1:
            continue
        n_pairs += n_slots == 2
        slots, runs, members = (
            np.array([n]) for n in (n_slots, epilogue_run(spec, windows, n_slots), n_members)
        )
        bound = int(np.max(epilogue_bound(spec, slots, runs, members, steps.chip.launch_cycles)))
        cycles = int(steps.end(spec, np.array([windows]), members)[0])
        assert bound <= cycles, (spec, windows, n_members)
    assert n_pairs > 20


def test_epilogues_over_one_column_are_bounded_closely():
    """Where the last axis has one point, rows lie along the one before it."""
    steps = CountedSteps(load_chip("test-16"))
    found: list[float] = []
    for _, spec, box in _drawn(random_epilogue, 40, "one column"):
        if len(spec.axes) != 3 or sorted(spec.output.axes) != [0, 1]:
            continue
        last = spec.output.dims[-1].terms[0].axis
        windows = tuple(1 if axis in (last, *spec.reduction_axes) else n for axis, n in enumerate(box))
        slots, runs, members = (
            np.array([n]) for n in (prod(windows), epilogue_run(spec, windows, prod(windows)), 1)
        )
        bound = int(np.max(epilogue_bound(spec, slots, runs, members, steps.chip.launch_cycles)))
        cycles = int(steps.end(spec, np.array([windows]), members)[0])
        assert bound <= cycles, (spec, windows, bound, cycles)
        found.append(bound / cycles)
    assert len(found) > 40
    assert np.quantile(found, 0.5) >= 0.9


def test_look_ups_are_bounded_closely():
    """They are priced as if every index found its row."""

    def tasks() -> Iterator[tuple[OperatorSpec, AxisSizes, int, Task]]:
        for _, spec, box in _drawn(random_look_up, 60, "look-ups"):
            yield spec, box, _bound(spec, box, is_whole=True), sub_task(spec, box, simplify=False)

    found = _ratios(tasks())
    assert len(found) > 300
    assert np.quantile(found, 0.5) >= 0.6


def _in_windows(rng: Random, spec: OperatorSpec, box: AxisSizes) -> Task:
    """Return a step over a box, some of whose operands lie in longer windows, that begins or adds."""
    windows = tuple(tuple(n * rng.choice((1, 1, 2, 3)) for n in box) for _ in spec.rotatable)
    return simplified(step(spec, box, windows, initial=rng.random() < 0.7))


def test_look_ups_are_bounded_in_longer_windows():
    """There what is one row of a table in a box may be several."""

    def tasks() -> Iterator[tuple[OperatorSpec, AxisSizes, int, Task]]:
        for rng, spec, box in _drawn(random_look_up, 60, "look-ups in windows"):
            windows = tuple(tuple(n * rng.choice((1, 1, 2, 3)) for n in box) for _ in spec.rotatable)
            yield spec, box, _bound(spec, box), simplified(step(spec, box, windows))

    assert np.quantile(_ratios(tasks()), 0.5) >= 0.55


@pytest.mark.slow
def test_sums_are_bounded_in_longer_windows():
    """In the window of an output, shares may be of single elements; in that of an input, lines that are not copied."""

    def tasks() -> Iterator[tuple[OperatorSpec, AxisSizes, int, Task]]:
        rng = Random(f"{SEED} products in windows")
        for _ in range(150):
            spec = random_product(rng)
            for _ in range(2):
                box = random_product_box(rng, spec)
                yield spec, box, _bound(spec, box), _in_windows(rng, spec, box)
        for operands, reduced, types, box, windows in SUMS_IN_WINDOWS:
            spec = product_of(operands, reduced, types)
            yield spec, box, _bound(spec, box), simplified(step(spec, box, windows))

    found = _ratios(tasks())
    assert len(found) > 200
    assert np.quantile(found, 0.5) >= 0.7


def test_additions_of_one_part_are_bounded_closely():
    for dtype in ("f16", "f32"):
        spec = combine_operator(dtype, "sum")
        for n_slots in (*range(1, 70), 128, 1000, 1001, 4096):
            bound = int(np.broadcast_to(combine_bound(spec, np.array([1]), np.array([n_slots])), (1,))[0])
            part = TaskOperand(dtype, (1,), 16, is_interleaved=True)
            # Where the epilogue adds, sums go elsewhere.
            beside = with_addition(identity(), "sum", dtype)
            tasks = (
                sub_task(spec, (1, n_slots), initial=False),
                Task((n_slots,), (part, part), part, "none", beside),
            )
            counts = [cycles_of(each) for each in (tasks[0], apart(tasks[1]))]
            count = min(each for each in counts if each is not None)
            assert bound <= count
            assert n_slots < 100 or bound >= 0.88 * count


def test_formulas_give_what_numpy_gives():
    rng = Random(SEED)
    for make in (random_map, random_look_up, random_epilogue):
        for _ in range(6):
            spec = make(rng)
            n_axes = len(spec.axes)
            boxes = np.array([random_box(rng, spec) for _ in range(40)], np.int64)

            def bound(table: np.ndarray, spec: OperatorSpec = spec) -> np.ndarray:
                return sub_task_bound(spec, table)

            expected = np.broadcast_to(bound(boxes), (len(boxes),))
            assert (trace_table(bound, n_axes).evaluate(boxes) == expected).all()
            if spec.epilogue is not None:
                rows = np.array(
                    [(prod(box), prod(box[-2:]), rng.choice((1, 2, 8))) for box in boxes.tolist()], np.int64
                )

                def end_bound(table: np.ndarray, spec: OperatorSpec = spec) -> np.ndarray:
                    return epilogue_bound(spec, table[:, 0], table[:, 1], table[:, 2], 40)

                formula = trace_table(end_bound, 3)
                expected = np.broadcast_to(end_bound(rows), (len(rows),))
                assert (formula.evaluate(rows) == expected).all()


@pytest.mark.parametrize("adds", [False, True])
def test_sums_of_one_term_are_bounded(adds: bool):
    """They are maps, and no sums."""

    def tasks() -> Iterator[tuple[OperatorSpec, AxisSizes, int, Task]]:
        for _, spec, drawn in _drawn(random_epilogue, 20, f"single terms {adds}"):
            box = (*drawn[:-1], 1)
            yield spec, box, _bound(spec, box), sub_task(spec, box, initial=not adds)

    found = _ratios(tasks())
    assert len(found) > 80
    assert np.quantile(found, 0.5) >= 0.5


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_few_points_of_many_operands_are_bounded(dtype: str):
    """A pair of halves takes less than a single one."""

    def tasks() -> Iterator[tuple[OperatorSpec, AxisSizes, int, Task]]:
        for n in (2, 5):
            rows, types = ", ".join(["m k"] * n), " ".join([dtype] * n)
            added = "0 1 addf" + "".join(f" {number} addf" for number in range(2, n))
            spec = operator("reduction", f"{rows} -> m", types, added, "max", {"m": 64, "k": 64})
            for box in ((m, 1) for m in range(1, 9)):
                yield spec, box, _bound(spec, box, is_whole=True), sub_task(spec, box, initial=True)

    assert len(_ratios(tasks())) == 16


def test_sums_of_less_than_a_word_of_bytes_are_bounded():
    spec = row_reduce(2, 4, "or", "i1")
    tasks = [
        (spec, (m, k), _bound(spec, (m, k)), step(spec, (m, k), ((m, k), (2 * m, k)), initial=initial))
        for m in range(1, 7)
        for k in range(1, 12)
        for initial in (False, True)
    ]
    assert _ratios(iter(tasks))


def test_epilogues_that_ask_where_they_are_are_bounded(tmp_path: Path):
    """Code computes once per row what depends on a row."""
    node = helper.make_node(
        "AveragePool",
        ["x"],
        ["y"],
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
        count_include_pad=0,
    )
    x, y = (TensorProto.FLOAT, [2, 5, 17, 17]), (TensorProto.FLOAT, [2, 5, 9, 9])
    chip = load_chip("test-16")
    spec = compile(save(tmp_path / "pool.onnx", [node], {"x": x}, {"y": y}), chip).plan.graph.operators[0]
    steps = CountedSteps(chip)
    for window in ((1, 5, 1, 9, 1, 1), (1, 5, 5, 1, 1, 1), (1, 3, 5, 1, 1, 1), (2, 3, 1, 1, 1, 1)):
        n_slots = prod(window)
        slots, runs, members = (np.array([n]) for n in (n_slots, epilogue_run(spec, window, n_slots), 1))
        bound = int(np.max(epilogue_bound(spec, slots, runs, members, chip.launch_cycles)))
        assert bound <= int(steps.end(spec, np.array([window]), members)[0])


def test_few_points_of_epilogues_that_ask_where_they_are_are_bounded() -> None:
    """Two points go to two workers: what ends a row of two is no part of their code."""
    rng, cost = Random(6), IpuCostModel(load_chip("test-64"))
    for one in (each for each in made_steps() if "@" in each.title):
        spec = one.spec
        boxes = [
            [1 if axis.kind == "reduction" else rng.choice((1, 1, 2, 3, 5, 9)) for axis in spec.axes]
            for _ in range(40)
        ]
        windows = np.array([*boxes, *_with_one_pair(spec)], np.int64)
        members = np.array([rng.choice((-2, 1, 2, 3)) for _ in windows], np.int64)
        least, found = (each.end_cycles_many(spec, windows, members) for each in (cost.least, cost))
        assert (least <= found).all(), spec.name


def _with_one_pair(spec: OperatorSpec) -> list[list[int]]:
    """Return windows of two points, along every axis of the output."""
    return [[2 if axis == a else 1 for axis in range(len(spec.axes))] for a in sorted(spec.output.axes)]


def test_running_products_of_f64_are_planned_though_no_code_computes_them(tmp_path: Path) -> None:
    """Their bound asks what one worker takes for a few points: there is no such code, which is no defect."""
    node = helper.make_node("CumProd", ["x", "axis"], ["y"])
    double = TensorProto.DOUBLE
    values = {"x": (double, [5])}, {"y": (double, [5])}
    inputs, outputs = (
        [helper.make_tensor_value_info(n, *spec) for n, spec in each.items()] for each in values
    )
    axis = helper.make_tensor("axis", TensorProto.INT32, [], [0])
    graph = helper.make_graph([node], "running", inputs, outputs, [axis])
    path = tmp_path / "m.onnx"
    # From this version on there is the operator.
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)]).SerializeToString()
    )
    assert compile(path, chip="test-4", program=False).report().total_cycles > 0
    with pytest.raises(UnsupportedOpError, match="f64"):
        compile(path, chip="test-4", program=True)
