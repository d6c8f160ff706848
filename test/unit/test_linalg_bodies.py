"""Bodies of linalg operations as trees and functions: what is read and written again is the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from t10.core.expression import AffineDim, Term
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.dialect.mlir import ir, new_context, walk
from t10.errors import UnsupportedOpError
from t10.passes.bridge.body import BodyReader, indexing_maps, iterator_kinds, loop_extents
from t10.passes.bridge.tree import Apply, Constant, Extract, Index, Read, Scalar, function_of
from t10.passes.bridge.write_generic import generic, write_body


@pytest.fixture(autouse=True)
def context() -> Iterator[Any]:
    with new_context() as made, ir.Location.unknown():
        yield made


def first_generic(module: Any) -> Any:
    """Return the first linalg.generic of a module, which must be held: its operations die with it."""
    return next(op.operation for op in walk(module) if op.operation.name == "linalg.generic")


def body_reader(op: Any) -> BodyReader:
    maps = indexing_maps(op)
    return BodyReader(op, lambda number: Read(number, maps[number]), lambda _: -1)


def as_function(op: Any) -> ScalarFunction:
    """Return the body of an elementwise operation as a function of its operands."""

    def number(node: Scalar) -> int:
        assert isinstance(node, Read)
        return node.value

    body, combine = body_reader(op).result()
    assert combine == ""
    return function_of(body, len(op.operands) - 1, number)


EVERYTHING = """
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<3x4xf32>, %n: tensor<3xi64>, %h: tensor<3x4xf16>, %o: tensor<3x4xf16>) -> tensor<3x4xf16> {
  %low = arith.constant 0xFF800000 : f32
  %r = linalg.generic {indexing_maps = [#id, #row, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %n, %h : tensor<3x4xf32>, tensor<3xi64>, tensor<3x4xf16>) outs(%o : tensor<3x4xf16>) {
  ^bb0(%a: f32, %b: i64, %c: f16, %out: f16):
    %column = linalg.index 1 : index
    %wanted = arith.index_cast %b : i64 to index
    %minus = arith.constant -7 : i64
    %yes = arith.constant true
    %tenth = arith.constant 0.1 : f16
    %here = arith.cmpi ult, %column, %wanted : index
    %less = arith.cmpi slt, %b, %minus : i64
    %above = arith.cmpf ugt, %a, %low : f32
    %both = arith.andi %here, %above : i1
    %any = arith.ori %both, %less : i1
    %flag = arith.xori %any, %yes : i1
    %e = math.exp %a : f32
    %t = arith.truncf %e : f32 to f16
    %s = arith.mulf %t, %tenth : f16
    %v = arith.select %flag, %s, %c : f16
    linalg.yield %v : f16
  } -> tensor<3x4xf16>
  return %r : tensor<3x4xf16>
}
"""


def test_what_is_written_of_a_body_reads_as_the_same_function() -> None:
    """Predicates, constants of every type, casts, positions: all of them are in the function."""
    module = ir.Module.parse(EVERYTHING)
    op = first_generic(module)
    function = as_function(op)
    assert {each.attribute for each in function.ops if each.opcode.startswith("arith.cmp")} == {
        "ult", "slt", "ugt",
    }  # fmt: skip
    assert {(each.dtype, each.attribute) for each in function.ops if each.opcode == "const"} == {
        ("f32", "-inf"), ("i64", "-7"), ("i1", "True"), ("f16", "0.0999755859375"),
    }  # fmt: skip
    maps, kinds = indexing_maps(op), iterator_kinds(op)
    *tensors, outs = op.operands
    with ir.InsertionPoint(op):
        made, block = generic(tensors, maps, loop_extents(op, maps, len(kinds)), kinds, outs)
    with ir.InsertionPoint(block):
        value = write_body(function, list(block.arguments)[:-1])
        ir.Operation.create("linalg.yield", operands=[value])
    assert made.verify()
    assert indexing_maps(made) == maps
    assert as_function(made) == function


def test_a_position_off_an_axis_is_arithmetic() -> None:
    position = Index(AffineDim((Term(0, 2), Term(2, 1)), 5))
    function = function_of(Apply("arith.index_cast", (position,), "i64"), 0, lambda _: 0)
    spelled = dict(enumerate(function.ops))

    def value(number: int, point: tuple[int, ...]) -> int:
        op = spelled[number]
        operands = [value(each, point) for each in op.operands]
        if op.opcode == "index":
            return point[int(op.attribute)]
        if op.opcode == "const":
            return int(op.attribute)
        if op.opcode == "arith.index_cast":
            return operands[0]
        return operands[0] * operands[1] if op.opcode == "arith.muli" else sum(operands)

    assert value(function.result, (3, 100, 7)) == 2 * 3 + 7 + 5


def test_shared_parts_are_one_operation() -> None:
    """Equal operations are made once, and a value used twice is not computed twice."""
    x = Read(0, ())
    root = Apply("math.exp", (x,), "f32")
    twin = Apply("math.exp", (x,), "f32")
    half = Constant("0.5", "f32")
    function = function_of(
        Apply("arith.addf", (Apply("arith.mulf", (root, half), "f32"), twin), "f32"), 1, lambda _: 0
    )
    assert function.ops == (
        ScalarOp("math.exp", (0,), "f32"),
        ScalarOp("const", (), "f32", "0.5"),
        ScalarOp("arith.mulf", (1, 2), "f32"),
        ScalarOp("arith.addf", (3, 1), "f32"),
    )


REDUCTION = """
#id = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>
func.func @f(%x: tensor<3x4xf32>, %t: tensor<4xf32>, %o: tensor<3xf32>) -> tensor<3xf32> {
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<3x4xf32>) outs(%o : tensor<3xf32>) {
  ^bb0(%a: f32, %acc: f32):
    BODY
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""


@pytest.mark.parametrize(
    ("body", "opcode", "contribution"),
    [
        ("%s = arith.maximumf %a, %acc : f32", "arith.maximumf", Read),
        ("%s = arith.subf %acc, %a : f32", "arith.addf", Apply),
        ("%k = linalg.index 1 : index\n%v = tensor.extract %t[%k] : tensor<4xf32>\n"
         "%s = arith.addf %acc, %v : f32", "arith.addf", Extract),
    ],
)  # fmt: skip
def test_a_reduction_is_a_contribution_and_how_it_is_combined(
    body: str, opcode: str, contribution: type[Scalar]
) -> None:
    module = ir.Module.parse(REDUCTION.replace("BODY", body))
    found, combine = body_reader(first_generic(module)).result()
    assert combine == opcode
    assert isinstance(found, contribution)
    if isinstance(found, Apply):
        assert found.opcode == "arith.negf", "what is subtracted is a sum of negatives"


@pytest.mark.parametrize(
    "body",
    [
        "%s = arith.subf %a, %acc : f32",
        "%s = arith.addf %acc, %acc : f32",
        "%v = math.exp %acc : f32\n%s = arith.addf %acc, %v : f32",
        "%s = arith.divf %acc, %a : f32",
    ],
)
def test_a_reduction_that_is_no_combination_is_refused(body: str) -> None:
    module = ir.Module.parse(REDUCTION.replace("BODY", body))
    with pytest.raises(UnsupportedOpError):
        body_reader(first_generic(module)).result()
