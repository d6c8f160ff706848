"""Tiny models on ipu-mk2: pins once beat what was called optimal, and smaller chips were faster."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from t10.chip import load_chip
from t10.core.schedule import ModulePlan
from t10.driver import compile
from t10.plan.schedule import sum_of_cycles

Shapes = Mapping[str, Sequence[int]]
N_PINNED = 4
WHOLE = load_chip("ipu-mk2")


def saved(
    path: Path, nodes: Sequence[onnx.NodeProto], inputs: Shapes, outputs: Shapes, weights: Shapes
) -> Path:
    """Return the file of an f16 model; inputs of rank 1 are indices."""

    def info(name: str, shape: Sequence[int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(
            name, TensorProto.INT64 if len(shape) == 1 else TensorProto.FLOAT16, list(shape)
        )

    rng = np.random.default_rng(0)
    graph = helper.make_graph(
        list(nodes),
        "small",
        [info(*each) for each in inputs.items()],
        [info(*each) for each in outputs.items()],
        [
            numpy_helper.from_array((rng.standard_normal(shape) / 20).astype(np.float16), name)
            for name, shape in weights.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def gathered(path: Path) -> Path:
    """Return rows of a table times a matrix."""
    nodes = (
        helper.make_node("Gather", ["t", "i"], ["e"], axis=0),
        helper.make_node("MatMul", ["e", "w"], ["y"]),
    )
    return saved(path, nodes, {"i": [19]}, {"y": [19, 21]}, {"t": [77, 35], "w": [35, 21]})


def biased(path: Path) -> Path:
    """Return relu(x @ w + b)."""
    nodes = (
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    )
    return saved(path, nodes, {"x": [5, 3, 37]}, {"y": [5, 3, 51]}, {"w": [37, 51], "b": [51]})


def separable(path: Path) -> Path:
    """Return a 1x1, a depthwise 3x3 and a 1x1 convolution, and x added."""
    nodes = (
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Conv", ["a", "d"], ["b"], group=24, pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["b", "v"], ["c"]),
        helper.make_node("Add", ["c", "x"], ["y"]),
    )
    weights = {"w": [24, 8, 1, 1], "d": [24, 1, 3, 3], "v": [8, 24, 1, 1]}
    return saved(path, nodes, {"x": [1, 8, 14, 14]}, {"y": [1, 8, 14, 14]}, weights)


def planned(model: Path, n_cores: int = WHOLE.n_cores, pins: Path | None = None) -> ModulePlan:
    chip = WHOLE.model_copy(update={"n_cores": n_cores})
    return compile(model, chip, plan=pins, program=False).plan


def pinned_cycles(model: Path, f_op_by_operator: Mapping[str, Sequence[int]], n_cores: int) -> int:
    """Return what a model takes with these partitions."""
    operators = [{"name": name, "f_op": list(f_op)} for name, f_op in f_op_by_operator.items()]
    pins = model.with_suffix(".json")
    pins.write_text(json.dumps({"format": "t10-pins", "version": 1, "operators": operators}))
    return sum_of_cycles(planned(model, n_cores, pins))


def random_partition(extents: Sequence[int], n_cores: int, rng: Random) -> list[int]:
    """Return parts per axis, of axes in random order as many as are left over or any number of them."""
    f_op, left = [1] * len(extents), n_cores
    for axis in rng.sample(range(len(extents)), len(extents)):
        most = min(extents[axis], left)
        length = -(-extents[axis] // rng.choice((1, most, rng.randint(1, most))))
        f_op[axis] = -(-extents[axis] // length)
        left //= f_op[axis]
    return f_op


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model_of", "n_cores", "pins"),
    [
        (gathered, WHOLE.n_cores, {"e": [19, 18, 1], "y": [19, 21, 1]}),
        (biased, 512, {"a": [5, 3, 3, 5]}),
        (separable, WHOLE.n_cores, {"a": [3, 14, 14, 1, 1, 1], "b": [14, 14, 3, 1, 1], "c": [2, 14, 14, 1, 1, 1]}),
    ],
    ids=["gathered", "biased", "separable"],
)  # fmt: skip
def test_pins_that_once_won_and_random_ones_are_no_faster_than_what_is_called_optimal(
    model_of: Callable[[Path], Path], n_cores: int, pins: Mapping[str, Sequence[int]], tmp_path: Path
) -> None:
    model = model_of(tmp_path / "model.onnx")
    plan = planned(model, n_cores)
    cycles = sum_of_cycles(plan)
    assert pinned_cycles(model, pins, n_cores) >= cycles
    rng = Random(1)
    for _ in range(N_PINNED):
        some = rng.sample(plan.graph.operators, rng.randint(1, len(plan.graph.operators)))
        drawn = {spec.name: random_partition(spec.extents, n_cores, rng) for spec in some}
        assert pinned_cycles(model, drawn, n_cores) >= cycles


@pytest.mark.slow
def test_more_cores_are_no_slower_whatever_their_number(tmp_path: Path) -> None:
    model = biased(tmp_path / "model.onnx")
    cycles = [sum_of_cycles(planned(model, n_cores)) for n_cores in (64, 130, 256, 400, 512, WHOLE.n_cores)]
    assert cycles == sorted(cycles, reverse=True)


def cut(path: Path) -> Path:
    """Return the product of the halves of an input: no operator reads all of it."""
    halves = helper.make_node("Split", ["x"], ["a", "b"], axis=1)
    product = helper.make_node("Mul", ["a", "b"], ["y"])
    return saved(path, (halves, product), {"x": [64, 64]}, {"y": [64, 32]}, {})


def tied(path: Path) -> Path:
    """Return two products by one small weight."""
    nodes = (
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["y"]),
    )
    return saved(path, nodes, {"x": [32, 64]}, {"y": [32, 64]}, {"w": [64, 64]})


def test_whether_a_small_weight_is_shared_depends_on_no_chip(tmp_path: Path) -> None:
    """It was not shared on 23 cores, nor in ten times the memory: they took 1.6 times as long."""
    model = tied(tmp_path / "model.onnx")
    few, more, roomy = (
        sum_of_cycles(compile(model, f"test-64:{fields}", program=False).plan)
        for fields in ("n_cores=16", "n_cores=64", "n_cores=16,sram_bytes=6389760")
    )
    assert more < few
    assert roomy <= few


@pytest.mark.parametrize("model_of", [cut, tied])
def test_cores_in_no_ratio_to_shapes_are_no_slower(model_of: Callable[[Path], Path], tmp_path: Path) -> None:
    """What is spread over 17 cores is read by 16 of them: they took twice as long, or a twelfth longer."""
    model = model_of(tmp_path / "model.onnx")
    cycles = [sum_of_cycles(planned(model, n_cores)) for n_cores in (16, 17, 20)]
    assert cycles == sorted(cycles, reverse=True)


def test_memory_that_ends_below_the_interleaved_region_is_priced_as_such(tmp_path: Path) -> None:
    """No choice can grant what such a chip does not have: what is placed takes no more than the bound."""
    chip = load_chip("test-16").model_copy(update={"name": "short", "sram_bytes": 64 * 1024})
    assert not chip.has_interleaved_data
    plan = compile(biased(tmp_path / "model.onnx"), chip, program=False).plan
    assert plan.optimality is not None
    assert plan.optimality.bound_cycles == plan.optimality.priced_cycles == plan.optimality.cycles


def test_what_reads_an_input_may_lie_as_what_else_reads_it(tmp_path: Path) -> None:
    """Both take 15 parts of two rows; of 24 cores, all best plans of the second alone took more."""
    nodes = (
        helper.make_node("ArgMax", ["x"], ["i"], axis=1, keepdims=0),
        helper.make_node("Relu", ["x"], ["y"]),
    )
    outputs = [
        helper.make_tensor_value_info("i", TensorProto.INT64, [30]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT16, [30, 70]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT16, [30, 70])
    graph = helper.make_graph(nodes, "extremes", [x], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    few, more = (sum_of_cycles(planned(path, n_cores)) for n_cores in (16, 24))
    assert more <= few


def layers(path: Path) -> Path:
    """Return an MLP of three layers."""
    sizes = (96, 128, 64, 32)
    nodes, weights, last = list[onnx.NodeProto](), dict[str, Sequence[int]](), "x"
    for n, (k, m) in enumerate(pairwise(sizes)):
        weights |= {f"w{n}": [k, m], f"b{n}": [m]}
        nodes += [
            helper.make_node("MatMul", [last, f"w{n}"], [f"p{n}"]),
            helper.make_node("Add", [f"p{n}", f"b{n}"], [f"s{n}"]),
            helper.make_node("Relu", [f"s{n}"], [f"y{n}"]),
        ]
        last = f"y{n}"
    return saved(path, nodes[:-1], {"x": [32, 96]}, {"s2": [32, 32]}, weights)


def test_a_little_more_memory_is_no_slower_where_buffers_lie(tmp_path: Path) -> None:
    model = layers(tmp_path / "model.onnx")
    cycles = [
        compile(model, f"test-16:sram_bytes={kib}KiB", program=False).report().total_cycles
        for kib in (36, 37, 38, 39, 40)
    ]
    assert cycles == sorted(cycles, reverse=True)
