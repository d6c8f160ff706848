"""Rewrite patterns of what is imported, and what patterns leave alone in compiled models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.compiled import MODELS, compiled
from support.draw import drawn
from support.linalg_numpy import run_module

from t10.chip import load_chip
from t10.core.stored import as_stored
from t10.cost import IpuCostModel
from t10.dialect.mlir import ir, new_context, walk
from t10.frontend.importer import import_model
from t10.passes.patterns.constant_operand import CONSTANT_OPERAND
from t10.passes.patterns.driver import Pattern, apply_patterns
from t10.passes.patterns.narrowed_constant import NARROWED_CONSTANT
from t10.passes.patterns.repeated_constant import REPEATED_CONSTANT
from t10.passes.patterns.requantized import REQUANTIZED
from t10.passes.patterns.run_time_checks import RUN_TIME_CHECKS
from t10.passes.pipeline import (
    compile_module,
    module_text,
    parsed_module,
    read_module_plan,
)
from t10.passes.place import place_module
from t10.passes.registry import make, run
from t10.plan.memory.room import DataRoom
from t10.sim.plan_level import simulate


def rewritten(text: str, *patterns: Pattern) -> Any:
    """Return the operations of a module's function after patterns, without the function itself."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        apply_patterns(module, patterns)
        assert module.operation.verify()
        return [(op.operation.name, str(op.operation)) for op in walk(module)[2:]]


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("value", ["0xFFEFFFFFFFFFFFFF", "0.1", "-2.5", "0x7FF0000000000000"])
def test_a_narrowed_constant_is_rounded_as_the_cast_rounds(kind: str, value: str) -> None:
    (constant, _) = rewritten(
        f"""func.func @f() -> {kind} {{
          %c = arith.constant {value} : f64
          %x = arith.truncf %c : f64 to {kind}
          return %x : {kind}
        }}""",
        NARROWED_CONSTANT,
    )
    assert constant[0] == "arith.constant"
    wide = {"0xFFEFFFFFFFFFFFFF": -np.finfo(np.float64).max, "0x7FF0000000000000": np.inf}.get(value)
    with np.errstate(over="ignore"):
        wanted = {"f16": np.float16, "f32": np.float32}[kind](float(value) if wide is None else wide)
    with new_context(), ir.Location.unknown():
        (found,) = (
            op.operation.attributes["value"].value
            for op in walk(ir.Module.parse(constant[1]))
            if op.operation.name == "arith.constant"
        )
    assert found == float(wanted)


def test_a_computed_value_is_narrowed_where_it_is() -> None:
    text = "func.func @f(%x: f64) -> f32 {\n  %y = arith.truncf %x : f64 to f32\n  return %y : f32\n}"
    assert [name for name, _ in rewritten(text, NARROWED_CONSTANT)] == ["arith.truncf", "func.return"]


def test_checks_go_and_with_them_loops_that_hold_nothing_else() -> None:
    text = """
      #i = affine_map<(i) -> (i)>
      func.func @f(%x: tensor<4xi64>, %e: tensor<4xi64>, %n: i64) -> tensor<4xi64> {
        linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} ins(%x : tensor<4xi64>) {
        ^bb0(%a: i64):
          %ok = arith.cmpi slt, %a, %n : i64
          cf.assert %ok, "index out of range"
          linalg.yield
        }
        %y = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]}
            ins(%x : tensor<4xi64>) outs(%e : tensor<4xi64>) {
        ^bb0(%a: i64, %o: i64):
          %ok = arith.cmpi slt, %a, %n : i64
          cf.assert %ok, "index out of range"
          %b = arith.addi %a, %n : i64
          linalg.yield %b : i64
        } -> tensor<4xi64>
        return %y : tensor<4xi64>
      }
    """
    names = [name for name, _ in rewritten(text, RUN_TIME_CHECKS)]
    assert names == ["linalg.generic", "arith.addi", "linalg.yield", "func.return"]


ELEMENTWISE = """
#i = affine_map<(i) -> (i)>
#m = affine_map<(i) -> (MAP)>
func.func @f(%x: tensor<4xf32> {t10.name = "x"}, %e: tensor<4xf32> {t10.name = "e"})
    -> (tensor<4xf32> {t10.name = "y"}) {
  %c = arith.constant 2.0 : f32
  %s = arith.constant dense<3.0> : tensor<4xf32>
  %d = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#i, #m, #i], iterator_types = ["parallel"]}
      ins(%x, OPERAND : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("operand", "map_", "n_left"), [("%f", "i", 1), ("%s", "0", 1), ("%d", "i", 2), ("%x", "0", 2)]
)
def test_a_constant_operand_becomes_a_constant(operand: str, map_: str, n_left: int) -> None:
    text = ELEMENTWISE.replace("OPERAND", operand).replace("MAP", map_)
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        x, e = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
        wanted = run_module(module, {"x": x, "e": e})
        apply_patterns(module, (CONSTANT_OPERAND,))
        assert module.operation.verify()
        (generic,) = (op.operation for op in walk(module) if op.operation.name == "linalg.generic")
        assert len(generic.operands) == n_left + 1
        np.testing.assert_equal(run_module(module, {"x": x, "e": e}), wanted)


def test_a_constant_that_alone_gives_a_loop_its_extent_stays() -> None:
    text = """
      func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
        %s = arith.constant dense<1.0> : tensor<4x8xf32>
        %y = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
            iterator_types = ["parallel", "reduction"]} ins(%s : tensor<4x8xf32>) outs(%x : tensor<4xf32>) {
        ^bb0(%a: f32, %o: f32):
          %0 = arith.addf %o, %a : f32
          linalg.yield %0 : f32
        } -> tensor<4xf32>
        return %y : tensor<4xf32>
      }
    """
    names = [name for name, _ in rewritten(text, CONSTANT_OPERAND)]
    assert names == ["arith.constant", "linalg.generic", "arith.addf", "linalg.yield", "func.return"]


@pytest.mark.parametrize(
    ("map_", "yielded", "is_fill"),
    [("(i, j)", "%c", True), ("(j, i)", "%c", True), ("(i, j)", "%z", False), ("(i, j)", "%o", False)],
)
def test_a_loop_that_writes_one_constant_is_a_fill(map_: str, yielded: str, is_fill: bool) -> None:
    text = f"""
      func.func @f(%e: tensor<4x4xf32>, %z: f32) -> tensor<4x4xf32> {{
        %c = arith.constant 2.0 : f32
        %y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> {map_}>],
            iterator_types = ["parallel", "parallel"]}} outs(%e : tensor<4x4xf32>) {{
        ^bb0(%o: f32):
          linalg.yield {yielded} : f32
        }} -> tensor<4x4xf32>
        return %y : tensor<4x4xf32>
      }}
    """
    names = [name for name, _ in rewritten(text, REPEATED_CONSTANT)]
    assert ("linalg.fill" in names, "linalg.generic" in names) == (is_fill, not is_fill)


def requantized(
    scale: float, again: float, zero: float, factor: float, *, to_float: str, low: float
) -> list[str]:
    """Return the operations left of a byte that is dequantised, scaled and quantised again."""
    return [
        name
        for name, _ in rewritten(
            f"""func.func @f(%q: i8) -> i8 {{
          %scale = arith.constant {scale!r} : f32
          %again = arith.constant {again!r} : f32
          %zero = arith.constant {zero!r} : f32
          %factor = arith.constant {factor!r} : f32
          %low = arith.constant {low!r} : f32
          %high = arith.constant {low + 255!r} : f32
          %0 = arith.{to_float} %q : i8 to f32
          %1 = arith.subf %0, %zero : f32
          %2 = arith.mulf %1, %scale : f32
          %3 = arith.mulf %2, %factor : f32
          %4 = arith.divf %3, %again : f32
          %5 = math.roundeven %4 : f32
          %6 = arith.addf %5, %zero : f32
          %7 = arith.maximumf %6, %low : f32
          %8 = arith.minimumf %7, %high : f32
          %9 = arith.fptosi %8 : f32 to i32
          %10 = arith.trunci %9 : i32 to i8
          return %10 : i8
        }}""",
            REQUANTIZED,
        )
    ]


@pytest.mark.parametrize(("to_float", "low"), [("uitofp", 0.0), ("sitofp", -128.0)])
@pytest.mark.parametrize("scale", [0.004585030023008585, 1.0, 2.0**-126, 3.1e35])
def test_a_byte_that_is_quantised_as_it_was_is_itself(scale: float, to_float: str, low: float) -> None:
    assert requantized(scale, scale, 17.0, 1.0, to_float=to_float, low=low) == ["func.return"]


def test_a_factor_that_the_second_scale_has_too_changes_no_byte() -> None:
    """Queries over the root of the size of a head, as a quantiser saw them: the largest still is 255."""
    left = requantized(0.0038939507, 0.0006883597, 117.0, 0.17677669, to_float="uitofp", low=0.0)
    assert left == ["func.return"]


@pytest.mark.parametrize(
    ("scale", "again", "factor", "to_float", "low"),
    [
        (0.5, 0.502, 1.0, "uitofp", 0.0),  # the ends of the range move
        (0.5, 0.5, -1.0, "sitofp", -128.0),
        (0.5, 0.5, 1.0, "uitofp", -128.0),  # 128 is no signed byte
        (2.0**-149, 2.0**-149, 0.5, "uitofp", 0.0),  # half of it is none of f32
        (2.5e38, 2.5e38, 1.0, "uitofp", 0.0),  # infinite, then no number at all
        (0.5, 0.0, 1.0, "uitofp", 0.0),
    ],
)
def test_a_byte_that_becomes_another_one_is_computed(
    scale: float, again: float, factor: float, to_float: str, low: float
) -> None:
    left = requantized(scale, again, 17.0, factor, to_float=to_float, low=low)
    assert left[-2:] == ["arith.trunci", "func.return"]


def test_bytes_of_two_operands_are_not_tried() -> None:
    text = """func.func @f(%p: i8, %q: i8) -> i8 {
      %0 = arith.uitofp %p : i8 to f32
      %1 = arith.uitofp %q : i8 to f32
      %2 = arith.minimumf %0, %1 : f32
      %3 = arith.fptosi %2 : f32 to i32
      %4 = arith.trunci %3 : i32 to i8
      return %4 : i8
    }"""
    assert len(rewritten(text, REQUANTIZED)) == 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "conv", "gather", *drawn(["bert_fp32", "resnet18_fp16"], 1)])
def test_nothing_is_left_to_clean_up_in_a_compiled_model(name: str) -> None:
    text = compiled(name, "test-16").module
    with parsed_module(text, name) as module:
        run(make("t10-canonicalize"), module)
        assert module_text(module) == text


@pytest.mark.slow
def test_a_relayout_to_where_an_input_rests_goes_and_the_numbers_stay() -> None:
    chip = load_chip("test-16")
    imported = import_model(MODELS / "retnet_fp32.onnx")
    planned = compile_module(imported.module, chip)
    with parsed_module(planned.text, "retnet_fp32") as module:
        run(make("t10-canonicalize"), module)
        text = module_text(module)
        place_module(module, chip, DataRoom(chip))
        placed = module_text(module)
    assert text.count("rtensor.relayout") < planned.text.count("rtensor.relayout")
    random = np.random.default_rng(0)
    shapes = {value.name: value.shape for value in planned.plan.graph.inputs}
    inputs = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    weights = {**as_stored(imported.weights, planned.plan.graph.weights), **planned.constants}
    cost = IpuCostModel(chip)
    wanted = simulate(planned.plan, chip, cost, weights, inputs).outputs
    plan, constants = read_module_plan(placed, chip, "ipu", "canonicalized")
    found = simulate(plan, chip, cost, {**weights, **constants}, inputs).outputs
    assert wanted.keys() == found.keys()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name])
