"""Reading linalg as tensor expressions: what is computed, densely, is what the operations say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support import reference

from t10.core.graph import Graph
from t10.dialect.mlir import ir, new_context
from t10.errors import InputError, UnsupportedOpError
from t10.passes.read_graph import ReadModule, read_graph

Array = NDArray[Any]

PRODUCT = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#col = affine_map<(m, n) -> (n)>
#flip = affine_map<(m, n) -> (n, m)>
"""
"""Index maps of a matrix product and of what may follow it."""

SUM_OF_PRODUCTS = """
  ^bb0(%left: f32, %right: f32, %acc: f32):
    %product = arith.mulf %left, %right : f32
    %sum = arith.addf %acc, %product : f32
    linalg.yield %sum : f32
"""


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    """Work in a context of our own."""
    with new_context(), ir.Location.unknown():
        yield


def read(text: str) -> ReadModule:
    """Return what is read of a module."""
    return read_graph(ir.Module.parse(text))


def numbers(*shape: int, seed: int = 0) -> Array:
    """Return small whole numbers, so that every order of summation is exact."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def results(found: ReadModule, *inputs: Array) -> list[Array]:
    """Return the results of a graph, computed densely; inputs in the order of its arguments."""
    names = [tensor.name for tensor in found.graph.inputs]
    given = dict(zip(names, inputs, strict=True)) | found.constants
    return list(reference.run(found.graph, given).values())


def only_operator(graph: Graph) -> Any:
    """Return the one operator of a graph."""
    (spec,) = graph.operators
    return spec


def test_a_pad_in_front_of_a_convolution_becomes_an_offset() -> None:
    found = read(
        """
        #x = affine_map<(f, h, c, kh) -> (c, 2 * h + kh)>
        #w = affine_map<(f, h, c, kh) -> (f, c, kh)>
        #o = affine_map<(f, h, c, kh) -> (f, h)>
        func.func @f(%x: tensor<2x8xf32>, %w: tensor<3x2x3xf32>) -> tensor<3x4xf32> {
          %zero = arith.constant 0.0 : f32
          %p = tensor.pad %x low[0, 1] high[0, 1] {
          ^bb0(%i: index, %j: index):
            tensor.yield %zero : f32
          } : tensor<2x8xf32> to tensor<2x10xf32>
          %e = tensor.empty() : tensor<3x4xf32>
          %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
          %r = linalg.generic {indexing_maps = [#x, #w, #o],
              iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
            ins(%p, %w : tensor<2x10xf32>, tensor<3x2x3xf32>) outs(%init : tensor<3x4xf32>) {
        """
        + SUM_OF_PRODUCTS
        + """
          } -> tensor<3x4xf32>
          return %r : tensor<3x4xf32>
        }
        """
    )
    spec = only_operator(found.graph)
    assert spec.kind == "convolution"
    assert spec.inputs[0].shape == (2, 8)
    assert spec.inputs[0].dims[1].offset == -1
    assert spec.inputs[0].pad_value == "0.0"
    assert not found.graph.views
    x, w = numbers(2, 8), numbers(3, 2, 3, seed=1)
    padded = np.pad(x, ((0, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)[:, ::2]
    assert np.array_equal(results(found, x, w)[0], np.einsum("chk,fck->fh", windows, w))


def test_an_initial_value_that_is_not_neutral_is_combined_in_the_epilogue() -> None:
    found = read(
        PRODUCT
        + """
        func.func @f(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %bias: tensor<2x4xf32>) -> tensor<2x4xf32> {
          %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
            ins(%a, %b : tensor<2x3xf32>, tensor<3x4xf32>) outs(%bias : tensor<2x4xf32>) {
        """
        + SUM_OF_PRODUCTS
        + "} -> tensor<2x4xf32>\n return %r : tensor<2x4xf32> }"
    )
    spec = only_operator(found.graph)
    assert [operand.name for operand in spec.epilogue_inputs] == ["arg2"]
    a, b, bias = numbers(2, 3), numbers(3, 4, seed=1), numbers(2, 4, seed=2)
    assert np.array_equal(results(found, a, b, bias)[0], a @ b + bias)


def test_a_constant_initial_value_that_is_not_neutral_counts_once() -> None:
    found = read(
        """
        #x = affine_map<(i, j) -> (i, j)>
        #o = affine_map<(i, j) -> (i)>
        func.func @f(%x: tensor<3x5xf32>) -> tensor<3xf32> {
          %two = arith.constant 2.0 : f32
          %e = tensor.empty() : tensor<3xf32>
          %init = linalg.fill ins(%two : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
          %r = linalg.generic {indexing_maps = [#x, #o], iterator_types = ["parallel", "reduction"]}
            ins(%x : tensor<3x5xf32>) outs(%init : tensor<3xf32>) {
          ^bb0(%v: f32, %acc: f32):
            %s = arith.maximumf %acc, %v : f32
            linalg.yield %s : f32
          } -> tensor<3xf32>
          return %r : tensor<3xf32>
        }
        """
    )
    x = numbers(3, 5)
    assert only_operator(found.graph).combine == "max"
    assert np.array_equal(results(found, x)[0], np.maximum(x.max(axis=1), 2))


EPILOGUE = (
    PRODUCT
    + """
    func.func @f(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %bias: tensor<4xf32>) -> tensor<4x2xf32> {
      %r = "rtensor.operator"() ({
        %zero = arith.constant 0.0 : f32
        %e = tensor.empty() : tensor<2x4xf32>
        %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
        %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<2x3xf32>, tensor<3x4xf32>) outs(%init : tensor<2x4xf32>) {
    """
    + SUM_OF_PRODUCTS
    + """
        } -> tensor<2x4xf32>
        %q = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
          ins(%p, %bias : tensor<2x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4xf32>) {
        ^bb0(%x: f32, %y: f32, %o: f32):
          %s = arith.addf %x, %y : f32
          linalg.yield %s : f32
        } -> tensor<2x4xf32>
        %t = tensor.empty() : tensor<4x2xf32>
        %z = linalg.generic {indexing_maps = [#id, #flip], iterator_types = ["parallel", "parallel"]}
          ins(%q : tensor<2x4xf32>) outs(%t : tensor<4x2xf32>) {
        ^bb0(%x: f32, %o: f32):
          %s = arith.mulf %x, %x : f32
          linalg.yield %s : f32
        } -> tensor<4x2xf32>
        "rtensor.yield"(YIELDED) : (tensor<4x2xf32>) -> ()
      }) {op_name = "chain", kind = "contraction"} : () -> tensor<4x2xf32>
      return %r : tensor<4x2xf32>
    }
    """
)


def test_a_chain_behind_a_root_is_one_epilogue_and_may_permute_the_result() -> None:
    found = read(EPILOGUE.replace("YIELDED", "%z"))
    spec = only_operator(found.graph)
    assert spec.name == "chain"
    assert spec.output.shape == (4, 2)
    assert [operand.shape for operand in spec.epilogue_inputs] == [(4,)]
    a, b, bias = numbers(2, 3), numbers(3, 4, seed=1), numbers(4, seed=2)
    assert np.array_equal(results(found, a, b, bias)[0], np.square(a @ b + bias).T)


def test_a_position_behind_a_root_is_one_on_the_axes_of_the_root() -> None:
    """The loops behind a root whose first axis is summed count from its second axis on."""
    found = read(
        """
        #x = affine_map<(k, i) -> (k, i)>
        #o = affine_map<(k, i) -> (i)>
        #id = affine_map<(i) -> (i)>
        func.func @f(%x: tensor<5x3xi32>) -> tensor<3xi32> {
          %r = "rtensor.operator"() ({
            %zero = arith.constant 0 : i32
            %e = tensor.empty() : tensor<3xi32>
            %init = linalg.fill ins(%zero : i32) outs(%e : tensor<3xi32>) -> tensor<3xi32>
            %s = linalg.generic {indexing_maps = [#x, #o], iterator_types = ["reduction", "parallel"]}
              ins(%x : tensor<5x3xi32>) outs(%init : tensor<3xi32>) {
            ^bb0(%a: i32, %acc: i32):
              %n = arith.addi %acc, %a : i32
              linalg.yield %n : i32
            } -> tensor<3xi32>
            %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
              ins(%s : tensor<3xi32>) outs(%e : tensor<3xi32>) {
            ^bb0(%a: i32, %o: i32):
              %place = linalg.index 0 : index
              %number = arith.index_cast %place : index to i32
              %m = arith.muli %a, %number : i32
              linalg.yield %m : i32
            } -> tensor<3xi32>
            "rtensor.yield"(%t) : (tensor<3xi32>) -> ()
          }) {op_name = "sum", kind = "reduction"} : () -> tensor<3xi32>
          return %r : tensor<3xi32>
        }
        """
    )
    x = numbers(5, 3).astype(np.int32)
    assert np.array_equal(results(found, x)[0], x.sum(axis=0) * np.arange(3))


def test_an_operator_must_yield_its_last_operation() -> None:
    with pytest.raises(UnsupportedOpError, match="yields another value"):
        read(EPILOGUE.replace("YIELDED", "%t"))


def test_a_chain_can_only_read_its_newest_value() -> None:
    """The accumulator before the bias is gone when the square is taken: reading it is not silently something else."""
    text = EPILOGUE.replace("YIELDED", "%z").replace(
        """ins(%q : tensor<2x4xf32>) outs(%t : tensor<4x2xf32>) {
        ^bb0(%x: f32, %o: f32):
          %s = arith.mulf %x, %x : f32""",
        """ins(%q, %p : tensor<2x4xf32>, tensor<2x4xf32>) outs(%t : tensor<4x2xf32>) {
        ^bb0(%x: f32, %y: f32, %o: f32):
          %s = arith.mulf %x, %y : f32""",
    )
    text = text.replace("indexing_maps = [#id, #flip]", "indexing_maps = [#id, #id, #flip]")
    with pytest.raises(UnsupportedOpError, match="cannot be read here"):
        read(text)


def test_a_gather_selects_along_an_axis_of_its_own() -> None:
    found = read(
        """
        #i = affine_map<(n, d) -> (n)>
        #o = affine_map<(n, d) -> (n, d)>
        func.func @f(%ids: tensor<5xi64>, %table: tensor<7x3xf32>) -> tensor<5x3xf32> {
          %nine = arith.constant 9.0 : f32
          %e = tensor.empty() : tensor<5x3xf32>
          %unread = linalg.fill ins(%nine : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
          %r = linalg.generic {indexing_maps = [#i, #o], iterator_types = ["parallel", "parallel"]}
            ins(%ids : tensor<5xi64>) outs(%unread : tensor<5x3xf32>) {
          ^bb0(%id: i64, %o: f32):
            %row = arith.index_cast %id : i64 to index
            %column = linalg.index 1 : index
            %v = tensor.extract %table[%row, %column] : tensor<7x3xf32>
            linalg.yield %v : f32
          } -> tensor<5x3xf32>
          return %r : tensor<5x3xf32>
        }
        """
    )
    spec = only_operator(found.graph)
    assert spec.kind == "gather"
    assert [axis.extent for axis in spec.axes] == [5, 3, 7]
    assert [selector.axis for selector in spec.selectors] == [2]
    assert spec.epilogue is None, "what `outs` holds is not read, so it must not be added"
    ids, table = np.array([6, 0, 3, 3, 1]), numbers(7, 3)
    assert np.array_equal(results(found, ids, table)[0], table[ids])


def test_constants_are_part_of_the_body_and_dense_ones_are_weights() -> None:
    found = read(
        """
        #i = affine_map<(i) -> (i)>
        #s = affine_map<(i) -> ()>
        func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
          %scalar = arith.constant 2.0 : f32
          %splat = arith.constant dense<3.0> : tensor<3xf32>
          %dense = arith.constant dense<[1.0, 2.0, 4.0]> : tensor<3xf32>
          %e = tensor.empty() : tensor<3xf32>
          %r = linalg.generic {indexing_maps = [#i, #s, #i, #i, #i], iterator_types = ["parallel"]}
            ins(%x, %scalar, %splat, %dense : tensor<3xf32>, f32, tensor<3xf32>, tensor<3xf32>)
            outs(%e : tensor<3xf32>) {
          ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %o: f32):
            %0 = arith.mulf %a, %b : f32
            %1 = arith.addf %0, %c : f32
            %2 = arith.mulf %1, %d : f32
            linalg.yield %2 : f32
          } -> tensor<3xf32>
          return %r : tensor<3xf32>
        }
        """
    )
    assert [tensor.name for tensor in found.graph.weights] == ["constant"]
    assert [operand.role for operand in only_operator(found.graph).inputs] == ["activation", "weight"]
    x = numbers(3)
    assert np.array_equal(results(found, x)[0], (2 * x + 3) * np.array([1, 2, 4]))


MOVE = """
#in = affine_map<IN>
#out = affine_map<OUT>
func.func @f(%x: tensor<FROM>) -> tensor<TO> {
  %e = tensor.empty() : tensor<TO>
  %r = linalg.generic {indexing_maps = [#in, #out], iterator_types = [KINDS]}
    ins(%x : tensor<FROM>) outs(%e : tensor<TO>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<TO>
  return %r : tensor<TO>
}
"""


def _spread(x: Array, *shape: int) -> Array:
    return np.broadcast_to(x, shape)


COPIES: list[tuple[tuple[int, ...], tuple[int, ...], str, Callable[[Array], Array]]] = [
    ((3, 4), (4, 3), "(i, j) -> (j, i)", lambda x: x.T),
    ((4,), (3, 4), "(i, j) -> (j)", lambda x: _spread(x, 3, 4)),
    ((3,), (3, 4), "(i, j) -> (i)", lambda x: _spread(x[:, None], 3, 4)),
    ((1, 4, 1), (4, 3), "(i, j) -> (0, i, 0)", lambda x: _spread(x[0], 4, 3)),
    ((5, 4), (4,), "(i) -> (2, i)", lambda x: x[2]),
    ((2, 3, 4), (4, 2, 3), "(i, j, k) -> (j, k, i)", lambda x: x.transpose(2, 0, 1)),
    ((), (3,), "(i) -> ()", lambda x: _spread(x, 3)),
]


@pytest.mark.parametrize(("source", "target", "index", "expected"), COPIES)
def test_copies_are_views_and_no_operator_computes_them(
    source: tuple[int, ...], target: tuple[int, ...], index: str, expected: Callable[[Array], Array]
) -> None:
    loops = index.split(" -> ")[0]
    text = MOVE.replace("<IN>", f"<{index}>").replace("<OUT>", f"<{loops} -> {loops}>")
    text = text.replace("KINDS", ", ".join(['"parallel"'] * len(target)))
    text = text.replace("FROM", "x".join((*map(str, source), "f32")))
    found = read(text.replace("TO", "x".join((*map(str, target), "f32"))))
    assert not found.graph.operators
    x = numbers(*source)
    assert np.array_equal(results(found, x)[0], expected(x))


def test_reshapes_slices_and_concatenations_are_views() -> None:
    found = read(
        """
        func.func @f(%x: tensor<4x6xf32>, %y: tensor<2x6xf32>) -> tensor<3x12xf32> {
          %s = tensor.extract_slice %x[0, 0] [4, 6] [1, 1] : tensor<4x6xf32> to tensor<4x6xf32>
          %c = tensor.concat dim(0) %s, %y : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>
          %r = tensor.collapse_shape %c [[0, 1]] : tensor<6x6xf32> into tensor<36xf32>
          %z = tensor.expand_shape %r [[0, 1]] output_shape [3, 12] : tensor<36xf32> into tensor<3x12xf32>
          return %z : tensor<3x12xf32>
        }
        """
    )
    assert not found.graph.operators
    x, y = numbers(4, 6), numbers(2, 6, seed=1)
    assert np.array_equal(results(found, x, y)[0], np.concatenate([x, y]).reshape(3, 12))


def test_arguments_have_public_names_and_roles() -> None:
    found = read(
        """
        func.func @f(%x: tensor<4xf32> {t10.name = "tokens"}, %w: tensor<4xf32> {t10.name = "gain", t10.weight})
            -> (tensor<4xf32> {t10.name = "out"}) {
          %e = tensor.empty() : tensor<4xf32>
          %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
              iterator_types = ["parallel"]}
            ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
          ^bb0(%a: f32, %b: f32, %o: f32):
            %m = arith.mulf %a, %b : f32
            linalg.yield %m : f32
          } -> tensor<4xf32>
          return %r : tensor<4xf32>
        }
        """
    )
    assert [tensor.name for tensor in found.graph.inputs] == ["tokens"]
    assert [tensor.name for tensor in found.graph.weights] == ["gain"]
    assert [output.name for output in found.graph.outputs] == ["out"]
    assert [operand.role for operand in only_operator(found.graph).inputs] == ["activation", "weight"]


def test_operations_with_several_results_are_refused() -> None:
    text = """
    #i = affine_map<(i) -> (i)>
    func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %e = tensor.empty() : tensor<4xf32>
      %r:2 = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>) outs(%e, %e : tensor<4xf32>, tensor<4xf32>) {
      ^bb0(%a: f32, %o: f32, %q: f32):
        %m = arith.mulf %a, %a : f32
        linalg.yield %a, %m : f32, f32
      } -> (tensor<4xf32>, tensor<4xf32>)
      return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
    }
    """
    with pytest.raises(UnsupportedOpError, match=r"with 2 results \(expected one\)") as caught:
        read(text)
    assert caught.value.location
    assert caught.value.location.endswith(":5:14")


def test_an_uninitialised_result_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="result 0 of the function is an uninitialised tensor"):
        read(
            "func.func @f() -> tensor<4xf32> { %e = tensor.empty() : tensor<4xf32> return %e : tensor<4xf32> }"
        )


def test_a_module_must_have_one_function() -> None:
    with pytest.raises(InputError, match="0 functions with a body"):
        read("module {}")
