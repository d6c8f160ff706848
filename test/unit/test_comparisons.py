"""Comparisons with constants are made in the type of what is compared, and give what the wide ones give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.linalg_numpy import run_module

from t10.dialect.mlir import ir, new_context, walk
from t10.frontend.importer import import_proto
from t10.passes.patterns.driver import apply_patterns
from t10.passes.patterns.narrow_comparison import NARROW_COMPARISON


@pytest.mark.parametrize(("operator", "n"), [("IsInf", 1), ("PRelu", 2), ("Mish", 1), ("ThresholdedRelu", 1)])
def test_operators_that_compare_need_no_f64(operator: str, n: int) -> None:
    names = ["x", "slope"][:n]
    kind = TensorProto.BOOL if operator == "IsInf" else TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], name="n")],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [6]) for name in names],
        [helper.make_tensor_value_info("y", kind, [6])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    assert "f64" not in str(import_proto(model, source="m").module)


TEXT = """
func.func @f(%x: tensor<7xTYPE> {t10.name = "x"}) -> (tensor<7xi1> {t10.name = "y"}) {
  %c = arith.constant VALUE : f64
  %e = tensor.empty() : tensor<7xi1>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]} ins(%x : tensor<7xTYPE>) outs(%e : tensor<7xi1>) {
    ^bb0(%in: TYPE, %out: i1):
      %wide = arith.extf %in : TYPE to f64
      %found = arith.cmpf PREDICATE, OPERANDS : f64
      linalg.yield %found : i1
  } -> tensor<7xi1>
  return %y : tensor<7xi1>
}
"""


@pytest.mark.parametrize("predicate", ["olt", "ole", "ogt", "oge", "oeq", "une"])
@pytest.mark.parametrize(("value", "is_exact"), [("0.5", True), ("0x7FF0000000000000", True), ("0.1", False)])
@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("operands", ["%wide, %c", "%c, %wide"])
def test_narrow_comparisons_give_what_wide_ones_give(
    predicate: str, value: str, is_exact: bool, kind: str, operands: str
) -> None:
    text = TEXT.replace("TYPE", kind).replace("VALUE", value).replace("PREDICATE", predicate)
    x = np.array([0.1, 0.5, -0.5, np.inf, -np.inf, np.nan, 0.25], np.float16 if kind == "f16" else np.float32)
    with new_context(), ir.Location.unknown():
        module: Any = ir.Module.parse(text.replace("OPERANDS", operands))
        expected = run_module(module, {"x": x})["y"]
        apply_patterns(module, (NARROW_COMPARISON,))
        (compare,) = (op.operation for op in walk(module) if op.operation.name == "arith.cmpf")
        assert str(compare.operands[0].type) == (kind if is_exact else "f64")
        np.testing.assert_array_equal(run_module(module, {"x": x})["y"], expected)
