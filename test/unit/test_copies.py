"""Products whose results are read in another order: copied once where reading through transposes takes longer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.engines import by_runtime

import t10
from t10.backend import run_on_tiles
from t10.driver import Executable
from t10.errors import T10Error
from t10.frontend.importer import import_model
from t10.passes import fuse
from t10.plan import assemble

TOKENS, SIZE, HEADS = 50, 128, 2
SLICED = """
func.func @main(%x: tensor<16x64xf16>, %w: tensor<64x512xf16>, {argument}) -> tensor<256x256xf16> {{
  {made}
  %zero = arith.constant 0.0 : f16
  %ye = tensor.empty() : tensor<16x512xf16>
  %yz = linalg.fill ins(%zero : f16) outs(%ye : tensor<16x512xf16>) -> tensor<16x512xf16>
  %y = linalg.matmul ins(%x, %w : tensor<16x64xf16>, tensor<64x512xf16>)
      outs(%yz : tensor<16x512xf16>) -> tensor<16x512xf16>
  %s = tensor.extract_slice %y[0, %i] [16, 256] [1, 1] : tensor<16x512xf16> to tensor<16x256xf16>
  %te = tensor.empty() : tensor<256x16xf16>
  %t = linalg.transpose ins(%s : tensor<16x256xf16>) outs(%te : tensor<256x16xf16>) permutation = [1, 0]
  %ge = tensor.empty() : tensor<256x256xf16>
  %gz = linalg.fill ins(%zero : f16) outs(%ge : tensor<256x256xf16>) -> tensor<256x256xf16>
  %g = linalg.matmul ins(%t, %s : tensor<256x16xf16>, tensor<16x256xf16>)
      outs(%gz : tensor<256x256xf16>) -> tensor<256x256xf16>
  return %g : tensor<256x256xf16>
}}
"""


def attention(tokens: int = TOKENS, size: int = SIZE, heads: int = HEADS) -> onnx.ModelProto:
    """Return an attention of f16 whose queries, keys and values are parts of one product."""
    kind, each = TensorProto.FLOAT16, size // heads
    draw = np.random.default_rng(1)
    weight = (draw.standard_normal((size, 3 * size)) / size**0.5).astype(np.float16)
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["all"], name="qkv"),
        node("Split", ["all"], ["mq", "mk", "mv"], axis=-1, num_outputs=3),
        *(node("Reshape", [f"m{c}", "heads"], [f"r{c}"]) for c in "qkv"),
        *(
            node("Transpose", [f"r{c}"], [f"t{c}"], perm=[0, 2, 3, 1] if c == "k" else [0, 2, 1, 3])
            for c in "qkv"
        ),
        node("MatMul", ["tq", "tk"], ["scores"], name="scores"),
        node("Softmax", ["scores"], ["part"], name="softmax"),
        node("MatMul", ["part", "tv"], ["y"], name="mix"),
    ]
    graph = helper.make_graph(
        nodes,
        "attention",
        [helper.make_tensor_value_info("x", kind, [1, tokens, size])],
        [helper.make_tensor_value_info("y", kind, [1, heads, tokens, each])],
        [
            numpy_helper.from_array(weight, "w"),
            numpy_helper.from_array(np.array([1, tokens, heads, each], np.int64), "heads"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def compiled(folder: Path, *shape: int, program: bool = False) -> Executable:
    path = folder / "model.onnx"
    path.write_bytes(attention(*shape).SerializeToString())
    return t10.compile(path, chip="test-16", program=program)


def cycles(executable: Executable) -> int:
    return sum(each.active.cycles.total for each in executable.plan.operators)


def copies(executable: Executable) -> list[str]:
    return [spec.name for spec in executable.plan.graph.operators if spec.name.endswith(".copy")]


def without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*_: object) -> None:
        pass

    monkeypatch.setattr(fuse, "copy_turned", leave)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(50, 128, 2), (97, 64, 2), (16, 256, 1)])
def test_a_copy_takes_less_than_reading_through_transposes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    copied = compiled(tmp_path, *shape)
    assert copies(copied) == ["qkv.copy"]
    without_copies(monkeypatch)
    read = compiled(tmp_path, *shape)
    assert copies(read) == []
    assert cycles(copied) < cycles(read)


def test_what_is_left_with_garbage_in_its_padding_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of 50 tokens lie in rows of 52: without zeros behind them the engine sums 50 in another way."""
    better = compiled(tmp_path, 50, 128, 2)
    mix = better.plan.operators[-1]
    assert [each.kind for each in mix.arrivals] == ["relayout", "relayout"]

    def never(*_: object) -> bool:
        return False

    monkeypatch.setattr(assemble, "is_better_copied", never)
    in_place = compiled(tmp_path, 50, 128, 2)
    assert in_place.plan.operators[-1].arrivals[1].kind == "in_place"
    assert cycles(better) < 0.9 * cycles(in_place)


def test_what_is_small_is_not_copied(tmp_path: Path) -> None:
    assert copies(compiled(tmp_path, 12, 64)) == []


def test_parts_that_are_read_in_one_order_share_a_copy(tmp_path: Path) -> None:
    """Queries and keys of 16 tokens: what the engine makes has tokens innermost, and both are read along them."""
    graph = compiled(tmp_path, 16, 256, 1).plan.graph
    (copy,) = (spec for spec in graph.operators if spec.name == "qkv.copy")
    assert copy.output.shape == (1, 16, 512)
    (scores,) = (spec for spec in graph.operators if spec.name == "scores")
    assert {graph.sources_of(operand.name) for operand in scores.inputs} == {(copy.output.name,)}


def fused(tmp_path: Path, width: int, n_heads: int) -> Any:
    """Return the fused module of an attention over 16 tokens."""
    path = tmp_path / "model.onnx"
    path.write_bytes(attention(16, width, n_heads).SerializeToString())
    module = import_model(path).module
    with module.context:
        fuse.Fuse(chip="test-16").apply(module)
    return module


def test_copies_of_one_product_have_names_of_their_own(tmp_path: Path) -> None:
    """Heads apart are other tensors than their product: queries and keys are copied by themselves."""
    module = fused(tmp_path, 192, 3)
    names = re.findall(r'op_name = "(\S+?)", rtensor.copy', str(module))
    assert names == ["qkv.copy", "qkv.copy_2"]


@pytest.mark.parametrize(
    ("argument", "made", "found"),
    [
        ("%i: index", "", "argument 2 is index"),
        (
            "%q: tensor<index>",
            "%i = tensor.extract %q[] : tensor<index>",
            "tensor.extract cannot be planned",
        ),
    ],
)
def test_slices_at_computed_places_are_refused_by_name(
    tmp_path: Path, argument: str, made: str, found: str
) -> None:
    path = tmp_path / "sliced.mlir"
    path.write_text(SLICED.format(argument=argument, made=made))
    with pytest.raises(T10Error, match=re.escape(found)):
        t10.compile(path, chip="test-16")


def test_fusing_again_keeps_copies(tmp_path: Path) -> None:
    module = fused(tmp_path, 256, 1)
    with module.context:
        text = str(module)
        assert text.count("rtensor.copy") == 1
        fuse.Fuse(chip="test-16").apply(module)
        assert str(module) == text


@pytest.mark.parametrize("shape", [(50, 128, 2), (16, 256, 1)])
def test_copies_compute_what_onnx_runtime_does(tmp_path: Path, shape: tuple[int, ...]) -> None:
    executable = compiled(tmp_path, *shape, program=True)
    assert copies(executable) == ["qkv.copy"]
    # Of small scores: rounded to f16, larger ones would be off by more than their exponentials may be.
    inputs = {"x": (np.random.default_rng(2).standard_normal((1, *shape[:2])) / 4).astype(np.float16)}
    (expected,) = by_runtime(attention(*shape), inputs).values()
    for found in (executable.run(inputs), run_on_tiles(executable, inputs).outputs):
        np.testing.assert_allclose(found["y"], expected, rtol=4e-3, atol=4e-3)
