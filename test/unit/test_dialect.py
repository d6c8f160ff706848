"""The dialects from Python: examples of the reference pages, values to attributes and back, builders."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from t10.core.plan import CostedPlan, Cycles, OperatorPlan, PhaseTerm
from t10.core.space import PartitionSpace
from t10.dialect import build, ipu, ipu_parts
from t10.dialect.attributes import Decoder, to_attr, to_python
from t10.dialect.document import examples
from t10.dialect.expression import expression_of, root_of
from t10.dialect.layout import Layout, check_layout, read_layout
from t10.dialect.mlir import ir, new_context, walk
from t10.dialect.ods import Invalid
from t10.dialect.plan import CandidatePlan, Expression, ForcedPlan, check_plan
from t10.dialect.plan_attributes import (
    candidates_attr,
    candidates_of,
    forced_attr,
    forced_of,
    plan_attr,
    plan_of,
    space_attr,
    space_of,
)
from t10.dialect.rtensor import CANDIDATES, layout_of
from t10.dialect.verify import verify_layouts
from t10.errors import UnsupportedOpError

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


STAGES = (
    CandidatePlan((2, 3, 1)),
    CandidatePlan((2, 3, 1), PAPER.plan.ft),
    CandidatePlan((2, 3, 1), rp=(0, 0, 2)),
    CandidatePlan.of(PAPER.plan),
    CandidatePlan.of(replace(PAPER.plan, reduce="all")),
    CandidatePlan.of(PAPER),
)


@pytest.mark.parametrize("plan", STAGES)
def test_a_plan_goes_to_an_attribute_and_back(plan: CandidatePlan) -> None:
    attr = plan_attr(plan, MATMUL)
    assert plan_of(attr) == plan
    assert plan_of(ir.Attribute.parse(str(attr))) == plan
    assert forced_of(attr) == ForcedPlan(plan)
    for forced in (ForcedPlan(plan), ForcedPlan(plan, 3)):
        assert forced_of(ir.Attribute.parse(str(forced_attr(forced)))) == forced
    assert candidates_of(candidates_attr((plan, plan))) == (plan, plan)


@pytest.mark.parametrize(
    "space",
    [
        PartitionSpace(cores=16, least_cores=13, padding=0.9 * 256 / 288, n_f_op=15, at_most=495),
        PartitionSpace(16, 16, 0.0, 1, 36, f_op=(4, 4, 1), rp=(0, 0, 4), is_aligned=True),
    ],
)
def test_a_space_goes_to_an_attribute_and_back(space: PartitionSpace) -> None:
    attr = space_attr(space, MATMUL)
    assert space_of(attr) == space
    assert space_of(ir.Attribute.parse(str(attr))) == space


def test_a_plan_is_whole_when_it_says_so() -> None:
    placed, priced = STAGES[3], STAGES[5]
    assert [plan.is_placed for plan in STAGES] == [False, False, False, True, True, True]
    assert [plan.is_costed for plan in STAGES] == [False, False, False, False, False, True]
    assert placed.placed() == PAPER.plan
    assert priced.costed() == PAPER
    with pytest.raises(Invalid, match="plan has no 'phases' \\(found f_op, ft, lengths"):
        replace(placed, phases=None).placed()
    with pytest.raises(Invalid, match="plan has no 'cycles'"):
        placed.costed()
    with pytest.raises(Invalid, match="plan has no 'ft'"):
        STAGES[0].partition()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"f_op": (2, 3)}, "f_op has 2 factors"),
        ({"ft": ((1, 1, 3), (1, 1, 4), (1, 1, 1))}, "does not divide the 2 cores"),
        ({"rp": (0, 0, 3)}, "larger than the smallest partition"),
        ({"core_order": (0, 0, 1)}, "expected a permutation"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_not_built(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        plan_attr(replace(CandidatePlan.of(PAPER), **changed), MATMUL)


def test_parts_of_a_placed_plan_may_be_padding_only() -> None:
    plan = CandidatePlan((6,), ((1,),), lengths=(1,))
    check_plan(plan, Expression((5,), (frozenset({0}),)))
    with pytest.raises(Invalid, match="more parts than it has elements"):
        check_plan(replace(plan, lengths=None), Expression((5,), (frozenset({0}),)))


def test_an_attribute_is_decoded_once_and_does_not_keep_its_context() -> None:
    asked: list[str] = []

    def decode(attr: Any) -> str:
        asked.append(str(attr))
        return asked[-1]

    decoder = Decoder(decode)
    made = ir.Context()
    lives = weakref.ref(made)
    for text in ("3 : i64", "4 : i64", "3 : i64"):
        assert decoder(ir.Attribute.parse(text, made)) == text
    assert asked == ["3 : i64", "4 : i64"]
    del made
    gc.collect()
    assert lives() is None


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
        "func.func @f(%x: tensor<2x6xf16>, %w: tensor<6x3xf16>, %i: tensor<2x3xf16>) -> tensor<2x3xf16> {\n"
        "  %d = linalg.matmul ins(%x, %w : tensor<2x6xf16>, tensor<6x3xf16>)\n"
        "    outs(%i : tensor<2x3xf16>) -> tensor<2x3xf16>\n"
        "  return %d : tensor<2x3xf16>\n}"
    )
    matmul = find(module, "linalg.matmul")
    with ir.InsertionPoint(matmul):
        operands = list(matmul.operands)
        turning = Layout(fs=(2, 1), ft=(1, 2), rp=(0, 3))
        moved = build.relayout(operands[0], turning, bytes_=8, cycles=90)
        op, block = build.operator(operands, matmul.result.type, op_name="/MatMul", kind="contraction")
        nest, body = build.nest([moved, operands[2]], axes=(2,), steps=(2,), rp=(3,))
    matmul.result.replace_all_uses_with(op.result)
    with ir.InsertionPoint(block):
        end = build.yield_(block.arguments[2])
    matmul.move_before(end)
    for i, argument in enumerate(block.arguments):
        matmul.operands[i] = argument
    end.operands[0] = matmul.result
    with ir.InsertionPoint(body):
        build.shift(body.arguments[1], axis=1, pace=3)
        build.yield_(body.arguments[2])
    build.set_plan(op, PAPER)
    op.attributes[CANDIDATES] = candidates_attr(STAGES)
    assert module.operation.verify()
    assert verify_layouts(module)
    assert nest.result.type == operands[2].type
    assert candidates_of(op.attributes[CANDIDATES]) == STAGES


def test_an_operator_with_too_many_kinds_of_operands_says_so() -> None:
    module = ir.Module.parse(
        "func.func @f(" + ", ".join(f"%a{i}: tensor<{i + 1}xf16>" for i in range(13)) + ") { return }"
    )
    block = find(module, "func.func").regions[0].blocks[0]
    with (
        ir.InsertionPoint.at_block_begin(block),
        pytest.raises(
            UnsupportedOpError, match="13 operands form 13 runs of equal type, expected at most 12"
        ),
    ):
        build.operator(list(block.arguments), block.arguments[0].type, op_name="x", kind="elementwise")


def test_an_ipu_program_is_built() -> None:
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        _, graph = ipu.graph("main", chip="test-16", tiles=16, memory_bytes=1024)
    with ir.InsertionPoint(graph):
        f16 = ir.F16Type.get()
        x = ipu.alloc("x", element=f16, shape=(4,), address=0, mapping=ipu.ranges([0, 1, 2, 7]), role="input")
        fields = [{"name": n, "kind": k, "dtype": "f16"} for n, k in (("x", "in"), ("y", "out"))]
        ipu_parts.codelet(
            "Relu", fields, kind="multi", assembly="", twin="", summary="", stack_bytes=0, apart=()
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
