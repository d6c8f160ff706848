"""The dialects from Python: examples of the reference pages, values to attributes and back, builders."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from t10.core.expression import AffineDim, Term
from t10.core.legal import Expression
from t10.core.plan import CostedPlan, Cycles, OperatorPlan, PhaseTerm
from t10.core.space import PartitionSpace, UnrotatedSpace
from t10.dialect import build, ipu, ipu_parts
from t10.dialect.attributes import Decoder, to_attr
from t10.dialect.document import examples
from t10.dialect.expression import expression_of, root_of
from t10.dialect.grid import grid_of
from t10.dialect.layout import LinearLayout, RotatingLayout
from t10.dialect.layout_attr import layout_of, with_layout
from t10.dialect.mlir import captured, ir, new_context, passmanager, walk
from t10.dialect.ods import Invalid
from t10.dialect.plan import CandidatePlan, ForcedPlan, check_plan
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
from t10.dialect.rtensor import CANDIDATES
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

MATMUL = Expression(
    (2, 3, 6), (frozenset({0, 2}), frozenset({1, 2}), frozenset({0, 1})), (frozenset[int](),) * 3
)


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
    grid = grid_of(PAPER.plan)
    dims = tuple(AffineDim((Term(axis, 1),)) for axis in (0, 2))
    plain = ir.RankedTensorType.get([2, 6], ir.F16Type.get())
    for layout in (RotatingLayout(grid, dims, (1, 1, 3)), LinearLayout(3)):
        type_ = with_layout(plain, layout)
        assert layout_of(type_) == layout
        assert layout_of(ir.Type.parse(str(type_))) == layout
        assert with_layout(type_, None) == plain
    assert layout_of(plain) is None


SPLIT = OperatorPlan(
    f_op=(2, 1, 3),
    lengths=(1, 3, 2),
    ft=((1, 1, 1),) * 3,
    rp=(0, 0, 0),
    steps=(1, 1, 1),
    loop_order=(),
    phases=((), (), ()),
    core_order=(0, 1, 2),
    reduce="all",
)
"""The same product with its sums split over three cores each."""

STAGES = (
    CandidatePlan((2, 3, 1)),
    CandidatePlan((2, 3, 1), PAPER.plan.ft),
    CandidatePlan((2, 3, 1), rp=(0, 0, 2)),
    CandidatePlan.of(PAPER.plan),
    CandidatePlan.of(SPLIT),
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
        PartitionSpace(16, 6, 0.0, 1, 36, f_op=(2, 3, 1), rp=(0, 0, 2), is_aligned=True),
        PartitionSpace(16, 13, 0.8, 15, 520, unrotated=UnrotatedSpace(9, 0.1 + 0.2, 40)),
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


def test_an_axis_is_cut_in_no_more_parts_than_it_has_elements() -> None:
    expression = Expression((5,), (frozenset({0}),), (frozenset(),))
    for plan in (CandidatePlan((6,)), CandidatePlan((6,), ((1,),), lengths=(1,))):
        with pytest.raises(Invalid, match="more parts than it has elements"):
            check_plan(plan, expression)


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
    assert decoder(ir.Type.parse("i64", made)) == "i64"
    assert asked == ["3 : i64", "4 : i64", "i64"]
    del made
    gc.collect()
    assert lives() is None


@pytest.mark.parametrize(
    ("op", "extents", "uses", "compound"),
    [
        ("matmul", (2, 3, 6), ({0, 2}, {1, 2}, {0, 1}), ((), (), ())),
        (
            "conv_2d_nchw_fchw",
            (1, 4, 6, 6, 3, 3, 3),
            ({0, 2, 3, 4, 5, 6}, {1, 4, 5, 6}, {0, 1, 2, 3}),
            ((2, 3, 5, 6), (), ()),
        ),
    ],
)
def test_axes_of_linalg_operations_are_read_from_their_maps(
    op: str, extents: Any, uses: Any, compound: Any
) -> None:
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
    assert found == Expression(extents, tuple(map(frozenset, uses)), tuple(map(frozenset, compound)))


def test_the_root_of_an_operator_is_its_contraction() -> None:
    module = ir.Module.parse(dict(examples())["rtensor.operator"])
    root = root_of(find(module, "rtensor.operator"))
    assert root is not None
    assert root.name == "linalg.matmul"


def test_operators_and_their_plans_are_built() -> None:
    module = ir.Module.parse(
        "func.func @f(%x: tensor<2x6xf16>, %w: tensor<6x3xf16>, %i: tensor<2x3xf16>) -> tensor<2x3xf16> {\n"
        "  %d = linalg.matmul ins(%x, %w : tensor<2x6xf16>, tensor<6x3xf16>)\n"
        "    outs(%i : tensor<2x3xf16>) -> tensor<2x3xf16>\n"
        "  return %d : tensor<2x3xf16>\n}"
    )
    matmul = find(module, "linalg.matmul")
    with ir.InsertionPoint(matmul):
        op, block = build.operator(matmul.result.type, op_name="/MatMul", kind="contraction")
    matmul.result.replace_all_uses_with(op.result)
    with ir.InsertionPoint(block):
        end = build.yield_(matmul.result)
    matmul.move_before(end)
    build.set_plan(op, PAPER)
    op.attributes[CANDIDATES] = candidates_attr(STAGES)
    assert module.operation.verify()
    assert verify_layouts(module)
    assert candidates_of(op.attributes[CANDIDATES]) == STAGES


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
        plain = {"dtype": "f16", "align": 8, "interleaved": False}
        fields = [{"name": n, "kind": k, **plain} for n, k in (("x", "in"), ("y", "out"))]
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


def test_contexts_are_made_in_several_threads_at_once() -> None:
    """What loads dialects notes it in classes that all contexts share: without a lock the process crashes."""
    code = (
        "import sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from t10.dialect.mlir import new_context\n"
        "sys.setswitchinterval(1e-6)\n"
        "with ThreadPoolExecutor(4) as threads:\n"
        "    assert len(list(threads.map(lambda _: new_context(), range(24)))) == 24\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
