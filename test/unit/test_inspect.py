"""`t10 inspect`: signature, statistics and graph of a model, of every form, also where it cannot be compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from math import prod
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import onnx
import pytest
from onnx import TensorProto, helper
from support import models
from support.models import save

from t10.cli.entry import main
from t10.errors import InputError
from t10.inspect import NodeFacts, Port, model_facts, statistics
from t10.inspect.drawing import draw, edges
from t10.inspect.dtypes import bytes_of
from t10.inspect.statistics import macs_of
from t10.inspect.tree import tree_lines

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "models"
FLOAT = TensorProto.FLOAT
node = helper.make_node


def test_a_signature_has_names_types_and_weights() -> None:
    facts = model_facts(EXAMPLES / "bert_fp16.onnx")
    assert [port.name for port in facts.inputs] == ["input_ids", "token_type_ids", "mask"]
    assert facts.inputs[0].type_text() == "i64[1x8]"
    assert [port.type_text() for port in facts.outputs] == ["f16[1x8x32]", "f16[1x32]"]
    assert ("opsets", "ai.onnx 18") in facts.properties
    model: Any = onnx.ModelProto.FromString((EXAMPLES / "bert_fp16.onnx").read_bytes())
    assert facts.weights.n_bytes == sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    assert facts.weights.n_parameters == sum(prod(tensor.dims) for tensor in model.graph.initializer)
    assert facts.problems == ()


def test_symbolic_dims_are_shown_and_can_be_given() -> None:
    assert model_facts(EXAMPLES / "symbolic.onnx").inputs[0].dims == ("batch", 16)
    facts = model_facts(EXAMPLES / "symbolic.onnx", shapes={"batch": 3})
    assert facts.inputs[0].shape == (3, 16)
    assert statistics(facts)[0].n_macs > 0


def test_absent_files_of_weights_are_told() -> None:
    (file,) = model_facts(EXAMPLES / "weight_free.onnx").weights.files
    assert (file.location, file.state) == ("absent.bin", "absent")
    assert model_facts(EXAMPLES / "external.onnx").weights.files[0].state == "there"


def test_models_that_cannot_be_compiled_are_shown_with_their_problems(tmp_path: Path) -> None:
    nodes = [
        node("Mystery", ["x"], ["m"], name="odd", domain="com.acme"),
        node("Add", ["b", "m"], ["a"], name="first"),
        node("Relu", ["a"], ["b"], name="second"),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [3])}, {"b": (FLOAT, [3])})
    facts = model_facts(path)
    assert [each.kind for each in facts.graph.nodes] == ["com.acme.Mystery", "Add", "Relu"]
    assert any("nodes form a cycle" in problem for problem in facts.problems)
    assert any("Mystery is of domain 'com.acme'" in problem for problem in facts.problems)
    assert len(list(tree_lines(facts))) == 4


def test_bodies_of_control_flow_stand_below_their_node(tmp_path: Path) -> None:
    inner = helper.make_graph([node("Neg", ["x"], ["n"], name="neg")], "then", [], [_value("n")])
    other = helper.make_graph([node("Relu", ["x"], ["r"], name="relu")], "else", [], [_value("r")])
    choice = node("If", ["c"], ["y"], name="choice", then_branch=inner, else_branch=other)
    path = save(
        tmp_path / "if.onnx", [choice], {"c": (TensorProto.BOOL, []), "x": (FLOAT, [3])}, {"y": (FLOAT, [3])}
    )
    lines = [line.strip() for line in tree_lines(model_facts(path))]
    assert lines[1].startswith("If choice: c -> y f32[3]")
    assert {"then_branch: 1 nodes", "else_branch: 1 nodes"} <= set(lines)
    assert {row.kind for row in statistics(model_facts(path))} == {"If", "Neg", "Relu"}


def _value(name: str) -> Any:
    return helper.make_tensor_value_info(name, FLOAT, [3])


@pytest.mark.parametrize(
    ("kind", "shapes", "output", "macs"),
    [
        ("MatMul", [(2, 3, 4), (4, 5)], (2, 3, 5), 2 * 3 * 4 * 5),
        ("MatMul", [(4,), (4, 5)], (5,), 20),
        ("Gemm", [(3, 4), (5, 4), (5,)], (3, 5), 3 * 4 * 5),
        ("Gemm", [(4, 3), (4, 5)], (3, 5), 3 * 4 * 5),
        ("Conv", [(1, 8, 10, 10), (16, 4, 3, 3)], (1, 16, 8, 8), 16 * 64 * 4 * 9),
        ("ConvTranspose", [(1, 8, 5, 5), (8, 4, 2, 2)], (1, 4, 10, 10), 8 * 25 * 4 * 4),
        ("LSTM", [(7, 2, 3), (1, 16, 3), (1, 16, 4)], (7, 1, 2, 4), 7 * 2 * (48 + 64)),
        ("Attention", [(1, 2, 5, 8), (1, 2, 6, 8), (1, 2, 6, 8)], (1, 2, 5, 8), 2 * 2 * 5 * 6 * 8),
        ("Relu", [(3,)], (3,), 0),
        ("MatMul", [None, (4, 5)], (3, 5), 0),
    ],
)
def test_multiply_accumulates_are_those_of_the_definition(
    kind: str, shapes: list[tuple[int, ...] | None], output: tuple[int, ...], macs: int
) -> None:
    values = {f"i{i}": Port(f"i{i}", "f32", shape) for i, shape in enumerate(shapes) if shape is not None}
    values["o"] = Port("o", "f32", output)
    given = NodeFacts("n", kind, tuple(f"i{i}" for i in range(len(shapes))), ("o",))
    assert macs_of(given, values) == macs


def test_an_einsum_counts_its_loop_nest() -> None:
    values = {
        "a": Port("a", "f32", (2, 3, 4)),
        "b": Port("b", "f32", (2, 4, 5)),
        "o": Port("o", "f32", (2, 3, 5)),
    }
    given = NodeFacts("n", "Einsum", ("a", "b"), ("o",), (("equation", "bij,bjk -> bik"),))
    assert macs_of(given, values) == 2 * 3 * 4 * 5


def test_a_weight_is_counted_once(tmp_path: Path) -> None:
    nodes = [node("Add", ["x", "w"], ["a"]), node("Mul", ["a", "w"], ["y"])]
    path = save(
        tmp_path / "m.onnx", nodes, {"x": (FLOAT, [40])}, {"y": (FLOAT, [40])}, w=models.weights(0, 40)
    )
    rows = {row.kind: row for row in statistics(model_facts(path))}
    assert (rows["Add"].n_parameters, rows["Mul"].n_parameters) == (40, 0)
    assert rows["Add"].weight_bytes == rows["Mul"].output_bytes == 160


def test_packed_types_round_up() -> None:
    cases = {("i4", 3): 2, ("f16", 3): 6, ("i1", 3): 3, ("f8e4m3fn", 3): 3, ("c64", 2): 16, ("text", 9): 0}
    assert {case: bytes_of(*case) for case in cases} == cases


def test_onnx_text_and_linalg_are_inspected(tmp_path: Path) -> None:
    text = """
    module attributes {"onnx-mlir.symbol-postfix" = "m"} {
      func.func @main_graph(%x: tensor<?x4xf32> {onnx.name = "x"}) -> (tensor<?x5xf32> {onnx.name = "y"}) {
        %w = onnx.Constant dense<1.0> : tensor<4x5xf32>
        %y = "onnx.MatMul"(%x, %w) {onnx_node_name = "/fc"} : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
        %z = "onnx.Loop"(%y) ({
          ^bb0(%i: tensor<?x5xf32>):
            %r = "onnx.Relu"(%i) : (tensor<?x5xf32>) -> tensor<?x5xf32>
            onnx.Yield %r : tensor<?x5xf32>
        }) : (tensor<?x5xf32>) -> tensor<?x5xf32>
        onnx.Return %z : tensor<?x5xf32>
      }
    }"""
    (tmp_path / "m.mlir").write_text(text)
    facts = model_facts(tmp_path / "m.mlir")
    assert facts.form == "onnx-mlir"
    assert [port.type_text() for port in facts.inputs] == ["f32[?x4]"]
    assert [(port.name, port.dims) for port in facts.outputs] == [("y", ("?", 5))]
    assert [each.kind for each in facts.graph.all_nodes()] == ["MatMul", "Loop", "Relu", "Yield"]
    assert facts.weights.n_bytes == 80
    (tmp_path / "bad.mlir").write_text("func.func @f(")
    with pytest.raises(InputError, match="cannot be parsed"):
        model_facts(tmp_path / "bad.mlir")


def test_a_drawing_has_every_node_and_every_edge(tmp_path: Path) -> None:
    facts = model_facts(EXAMPLES / "mlp.onnx")
    joined = edges(facts)
    assert [(source, target) for source, target, _ in joined] == [
        (i, i + 1) for i in range(len(facts.graph.nodes) - 1)
    ]
    draw(facts, tmp_path / "g.svg")
    root = ElementTree.fromstring((tmp_path / "g.svg").read_text())
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == len(joined)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}title"))) == len(facts.graph.nodes)
    draw(facts, tmp_path / "g.dot")
    assert (tmp_path / "g.dot").read_text().count("->") == len(joined)
    with pytest.raises(InputError, match=r"ends in \.dot or \.svg"):
        draw(facts, tmp_path / "g.gif")


def test_names_cannot_break_a_drawing(tmp_path: Path) -> None:
    name = 'a"<b>&\n\\'
    path = save(
        tmp_path / "m.onnx", [node("Relu", ["x"], ["y"], name=name)], {"x": (FLOAT, [3])}, {"y": (FLOAT, [3])}
    )
    draw(model_facts(path), tmp_path / "g.svg")
    assert len(list(ElementTree.fromstring((tmp_path / "g.svg").read_text()).iter())) > 3
    assert all("\n" not in line for line in tree_lines(model_facts(path)))


def test_the_command_prints_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "g.svg"
    assert main(["inspect", str(EXAMPLES / "mlp.onnx"), "--graph", str(picture), "--rows", "2"]) == 0
    text = capsys.readouterr().out
    for expected in ("input x: f32[4x16]", "output y: f32[4x8]", "MatMul", "3,072", "fc1/", "4 more nodes"):
        assert expected in text
    assert picture.exists()


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(EXAMPLES / "mlp.onnx"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == [{"name": "x", "dtype": "f32", "dims": [4, 16]}]
    assert sum(row["n_macs"] for row in found["statistics"]) == 3072


def test_compile_prints_statistics_before_it_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = models.unsupported(tmp_path / "m.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), "--chip", "test-4", "--stats"]) == 3
    found = capsys.readouterr()
    assert "MACs" in found.out
    assert "NonZero" in found.out
    assert "positions" in found.err


def test_what_native_code_gives_up_on_is_the_fault_of_the_file(tmp_path: Path) -> None:
    """The bindings cannot make a dictionary's value of a location: they end the process."""
    path = tmp_path / "m.mlir"
    path.write_text(
        'func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {t10.name = loc("a":1:2)}) { return %x : tensor<4xf32> }'
    )
    command = [sys.executable, "-m", "t10.cli", "inspect", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == InputError.exit_code
    assert "m.mlir: the native code of ONNX or MLIR that reads it gave up" in done.stderr
