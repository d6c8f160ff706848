"""Values of float8, float4 and of 2 and 4 bits are kept in wider types, and are those that ONNX says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from support.linalg_numpy import run_module

from t10.cli import main
from t10.core.dtypes import in_numpys_types
from t10.driver import compile
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse

Array = NDArray[Any]
make = helper.make_node
info = helper.make_tensor_value_info
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""Every number of f16: what lies between two of float8, halfway, and beyond all."""
TIES = np.array(
    [
        464,
        np.nextafter(np.float32(464), np.float32(500)),
        248,
        np.nextafter(np.float32(248), np.float32(0)),
        61440,
        3e38,
    ],
    np.float32,
)
FLOAT8 = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")


def model_of(
    nodes: list[Any], inputs: dict[str, tuple[int, Any]], output: tuple[int, Any], **constants: Any
) -> Any:
    graph = helper.make_graph(
        nodes,
        "g",
        [info(name, *each) for name, each in inputs.items()],
        [info("y", *output)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)


def both(model: Any, inputs: dict[str, Array]) -> tuple[Array, Array]:
    """Return what comes out, and what the reference evaluator makes of the model, in f32."""
    reference: Any = ReferenceEvaluator(model)
    with np.errstate(all="ignore"):
        (due,) = reference.run(None, inputs)
    imported = import_proto(onnx.ModelProto.FromString(model.SerializeToString()), source="m")
    given = {name: in_numpys_types(array, np.dtype(np.float16)) for name, array in inputs.items()}
    with imported.module.context, np.errstate(all="ignore"):
        Fuse(orders="keep").apply(imported.module)
        found = run_module(imported.module, {**given, **imported.weights})["y"]
    return found, due.astype(np.float32)


@pytest.mark.parametrize("saturate", [1, 0])
@pytest.mark.parametrize("kind", FLOAT8)
def test_every_f16_is_rounded_to_float8(kind: str, saturate: int) -> None:
    x, to = np.concatenate([HALVES, TIES]), getattr(TensorProto, kind)
    cast = make("Cast", ["x"], ["y"], to=to, saturate=saturate)
    found, due = both(model_of([cast], {"x": (TensorProto.FLOAT, x.shape)}, (to, x.shape)), {"x": x})
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, due)
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(due)]), np.signbit(due[~np.isnan(due)]))


def test_every_f16_is_rounded_to_float4() -> None:
    to = TensorProto.FLOAT4E2M1
    model = model_of(
        [make("Cast", ["x"], ["y"], to=to)], {"x": (TensorProto.FLOAT, HALVES.shape)}, (to, HALVES.shape)
    )
    found, due = both(model, {"x": HALVES})
    np.testing.assert_array_equal(found, due)


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "INT2", "UINT2"])
def test_casts_to_few_bits_keep_the_lowest(kind: str) -> None:
    x, to = np.linspace(-300, 300, 1201, dtype=np.float32), getattr(TensorProto, kind)
    model = model_of([make("Cast", ["x"], ["y"], to=to)], {"x": (TensorProto.FLOAT, x.shape)}, (to, x.shape))
    imported = import_proto(onnx.ModelProto.FromString(model.SerializeToString()), source="m")
    with imported.module.context:
        found = run_module(imported.module, {"x": x})["y"]
    n_bits = int(kind[-1])
    lowest = np.trunc(x).astype(np.int64) & ((1 << n_bits) - 1)
    is_negative = (kind[0] == "I") & (lowest >> (n_bits - 1) == 1)
    due = lowest - (is_negative << n_bits)
    np.testing.assert_array_equal(found.view(np.uint8 if kind[0] == "U" else np.int8), due)


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint4"])
@pytest.mark.parametrize("rows", [(), (6,)], ids=["one scale", "a row"])
def test_values_are_quantised_and_stand_for_what_onnx_says(kind: str, rows: tuple[int, ...]) -> None:
    dtype = getattr(ml_dtypes, kind)
    scale = np.random.default_rng(1).uniform(0.02, 0.5, rows).astype(np.float32)
    zero = np.zeros(rows, np.float32) if "float" in kind else np.ones(rows, np.float32)
    nodes = [
        make("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
        make("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1),
    ]
    model = model_of(
        nodes, {"x": (TensorProto.FLOAT, (5, 6))}, (TensorProto.FLOAT, (5, 6)), s=scale, z=zero.astype(dtype)
    )
    x = np.random.default_rng(2).normal(0, 3, (5, 6)).astype(np.float32)
    found, due = both(model, {"x": x})
    np.testing.assert_allclose(found, due, rtol=1e-6)


def test_what_only_hands_values_on_has_the_wider_type() -> None:
    """A branch inside a body, an operator that takes the type of another value, and a function of the model."""
    kind = TensorProto.FLOAT8E5M2
    body = helper.make_graph([make("Cast", ["x"], ["b"], to=kind)], "then", [], [info("b", kind, (3,))])
    other = helper.make_graph([make("Identity", ["w"], ["c"])], "else", [], [info("c", kind, (3,))])
    nodes = [
        make("If", ["on"], ["i"], then_branch=body, else_branch=other),
        make("CastLike", ["i", "w"], ["l"]),
        make("Reshape", ["l", "shape"], ["j"]),
        make("twice", ["j"], ["t"], domain="own"),
        make("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
    ]
    model = model_of(
        nodes,
        {"x": (TensorProto.FLOAT, (3,))},
        (TensorProto.FLOAT, (3, 1)),
        on=np.array(True),
        w=np.array([1, 2, 3]).astype(ml_dtypes.float8_e5m2),
        shape=np.array([3, 1]),
    )
    model.functions.append(
        helper.make_function(
            "own", "twice", ["a"], ["b"], [make("Identity", ["a"], ["b"])], [helper.make_opsetid("", 25)]
        )
    )
    model.opset_import.append(helper.make_opsetid("own", 1))
    x = np.array([1.1, -7e4, 0.3], np.float32)
    found, due = both(model, {"x": x})
    np.testing.assert_array_equal(found, due)


def test_inputs_and_outputs_of_few_bits_run_on_every_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = TensorProto.FLOAT8E4M3FN
    nodes = [
        make("DequantizeLinear", ["x", "s"], ["d"]),
        make("MatMul", ["d", "w"], ["p"]),
        make("QuantizeLinear", ["p", "s"], ["y"], output_dtype=kind),
    ]
    w = np.random.default_rng(3).standard_normal((8, 4)).astype(np.float32)
    model = model_of(nodes, {"x": (kind, (4, 8))}, (kind, (4, 4)), s=np.array(0.25, np.float32), w=w)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    assert (
        main(["verify", str(path), "--chip", "test-4", "--engine", "plan", "--seeds", "3", "--no-cache"]) == 0
    )
    assert "verified" in capsys.readouterr().out
    x = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    found = compile(path, "test-4").run({"x": x})["y"]
    reference: Any = ReferenceEvaluator(model)
    np.testing.assert_array_equal(found, reference.run(None, {"x": x})[0].astype(np.float16))


def test_what_an_input_does_not_hold_is_refused(tmp_path: Path) -> None:
    model = model_of(
        [make("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], {"x": (TensorProto.INT4, (2,))}, (1, (2,))
    )
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    executable = compile(tmp_path / "m.onnx", "test-4")
    found = executable.run({"x": np.array([-8, 7]).astype(ml_dtypes.int4)})["y"]
    np.testing.assert_array_equal(found, [-8, 7])
    with pytest.raises(InputError, match="expected int8"):
        executable.run({"x": np.array([0.5, 7]).astype(ml_dtypes.bfloat16)})


def test_types_that_are_only_read_are_named() -> None:
    kind = TensorProto.FLOAT8E8M0
    model = model_of([make("Cast", ["x"], ["y"], to=kind)], {"x": (TensorProto.FLOAT, (2,))}, (kind, (2,)))
    with pytest.raises(UnsupportedOpError, match="Cast makes 'y' of float8e8m0"):
        import_proto(model, source="m")


def test_scales_of_blocks_are_refused_for_float8() -> None:
    kind = TensorProto.FLOAT8E4M3FN
    nodes = [make("QuantizeLinear", ["x", "s"], ["y"], output_dtype=kind, axis=1, block_size=4)]
    model = model_of(nodes, {"x": (1, (2, 8))}, (kind, (2, 8)), s=np.ones((2, 2), np.float32))
    with pytest.raises(UnsupportedOpError, match="in blocks"):
        import_proto(model, source="m")
