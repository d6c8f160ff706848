"""What assembly computes bit for bit as the plan simulator does, and how near the rest is (docs/ipu-backend.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from t10.backend import run_on_tiles
from t10.driver import compile

Array = NDArray[Any]
SHAPE = (8, 24)
TYPE = "8x24x{}"
NUMPY = {"f16": np.float16, "f32": np.float32, "i32": np.int32, "i64": np.int64}
UNITS_IN_LAST_PLACE = {"f32": 4, "f16": 1}
"""How far functions may be from the plan simulator's, which takes numpy's in the same type."""

PRECISION = {"f32": (2.0**-23, 2.0**-149), "f16": (2.0**-10, 2.0**-24)}
"""The unit in the last place of 1, and the smallest of all."""

LARGEST_HALF = 65504.0

ROUNDED = (
    "arith.addf {x}, {y}", "arith.subf {x}, {y}", "arith.mulf {x}, {y}", "arith.divf {x}, {y}",
    "arith.maximumf {x}, {y}", "arith.minimumf {x}, {y}", "arith.negf {x}", "math.absf {x}", "math.floor {x}",
    "math.ceil {x}", "math.trunc {x}", "math.roundeven {x}", "math.sqrt {p}",
)  # fmt: skip
"""Operations with one right answer: exact, or rounded once. x and y are anything, p is positive."""

FUNCTIONS = (
    "math.exp {x}", "math.tanh {x}", "math.erf {x}", "math.sin {x}", "math.cos {x}", "math.atan {x}",
    "math.expm1 {x}", "math.rsqrt {p}", "math.log {p}", "math.log2 {p}", "math.log1p {p}",
)  # fmt: skip
INTEGERS = (
    "arith.addi {x}, {y}", "arith.subi {x}, {y}", "arith.muli {x}, {y}", "arith.maxsi {x}, {y}",
    "arith.minsi {x}, {y}", "arith.andi {x}, {y}", "arith.ori {x}, {y}", "arith.xori {x}, {y}",
)  # fmt: skip


def model_text(operations: tuple[str, ...], dtype: str) -> str:
    """Return a model with one result per operation on inputs x, y and p."""
    tensor = f"tensor<{TYPE.format(dtype)}>"
    names = [f"r{i}" for i in range(len(operations))]
    results = ", ".join(f'{tensor} {{t10.name = "{name}"}}' for name in names)
    inputs = ", ".join(f'%{name}: {tensor} {{t10.name = "{name}"}}' for name in "xyp")
    lines = [f"func.func @main({inputs}) -> ({results}) {{", f"  %e = tensor.empty() : {tensor}"]
    for name, operation in zip(names, operations, strict=True):
        body = operation.format(x="%a", y="%b", p="%c")
        lines += [
            f"  %{name} = linalg.generic {{indexing_maps = [#id, #id, #id, #id], "
            f'iterator_types = ["parallel", "parallel"]}} ins(%x, %y, %p : {tensor}, {tensor}, {tensor}) '
            f"outs(%e : {tensor}) {{",
            f"  ^bb0(%a: {dtype}, %b: {dtype}, %c: {dtype}, %o: {dtype}):",
            f"    %v = {body} : {dtype}",
            f"    linalg.yield %v : {dtype}",
            f"  }} -> {tensor}",
        ]
    lines.append(f"  return {', '.join('%' + n for n in names)} : {', '.join([tensor] * len(names))}\n}}")
    return "\n".join(["#id = affine_map<(i, j) -> (i, j)>", *lines])


def inputs_of(dtype: str) -> dict[str, Array]:
    """Return x and y over twelve powers of two, and p, the magnitude of x, not 0."""
    random = np.random.default_rng(7)
    if dtype.startswith("i"):
        arrays = [random.integers(-30000, 30001, SHAPE) for _ in "xy"]
    else:
        arrays = [random.uniform(-4, 4, SHAPE) * 2.0 ** random.integers(-6, 6, SHAPE) for _ in "xy"]
    x, y = (array.astype(NUMPY[dtype]) for array in arrays)
    return {"x": x, "y": y, "p": abs(x) + NUMPY[dtype](1)}


def both(text: str, inputs: dict[str, Array], folder: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return a model's outputs by the plan simulator and by its assembly."""
    path = folder / "model.mlir"
    path.write_text(text)
    executable = compile(path, "test-4")
    inputs = {value.name: inputs[value.name] for value in executable.inputs}
    return dict(executable.run(inputs)), dict(run_on_tiles(executable, inputs).outputs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("operations", "dtype"), [(ROUNDED, "f32"), (ROUNDED, "f16"), (INTEGERS, "i32"), (INTEGERS, "i64")]
)
def test_operations_with_one_right_answer_have_the_same_bits(
    operations: tuple[str, ...], dtype: str, tmp_path: Path
) -> None:
    planned, executed = both(model_text(operations, dtype), inputs_of(dtype), tmp_path)
    for name, operation in zip(planned, operations, strict=True):
        np.testing.assert_array_equal(executed[name], planned[name], err_msg=operation)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_functions_are_near(dtype: str, tmp_path: Path) -> None:
    planned, executed = both(model_text(FUNCTIONS, dtype), inputs_of(dtype), tmp_path)
    for name, operation in zip(planned, FUNCTIONS, strict=True):
        due, got = planned[name], executed[name]
        is_finite = np.isfinite(due)
        # What is too large is infinite in numpy; on a tile an f16 stays the largest number unless an f32 was infinite.
        assert (got[~is_finite] >= (LARGEST_HALF if dtype == "f16" else np.inf)).all(), operation
        due, got = due[is_finite].astype(np.float64), got[is_finite].astype(np.float64)
        precision, smallest = PRECISION[dtype]
        unit = np.maximum(2.0 ** np.floor(np.log2(np.abs(due) + 1e-300)) * precision, smallest)
        assert (np.abs(got - due) <= UNITS_IN_LAST_PLACE[dtype] * unit).all(), operation


PRODUCT = """
func.func @main(%x: tensor<16x96xDT> {t10.name = "x"}, %y: tensor<96x16xDT> {t10.name = "y"})
    -> (tensor<16x16xf32> {t10.name = "z"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %z = linalg.matmul ins(%x, %y : tensor<16x96xDT>, tensor<96x16xDT>) outs(%i : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %z : tensor<16x16xf32>
}
"""


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_sums_of_products_differ_by_their_order_only(dtype: str, tmp_path: Path) -> None:
    """Whole numbers have exact sums in any order; others are as near as 96 roundings allow."""
    random = np.random.default_rng(3)
    whole = {n: random.integers(-8, 9, s).astype(NUMPY[dtype]) for n, s in (("x", (16, 96)), ("y", (96, 16)))}
    planned, executed = both(PRODUCT.replace("DT", dtype), whole, tmp_path)
    np.testing.assert_array_equal(executed["z"], planned["z"])
    real = {
        name: (array * random.uniform(0.5, 1, array.shape)).astype(array.dtype)
        for name, array in whole.items()
    }
    planned, executed = both(PRODUCT.replace("DT", dtype), real, tmp_path)
    x, y = (np.abs(real[name].astype(np.float64)) for name in "xy")
    assert (np.abs(executed["z"].astype(np.float64) - planned["z"]) <= 96 * 2.0**-24 * (x @ y)).all()
