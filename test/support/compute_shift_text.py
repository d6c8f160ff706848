"""Two operators at the compute-shift level, written by hand: one that rotates, one that reduces; and edits of them."""

from __future__ import annotations

from typing import Any

import pytest

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


def edited(text: str, edits: tuple[Edit, ...]) -> str:
    """Return a program with every edit made wherever it applies, which must be somewhere."""
    text = HEAD + text
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text
