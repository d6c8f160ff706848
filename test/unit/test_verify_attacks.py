"""`t10 verify` against what is broken on purpose: it fails, names the operator, and writes the smallest wrong model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from support import models

from t10.arrays import read_arrays, write_arrays
from t10.attack.judging import Judge
from t10.attack.shaking import Shaken
from t10.cli import main
from t10.reference import OnnxRuntime, load_onnx, run_onnx_runtime
from t10.sim import scalar_eval

ROOT = Path(__file__).resolve().parents[2]
FLOAT, INT64, UINT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8


def chain(path: Path) -> Path:
    """Write y = relu(tanh(x * w0 + b) * w1 - c)."""
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h0"], name="first"),
        helper.make_node("Add", ["h0", "b"], ["h1"], name="bias"),
        helper.make_node("Tanh", ["h1"], ["h2"], name="squash"),
        helper.make_node("MatMul", ["h2", "w1"], ["h3"], name="second"),
        helper.make_node("Sub", ["h3", "c"], ["h4"], name="lower"),
        helper.make_node("Relu", ["h4"], ["y"], name="last"),
    ]
    stored = {
        "w0": models.weights(0, 12, 16), "b": models.weights(1, 16), "w1": models.weights(2, 16, 6),
        "c": models.weights(3, 6),
    }  # fmt: skip
    return models.save(path, nodes, {"x": (FLOAT, [5, 12])}, {"y": (FLOAT, [5, 6])}, **stored)


def verify(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    code = main(["verify", *map(str, words), "--chip", "test-4", "--no-cache"])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def operators(path: Path) -> list[str]:
    return [node.op_type for node in load_onnx(path).graph.node]


def wrong_exp(x: NDArray[Any]) -> NDArray[Any]:
    return np.exp(x) + x.dtype.type(0.25)


def without_nan(x: NDArray[Any]) -> NDArray[Any]:
    return np.nan_to_num(np.tanh(x), nan=0.0)


def wrong_for_negatives(x: NDArray[Any]) -> NDArray[Any]:
    return np.where(x < 0, np.tanh(x) / 2, np.tanh(x)).astype(x.dtype)


@pytest.mark.slow
def test_a_wrong_operation_is_named_and_cut_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, part = chain(tmp_path / "m.onnx"), tmp_path / "part.onnx"
    assert verify(capsys, path, "--layers")[0] == 0
    monkeypatch.setitem(scalar_eval.PLAIN, "math.tanh", wrong_for_negatives)
    code, text = verify(capsys, path, "--layers", "--bisect", part)
    assert code == 1
    assert "FAILED: outputs differ by more than the tolerance: y[" in text
    assert "first wrong operator: Tanh 'squash', float32: h2[" in text
    assert f"wrote {part} (1 node)" in text
    assert operators(part) == ["Tanh"]
    given = part.with_suffix(".npz")
    assert verify(capsys, part, "--inputs", given)[0] == 1
    monkeypatch.undo()
    assert verify(capsys, part, "--inputs", given)[0] == 0


@pytest.mark.slow
def test_an_error_that_only_a_fusion_makes_is_cut_out_with_what_is_fused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from t10.sim import epilogue

    path, part = chain(tmp_path / "m.onnx"), tmp_path / "part.onnx"
    right = epilogue.evaluate

    def without_relu(function: Any, inputs: Any, index: Any) -> NDArray[Any]:
        result = right(function, inputs, index)
        is_long = len(function.ops) > 2
        return result + 1 if is_long else result

    monkeypatch.setattr(epilogue, "evaluate", without_relu)
    code, text = verify(capsys, path, "--bisect", part)
    assert code == 1
    assert "fused with others" in text
    assert len(operators(part)) in (2, 3)
    assert verify(capsys, part, "--inputs", part.with_suffix(".npz"))[0] == 1


@pytest.mark.slow
def test_a_wrong_codelet_is_found_by_the_engine_that_runs_it(tmp_path: Path) -> None:
    path, part = chain(tmp_path / "m.onnx"), tmp_path / "part.onnx"
    # Another process, because compiled codelets are kept.
    script = (
        "import sys\n"
        "from t10.codelets.body import floats\n"
        "floats.ARITHMETIC['arith.subf'] = 'add'\n"
        "from t10.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = [
        "verify",
        path,
        "--chip",
        "test-4",
        "--engine",
        "all",
        "--layers",
        "--bisect",
        part,
        "--seeds",
        "1",
    ]
    result = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1, result.stderr
    rows = [line for line in result.stdout.splitlines() if "differs" in line]
    assert [row.split("|")[1].strip() for row in rows] == ["iss", "iss against plan"]
    assert "first wrong operator: Sub 'lower'" in result.stdout
    assert operators(part) == ["Sub"]


def test_a_model_that_is_right_is_cut_into_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = verify(capsys, chain(tmp_path / "m.onnx"), "--bisect", tmp_path / "part.onnx")
    assert code == 0
    assert "all within the tolerance" in text
    assert not (tmp_path / "part.onnx").exists()


@pytest.mark.parametrize(
    ("option", "value"), [("--seeds", "0"), ("--bisect", "part"), ("--bisect", "m.onnx")]
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    path = chain(tmp_path / "m.onnx")
    kept = path.read_bytes()
    code, text = verify(capsys, path, option, value if option == "--seeds" else tmp_path / value)
    assert (code, text.count("\n")) == (2, 1)
    assert f"{option} is " in text
    assert path.read_bytes() == kept


def test_nan_and_infinities_must_be_where_the_reference_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = helper.make_node("Tanh", ["x"], ["y"])
    path = models.save(tmp_path / "m.onnx", [node], {"x": (FLOAT, [400])}, {"y": (FLOAT, [400])})
    assert verify(capsys, path, "--specials", "--seeds", "1")[0] == 0
    monkeypatch.setitem(scalar_eval.PLAIN, "math.tanh", without_nan)
    assert verify(capsys, path, "--seeds", "1")[0] == 0
    code, text = verify(capsys, path, "--specials", "--seeds", "1")
    assert (code, "expected nan (plan, seed 0" in text) == (1, True)


def test_nan_beside_an_infinity_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    half, shape = TensorProto.FLOAT16, [1, 8, 6, 8]
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=8, pads=[1] * 4)
    weight = np.ones((8, 1, 3, 3), np.float16)
    path = models.save(tmp_path / "m.onnx", [node], {"x": (half, shape)}, {"y": (half, shape)}, w=weight)
    assert verify(capsys, path, "--engine", "iss", "--seeds", "1")[0] == 0
    code, text = verify(capsys, path, "--engine", "iss", "--specials", "--seeds", "1")
    assert (code, "of four channels of a depthwise convolution" in text) == (1, True)


@pytest.mark.slow
def test_what_is_decided_otherwise_than_onnx_runtime_has_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        helper.make_node("ArgMax", ["x"], ["place"], axis=1),
        helper.make_node("MaxPool", ["x"], ["pooled"], kernel_shape=[3]),
        helper.make_node("GlobalMaxPool", ["x"], ["most"]),
        helper.make_node("Relu", ["pooled"], ["y"]),
    ]
    outputs = {"place": (INT64, [2, 1, 17]), "most": (FLOAT, [2, 13, 1]), "y": (FLOAT, [2, 13, 15])}
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [2, 13, 17])}, outputs)
    code, text = verify(capsys, path, "--specials", "--layers")
    assert (code, "17 values" in text) == (0, False)
    for name in outputs:
        assert re.search(
            rf"as ONNX's reference evaluator has it: {name}\[.*\] is .*, expected .* by ONNX", text
        )
    assert "evaluator" not in verify(capsys, path)[1]


def test_no_reference_has_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["y"], axes=[1]),
        helper.make_node("Tanh", ["y"], ["z"]),
    ]
    outputs = {"y": (FLOAT, [17, 1]), "z": (FLOAT, [17, 1])}
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [17, 13])}, outputs)
    assert verify(capsys, path, "--specials")[0] == 0
    monkeypatch.setitem(scalar_eval.PLAIN, "math.tanh", without_nan)
    code, text = verify(capsys, path, "--specials")
    assert (code, "FAILED: outputs differ by more than the tolerance: z[" in text) == (1, True)


@pytest.mark.slow
def test_infinities_that_the_order_of_a_sum_decides_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = TensorProto.FLOAT16
    for kind, most in ((FLOAT, "1e+18"), (half, "3e+01")):
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("Sigmoid", ["h"], ["y"]),
            helper.make_node("ReduceMean", ["x"], ["m"], axes=[1]),
        ]
        inputs = {"x": (kind, [97, 13]), "w": (kind, [13, 11])}
        outputs = {"y": (kind, [97, 11]), "m": (kind, [97, 1])}
        path = models.save(tmp_path / "m.onnx", nodes, inputs, outputs)
        code, text = verify(capsys, path, "--specials")
        assert (code, f"seed 2: magnitudes up to {most}" in text) == (0, True), text


def test_inputs_are_no_wilder_than_the_model_bears(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = helper.make_node("Exp", ["x"], ["y"])
    path = models.save(tmp_path / "exp.onnx", [node], {"x": (FLOAT, [40])}, {"y": (FLOAT, [40])})
    code, text = verify(capsys, path)
    assert code == 0
    assert re.search(
        r"seed 1: scales 2\^-[83] to .*\(scales 2\^-40 to 2\^40, .*: the model overflows\)", text
    )
    assert "seed 2: magnitudes up to 3e+01 (magnitudes up to 1e+18, " in text


def test_huge_arguments_of_waves_are_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("Sin", ["t"], ["s"]),
        helper.make_node("Cos", ["t"], ["c"]),
        helper.make_node("Mul", ["s", "c"], ["y"]),
    ]
    for kind, most in ((FLOAT, 1e17), (TensorProto.FLOAT16, 1e4)):
        path = models.save(tmp_path / "m.onnx", nodes, {"x": (kind, [17, 13])}, {"y": (kind, [13, 17])})
        code, text = verify(capsys, path)
        assert (code, "decides" in text) == (0, False)

        def near_only(x: NDArray[Any], most: float = most) -> NDArray[Any]:
            return np.where(np.abs(x) < most, np.sin(x), 0).astype(x.dtype)

        with monkeypatch.context() as patch:
            patch.setitem(scalar_eval.PLAIN, "math.sin", near_only)
            code, text = verify(capsys, path)
        assert code == 1
        assert "(plan, seed 2: magnitudes up to " in text


def test_arguments_that_are_sums_are_no_larger_than_last_bits_allow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Sin", ["s"], ["y"])]
    inputs = {"x": (FLOAT, [17, 13]), "w": (FLOAT, [13, 11])}
    path = models.save(tmp_path / "m.onnx", nodes, inputs, {"y": (FLOAT, [17, 11])})
    code, text = verify(capsys, path)
    assert (code, "magnitudes up to 3e+01: a last bit on the way decides" in text) == (0, True)
    nodes = [helper.make_node("Add", ["x", "w"], ["s"]), helper.make_node("Sin", ["s"], ["y"])]
    half = TensorProto.FLOAT16
    path = models.save(
        tmp_path / "half.onnx", nodes, {"x": (half, [170]), "w": (half, [170])}, {"y": (half, [170])}
    )
    code, text = verify(capsys, path)
    assert (code, "magnitudes up to 3e+01: a last bit on the way decides" in text) == (0, True)


def test_a_tie_that_the_order_of_a_sum_decides_is_shaken(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Round", ["s"], ["y"]),
    ]
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [4])}, {"y": (FLOAT, [])})
    model = OnnxRuntime(load_onnx(path), path)
    for half in (1.5, 2.5):  # one of which a last bit more, the other a last bit less, does not change
        inputs = {"x": np.array([half / 2, half / 4, half / 8, half / 8], np.float32)}
        values = {**inputs, **model.values(inputs)}
        shaken = list(Shaken(model, values, is_half=False).outputs(inputs, values))
        assert {float(each["y"]) for each in shaken} == {half - 0.5, half + 0.5}


def test_floats_are_cast_to_integers_that_hold_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT32)]
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [400])}, {"y": (TensorProto.INT32, [400])})
    code, text = verify(capsys, path)
    assert (
        code,
        "seed 2: magnitudes up to 1e+09 (magnitudes up to 1e+18: no integer holds them)" in text,
    ) == (0, True)
    code, text = verify(capsys, path, "--specials")
    assert (code, "seed 0: standard normal (special numbers: no integer holds them)" in text) == (0, True)


def test_integers_are_compared_where_no_last_bit_decides_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = TensorProto.FLOAT16
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Floor", ["h"], ["f"]),
        helper.make_node("Cast", ["f"], ["y"], to=TensorProto.INT32),
    ]
    stored = {"w": models.weights(0, 23, 31).astype(np.float16)}
    outputs = {"y": (TensorProto.INT32, [11, 31])}
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (half, [11, 23])}, outputs, **stored)
    text = verify(capsys, path, "--seed", "2")[1]
    assert "magnitudes up to 3e+01: a last bit on the way decides" in text


def test_pools_that_onnx_infers_wrong_shapes_for_are_attacked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {
        "kernel_shape": [2, 2],
        "strides": [2, 2],
        "pads": [1, 1, 1, 1],
        "ceil_mode": 1,
    }
    nodes = [helper.make_node("AveragePool", ["x"], ["p"], **options), helper.make_node("Relu", ["p"], ["y"])]
    path = models.save(
        tmp_path / "m.onnx", nodes, {"x": (FLOAT, [1, 1, 3, 3])}, {"y": (FLOAT, ["n", "c", "h", "w"])}
    )
    code, text = verify(capsys, path)
    assert (code, "1x1x2x2" in text) == (0, True)


def test_a_model_that_onnx_runtime_spoils_is_compared_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["v"]),
        helper.make_node("MatMul", ["d", "v"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["y"]),
    ]
    stored = {
        "s": np.float32(0.02), "z": np.int8(0), "b": models.weights(0, 8),
        "w": np.arange(-64, 64, dtype=np.int8).reshape(16, 8),
    }  # fmt: skip
    path = tmp_path / "m.onnx"
    models.save(path, nodes, {"x": (FLOAT, [1, 13, 16])}, {"y": (FLOAT, [1, 13, 8])}, **stored)
    model = load_onnx(path)
    model.opset_import[0].version = 21
    path.write_bytes(model.SerializeToString())
    assert verify(capsys, path)[0] == 0


def test_references_are_mixed_element_by_element(
    tmp_path: Path,
) -> None:
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [3])}, {"y": (FLOAT, [3])})
    judge = Judge(OnnxRuntime(load_onnx(path), path), 1e-4)
    given = {"x": np.array([1e-3, 2e-3, 3e-3], np.float32)}
    # ONNX Runtime's large last element leaves the others within the tolerance, which is relative to the largest.
    (compared,) = judge.compared({"y": given["x"]}, {"y": np.array([0, 0, 1e12], np.float32)}, given)
    assert compared.is_within
    assert "expected 9.99999996e+11 by ONNX Runtime" in compared.note
    (compared,) = judge.compared({"y": given["x"] * 2}, {"y": np.array([0, 0, 1e12], np.float32)}, given)
    assert (compared.is_within, compared.note) == (False, "")


def test_names_with_dots_and_prefixes_are_taken_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [helper.make_node("Add", ["in.x", "layer.0.y"], ["z.0"])]
    inputs = {"in.x": (FLOAT, [3]), "layer.0.y": (FLOAT, [3])}
    path = models.save(tmp_path / "m.onnx", nodes, inputs, {"z.0": (FLOAT, [3])})
    x = models.weights(0, 3)
    given, out = tmp_path / "in.npz", tmp_path / "out"
    for names in (("in.x", "layer.0.y"), ("in.in.x", "in.layer.0.y"), ("in.x", "in.layer.0.y")):
        write_arrays(given, dict.fromkeys(names, x))
        assert verify(capsys, path, "--inputs", given)[0] == 0
    write_arrays(given, {"in.x": x, "in.layer.0.y": x, "ref.z.0": 3 * x})
    assert verify(capsys, path, "--inputs", given)[0] == 1
    write_arrays(given, {"in.x": x, "in.layer.0.y": x, "ref.other": 3 * x})
    code, text = verify(capsys, path, "--inputs", given)
    assert (code, "unknown inputs: ref.other" in text) == (2, True)
    assert main(["compile", str(path), "-o", str(out), "--chip", "test-4", "--no-program"]) == 0
    write_arrays(given, {"in.x": x, "in.layer.0.y": x})
    assert main(["run", str(out), "--inputs", str(given), "--outputs", str(tmp_path / "z.npz")]) == 0
    assert np.array_equal(read_arrays(tmp_path / "z.npz")["z.0"], x + x)


def test_narrower_integers_are_taken_where_the_model_wants_wider_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, given = models.embedding(tmp_path / "m.onnx"), tmp_path / "in.npz"
    ids = np.arange(12).reshape(2, 6)
    write_arrays(given, {"ids": ids.astype(np.int32), "mask": ids.astype(np.uint8)})
    assert verify(capsys, path, "--inputs", given)[0] == 0
    write_arrays(given, {"ids": ids.astype(np.float32), "mask": ids})
    code, text = verify(capsys, path, "--inputs", given)
    assert (code, text.count("\n")) == (2, 1)
    assert "ids has type float32, expected int64" in text


def test_fixed_inputs_are_given_to_onnx_runtime_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    inputs = {"x": (FLOAT, [4, 6]), "shape": (INT64, [2])}
    path = models.save(tmp_path / "m.onnx", nodes, inputs, {"y": (FLOAT, [3, 8])})
    assert verify(capsys, path, "--constant", "shape=3,8", "--layers")[0] == 0


def test_parts_keep_half_precision_and_constants_that_shapes_make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    half = TensorProto.FLOAT16
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], name="squash"),
        helper.make_node("Shape", ["t"], ["shape"]),
        helper.make_node("Gather", ["shape", "last"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["wanted"], axis=0),
        helper.make_node("Exp", ["t"], ["e"], name="grow"),
        helper.make_node("Reshape", ["e", "wanted"], ["y"]),
    ]
    stored = {"last": np.array([1]), "rest": np.array([-1])}
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (half, [4, 6])}, {"y": (half, [6, 4])}, **stored)
    monkeypatch.setitem(scalar_eval.PLAIN, "math.exp", wrong_exp)
    part = tmp_path / "part.onnx"
    code, text = verify(capsys, path, "--bisect", part)
    assert (code, "Exp 'grow'" in text) == (1, True)
    (found,) = load_onnx(part).graph.input
    assert (found.name, found.type.tensor_type.elem_type) == ("t", half)
    assert run_onnx_runtime(part, {"t": read_arrays(part.with_suffix(".npz"))["in.t"]})["e"].shape == (4, 6)


def test_inputs_that_declared_shapes_decide_are_not_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["s"]),
        helper.make_node("CastLike", ["s", "like"], ["t"]),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    inputs = {
        "x": (FLOAT, [4, 6, 2]), "axes": (INT64, [1]), "like": (FLOAT, [3]), "shape": (INT64, [2])
    }  # fmt: skip
    path = tmp_path / "m.onnx"
    models.save(path, nodes, inputs, {"s": (FLOAT, [4, 1, 2]), "t": (FLOAT, [4, 1, 2]), "y": (FLOAT, [8, 6])})
    code, text = verify(capsys, path, "--layers")
    assert (code, "refuses" in text) == (0, False)


@pytest.mark.slow
def test_inputs_are_tame_where_onnx_runtime_takes_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [helper.make_node("RotaryEmbedding", ["x", "cos", "sin", "places"], ["y"])]
    stored = {"cos": models.weights(0, 9, 2), "sin": models.weights(1, 9, 2)}
    inputs = {"x": (FLOAT, [1, 2, 5, 4]), "places": (INT64, [1, 5])}
    path = models.save(tmp_path / "m.onnx", nodes, inputs, {"y": (FLOAT, [1, 2, 5, 4])}, **stored)
    model = load_onnx(path)
    model.opset_import[0].version = 23
    path.write_bytes(model.SerializeToString())
    code, text = verify(capsys, path)
    assert code == 0
    assert "no negative indices (standard normal: ONNX Runtime refuses them)" in text
