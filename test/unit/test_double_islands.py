"""f64 that only narrower floats go into and come out of is computed in f32; all other f64 stays what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import t10
from t10.backend import lowered, run_on_host, run_on_tiles, write_program
from t10.cli.entry import main
from t10.errors import UnsupportedOpError
from t10.frontend.importer import import_model

onnx: Any = untyped_onnx
node = helper.make_node
HALF, SINGLE, DOUBLE = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE
RNG = np.random.default_rng(0)
ROWS = RNG.normal(500, 2000, (8, 192)).astype(np.float16)
GAIN, SHIFT = (RNG.uniform(-1, 1, 192).astype(np.float16) for _ in range(2))


def _saved(
    path: Path, nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], **constants: Any
) -> Path:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value(name, *kind) for name, kind in inputs.items()],
        [value(name, *kind) for name, kind in outputs.items()],
        [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def _cast(source: str, result: str, to: int) -> Any:
    return node("Cast", [source], [result], to=to)


def _layer_norm(path: Path) -> Path:
    """Write a layer normalisation as TorchScript exports it from a model in half precision."""
    nodes = [
        _cast("x", "wide", DOUBLE),
        node("ReduceMean", ["wide", "axes"], ["mean"]),
        node("Sub", ["wide", "mean"], ["c"]),
        node("Pow", ["c", "two"], ["square"]),
        node("ReduceMean", ["square", "axes"], ["v"]),
        node("Add", ["v", "eps"], ["ve"]),
        node("Sqrt", ["ve"], ["s"]),
        node("Div", ["c", "s"], ["n"]),
        _cast("gain", "wide_gain", DOUBLE),
        _cast("shift", "wide_shift", DOUBLE),
        node("Mul", ["n", "wide_gain"], ["scaled"]),
        node("Add", ["scaled", "wide_shift"], ["shifted"]),
        _cast("shifted", "y", HALF),
    ]
    kind = (HALF, ROWS.shape)
    constants = {
        "axes": np.array([1]),
        "two": np.float64(2),
        "eps": np.float64(1e-5),
        "gain": GAIN,
        "shift": SHIFT,
    }
    return _saved(path, nodes, {"x": kind}, {"y": kind}, **constants)


def _normalised() -> NDArray[np.float64]:
    x = ROWS.astype(np.float64)
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True)) * GAIN + SHIFT


@pytest.mark.slow
def test_a_layer_norm_in_f64_runs_on_all_engines(tmp_path: Path) -> None:
    executable = t10.compile(_layer_norm(tmp_path / "m.onnx"), chip="test-16")
    assert "f64" not in executable.module
    write_program(executable, lowered(executable), tmp_path / "program")
    for found in (
        executable.run({"x": ROWS})["y"],
        run_on_tiles(executable, {"x": ROWS}).outputs["y"],
        run_on_host(executable, tmp_path / "program", {"x": ROWS})["y"],
    ):
        np.testing.assert_allclose(found, _normalised(), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_it_stays_in_f64_and_is_refused_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _layer_norm(tmp_path / "m.onnx")
    executable = t10.compile(path, chip="test-16", keep_f64=True)
    assert "f64" in executable.module
    np.testing.assert_allclose(executable.run({"x": ROWS})["y"], _normalised(), rtol=1e-3, atol=1e-3)
    with pytest.raises(UnsupportedOpError, match="on f64, which the chip has no arithmetic for"):
        lowered(executable)
    code = main(
        ["compile", str(path), "--chip", "test-16", "--quiet", "--keep-f64", "-o", str(tmp_path / "out")]
    )
    assert code == UnsupportedOpError.exit_code
    assert "--keep-f64" in capsys.readouterr().err


def test_inputs_and_outputs_of_f64_keep_it_and_islands_beside_them_do_not(tmp_path: Path) -> None:
    nodes = [
        _cast("x", "wide", DOUBLE),
        node("Add", ["wide", "one"], ["more"]),
        _cast("more", "y", SINGLE),
        node("Add", ["z", "one"], ["w"]),
    ]
    single, double = (SINGLE, [4]), (DOUBLE, [4])
    path = _saved(
        tmp_path / "m.onnx", nodes, {"x": single, "z": double}, {"y": single, "w": double}, one=np.float64(1)
    )
    text = str(import_model(path).module)
    kinds = [line.rpartition(" : ")[2] for line in text.splitlines() if "arith.addf" in line]
    assert sorted(kinds) == ["f32", "f64"]
    assert "arith.extf" not in text
    tiny = np.array([2.0**-40, 0, 1, 2])
    found = t10.compile(path, chip="test-16").run({"x": tiny.astype(np.float32), "z": tiny})
    np.testing.assert_array_equal(found["w"], tiny + 1)
    np.testing.assert_array_equal(found["y"], (tiny + 1).astype(np.float32))


@pytest.mark.parametrize(("kind", "is_narrowed"), [(TensorProto.INT64, False), (TensorProto.INT8, True)])
def test_integers_that_f32_does_not_hold_stay_in_f64(kind: int, is_narrowed: bool, tmp_path: Path) -> None:
    nodes = [_cast("x", "wide", DOUBLE), node("Mul", ["wide", "half"], ["p"]), _cast("p", "y", SINGLE)]
    path = _saved(tmp_path / "m.onnx", nodes, {"x": (kind, [4])}, {"y": (SINGLE, [4])}, half=np.float64(0.5))
    assert ("f64" not in str(import_model(path).module)) is is_narrowed


def test_weights_of_an_island_are_rounded_and_stay_finite(tmp_path: Path) -> None:
    masks = np.where(np.arange(40) % 2, -np.finfo(np.float64).max, 0.1)
    masks[4] = -np.inf
    nodes = [_cast("x", "wide", DOUBLE), node("Add", ["wide", "m"], ["s"]), _cast("s", "y", SINGLE)]
    path = _saved(tmp_path / "m.onnx", nodes, {"x": (SINGLE, [40])}, {"y": (SINGLE, [40])}, m=masks)
    imported = import_model(path)
    (weight,) = imported.weights.values()
    assert weight.dtype == np.float32
    assert weight[[1, 2, 4]].tolist() == [-np.finfo(np.float32).max, np.float32(0.1), -np.inf]
    assert imported.module.operation.verify()
    (kept,) = import_model(path, keep_f64=True).weights.values()
    np.testing.assert_array_equal(kept, masks)


@pytest.mark.parametrize("factors", [(1e-60, 1e60), (1e60, 1e-60), (1e-60, 3.0)])
@pytest.mark.parametrize("extent", [1, 4])
def test_constants_that_f32_does_not_hold_stay_in_f64(
    factors: tuple[float, float], extent: int, tmp_path: Path
) -> None:
    first, second = (np.linspace(factor, 2 * factor, extent) for factor in factors)
    nodes = [
        _cast("x", "wide", DOUBLE),
        node("Mul", ["wide", "first"], ["p"]),
        node("Mul", ["p", "second"], ["q"]),
        _cast("q", "y", SINGLE),
    ]
    kind = (SINGLE, [4])
    path = _saved(tmp_path / "m.onnx", nodes, {"x": kind}, {"y": kind}, first=first, second=second)
    executable, x = t10.compile(path, chip="test-16"), np.arange(1, 5, dtype=np.float32)
    np.testing.assert_array_equal(executable.run({"x": x})["y"], (x * first * second).astype(np.float32))
    with pytest.raises(UnsupportedOpError, match="on f64, which the chip has no arithmetic for"):
        lowered(executable)


@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.UINT8, TensorProto.UINT32])
def test_integers_of_up_to_32_bits_come_out_of_an_island(kind: int, tmp_path: Path) -> None:
    nodes = [_cast("x", "wide", DOUBLE), node("Floor", ["wide"], ["f"]), _cast("f", "y", kind)]
    path = _saved(tmp_path / "m.onnx", nodes, {"x": (SINGLE, [4])}, {"y": (kind, [4])})
    executable, x = t10.compile(path, chip="test-16"), np.array([0, 1.5, 126.9, 200], np.float32)
    for found in (executable.run({"x": x})["y"], run_on_tiles(executable, {"x": x}).outputs["y"]):
        np.testing.assert_array_equal(found, np.floor(x))


def test_comparisons_in_f64_are_made_in_f32(tmp_path: Path) -> None:
    nodes = [
        _cast("x", "wide", DOUBLE),
        node("Mul", ["wide", "third"], ["p"]),
        node("Greater", ["p", "limit"], ["is_more"]),
        node("Where", ["is_more", "x", "zero"], ["y"]),
    ]
    path = _saved(
        tmp_path / "m.onnx", nodes, {"x": (SINGLE, [4])}, {"y": (SINGLE, [4])},
        third=np.float64(1 / 3), limit=np.float64(1.5), zero=np.float32(0),
    )  # fmt: skip
    x = np.array([1, 4, 5, 6], np.float32)
    executable = t10.compile(path, chip="test-16")
    np.testing.assert_array_equal(run_on_tiles(executable, {"x": x}).outputs["y"], [0, 0, 5, 6])
