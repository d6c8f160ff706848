"""Operators at the compute-shift level: an edit that breaks one is refused in words that say which rule it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from t10.chip import load_chip
from t10.dialect.mlir import ir, new_context
from t10.errors import T10Error
from t10.passes.bridge.read_program import read_program
from t10.passes.place import place_module, program_plan

HEAD = """
#rest = #rtensor.linear<{cores = 4}>
#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1],
  phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
#still = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 1], loop_order = [], core_order = [0, 1],
  phases = [[], [], []]}>
#ma = affine_map<(m, n, k) -> (m, k)>
#mb = affine_map<(m, n, k) -> (k, n)>
#mc = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
#a = #rtensor.layout<#grid, {map = #ma, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>
#a1 = #rtensor.layout<#grid, {map = #ma, fs = [2, 1], ft = [1, 1], rp = [0, 0]}>
#a2 = #rtensor.layout<#grid, {map = #ma, fs = [2, 1], ft = [1, 1], rp = [0, 0], scatter = 3}>
#a3 = #rtensor.layout<#still, {map = #ma, fs = [2, 1], ft = [1, 1], rp = [0, 0]}>
#b = #rtensor.layout<#grid, {map = #mb, fs = [1, 3], ft = [2, 1], rp = [2, 0]}>
#c = #rtensor.layout<#grid, {map = #mc, fs = [2, 3], ft = [1, 1], rp = [0, 0]}>
#c1 = #rtensor.layout<#still, {map = #mc, fs = [2, 3], ft = [1, 1], rp = [0, 0]}>
#n = #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (n)>, fs = [3], ft = [1], rp = [0]}>
#n1 = #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (n)>, fs = [3], ft = [1], rp = [0], scatter = 2}>
#m = #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
#split = #rtensor.grid<{f_op = [2, 2], lengths = [2, 4], steps = [1, 1], loop_order = [], core_order = [0, 1],
  phases = [[], []]}>
#sx = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m, k)>, fs = [2, 2], ft = [1, 1], rp = [0, 0]}>
#sp = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0], partial = "sum"}>
#sf = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
#so = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0], scatter = 2}>
"""

PRODUCT = """
func.func @main(%x: tensor<2x6xf16>, %w: tensor<6x3xf16> {t10.weight}, %v: tensor<3xf32>) -> tensor<2x3xf16, #c> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %xr = "rtensor.resident"(%x) : (tensor<2x6xf16>) -> tensor<2x6xf16, #rest>
  %b = "rtensor.resident"(%w) : (tensor<6x3xf16>) -> tensor<6x3xf16, #b>
  %vr = "rtensor.resident"(%v) : (tensor<3xf32>) -> tensor<3xf32, #rest>
  %y = "rtensor.operator"() ({
    %a = "rtensor.relayout"(%xr) : (tensor<2x6xf16, #rest>) -> tensor<2x6xf16, #a>
    %d = "rtensor.relayout"(%vr) : (tensor<3xf32, #rest>) -> tensor<3xf32, #n>
    %z = "rtensor.fill"() {combine = "sum"} : () -> tensor<2x3xf32, #c>
    %r:3 = scf.for %t = %c0 to %c3 step %c1 iter_args(%ka = %a, %kb = %b, %s = %z)
        -> (tensor<2x6xf16, #a>, tensor<6x3xf16, #b>, tensor<2x3xf32, #c>) {
      %p = "rtensor.position"(%t) {grid = #grid} : (index) -> index
      %a1 = "rtensor.shift"(%ka, %p) {axis = 2} : (tensor<2x6xf16, #a>, index) -> tensor<2x6xf16, #a>
      %b1 = "rtensor.shift"(%kb, %p) {axis = 2} : (tensor<6x3xf16, #b>, index) -> tensor<6x3xf16, #b>
      %s1 = "rtensor.sub_task"(%s, %p) ({
        %g = linalg.generic {indexing_maps = [#ma, #mb, #mc], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a1, %b1 : tensor<2x6xf16, #a>, tensor<6x3xf16, #b>) outs(%s : tensor<2x3xf32, #c>) {
        ^bb0(%u: f16, %q: f16, %o: f32):
          %u1 = arith.extf %u : f16 to f32
          %q1 = arith.extf %q : f16 to f32
          %uq = arith.mulf %u1, %q1 : f32
          %sum = arith.addf %o, %uq : f32
          linalg.yield %sum : f32
        } -> tensor<2x3xf32, #c>
        "rtensor.yield"(%g) : (tensor<2x3xf32, #c>) -> ()
      }) : (tensor<2x3xf32, #c>, index) -> tensor<2x3xf32, #c>
      scf.yield %a1, %b1, %s1 : tensor<2x6xf16, #a>, tensor<6x3xf16, #b>, tensor<2x3xf32, #c>
    }
    %home = "rtensor.shift"(%r#1, %c0) {axis = 2} : (tensor<6x3xf16, #b>, index) -> tensor<6x3xf16, #b>
    "rtensor.rest"(%home) : (tensor<6x3xf16, #b>) -> ()
    %e = "rtensor.allocate"() : () -> tensor<2x3xf16, #c>
    %f = "rtensor.sub_task"(%e) ({
      %g = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%r#2, %d : tensor<2x3xf32, #c>, tensor<3xf32, #n>) outs(%e : tensor<2x3xf16, #c>) {
      ^bb0(%u: f32, %q: f32, %o: f16):
        %uq = arith.addf %u, %q : f32
        %h = arith.truncf %uq : f32 to f16
        linalg.yield %h : f16
      } -> tensor<2x3xf16, #c>
      "rtensor.yield"(%g) : (tensor<2x3xf16, #c>) -> ()
    }) : (tensor<2x3xf16, #c>) -> tensor<2x3xf16, #c>
    "rtensor.yield"(%f) : (tensor<2x3xf16, #c>) -> ()
  }) {kind = "contraction", op_name = "product"} : () -> tensor<2x3xf16, #c>
  return %y : tensor<2x3xf16, #c>
}
"""
"""C[m, n] = half(sum over k of A[m, k] * B[k, n] + v[n]): A is copied to its cores, B turns where it rests."""

SUMS = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32, #so> {
  %xr = "rtensor.resident"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32, #sx>
  %y = "rtensor.operator"() ({
    %z = "rtensor.fill"() {combine = "sum"} : () -> tensor<4xf32, #sp>
    %s = "rtensor.sub_task"(%z) ({
      %g = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>],
          iterator_types = ["parallel", "reduction"]} ins(%xr : tensor<4x8xf32, #sx>) outs(%z : tensor<4xf32, #sp>) {
      ^bb0(%u: f32, %o: f32):
        %sum = arith.addf %o, %u : f32
        linalg.yield %sum : f32
      } -> tensor<4xf32, #sp>
      "rtensor.yield"(%g) : (tensor<4xf32, #sp>) -> ()
    }) : (tensor<4xf32, #sp>) -> tensor<4xf32, #sp>
    %r = "rtensor.reduce"(%s) : (tensor<4xf32, #sp>) -> tensor<4xf32, #so>
    %e = "rtensor.allocate"() : () -> tensor<4xf32, #so>
    %f = "rtensor.sub_task"(%e) ({
      %g = linalg.generic {indexing_maps = [affine_map<(m) -> (m)>, affine_map<(m) -> (m)>],
          iterator_types = ["parallel"]} ins(%r : tensor<4xf32, #so>) outs(%e : tensor<4xf32, #so>) {
      ^bb0(%u: f32, %o: f32):
        linalg.yield %u : f32
      } -> tensor<4xf32, #so>
      "rtensor.yield"(%g) : (tensor<4xf32, #so>) -> ()
    }) : (tensor<4xf32, #so>) -> tensor<4xf32, #so>
    "rtensor.yield"(%f) : (tensor<4xf32, #so>) -> ()
  }) {kind = "reduction", op_name = "sums"} : () -> tensor<4xf32, #so>
  return %y : tensor<4xf32, #so>
}
"""
"""Sums of rows, each by two cores, which end with a chunk of one element each, in memory of its own."""

SHIFT_A = '%a1 = "rtensor.shift"(%ka, %p) {axis = 2} : (tensor<2x6xf16, #a>, index) -> tensor<2x6xf16, #a>\n'
HOME_B = (
    '%home = "rtensor.shift"(%r#1, %c0) {axis = 2} : (tensor<6x3xf16, #b>, index) -> tensor<6x3xf16, #b>\n'
)
REST_B = '    "rtensor.rest"(%home) : (tensor<6x3xf16, #b>) -> ()\n'
HAND_ON = "scf.yield %a1, %b1, %s1 :"
FILL = '%z = "rtensor.fill"() {combine = "sum"} : () -> tensor<2x3xf32, #c>\n'
REDUCE = '%r = "rtensor.reduce"(%s) : (tensor<4xf32, #sp>) -> tensor<4xf32, #so>\n'
RESIDENT_X = '%xr = "rtensor.resident"(%x) : (tensor<2x6xf16>) -> tensor<2x6xf16, #rest>\n'

Edit = tuple[str, str]


def case(name: str, message: str, *edits: Edit, text: str = PRODUCT) -> Any:
    """Return a case: edits of a program, and what its refusal says."""
    return pytest.param(text, edits, message, id=name)


OPERANDS = "ins(%a1, %b1 : tensor<2x6xf16, #a>, tensor<6x3xf16, #b>)"
EPILOGUE_OPERANDS = "ins(%r#2, %d : tensor<2x3xf32, #c>, tensor<3xf32, #n>)"
BIAS = '%d = "rtensor.relayout"(%vr) : (tensor<3xf32, #rest>) -> tensor<3xf32, #n>\n'
COPIED = '%a = "rtensor.relayout"(%xr) : (tensor<2x6xf16, #rest>) -> tensor<2x6xf16, #a>\n'
ACCUMULATE = """        ^bb0(%u: f16, %q: f16, %o: f32):
          %u1 = arith.extf %u : f16 to f32
          %q1 = arith.extf %q : f16 to f32
          %uq = arith.mulf %u1, %q1 : f32
"""
ON_OTHER_GRID = "ins(%a1, %b1 : tensor<2x6xf16, #a3>, tensor<6x3xf16, #b>)"


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

REFUSED_BY_THE_READER = (
    case(
        "rests twice", "arg0 rests at two places", (RESIDENT_X, RESIDENT_X + RESIDENT_X.replace("%xr", "%x2"))
    ),
    case(
        "moved twice",
        "rtensor.relayout brings a tensor that no sub-task reads",
        (
            COPIED,
            COPIED.replace("%a =", "%a0 =").replace("#a>", "#a1>")
            + COPIED.replace("%xr", "%a0").replace("#rest", "#a1"),
        ),
    ),
    case(
        "lies nowhere",
        "reads arg0 where it lies, but it lies nowhere",
        (RESIDENT_X, ""),
        (COPIED, ""),
        ("%ka = %a,", "%ka = %x,"),
        ("%x: tensor<2x6xf16>", "%x: tensor<2x6xf16, #a>"),
    ),
    case(
        "set-up of an input",
        "rtensor.setup of arg0, which is no weight",
        (COPIED, COPIED.replace("relayout", "setup")),
    ),
    case(
        "relayout of a weight",
        "rtensor.relayout of the weight arg0, expected rtensor.setup",
        ("(%x: tensor<2x6xf16>,", "(%x: tensor<2x6xf16> {t10.weight},"),
    ),
    case(
        "another kind",
        'kind is "reduction", but the root is a contraction',
        ('kind = "contraction"', 'kind = "reduction"'),
    ),
    case(
        "other accumulators",
        "accumulators start for max, but the root combines by sum",
        ('combine = "sum"', 'combine = "max"'),
    ),
    case(
        "final accumulators",
        'accumulators are partial = "", expected "sum"',
        (SUMS[SUMS.index(f"    {REDUCE}") : SUMS.index('    "rtensor.yield"(%f)')], ""),
        ("(%f)", "(%s)"),
        ("#sp>", "#sf>"),
        ("#so>", "#sf>"),
        text=SUMS,
    ),
    case(
        "rests as nobody reads it",
        "arg0 rests in a layout in which no operator reads it",
        (RESIDENT_X, RESIDENT_X.replace("#rest", "#a1")),
        (COPIED, COPIED.replace("#rest", "#a1")),
    ),
    case(
        "not brought home",
        "arg1 rotates where it rests and is not brought home, or the other way round",
        (HOME_B, ""),
        (REST_B, ""),
    ),
)


@pytest.fixture(autouse=True)
def context() -> Iterator[Any]:
    with new_context() as made, ir.Location.unknown():
        yield made


def edited(text: str, edits: tuple[Edit, ...]) -> str:
    """Return a program with every edit made wherever it applies, which must be somewhere."""
    text = HEAD + text
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("text", [PRODUCT, SUMS])
def test_a_program_is_read(text: str) -> None:
    module = ir.Module.parse(HEAD + text)
    place_module(module, load_chip("test-16"))
    assert program_plan(read_program(module), load_chip("test-16")).operators


@pytest.mark.parametrize(("text", "edits", "message"), REFUSED_BY_THE_VERIFIER)
def test_an_edit_is_refused_when_it_is_parsed(text: str, edits: tuple[Edit, ...], message: str) -> None:
    with pytest.raises(ir.MLIRError) as caught:
        ir.Module.parse(edited(text, edits))
    assert f"'rtensor.operator' op {message}" in str(caught.value)


@pytest.mark.parametrize(("text", "edits", "message"), REFUSED_BY_THE_READER)
def test_an_edit_is_refused_when_the_program_is_read(
    text: str, edits: tuple[Edit, ...], message: str
) -> None:
    module = ir.Module.parse(edited(text, edits))
    with pytest.raises(T10Error) as caught:
        read_program(module)
    assert message in str(caught.value)
