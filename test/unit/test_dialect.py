"""The dialects from Python: examples of the reference pages, values to attributes and back, builders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from t10.core.plan import CostedPlan, Cycles, OperatorPlan, PhaseTerm
from t10.dialect import build, ipu, ipu_parts
from t10.dialect.attributes import to_attr, to_python
from t10.dialect.document import examples
from t10.dialect.expression import expression_of, root_of
from t10.dialect.layout import Layout, check_layout, read_layout
from t10.dialect.mlir import captured, ir, new_context, passmanager, walk
from t10.dialect.ods import Invalid
from t10.dialect.plan import Expression, check_plan, plan_fields, read_plan
from t10.dialect.rtensor import layout_of
from t10.dialect.verify import verify_layouts
from t10.passes.read_graph import read_graph

PAPER = CostedPlan(
    plan=OperatorPlan(
        f_op=(2, 3, 1),
        lengths=(1, 1, 6),
        ft=((1, 1, 3), (1, 1, 2), (1, 1, 1)),
        rp=(0, 0, 2),
        steps=(1, 1, 3),
        loop_order=(2,),
        phases=((), (), (PhaseTerm((1,), 1, 3, 2), PhaseTerm((0,), 1, 2, 3))),
        core_order=(0, 1, 2),
    ),
    cycles=Cycles(compute=100, shift=40),
    weight_bytes=12,
    active_bytes=96,
)
"""The paper's example: C[m, n] += A[m, k] * B[k, n] on 6 cores, A cut 3x and B 2x in time."""

MATMUL = Expression((2, 3, 6), (frozenset({0, 2}), frozenset({1, 2}), frozenset({0, 1})))


@pytest.fixture(autouse=True)
def context() -> Iterator[Any]:
    with new_context() as made, ir.Location.unknown():
        yield made


def find(module: Any, name: str) -> Any:
    return next(op.operation for op in walk(module) if op.operation.name == name)


@pytest.mark.parametrize(("name", "text"), [pytest.param(*each, id=each[0]) for each in examples()])
def test_examples_of_the_reference_parse_verify_and_round_trip(name: str, text: str) -> None:
    module = ir.Module.parse(text)
    assert verify_layouts(module)
    assert str(ir.Module.parse(str(module))) == str(module)
    assert name.lstrip("#!") in str(module)


def test_a_layout_goes_to_an_attribute_and_back() -> None:
    layout = Layout(fs=(2, 1), ft=(1, 2), rp=(0, 2), cores=4, scatter=2)
    type_ = build.with_layout(ir.RankedTensorType.get([6, 8], ir.F16Type.get()), layout)
    assert layout_of(type_) == layout
    assert layout_of(build.with_layout(type_, None)) is None
    assert read_layout(to_python(to_attr(Layout(linear=3).fields()))) == Layout(linear=3)


def test_a_partition_is_what_one_core_holds() -> None:
    layout = Layout(fs=(2, 1), ft=(1, 3), rp=(0, 1))
    assert layout.sub_tensor((5, 8)) == (3, 8)
    assert layout.partition((5, 8)) == (3, 3)
    assert replace(layout, scatter=2).partition_elements((5, 8)) == 6
    assert Layout(linear=7).partition_elements((5, 8)) == 6


def test_a_plan_goes_to_an_attribute_and_back() -> None:
    attr = build.plan_attr(PAPER)
    assert read_plan(to_python(attr.fields)) == PAPER


def test_the_papers_plan_keeps_the_rules() -> None:
    check_plan(plan_fields(PAPER, MATMUL), MATMUL)
    check_plan(plan_fields(PAPER))


def test_a_plan_without_a_key_is_not_read() -> None:
    fields = plan_fields(PAPER)
    del fields["phases"]
    with pytest.raises(Invalid, match="plan has no 'phases'"):
        read_plan(fields)


def test_rules_hold_with_the_plans_own_axes_instead_of_the_operations() -> None:
    fields = plan_fields(PAPER, MATMUL)
    check_plan(fields, Expression((9,), (frozenset(),)))


@pytest.mark.parametrize(
    ("op", "extents", "uses"),
    [
        ("matmul", (2, 3, 6), ({0, 2}, {1, 2}, {0, 1})),
        ("conv_2d_nchw_fchw", (1, 4, 6, 6, 3, 3, 3), ({0, 2, 3, 4, 5, 6}, {1, 4, 5, 6}, {0, 1, 2, 3})),
    ],
)
def test_axes_of_linalg_operations_are_read_from_their_maps(op: str, extents: Any, uses: Any) -> None:
    shapes = {
        "matmul": ("2x6", "6x3", "2x3"),
        "conv_2d_nchw_fchw": ("1x3x8x8", "4x3x3x3", "1x4x6x6"),
    }[op]
    a, b, c = (f"tensor<{shape}xf32>" for shape in shapes)
    module = ir.Module.parse(
        f"func.func @f(%a: {a}, %b: {b}, %c: {c}) {{\n"
        f"  %d = linalg.{op} ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}\n  return\n}}"
    )
    found = expression_of(find(module, f"linalg.{op}"))
    assert found == Expression(extents, tuple(frozenset(each) for each in uses))


def test_the_root_of_an_operator_is_its_contraction() -> None:
    module = ir.Module.parse(dict(examples())["rtensor.operator"])
    root = root_of(find(module, "rtensor.operator"))
    assert root is not None
    assert root.name == "linalg.matmul"


def test_operators_and_moves_are_built() -> None:
    module = ir.Module.parse(
        "func.func @f(%x: tensor<4x8xf16>, %w: tensor<8x2xf16>, %i: tensor<4x2xf16>) -> tensor<4x2xf16> {\n"
        "  %d = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x2xf16>)\n"
        "    outs(%i : tensor<4x2xf16>) -> tensor<4x2xf16>\n"
        "  return %d : tensor<4x2xf16>\n}"
    )
    matmul = find(module, "linalg.matmul")
    with ir.InsertionPoint(matmul):
        operands = list(matmul.operands)
        turning = Layout(fs=(2, 1), ft=(1, 2), rp=(0, 4))
        moved = build.relayout(operands[0], turning, bytes_=8, cycles=90)
        op, block = build.operator(matmul.result.type, op_name="/MatMul", kind="contraction")
        nest, body = build.nest([moved, operands[2]], axes=(2,), steps=(2,), rp=(4,))
    matmul.result.replace_all_uses_with(op.result)
    with ir.InsertionPoint(block):
        end = build.yield_(matmul.result)
    matmul.move_before(end)
    with ir.InsertionPoint(body):
        build.shift(body.arguments[1], axis=1, pace=4)
        build.yield_(body.arguments[2])
    build.set_plan(op, PAPER, MATMUL)
    assert module.operation.verify()
    assert verify_layouts(module)
    assert nest.result.type == operands[2].type


def test_operators_that_capture_are_merged_and_removed_like_arithmetic() -> None:
    """Equal regions over equal values are one operator; one that is not read goes, another value makes another."""
    text = """
      "rtensor.operator"() ({
        %half = arith.constant 0.5 : f32
        %e = tensor.empty() : tensor<4xf32>
        %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} ins(VALUE : tensor<4xf32>) outs(%e : tensor<4xf32>) {
        ^bb0(%a: f32, %o: f32):
          %h = arith.mulf %a, %half : f32
          linalg.yield %h : f32
        } -> tensor<4xf32>
        "rtensor.yield"(%r) : (tensor<4xf32>) -> ()
      }) {op_name = "half", kind = "elementwise"} : () -> tensor<4xf32>
    """
    x, y = (text.replace("VALUE", value) for value in ("%x", "%y"))
    module = ir.Module.parse(
        f"func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {{"
        f"  %0 = {x} %1 = {x} %2 = {y} %3 = {y.replace('half', 'unread')}"
        "  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32> }"
    )
    clean = passmanager.PassManager.parse(
        "builtin.module(func.func(canonicalize,cse))", context=module.context
    )
    clean.run(module.operation)
    operators = [op.operation for op in walk(module) if op.operation.name == "rtensor.operator"]
    function = find(module, "func.func")
    arguments = list(function.regions[0].blocks[0].arguments)
    assert [[each for each in arguments if each in captured(op)] for op in operators] == [
        [arguments[0]],
        [arguments[1]],
    ]
    returned = list(find(module, "func.return").operands)
    assert returned == [operators[0].result, operators[0].result, operators[1].result]
    assert sum(op.operation.name == "arith.constant" for op in walk(module)) == 1, (
        "constants of all regions stand in the function once"
    )
    module = ir.Module.parse(module.operation.get_asm())
    assert [spec.name for spec in read_graph(module).graph.operators] == ["half", "half_1"]


def test_an_ipu_program_is_built() -> None:
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        _, graph = ipu.graph("main", chip="test-16", tiles=16, memory_bytes=1024)
    with ir.InsertionPoint(graph):
        f16 = ir.F16Type.get()
        x = ipu.alloc("x", element=f16, shape=(4,), address=0, mapping=ipu.ranges([0, 1, 2, 7]), role="input")
        fields = [{"name": n, "kind": k, "dtype": "f16"} for n, k in (("x", "in"), ("y", "out"))]
        ipu_parts.codelet(
            "Relu", fields, kind="multi", assembly="", cpp_reference="", summary="", stack_bytes=0, apart=()
        )
        ipu_parts.pattern(
            "ring",
            runs=[[0, 1, 0, 0, 0, 2, 1, 0, 0]],
            fills=np.empty((0, 5), np.int32),
            fill_values=np.empty(0, np.int32),
            constants=(),
        )
        _, vertices = ipu.compute_set("step")
        with ir.InsertionPoint(vertices):
            words = [{"operand": 0, "offset": 0}, {"operand": 1, "offset": 0}]
            mapping = ((0, 2), (7, 7))
            ipu.vertex(
                [x, x], codelet="Relu", op_name="/Relu", mapping=mapping, words=words, state=64, cycles=9
            )
        _, program = ipu.sequence()
        with ir.InsertionPoint(program):
            _, loop = ipu.repeat(3)
            with ir.InsertionPoint(loop):
                ipu.execute("step")
                ipu.copy("shift x", [x], x, kind="shift", op_name="/Relu", pattern="ring", bytes_=2, cycles=5)
    assert module.operation.verify()
    assert "mapping = [[0, 2], [7, 7]]" in str(module)


def test_values_without_an_attribute_are_refused() -> None:
    with pytest.raises(TypeError, match="no attribute for a object"):
        to_attr(object())


def test_a_checked_layout_says_nothing() -> None:
    check_layout(Layout(fs=(2, 1), ft=(1, 2), rp=(0, 4)), (8, 8))
