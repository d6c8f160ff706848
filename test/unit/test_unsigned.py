"""Integers without a sign: every operator on the whole range on all engines, against ONNX Runtime or the reference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from support.engines import by_reference, by_runtime, on_every_engine
from support.linalg_numpy import run_module

import t10
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.importer import import_model, import_proto
from t10.frontend.unsigned_integers import without_sign
from t10.opt.main import main as t10_opt

Array = NDArray[Any]
ROWS, COLUMNS = 3, 8
TO = helper.np_dtype_to_tensor_dtype

ORDER = ("Max", "Min")
RELATIONS = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
WRAPPING = ("Add", "Sub", "Mul", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
REFERENCE_ONLY = ("Pow", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSum", "ArgMax", "ArgMin", "TopK")
"""Operators that ONNX Runtime has no kernel for of uint32; of uint8, none for Pow."""


@dataclass(frozen=True, slots=True)
class Case:
    """One operator: its node, what it is given, and the type and shape of what it makes."""

    name: str
    operator: str
    inputs: dict[str, Array]
    output: tuple[Any, tuple[int, ...]]
    attributes: dict[str, Any]
    constants: dict[str, Array]

    def model(self) -> Any:
        """Return the model of this operator alone, its values named after it."""
        row = {key: f"{self.name}.{key}" for key in (*self.inputs, *self.constants)}
        outputs = [f"{self.name}.y"] + ([f"{self.name}.places"] if self.operator == "TopK" else [])
        node = helper.make_node(self.operator, [row[key] for key in row], outputs, **self.attributes)
        kind, shape = self.output
        made = [helper.make_tensor_value_info(outputs[0], TO(np.dtype(kind)), shape)]
        made += [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in outputs[1:]]
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info(row[k], TO(v.dtype), v.shape) for k, v in self.inputs.items()],
            made,
            [numpy_helper.from_array(value, row[key]) for key, value in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)

    def feeds(self) -> dict[str, Array]:
        """Return the inputs by their names in the model."""
        return {f"{self.name}.{key}": value for key, value in self.inputs.items()}


def whole_range(kind: Any, *shape: int, seed: int = 0) -> Array:
    """Return numbers of the whole range of a type, its ends and middle first."""
    limits = np.iinfo(kind)
    drawn = np.random.default_rng(seed).integers(0, limits.max, shape, kind, endpoint=True)
    ends = [limits.max, 0, limits.max // 2, limits.max // 2 + 1, 1]
    drawn.reshape(-1)[: len(ends)] = ends[: drawn.size]
    return drawn


def cases(kind: Any) -> list[Case]:
    """Return the operators that take or make a type."""
    x, y = whole_range(kind, ROWS, COLUMNS), whole_range(kind, ROWS, COLUMNS, seed=1)[:, ::-1].copy()
    top = int(np.iinfo(kind).max)
    divisor = np.where(y == 0, np.array(3, kind), y)
    few = np.random.default_rng(2).integers(0, np.iinfo(kind).bits, x.shape).astype(kind)
    low, high = np.array(5, kind), np.array(top - 9, kind)
    found: list[Case] = []

    def add(
        name: str, inputs: dict[str, Array], made: Any = kind, shape: tuple[int, ...] = x.shape, **more: Any
    ) -> None:
        operator, constants = name.split(".")[0], more.pop("constants", {})
        found.append(Case(name, operator, inputs, (made, shape), more, constants))

    for name in (*ORDER, *WRAPPING):
        add(name, {"a": x, "b": y})
    for name in RELATIONS:
        add(name, {"a": x, "b": y}, np.bool_)
    if kind != np.uint64:
        add("Div", {"a": x, "b": divisor})
        add("Mod", {"a": x, "b": divisor})
        add("BitShift.left", {"a": x, "b": few}, direction="LEFT")
        add("BitShift.right", {"a": x, "b": few}, direction="RIGHT")
    add("BitwiseNot", {"a": x})
    add("Abs", {"a": x})
    add("Sign", {"a": x})
    add("Clip", {"a": x, "low": low, "high": high})
    add("Clip.constant", {"a": x}, constants={"low": low, "high": high})
    add("Where", {"c": x > y, "a": x, "b": y})
    add("Pad", {"a": x}, shape=(ROWS + 1, COLUMNS), constants={"pads": np.array([0, 0, 1, 0]), "value": high})
    sums = ("ReduceSum", "ReduceL1") if kind != np.uint8 else ()
    for name in () if kind == np.uint16 else ("ReduceMax", "ReduceMin", *sums):
        add(name, {"a": x}, shape=(ROWS,), keepdims=0, constants={"axes": np.array([1])})
    for name in ("ArgMax", "ArgMin"):
        add(name, {"a": x}, np.int64, (ROWS,), axis=1, keepdims=0)
    if kind != np.uint16:
        add("TopK", {"a": x}, shape=(ROWS, 3), constants={"k": np.array([3])})
    whole = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64, np.bool_)
    for target in whole if kind == np.uint64 else (np.float32, *whole):
        add(f"Cast.{np.dtype(target).name}", {"a": x}, target, to=TO(np.dtype(target)))
    add("Cast.from_i32", {"a": x.astype(np.int32) - 7}, to=TO(np.dtype(kind)))
    add("Cast.from_i8", {"a": x.astype(np.int8)}, to=TO(np.dtype(kind)))
    add("Cast.from_f32", {"a": np.minimum(x, top - top // 1000).astype(np.float32)}, to=TO(np.dtype(kind)))
    of_floats = {"a": np.linspace(0.9, 1.1, x.size, dtype=np.float32).reshape(x.shape), "b": few}
    if kind != np.uint64:
        add("Pow", of_floats, np.float32)
    if kind == np.uint8:
        image = whole_range(kind, 1, 2, 4, 5)
        add("MaxPool", {"a": image}, shape=(1, 2, 4, 4), kernel_shape=[2, 3], pads=[1, 1, 0, 0])
        add("Cast.float16", {"a": x}, np.float16, to=TensorProto.FLOAT16)
    return found


def merged(of: list[Case]) -> Any:
    """Return one model of many operators."""
    models = [case.model() for case in of]
    graph = helper.make_graph(
        [node for each in models for node in each.graph.node],
        "g",
        [value for each in models for value in each.graph.input],
        [value for each in models for value in each.graph.output],
        [tensor for each in models for tensor in each.graph.initializer],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.uint8, np.uint32])
def test_every_operator_is_computed_without_sign_on_every_engine(kind: Any, tmp_path: Path) -> None:
    every = cases(kind)
    inputs = {name: value for case in every for name, value in case.feeds().items()}
    check(kind, every, on_every_engine(merged(every), inputs, tmp_path))


@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.uint64])
def test_words_are_lowered_to_those_with_a_sign(kind: Any) -> None:
    every = cases(kind)
    inputs = {name: without_sign(value) for case in every for name, value in case.feeds().items()}
    imported = import_proto(merged(every), source="every")
    with imported.module.context:
        found = run_module(imported.module, {**inputs, **imported.weights})
    for case in every:
        name, made = f"{case.name}.y", np.dtype(case.output[0])
        found[name] = found[name].view(made) if made.kind == "u" else found[name]
    check(kind, every, {"interpreted": found})


def check(kind: Any, every: list[Case], found: dict[str, dict[str, Array]]) -> None:
    """Compare what engines compute with what ONNX Runtime does, or the reference where that has no kernel."""
    for case in every:
        is_known = case.operator not in (REFERENCE_ONLY if kind == np.uint32 else ("Pow",))
        is_known = is_known and kind in (np.uint8, np.uint32)
        expected = (by_runtime if is_known else by_reference)(case.model(), case.feeds())
        for name, due in expected.items():
            for engine, outputs in found.items():
                # The reference counts some sums in 64 bits.
                assert outputs[name].dtype == case.output[0] or name.endswith(".places"), (engine, name)
                if case.operator == "Pow":
                    np.testing.assert_allclose(outputs[name], due, rtol=1e-5)
                    continue
                np.testing.assert_array_equal(
                    outputs[name], due.astype(outputs[name].dtype), f"{engine} {name}"
                )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "(uint64[6] x) => (uint64[6] y) { y = Div (x, x) }",
            "Div is not computed with elements of type uint64",
        ),
        (
            "(uint16[6] x) => (uint16[2] y, int64[2] i) <int64[1] k = {2}> { y, i = TopK (x, k) }",
            "TopK is not computed with elements of type uint16",
        ),
        (
            "(uint64[6] x) => (float[6] y) { y = Cast <to: int = 1> (x) }",
            "Cast is not computed with elements of type uint64",
        ),
        (
            "(float[6] a, uint64[6] x) => (float[6] y) { y = Pow (a, x) }",
            "Pow is not computed with elements of type uint64",
        ),
        (
            "(int32[6] a, uint32[6] x) => (int32[6] y) { y = Pow (a, x) }",
            "Pow is not computed with .* uint32",
        ),
        (
            "(uint32[6] x) => (uint32[1] y) { y = ReduceMean (x) }",
            "ReduceMean is not computed with .* uint32",
        ),
    ],
)
def test_what_has_no_way_is_refused_by_name(text: str, named: str) -> None:
    of: Any = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]>\ng {text}')
    with pytest.raises(UnsupportedOpError, match=named):
        import_proto(of, source="m")


def small(folder: Path) -> Path:
    """Write y = x - 1 of uint8, a pass-through of uint32, and a weight of uint8."""
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (uint8[4] x, uint32[4] w) => (uint8[4] y, uint32[4] z) <uint8[4] one = {1, 1, 1, 1}> {
            y = Sub (x, one)
            z = Max (w, w)
        }"""
    model: Any = onnx.parser.parse_model(text)
    path = folder / "small.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_every_pass_keeps_the_types_that_the_model_declares(tmp_path: Path) -> None:
    linalg, made = tmp_path / "linalg.mlir", tmp_path / "made.mlir"
    linalg.write_text(str(import_model(small(tmp_path)).module.operation.get_asm()), encoding="utf-8")
    passes = ["--t10-outline-constants", "--t10-fuse", "--t10-reconcile=chip=test-16", "--t10-expand"]
    passes += ["--t10-canonicalize", "--t10-place", "--t10-verify-plan"]
    for n_passes in range(len(passes) + 1):
        assert t10_opt([*passes[:n_passes], str(linalg), "-o", str(made)]) == 0
        text = made.read_text(encoding="utf-8")
        assert text.count("t10.type = ui8") == 2, passes[:n_passes]
        assert text.count("t10.type = ui32") == 2, passes[:n_passes]


def test_a_saved_model_has_its_types_from_the_module(tmp_path: Path) -> None:
    executable = t10.compile(small(tmp_path), "test-16")
    executable.save(tmp_path / "out")
    loaded = t10.Executable.load(tmp_path / "out")
    inputs, outputs = loaded.plan.graph.signature
    assert [each.dtype for each in (*inputs, *outputs)] == ["ui8", "ui32", "ui8", "ui32"]
    x, w = np.array([0, 1, 128, 255], np.uint8), np.array([0, 1, 2**31, 2**32 - 1], np.uint32)
    found = loaded.run({"x": x, "w": w})
    assert found["y"].dtype == np.uint8
    assert found["y"].tolist() == [255, 0, 127, 254]
    assert found["z"].dtype == np.uint32
    assert found["z"].tolist() == w.tolist()


def test_a_declared_type_of_other_bits_is_an_input_error(tmp_path: Path) -> None:
    executable = t10.compile(small(tmp_path), "test-16")
    edited = executable.module.replace("t10.type = ui8", "t10.type = ui16")
    with pytest.raises(InputError, match="declared of type ui16"):
        replace(executable, module=edited).of_module("module.mlir")


def test_words_beside_a_node_that_is_refused_are_looked_at_with_a_sign() -> None:
    """The importer ends the process at words without a sign."""
    for kind in (TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64):
        nodes = [helper.make_node("Greater", ["x", "y"], ["g"]), helper.make_node("NoOperator", ["g"], ["z"])]
        ends = [helper.make_tensor_value_info(name, kind, (3,)) for name in ("x", "y")]
        made = [helper.make_tensor_value_info("z", TensorProto.BOOL, (3,))]
        model = helper.make_model(helper.make_graph(nodes, "g", ends, made))
        with pytest.raises(UnsupportedOpError, match="NoOperator") as caught:
            import_proto(model, source="m")
        assert "Greater" not in str(caught.value)
