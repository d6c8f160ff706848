"""Operators at the compute-shift level: an edit that breaks one is refused in words that say which rule it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.compute_shift_text import (
    ACCUMULATE,
    BIAS,
    COPIED,
    EPILOGUE_OPERANDS,
    FILL,
    HAND_ON,
    HOME_B,
    ON_OTHER_GRID,
    OPERANDS,
    PRODUCT,
    REDUCE,
    REST_B,
    SHIFT_A,
    SUMS,
    Edit,
    case,
    edited,
)

from t10.dialect.mlir import ir, new_context


def copied_as(layout: str) -> tuple[Edit, ...]:
    """Return the edits by which A lies in another layout, in which it does not rotate."""
    return (
        (SHIFT_A, ""),
        (COPIED, COPIED.replace("#a>", f"{layout}>")),
        ("%ka = %a, ", ""),
        ("-> (tensor<2x6xf16, #a>, ", "-> ("),
        (f"{HAND_ON} tensor<2x6xf16, #a>,", "scf.yield %b1, %s1 :"),
        (OPERANDS, f"ins(%a, %b1 : tensor<2x6xf16, {layout}>, tensor<6x3xf16, #b>)"),
        ("%r:3 =", "%r:2 ="),
        ("%r#2", "%r#1"),
        ("(%r#1, %c0)", "(%r#0, %c0)"),
    )


SQUARE = (("2x3x", "2x2x"), ("6x3x", "6x2x"), ("tensor<3xf32", "tensor<2xf32"))
"""Two columns on three parts: the result is as wide as it is high, the third part is padding."""


def one_more_loop(maps: str) -> tuple[Edit, ...]:
    """Return the edits by which the epilogue has a third loop, of one index, and these maps."""
    return (
        ("#id =", "#l = affine_map<(m, n, j) -> (m, n)>\n#ls = affine_map<(m, n, j) -> (m + j, n)>\n#id ="),
        ("#id =", "#lr = affine_map<(m, n, j) -> (n)>\n#j = affine_map<(m, n, j) -> (j)>\n#id ="),
        (
            '[#id, #row, #id], iterator_types = ["parallel", "parallel"]',
            f'{maps}, iterator_types = ["parallel", "parallel", "parallel"]',
        ),
        (EPILOGUE_OPERANDS, "ins(%r#2, %d, %j : tensor<2x3xf32, #c>, tensor<3xf32, #n>, tensor<1xf32>)"),
        ("%q: f32, %o: f16", "%q: f32, %j0: f32, %o: f16"),
        ("(%e) ({", "(%e) ({\n%j = tensor.empty() : tensor<1xf32>"),
    )


REFUSED_BY_THE_VERIFIER = (
    case("a value that nothing uses", "rtensor.shift makes a value that nothing uses", (REST_B, "")),
    case(
        "an arrival behind the fill",
        "found rtensor.relayout, expected rtensor.sub_task here",
        (BIAS, ""),
        (FILL, FILL + BIAS),
    ),
    case(
        "no accumulators",
        "found scf.for, expected rtensor.fill or rtensor.allocate here",
        (FILL, ""),
        ("= %z", "= %c"),
        (
            '%y = "rtensor.operator"',
            '%c = "rtensor.fill"() {combine = "sum"} : () -> tensor<2x3xf32, #c>\n%y = "rtensor.operator"',
        ),
    ),
    case(
        "no loop",
        "computes one sub-task of 3: a loop is missing",
        (
            "f_op = [2, 2], lengths = [2, 4], steps = [1, 1], loop_order = []",
            "f_op = [2, 2], lengths = [2, 6], steps = [1, 3], loop_order = [1]",
        ),
        text=SUMS,
    ),
    case(
        "partial results leave",
        "partial results leave the operator: rtensor.reduce is missing",
        (REDUCE, ""),
        ("ins(%r :", "ins(%s :"),
        ("ins(%s : tensor<4xf32, #so>)", "ins(%s : tensor<4xf32, #sp>)"),
        text=SUMS,
    ),
    case(
        "reduction of another value",
        "rtensor.reduce reads another value than the accumulators",
        (REDUCE, REDUCE.replace("(%s)", "(%z)") + REDUCE.replace("%r", "%r2")),
        ("(%e) ({", "(%e) ({\n%unused = tensor.cast %r2 : tensor<4xf32, #so> to tensor<4xf32>"),
        text=SUMS,
    ),
    case(
        "reduced in place",
        "what is reduced stays where it was accumulated: rtensor.allocate is missing",
        (SUMS[SUMS.index("    %e =") : SUMS.index('    "rtensor.yield"(%f)')], ""),
        ("(%f)", "(%r)"),
        text=SUMS,
    ),
    case(
        "another result",
        "rtensor.yield hands out another value than the last sub-task or reduction made",
        (PRODUCT[PRODUCT.index("    %e =") : PRODUCT.index('    "rtensor.yield"(%f)')], ""),
        (BIAS, ""),
        ('"rtensor.yield"(%f) : (tensor<2x3xf16, #c>)', '"rtensor.yield"(%z) : (tensor<2x3xf32, #c>)'),
        ("-> tensor<2x3xf16, #c>", "-> tensor<2x3xf32, #c>"),
        ("return %y : tensor<2x3xf16, #c>", "return %y : tensor<2x3xf32, #c>"),
    ),
    case(
        "home twice",
        "rtensor.shift along axis 2 moves a tensor that is home",
        (HOME_B, HOME_B.replace("%home", "%home0") + HOME_B.replace("%r#1", "%home0")),
    ),
    case(
        "home of what did not rotate",
        "rtensor.shift behind the loop moves a tensor that did not rotate in it, or not home",
        (HOME_B, HOME_B.replace("%r#1", "%b")),
    ),
    case(
        "rest of what did not rotate",
        "rtensor.rest ends the rotation of a tensor that did not rotate in the loop",
        (HOME_B, ""),
        ('"rtensor.rest"(%home)', '"rtensor.rest"(%b)'),
    ),
    case(
        "not home",
        "rtensor.rest of a weight that is not home along axes [2]",
        (HOME_B, ""),
        ("(%home)", "(%r#1)"),
    ),
    case(
        "home without rest",
        "a tensor goes home that does not rest there: rtensor.rest is missing",
        (REST_B, ""),
        ("(%e) ({", "(%e) ({\n" + REST_B),
    ),
    case(
        "carried twice",
        "the loop carries a tensor twice, or not the accumulators",
        ("%kb = %b,", "%kb = %b, %k2 = %b,"),
        (
            "tensor<6x3xf16, #b>, tensor<2x3xf32, #c>) {",
            "tensor<6x3xf16, #b>, tensor<6x3xf16, #b>, tensor<2x3xf32, #c>) {",
        ),
        (
            f"{HAND_ON} tensor<2x6xf16, #a>,",
            "scf.yield %a1, %b1, %k2, %s1 : tensor<2x6xf16, #a>, tensor<6x3xf16, #b>,",
        ),
        ("%r:3", "%r:4"),
        ("%r#2", "%r#3"),
    ),
    case(
        "no position",
        "the loop begins with arith.addi, expected rtensor.position",
        ('%p = "rtensor.position"', '%t2 = arith.addi %t, %t : index\n%p = "rtensor.position"'),
    ),
    case(
        "another operation in the loop",
        "the loop goes on with rtensor.cast, rtensor.sub_task, scf.yield, expected rtensor.sub_task and scf.yield",
        (
            '%s1 = "rtensor.sub_task"',
            '%b2 = "rtensor.cast"(%b1) : (tensor<6x3xf16, #b>) -> tensor<6x3xf16, #b>\n%s1 = "rtensor.sub_task"',
        ),
        ("ins(%a1, %b1", "ins(%a1, %b2"),
        (f"{HAND_ON}", "scf.yield %a1, %b2, %s1 :"),
    ),
    case(
        "handed on without its shift",
        "scf.yield does not hand on every tensor after its shifts, and the accumulators after the sub-task",
        (HAND_ON, "scf.yield %ka, %b1, %s1 :"),
    ),
    case(
        "accumulators of before",
        "scf.yield does not hand on every tensor after its shifts",
        (HAND_ON, "scf.yield %a1, %b1, %s :"),
    ),
    case(
        "shift of what is not carried",
        "rtensor.shift in the loop moves a tensor that the loop does not carry",
        (SHIFT_A, SHIFT_A.replace("%ka", "%a")),
    ),
    case(
        "shift home in the loop",
        "rtensor.shift along axis 2 does not move to the loop's position along it",
        (SHIFT_A, SHIFT_A.replace("%p", "%c0")),
    ),
    case(
        "shifted twice",
        "rtensor.shift along axis 2 stands twice, or not in the order of the loops",
        (SHIFT_A, SHIFT_A.replace("%a1", "%a0") + SHIFT_A.replace("%ka", "%a0")),
    ),
    case(
        "shift missing",
        "the loop shifts a tensor along axes [], which does not bring it to the positions of the box",
        (SHIFT_A, ""),
        (OPERANDS, OPERANDS.replace("%a1", "%ka")),
        (HAND_ON, HAND_ON.replace("%a1", "%ka")),
    ),
    case(
        "carried from another grid",
        "the loop carries a tensor of another grid",
        (SHIFT_A, ""),
        (COPIED, COPIED.replace("#a>", "#a3>")),
        ("-> (tensor<2x6xf16, #a>", "-> (tensor<2x6xf16, #a3>"),
        (OPERANDS, ON_OTHER_GRID.replace("%a1", "%ka")),
        (f"{HAND_ON} tensor<2x6xf16, #a>", "scf.yield %ka, %b1, %s1 : tensor<2x6xf16, #a3>"),
    ),
    case(
        "carried in vain",
        "the loop carries a tensor that the root does not read",
        ("%ka = %a,", "%ka = %a, %k2 = %a2,"),
        (COPIED, COPIED + COPIED.replace("%a =", "%a2 =")),
        ("-> (tensor<2x6xf16, #a>,", "-> (tensor<2x6xf16, #a>, tensor<2x6xf16, #a>,"),
        (SHIFT_A, SHIFT_A + SHIFT_A.replace("%a1", "%a3").replace("%ka", "%k2")),
        (f"{HAND_ON}", "scf.yield %a1, %a3, %b1, %s1 : tensor<2x6xf16, #a>,"),
        ("%r:3", "%r:4"),
        ("%r#2", "%r#3"),
        ("%r#1", "%r#2"),
    ),
    case(
        "read twice",
        "the root reads a tensor that rotates twice",
        (OPERANDS, "ins(%a1, %b1, %a1 : tensor<2x6xf16, #a>, tensor<6x3xf16, #b>, tensor<2x6xf16, #a>)"),
        ("[#ma, #mb, #mc]", "[#ma, #mb, #ma, #mc]"),
        (
            ACCUMULATE,
            ACCUMULATE.replace("%q: f16,", "%q: f16, %u0: f16,").replace(
                "%u1 = arith.extf %u :", "%ud = arith.addf %u, %u0 : f16\n%u1 = arith.extf %ud :"
            ),
        ),
    ),
    case(
        "other accumulators",
        "rtensor.sub_task accumulates elsewhere than at the loop's accumulators and positions",
        ('"rtensor.sub_task"(%s, %p)', '"rtensor.sub_task"(%z, %p)'),
        ("outs(%s :", "outs(%z :"),
    ),
    case(
        "no positions",
        "rtensor.sub_task accumulates elsewhere than at the loop's accumulators and positions",
        ('"rtensor.sub_task"(%s, %p)', '"rtensor.sub_task"(%s)'),
        ("}) : (tensor<2x3xf32, #c>, index)", "}) : (tensor<2x3xf32, #c>)"),
    ),
    case(
        "scattered accumulators",
        "accumulators are scattered or stand away from home before the loop",
        ('partial = "sum"}>', 'partial = "sum", scatter = 2}>'),
        text=SUMS,
    ),
    case(
        "other loops",
        "the root has 3 loops, expected the 2 axes of the grid",
        (
            "affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>],",
            "#mb, #ma, affine_map<(m, k, j) -> (m)>],",
        ),
        ("affine_map<(m, n, k) -> (m, k)>\n", "affine_map<(m, k, j) -> (j)>\n"),
        ("affine_map<(m, n, k) -> (k, n)>\n", "affine_map<(m, k, j) -> (m, k)>\n"),
        (
            '"reduction"]} ins(%xr : tensor<4x8xf32, #sx>)',
            '"reduction", "reduction"]} ins(%xr, %j : tensor<4x8xf32, #sx>, tensor<3xf32>)',
        ),
        ("^bb0(%u: f32, %o: f32):\n        %sum", "^bb0(%u: f32, %j0: f32, %o: f32):\n        %sum"),
        ('%y = "rtensor.operator"', '%j = tensor.empty() : tensor<3xf32>\n%y = "rtensor.operator"'),
        text=SUMS,
    ),
    case(
        "written along other axes",
        "the root writes along other axes than the layout of the accumulators says",
        ("map = affine_map<(m, k) -> (m)>, fs", "map = affine_map<(m, k) -> (k)>, fs"),
        text=SUMS,
    ),
    case(
        "read along other axes",
        "the root reads a tensor along other axes than its layout says, or from another grid",
        ("lengths = [2, 4]", "lengths = [4, 4]"),
        (
            "#sx = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m, k)>",
            "#sx = #rtensor.layout<#split, {map = affine_map<(m, k) -> (k, m)>",
        ),
        text=SUMS,
    ),
    case(
        "read from another grid",
        "the root reads a tensor along other axes than its layout says, or from another grid",
        *copied_as("#a3"),
    ),
    case(
        "scattered", "the root reads a tensor that is scattered, partial or away from home", *copied_as("#a2")
    ),
    case(
        "rotates, but not in the loop",
        "the root reads a tensor that rotates, but does not stand at the positions of the box",
        *copied_as("#a"),
    ),
    case(
        "epilogue elsewhere",
        "the epilogue writes elsewhere than into the memory allocated for it",
        ('"rtensor.sub_task"(%e)', '"rtensor.sub_task"(%e2)'),
        (
            '%y = "rtensor.operator"',
            '%e2 = "rtensor.allocate"() : () -> tensor<2x3xf16, #c>\n%y = "rtensor.operator"',
        ),
    ),
    case(
        "epilogue in another layout",
        "the epilogue leaves its result in another layout than the accumulators have",
        (
            '%e = "rtensor.allocate"() : () -> tensor<2x3xf16, #c>',
            '%e = "rtensor.allocate"() : () -> tensor<2x3xf16, #c1>',
        ),
        ("outs(%e : tensor<2x3xf16, #c>)", "outs(%e : tensor<2x3xf16, #c1>)"),
        ("} -> tensor<2x3xf16, #c>", "} -> tensor<2x3xf16, #c1>"),
        ('"rtensor.yield"(%g) : (tensor<2x3xf16, #c>)', '"rtensor.yield"(%g) : (tensor<2x3xf16, #c1>)'),
        (
            "}) : (tensor<2x3xf16, #c>) -> tensor<2x3xf16, #c>",
            "}) : (tensor<2x3xf16, #c1>) -> tensor<2x3xf16, #c1>",
        ),
        ('"rtensor.yield"(%f) : (tensor<2x3xf16, #c>)', '"rtensor.yield"(%f) : (tensor<2x3xf16, #c1>)'),
    ),
    case(
        "epilogue along a sum of loops",
        "the epilogue writes along other axes than the layout of its result says",
        *one_more_loop("[#l, #lr, #j, #ls]"),
    ),
    case(
        "epilogue along a loop of its own",
        "the epilogue reads along a loop that is no axis of its result",
        *one_more_loop("[#ls, #lr, #j, #l]"),
    ),
    case(
        "accumulators along other loops",
        "the epilogue reads the accumulators along other axes than it writes",
        *SQUARE,
        ("[#id, #row, #id]", "[affine_map<(m, n) -> (n, m)>, #row, #id]"),
    ),
    case(
        "epilogue operand along other axes",
        "the epilogue reads a tensor along other axes than its layout says",
        *SQUARE,
        ("[#id, #row, #id]", "[#id, affine_map<(m, n) -> (m)>, #id]"),
    ),
    case(
        "epilogue operand scattered",
        "the epilogue reads a tensor whose windows are not those of its result",
        ("tensor<3xf32, #n>", "tensor<3xf32, #n1>"),
    ),
    case(
        "accumulators not read",
        "the epilogue does not read the accumulators",
        (EPILOGUE_OPERANDS, "ins(%z, %d : tensor<2x3xf32, #c>, tensor<3xf32, #n>)"),
    ),
    case(
        "two roots",
        "rtensor.sub_task holds linalg.generic, linalg.exp, rtensor.yield, expected one linalg.generic and",
        (
            '"rtensor.yield"(%g) : (tensor<2x3xf32, #c>)',
            "%g1 = linalg.exp ins(%g : tensor<2x3xf32, #c>) outs(%s : tensor<2x3xf32, #c>) -> tensor<2x3xf32, #c>\n"
            '"rtensor.yield"(%g1) : (tensor<2x3xf32, #c>)',
        ),
    ),
    case(
        "another value of the sub-task",
        "rtensor.sub_task yields another value than its root makes",
        ('"rtensor.yield"(%g) : (tensor<2x3xf32, #c>)', '"rtensor.yield"(%s) : (tensor<2x3xf32, #c>)'),
    ),
    case(
        "root elsewhere",
        "the root writes elsewhere than into the accumulator of its sub-task",
        ("outs(%s :", "outs(%z :"),
    ),
    case(
        "index that is not affine",
        "",
        ("[#ma, #mb, #mc]", "[affine_map<(m, n, k) -> (m, k mod 6)>, #mb, #mc]"),
    ),
    case(
        "operand that is not read",
        "the root reads an empty tensor, or has an operand that it does not read",
        ("%u1 = arith.extf %u :", "%u1 = arith.extf %q :"),
    ),
    case(
        "another layout of the result",
        "result has layout tensor<2x3xf16",
        (
            'op_name = "product"} : () -> tensor<2x3xf16, #c>',
            'op_name = "product"} : () -> tensor<2x3xf16, #c1>',
        ),
        ("return %y : tensor<2x3xf16, #c>", "return %y : tensor<2x3xf16, #c1>"),
        ("%v: tensor<3xf32>) -> tensor<2x3xf16, #c>", "%v: tensor<3xf32>) -> tensor<2x3xf16, #c1>"),
    ),
    case(
        "another type of the result",
        "results in tensor<2x3xf32",
        (
            'op_name = "product"} : () -> tensor<2x3xf16, #c>',
            'op_name = "product"} : () -> tensor<2x3xf32, #c>',
        ),
        ("return %y : tensor<2x3xf16, #c>", "return %y : tensor<2x3xf32, #c>"),
        ("%v: tensor<3xf32>) -> tensor<2x3xf16, #c>", "%v: tensor<3xf32>) -> tensor<2x3xf32, #c>"),
    ),
)


@pytest.fixture(autouse=True)
def context() -> Iterator[Any]:
    with new_context() as made, ir.Location.unknown():
        yield made


@pytest.mark.parametrize(("text", "edits", "message"), REFUSED_BY_THE_VERIFIER)
def test_an_edit_is_refused_when_it_is_parsed(text: str, edits: tuple[Edit, ...], message: str) -> None:
    with pytest.raises(ir.MLIRError) as caught:
        ir.Module.parse(edited(text, edits))
    assert f"'rtensor.operator' op {message}" in str(caught.value)
