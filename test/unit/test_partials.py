"""`--partials`: in which type sums of f16 are kept, what that allows them to be off by, and who says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import t10
from t10.arrays import write_arrays
from t10.attack.partials import Allowance
from t10.backend import lowered, run_on_host, run_on_tiles, write_program
from t10.cli import main
from t10.core.partials import (
    DEFAULT_TOLERANCE,
    LONG_SUM,
    ONE_PASS_ROWS,
    Partials,
    allowed_errors,
    partials_error,
)
from t10.errors import InputError
from t10.explain import explain_operator
from t10.reference import OnnxRuntime, load_onnx
from t10.report.table import partials_text
from t10.sim import product

onnx: Any = untyped_onnx
node = helper.make_node
Array = NDArray[Any]
HALF = TensorProto.FLOAT16
LONG, SHORT = 192, 32


def model(folder: Path) -> Path:
    """Write y = relu(x * wide) * narrow: a product of 192 terms behind one of 32."""
    generator = np.random.default_rng(0)
    weights = {
        "wide": generator.normal(0, 0.1, (SHORT, LONG)).astype(np.float16),
        "narrow": generator.normal(0, 0.1, (LONG, 8)).astype(np.float16),
    }
    graph = helper.make_graph(
        [
            node("MatMul", ["x", "wide"], ["h"], name="short"),
            node("Relu", ["h"], ["r"], name="relu"),
            node("MatMul", ["r", "narrow"], ["y"], name="long"),
        ],
        "g",
        [helper.make_tensor_value_info("x", HALF, [4, SHORT])],
        [helper.make_tensor_value_info("y", HALF, [4, 8])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def kept(executable: Any) -> dict[str, str]:
    """Return the type of partials of every operator that sums f16, by its name."""
    return {each.name: each.partials for each in executable.report().operators if each.partials}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("partials", "expected"),
    [
        ("f32", {"short": "f32", "long": "f32"}),
        ("f16", {"short": "f16", "long": "f16"}),
        ("auto", {"short": "f16", "long": "f32"}),
        (Partials("auto", 0.0), {"short": "f32", "long": "f32"}),
        # The model has four rows, so that 192 terms are f16 as 32 are.
        (Partials("auto", 1.0), {"short": "f16", "long": "f16"}),
    ],
)
def test_reports_say_in_which_type_sums_are_kept(
    partials: Any, expected: dict[str, str], tmp_path: Path
) -> None:
    executable = t10.compile(model(tmp_path), chip="test-4", partials=partials)
    assert kept(executable) == expected
    report = executable.report()
    errors = {each.name: each.partials_error for each in report.operators}
    assert errors == {
        "short": partials_error(SHORT) if expected["short"] == "f16" else 0,
        "long": partials_error(LONG) if expected["long"] == "f16" else 0,
    }
    n_narrow = list(expected.values()).count("f16")
    assert partials_text(report).startswith(f"f16 in {n_narrow} of 2 operators" if n_narrow else "f32")
    explained = explain_operator(executable.plan, "long", executable.costs(), executable.cost_model)
    assert (explained.partials, explained.partials_error) == (expected["long"], errors["long"])
    folder = tmp_path / "out"
    executable.save(folder)
    stated = json.loads((folder / "manifest.json").read_text())["about"]["options"]
    assert stated["partials"] == (partials if isinstance(partials, str) else partials.kind)
    assert kept(t10.Executable.load(folder)) == expected


def test_only_what_sums_f16_has_partials(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    table = numpy_helper.from_array(np.ones((50, 4), np.float16), "table")
    graph = helper.make_graph(
        [node("Gather", ["table", "i"], ["h"]), node("Relu", ["h"], ["y"])], "g",
        [helper.make_tensor_value_info("i", TensorProto.INT32, [3])],
        [helper.make_tensor_value_info("y", HALF, [3, 4])], [table],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    executable = t10.compile(path, chip="test-4", partials="f16")
    # A look-up combines by adding what is not found as 0: one element is moved.
    assert "sum" in {spec.combine for spec in executable.plan.graph.operators}
    assert kept(executable) == {}
    assert partials_text(executable.report()) == ""


def sequential(terms: Array) -> Array:
    """Return sums along the last axis, every sum on the way rounded to f16."""
    total = np.zeros(terms.shape[:-1], np.float16)
    for number in range(terms.shape[-1]):
        total = (total.astype(np.float32) + terms[..., number]).astype(np.float16)
    return total


@pytest.mark.parametrize("n_terms", [1, 16, 64, 1024, 4096])
@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_sums_in_f16_are_within_the_bound(n_terms: int, mean: float) -> None:
    terms = np.random.default_rng(n_terms).normal(mean, 1, (2000, n_terms)).astype(np.float32)
    exact = terms.astype(np.float64).sum(-1)
    size = np.abs(exact) + np.sqrt((terms.astype(np.float64) ** 2).sum(-1))
    off = np.abs(sequential(terms) - exact) / size
    assert off.max() <= partials_error(n_terms)
    # It is a bound of this process, not any number above it.
    assert off.max() >= partials_error(n_terms) / 20


def test_auto_takes_products_up_to_its_tolerance() -> None:
    auto = Partials("auto")
    longest = max(n for n in range(1, 1000) if partials_error(n) <= DEFAULT_TOLERANCE)
    assert auto.keeps_f16(longest, is_product=True)
    assert not auto.keeps_f16(longest + 1, is_product=True)
    assert Partials("f16").keeps_f16(1 << 20, is_product=True)
    assert not Partials("f32").keeps_f16(1, is_product=True)


@pytest.mark.parametrize("kind", [Partials("f16"), Partials("auto", 1.0)], ids=["f16", "auto"])
def test_reductions_are_summed_in_f32(kind: Partials) -> None:
    assert not kind.keeps_f16(2, is_product=False)


@pytest.mark.parametrize("partials", ["f16", "mixed", "auto"])
def test_means_do_not_overflow_where_their_sums_would(partials: str, tmp_path: Path) -> None:
    node = helper.make_node("GlobalAveragePool", ["x"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, 4, 28, 28])
    graph = helper.make_graph(
        [node], "g", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    executable = t10.compile(tmp_path / "m.onnx", chip="test-16", program=False, partials=partials)
    found = executable.run({"x": np.full((1, 4, 28, 28), 100, np.float16)})["y"]
    np.testing.assert_array_equal(found, np.full((1, 4, 1, 1), 100, np.float16))


@pytest.mark.parametrize("kind", [Partials("f16"), Partials("auto", 1.0)], ids=["f16", "auto"])
def test_long_products_of_few_rows_are_summed_in_f32(kind: Partials) -> None:
    assert not kind.keeps_f16(LONG_SUM, is_product=True, n_rows=ONE_PASS_ROWS)
    assert kind.keeps_f16(LONG_SUM, is_product=True, n_rows=ONE_PASS_ROWS + 1)
    assert kind.keeps_f16(LONG_SUM - 1, is_product=True, n_rows=ONE_PASS_ROWS)
    # A batch of matrices has no rows that stand for all of it.
    assert kind.keeps_f16(LONG_SUM, is_product=True, n_rows=0, n_rows_each=2)


@pytest.mark.parametrize("kind", [Partials("f16"), Partials("auto", 1.0)], ids=["f16", "auto"])
def test_products_of_matrices_and_vectors_are_summed_in_f32(kind: Partials) -> None:
    assert not kind.keeps_f16(2, is_product=True, n_rows=1, n_rows_each=1)
    assert not kind.keeps_f16(2, is_product=True, n_rows=0, n_rows_each=1)
    assert kind.keeps_f16(2, is_product=True, n_rows=2, n_rows_each=2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("f64",), "partials is 'f64' (expected f32, mixed, f16 or auto)"),
        (("auto", -1.0), "is -1.0 (expected a number of"),
    ],
)
def test_partials_that_are_none_are_refused(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Partials(*given)
    assert message in caught.value.message


def test_a_tolerance_without_auto_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["verify", str(model(tmp_path)), "--partials", "f16", "--partials-tolerance", "1"]
    assert main(words) == 2
    assert "--partials-tolerance is for --partials auto" in capsys.readouterr().err


def test_all_engines_sum_in_f16_within_what_is_allowed(tmp_path: Path) -> None:
    path = model(tmp_path)
    executable = t10.compile(path, chip="test-4", partials="f16", program=True)
    x = np.random.default_rng(1).normal(0, 1, (4, SHORT)).astype(np.float16)
    reference = OnnxRuntime(load_onnx(path), path)
    expected = reference.outputs({"x": x})["y"]
    allowed = Allowance(reference, allowed_errors(executable.plan)).of({"x": x})["y"]
    # Two products in a row: about the larger bound, and not many times as much.
    assert partials_error(LONG) / 4 < allowed < 4 * partials_error(LONG)
    write_program(executable, lowered(executable), tmp_path)
    found = {
        "plan": executable.run({"x": x})["y"],
        "iss": run_on_tiles(executable, {"x": x}).outputs["y"],
        "poplar-host": run_on_host(executable, tmp_path, {"x": x})["y"],
    }
    largest = np.abs(expected).max()
    for engine, value in found.items():
        assert np.abs(value - expected).max() <= (5e-3 + allowed) * largest, engine


ROWS, INNER, COLUMNS = 32, 192, 40
IMAGE = 9
"""Lines and columns of an image."""


def biased(folder: Path, n_rows: int = ROWS, n_terms: int = INNER, n_columns: int = COLUMNS) -> Path:
    """Write y = relu(x * w + b): a product of as many rows, terms and columns as are given."""
    generator = np.random.default_rng(0)
    weights = {
        "w": generator.normal(0, 0.1, (n_terms, n_columns)).astype(np.float16),
        "b": generator.normal(0, 1, n_columns).astype(np.float16),
    }
    graph = helper.make_graph(
        [
            node("MatMul", ["x", "w"], ["h"], name="product"),
            node("Add", ["h", "b"], ["s"], name="bias"),
            node("Relu", ["s"], ["y"], name="relu"),
        ],
        "g",
        [helper.make_tensor_value_info("x", HALF, [n_rows, n_terms])],
        [helper.make_tensor_value_info("y", HALF, [n_rows, n_columns])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    path = folder / "b.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def check_on_all_engines(
    executable: t10.Executable, x: Array, expected: Array, allowed: float, folder: Path
) -> None:
    """Run on all engines: numbers are within what is allowed, cycles are those of the plan."""
    write_program(executable, lowered(executable), folder)
    tiles = run_on_tiles(executable, {"x": x})
    assert tiles.cycles == executable.report().total_cycles
    found = {
        "plan": executable.run({"x": x})["y"],
        "iss": tiles.outputs["y"],
        "poplar-host": run_on_host(executable, folder, {"x": x})["y"],
    }
    largest = np.abs(expected).max()
    for engine, value in found.items():
        assert np.abs(value.astype(np.float32) - expected).max() <= (5e-4 + allowed) * largest, engine


@pytest.mark.slow
def test_mixed_partials_are_rounded_once_per_part_on_all_engines(tmp_path: Path) -> None:
    path = biased(tmp_path)
    executable = t10.compile(path, chip="test-16", partials="mixed", program=True)
    assert kept(executable) == {"product": "mixed"}
    (spec,), (scheduled,) = executable.plan.graph.operators, executable.plan.operators
    n_parts = scheduled.active.plan.f_op[spec.reduction_axes[0]]
    assert scheduled.active.plan.n_sub_tasks == 1
    assert n_parts > 1
    error = executable.report().operators[0].partials_error
    assert error == partials_error(n_parts - 1) + 2.0**-11
    assert error < partials_error(INNER) / 2
    assert partials_text(executable.report()).startswith("mixed in 1 of 1 operators")
    x = np.random.default_rng(1).normal(0, 1, (ROWS, INNER)).astype(np.float16)
    reference = OnnxRuntime(load_onnx(path), path)
    expected = reference.outputs({"x": x})["y"]
    allowed = Allowance(reference, allowed_errors(executable.plan)).of({"x": x})["y"]
    assert error / 4 < allowed < 4 * error
    check_on_all_engines(executable, x, expected, allowed, tmp_path)


def convolution(
    folder: Path, *, stride: int = 1, dilation: int = 1, features: int = 16, channels: int = 16
) -> Path:
    """Write y = relu(conv(x) + b): 3 x 3 windows, padded."""
    generator = np.random.default_rng(0)
    weights = {
        "w": generator.normal(0, 0.1, (features, channels, 3, 3)).astype(np.float16),
        "b": generator.normal(0, 1, features).astype(np.float16),
    }
    attributes: dict[str, Any] = {
        "strides": [stride] * 2,
        "dilations": [dilation] * 2,
        "pads": [dilation] * 4,
    }
    n = -(-IMAGE // stride)
    graph = helper.make_graph(
        [
            node("Conv", ["x", "w", "b"], ["c"], name="conv", **attributes),
            node("Relu", ["c"], ["y"], name="relu"),
        ],
        "g",
        [helper.make_tensor_value_info("x", HALF, [1, channels, IMAGE, IMAGE])],
        [helper.make_tensor_value_info("y", HALF, [1, features, n, n])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    path = folder / "c.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_convolutions_hand_on_f16_on_all_engines(tmp_path: Path, stride: int, dilation: int) -> None:
    path = convolution(tmp_path, stride=stride, dilation=dilation)
    executable = t10.compile(path, chip="test-16", partials="mixed", program=True)
    assert kept(executable) == {"conv": "mixed"}
    x = np.random.default_rng(1).normal(0, 1, (1, 16, IMAGE, IMAGE)).astype(np.float16)
    reference = OnnxRuntime(load_onnx(path), path)
    expected = reference.outputs({"x": x})["y"]
    allowed = Allowance(reference, allowed_errors(executable.plan)).of({"x": x})["y"]
    check_on_all_engines(executable, x, expected, allowed, tmp_path)
    assert executable.report().total_cycles < t10.compile(path, chip="test-16").report().total_cycles


def test_mixed_partials_leave_few_features_alone(tmp_path: Path) -> None:
    path = convolution(tmp_path, features=ONE_PASS_ROWS)
    assert kept(t10.compile(path, chip="test-16", partials="mixed")) == {"conv": "f32"}


@pytest.mark.parametrize("kind", ["mixed", "f16", "auto"])
def test_sums_in_f16_that_take_longer_are_f32(tmp_path: Path, kind: str) -> None:
    path = convolution(tmp_path, features=9, channels=4)
    executable, wide = (t10.compile(path, chip="test-4", partials=each) for each in (kind, "f32"))
    assert kept(executable) == {"conv": "f32"}
    assert executable.report().total_cycles == wide.report().total_cycles


@pytest.mark.parametrize("kind", ["mixed", "f16"])
def test_sums_kept_in_f32_are_stored_as_they_are_fastest(tmp_path: Path, kind: str) -> None:
    path = biased(tmp_path, 9, 100, 100)
    executable, wide = (
        t10.compile(path, chip="test-4", partials=each, program=True) for each in (kind, "f32")
    )
    assert kept(executable) == {"product": "f32"}
    assert executable.report().total_cycles == wide.report().total_cycles
    x = np.random.default_rng(1).normal(0, 1, (9, 100)).astype(np.float16)
    expected = OnnxRuntime(load_onnx(path), path).outputs({"x": x})["y"]
    check_on_all_engines(executable, x, expected, 0.0, tmp_path)


def test_mixed_partials_hand_on_half_the_bytes(tmp_path: Path) -> None:
    path = biased(tmp_path)
    wide, mixed = (t10.compile(path, chip="test-16", partials=kind) for kind in ("f32", "mixed"))
    assert mixed.report().total_cycles < wide.report().total_cycles
    wide.save(tmp_path / "wide")
    pinned = t10.compile(path, chip="test-16", partials="mixed", plan=tmp_path / "wide" / "plan.json")
    assert 2 * pinned.report().traffic_bytes.reduce == wide.report().traffic_bytes.reduce


def test_mixed_partials_leave_few_rows_alone(tmp_path: Path) -> None:
    path = biased(tmp_path, ONE_PASS_ROWS)
    assert kept(t10.compile(path, chip="test-16", partials="mixed")) == {"product": "f32"}


def test_mixed_partials_need_room_in_the_shift_buffer(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        t10.compile(biased(tmp_path), chip="test-16:shift_buffer_bytes=4096", partials="mixed")
    assert "which has 4,096 bytes (expected at least 8,192)" in caught.value.message


@pytest.mark.parametrize(("n_parts", "length"), [(1, 64), (4, 64), (16, 16), (64, 4)])
def test_parts_that_are_rounded_are_within_the_bound(n_parts: int, length: int) -> None:
    terms = np.random.default_rng(n_parts).normal(0.5, 1, (4000, n_parts, length)).astype(np.float32)
    exact = terms.astype(np.float64).sum((1, 2))
    size = np.abs(exact) + np.sqrt((terms.astype(np.float64) ** 2).sum((1, 2)))
    parts = terms.sum(-1, dtype=np.float32).astype(np.float16)
    off = np.abs(sequential(parts.astype(np.float32)) - exact) / size
    bound = partials_error(n_parts - 1) + 2.0**-11
    assert bound / 20 <= off.max() <= bound


def test_sums_in_f32_are_allowed_nothing_more(tmp_path: Path) -> None:
    path = model(tmp_path)
    x = np.ones((4, SHORT), np.float16)
    reference = OnnxRuntime(load_onnx(path), path)
    assert Allowance(reference, allowed_errors(t10.compile(path, chip="test-4").plan)).of({"x": x}) == {}


def test_large_inputs_may_overflow_sums_in_f16(tmp_path: Path) -> None:
    path = model(tmp_path)
    reference = OnnxRuntime(load_onnx(path), path)
    allowance = Allowance(reference, allowed_errors(t10.compile(path, chip="test-4", partials="f16").plan))
    x = np.ones((4, SHORT), np.float16)
    assert not allowance.overflows({"x": x})
    assert allowance.overflows({"x": 20_000 * x})


def verify(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> tuple[int, str]:
    code = main(["verify", str(path), "--chip", "test-4", "--no-cache", "--seeds", "1", *words])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.slow
def test_verify_allows_what_the_bound_says_and_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, right = model(tmp_path), product.sum_of_products
    code, text = verify(capsys, path, "--partials", "f16", "--layers")
    assert code == 0
    assert "partials: f16 in 2 of 2 operators" in text
    factor = 1.0

    def wrong(first: Array, second: Array, reduction: Any) -> Array:
        return right(first, second, reduction) * np.float32(factor)

    monkeypatch.setattr("t10.sim.compute.sum_of_products", wrong)
    # Two products, each off by 0.4 %: more than f32 partials allow (0.5 %), less than f16 partials do.
    factor = 1.004
    assert verify(capsys, path, "--partials", "f16")[0] == 0
    assert verify(capsys, path)[0] == 1
    factor = 1.03
    code, text = verify(capsys, path, "--partials", "f16", "--layers")
    assert code == 1
    assert "first wrong operator: MatMul 'short'" in text
    # A tolerance that is given is all that is allowed.
    factor = 1.004
    assert verify(capsys, path, "--partials", "f16", "--tolerance", "5e-3")[0] == 1


def test_linalg_with_references_has_the_tolerance_of_its_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, inputs = tmp_path / "m.mlir", tmp_path / "in.npz"
    path.write_text(
        """
func.func @main(%x: tensor<4x8xf16> {t10.name = "x"}, %w: tensor<8x6xf16> {t10.name = "w"})
    -> (tensor<4x6xf16> {t10.name = "y"}) {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<4x6xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<4x6xf16>) -> tensor<4x6xf16>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x6xf16>) outs(%init : tensor<4x6xf16>) -> tensor<4x6xf16>
  return %y : tensor<4x6xf16>
}
"""
    )
    x, w = (
        np.random.default_rng(n).normal(0, 1, shape).astype(np.float16)
        for n, shape in ((0, (4, 8)), (1, (8, 6)))
    )
    y = x.astype(np.float32) @ w.astype(np.float32)
    write_arrays(inputs, {"x": x, "w": w, "ref.y": y})
    code, text = verify(capsys, path, "--partials", "f16", "--inputs", str(inputs))
    assert code == 0, text
    assert "5e-03" in text
    write_arrays(inputs, {"x": x, "w": w, "ref.y": 1.02 * y})
    assert verify(capsys, path, "--partials", "f16", "--inputs", str(inputs))[0] == 1
