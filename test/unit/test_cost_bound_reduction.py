"""The bound of reductions is never above what their code takes, and near it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from support.random_specs import random_operator

from t10.codelets.compile import compile_task
from t10.codelets.count import cycles_of
from t10.core.expression import AffineDim, Axis, AxisSizes, Combine, Operand, OperatorSpec, Term
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.cost.bound import reduction
from t10.cost.bound.columns import Table
from t10.cost.bound.reduction import IMPOSSIBLE, reduction_bound
from t10.cost.bound.step import sub_task_bound
from t10.cost.combine import combine_operator
from t10.cost.trace import trace_table
from t10.cost.work import box_bytes, sub_task
from t10.errors import UnsupportedOpError

SEED = 5
LARGEST_BYTES = 1 << 18
MOST_POINTS = 1 << 16
BOXES = 6

Dims = str
"""Axes by letter, one dim after the other; `h+p` is a dim of two axes, `2h+p` one of strided windows."""


def operator(
    axes: str,
    inputs: tuple[tuple[str, Dims], ...],
    out: Dims,
    body: ScalarFunction,
    combine: Combine,
    acc: str,
) -> OperatorSpec:
    """Return an operator over axes by letter, those of `out` parallel; inputs are types and dims."""

    def operand(name: str, dtype: str, dims: Dims) -> Operand:
        found = tuple(AffineDim(tuple(map(term, dim.split("+")))) for dim in dims.split())
        return Operand(name, "activation", dtype, (4096,) * len(found), found)

    def term(text: str) -> Term:
        return Term(axes.index(text[-1]), int(text[:-1] or 1))

    kinds = [Axis(a, 4096, "parallel" if a in out else "reduction") for a in axes]
    sources = tuple(operand(f"in{i}", *each) for i, each in enumerate(inputs))
    result = operand("out", acc, out)
    return OperatorSpec("op", "reduction", tuple(kinds), sources, result, combine, body, acc)


def function(n_inputs: int, *ops: tuple[str, tuple[int, ...], str]) -> ScalarFunction:
    """Return the function of some operations, the last of which gives its result."""
    made = tuple(ScalarOp(*op) for op in ops)
    return ScalarFunction(n_inputs, made, n_inputs + len(ops) - 1)


WIDENED = function(1, ("arith.extf", (0,), "f32"))
PRODUCT = function(2, ("arith.extf", (0,), "f32"), ("arith.extf", (1,), "f32"), ("arith.mulf", (2, 3), "f32"))
SQUARE = function(
    2, ("arith.extf", (0,), "f32"), ("arith.subf", (2, 1), "f32"), ("arith.mulf", (3, 3), "f32")
)
EXPONENT = function(2, ("arith.extf", (0,), "f32"), ("arith.subf", (2, 1), "f32"), ("math.exp", (3,), "f32"))
MULTIPLIED = function(2, ("arith.mulf", (0, 1), "f32"))
INTEGERS = function(2, ("arith.muli", (0, 1), "i32"))
SEVEN = function(7, *(("arith.addf", (i + 5 if i > 1 else 0, i), "f16") for i in range(1, 7)))

HALF, FLOAT = ("f16",), ("f32",)
OPERATORS = {
    "sum of rows": operator("mk", (("f16", "m k"),), "m", WIDENED, "sum", "f32"),
    "sum of columns": operator("mk", (("f16", "k m"),), "m", WIDENED, "sum", "f32"),
    "maximum of f32": operator("mk", (("f32", "m k"),), "m", identity(), "max", "f32"),
    "product of f32": operator("mk", (("f32", "k m"),), "m", identity(), "prod", "f32"),
    "minimum of i32": operator("mk", (("i32", "m k"),), "m", identity(), "min", "i32"),
    "sum of i8": operator("mk", (("i8", "m k"),), "m", identity(), "sum", "i8"),
    "maximum of f16": operator("mk", (("f16", "m k"),), "m", identity(), "max", "f16"),
    "two reductions": operator("mkc", (("f16", "k m c"),), "m", WIDENED, "sum", "f32"),
    "seven tensors": operator("mk", (("f16", "k m"),) * 7, "m", SEVEN, "max", "f16"),
    "variance": operator("bmk", (("f16", "b m k"), ("f32", "b m")), "b m", SQUARE, "sum", "f32"),
    "exponents": operator("mk", (("f16", "m k"), ("f32", "m")), "m", EXPONENT, "sum", "f32"),
    "matrix product": operator("mnk", (("f16", "m k"), ("f16", "n k")), "m n", PRODUCT, "sum", "f32"),
    "transposed product": operator("mnk", (("f16", "m k"), ("f16", "k n")), "m n", PRODUCT, "sum", "f32"),
    "batched product": operator("bmnk", (("f16", "b m k"), ("f16", "b k n")), "b m n", PRODUCT, "sum", "f32"),
    "product of f32s": operator("mnk", (("f32", "m k"), ("f32", "n k")), "m n", MULTIPLIED, "sum", "f32"),
    "product of integers": operator("mnk", (("i32", "m k"), ("i32", "k n")), "m n", INTEGERS, "sum", "i32"),
    "convolution": operator(
        "fhwcpq", (("f16", "h+p w+q c"), ("f16", "f p q c")), "h w f", PRODUCT, "sum", "f32"
    ),
    "strided convolution": operator(
        "fhwcpq", (("f16", "2h+p 2w+q c"), ("f16", "f p q c")), "h w f", PRODUCT, "sum", "f32"
    ),
    "depthwise": operator("chwpq", (("f16", "h+p w+q c"), ("f16", "p q c")), "h w c", PRODUCT, "sum", "f32"),
    "pooling": operator("chwpq", (("f16", "2h+p 2w+q c"),), "h w c", identity(), "max", "f16"),
    "average": operator("chwpq", (("f32", "c 2h+p 2w+q"),), "c h w", identity(), "sum", "f32"),
}
WINDOWS = "pq"


def boxes_of(spec: OperatorSpec, rng: Random, n: int, largest: int = 9) -> Iterator[AxisSizes]:
    """Yield boxes whose operands fit a core and that reduce something, sizes of every magnitude."""
    found = 0
    while found < n:
        box = tuple(_extent(rng, axis, largest) for axis in spec.axes)
        n_terms = prod(box[axis] for axis in spec.reduction_axes)
        if n_terms > 1 and prod(box) <= MOST_POINTS and box_bytes(spec, box) <= LARGEST_BYTES:
            found += 1
            yield box


def _extent(rng: Random, axis: Axis, largest: int) -> int:
    if axis.name in WINDOWS:
        return rng.choice([1, 2, 3, 3, 5])
    if axis.extent < 4096:
        return rng.randint(1, axis.extent)
    size = round(2.0 ** (rng.random() * rng.choice([3, 5, largest])))
    kind = rng.random()
    return 1 if kind < 0.15 else size if kind < 0.5 else max(size // 8, 1) * 8


def counted(spec: OperatorSpec, box: AxisSizes, *, initial: bool = True) -> int | None:
    """Return the counted cycles of a box that the Reduce family computes; None for others."""
    task = sub_task(spec, box, initial=initial)
    try:
        is_reduced = compile_task(task).codelet.name.startswith("Reduce")
    except UnsupportedOpError:
        return None
    return cycles_of(task) if is_reduced else None


def bound_of(spec: OperatorSpec, boxes: Any, *, initial: bool = True) -> Any:
    """Return the bound of what the Reduce family computes."""
    found = reduction_bound(spec, boxes, initial=initial, extents=Table(*spec.extents))
    assert found is not None
    return found


def ratios(spec: OperatorSpec, boxes: list[AxisSizes], *, initial: bool = True) -> list[float]:
    """Return the bound as a share of what is counted, for boxes that the Reduce family computes."""
    cycles = [counted(spec, box, initial=initial) for box in boxes]
    known = [(box, each) for box, each in zip(boxes, cycles, strict=True) if each is not None]
    if not known:
        return []
    bound = bound_of(spec, np.array([box for box, _ in known], np.int64), initial=initial)
    return [float(each) / count for each, (_, count) in zip(bound, known, strict=True)]


@pytest.mark.parametrize("name", OPERATORS)
def test_bound_of_common_operators_is_near_and_never_above(name: str) -> None:
    spec, rng = OPERATORS[name], Random(f"{SEED} {name}")
    # Of products, only those boxes count that the matrix engine leaves.
    found = ratios(spec, list(boxes_of(spec, rng, 160 if "convolution" in name else 40)))
    assert len(found) > 10
    assert max(found) <= 1
    assert np.quantile(found, 0.5) >= 0.8
    assert np.quantile(found, 0.1) >= 0.6


@pytest.mark.parametrize(
    "name", ["sum of rows", "matrix product", "maximum of f16", "convolution", "sum of i8"]
)
def test_bound_of_steps_that_add_to_what_is_there(name: str) -> None:
    spec, rng = OPERATORS[name], Random(f"{SEED} {name} adds")
    found = ratios(spec, list(boxes_of(spec, rng, 30)), initial=False)
    assert max(found) <= 1
    assert np.quantile(found, 0.5) >= 0.8


def test_bound_of_pieces_that_are_written_out_where_the_whole_is_not() -> None:
    assert max(ratios(OPERATORS["two reductions"], [(24, 40, 8), (48, 20, 4)], initial=False)) <= 1


@pytest.mark.parametrize("dtype", ["f16", "f32", "i32", "i16"])
@pytest.mark.parametrize("combine", ["sum", "max"])
def test_bound_of_combining_parts(dtype: str, combine: Combine) -> None:
    spec, rng = combine_operator(dtype, combine), Random(f"{SEED} {dtype} {combine}")
    boxes = [(rng.choice([2, 3, 4, 8, 16]), round(2.0 ** (11 * rng.random()))) for _ in range(30)]
    found = ratios(spec, boxes, initial=False)
    assert max(found) <= 1
    assert np.quantile(found, 0.5) >= 0.8
    n_parts, n_slots = np.array(boxes, np.int64).T
    together = bound_of(spec, Table(n_parts, n_slots), initial=False)
    assert np.array_equal(together, bound_of(spec, np.array(boxes, np.int64), initial=False))


TYPES = ("f16", "f16", "f32", "i32", "i16", "i8")


def random_reduction(rng: Random) -> OperatorSpec:
    """Return any operator of up to three inputs: axes in any order, some of them missing, windows of any stride."""
    n_axes, n_inputs = rng.randint(1, 5), rng.choice([1, 2, 2, 3])
    axes = [chr(ord("a") + i) for i in range(n_axes)]
    reduced = set(rng.sample(axes, rng.randint(1, min(3, n_axes))))
    out = [a for a in axes if a not in reduced]
    rng.shuffle(out)
    acc = rng.choice(TYPES)
    is_float = acc.startswith("f")
    inputs: list[tuple[str, Dims]] = []
    for number in range(n_inputs):
        own = [a for a in axes if rng.random() < 0.7]
        if number == n_inputs - 1:
            own += [a for a in axes if a not in own and not any(a in dims for _, dims in inputs)]
        rng.shuffle(own)
        inputs.append((rng.choice(["f16", "f32"]) if is_float else acc, _dims(rng, own)))
    combine: Combine = rng.choice(["sum", "sum", "max", "min", "prod"])
    body = _body(rng, [dtype for dtype, _ in inputs], acc)
    return operator("".join(axes), tuple(inputs), " ".join(out), body, combine, acc)


def _dims(rng: Random, axes: list[str]) -> Dims:
    result: list[str] = []
    for axis in axes:
        if result and "+" not in result[-1] and rng.random() < 0.15:
            result[-1] = f"{rng.choice(['', 2])}{result[-1]}+{rng.choice(['', 2, 3])}{axis}"
        else:
            result.append(axis)
    return " ".join(result)


def _body(rng: Random, dtypes: list[str], acc: str) -> ScalarFunction:
    """Return a product of all inputs, or a difference of two, perhaps with a function of it."""
    is_float, n = acc.startswith("f"), len(dtypes)
    ops: list[tuple[str, tuple[int, ...], str]] = []

    def add(opcode: str, *operands: int) -> int:
        ops.append((opcode, operands, acc))
        return n + len(ops) - 1

    casts = {("f16", "f32"): "arith.extf", ("f32", "f16"): "arith.truncf"}
    values = [add(casts[dtype, acc], i) if dtype != acc else i for i, dtype in enumerate(dtypes)]
    result = values[0]
    for value in values[1:]:
        result = add(
            rng.choice(["arith.mulf", "arith.mulf", "arith.subf"]) if is_float else "arith.muli",
            result,
            value,
        )
    if is_float and rng.random() < 0.4:
        result = add(rng.choice(["math.exp", "math.tanh", "math.absf"]), result)
    return ScalarFunction(n, tuple(ScalarOp(*op) for op in ops), result)


@pytest.mark.slow
def test_bound_of_any_operator_is_never_above() -> None:
    rng = Random(SEED)
    found: list[float] = []
    for _ in range(40):
        spec = random_reduction(rng)
        found += ratios(spec, list(boxes_of(spec, rng, BOXES, 7)), initial=rng.random() < 0.7)
    for _ in range(40):
        spec = random_operator(rng)
        if spec.reduction_axes and not spec.selectors and spec.acc_dtype != "i64":
            boxes = [tuple(axis.extent for axis in spec.axes), *(_some(rng, spec) for _ in range(3))]
            found += ratios(spec, [box for box in boxes if prod(box[a] for a in spec.reduction_axes) > 1])
    assert len(found) > 150
    assert max(found) <= 1
    assert np.quantile(found, 0.5) >= 0.8


def _some(rng: Random, spec: OperatorSpec) -> AxisSizes:
    return tuple(rng.randint(1, axis.extent) for axis in spec.axes)


@pytest.mark.parametrize("name", OPERATORS)
def test_traced_bound_is_what_numpy_gives(name: str) -> None:
    spec = OPERATORS[name]
    boxes = np.array(list(boxes_of(spec, Random(f"{SEED} {name}"), 50)), np.int64)
    formula = trace_table(
        lambda table: reduction_bound(spec, table, extents=Table(*spec.extents)), len(spec.axes)
    )
    assert np.array_equal(formula.evaluate(boxes), bound_of(spec, boxes))
    assert len(formula.instructions) < 450


def test_a_step_of_one_slot_more_is_above(monkeypatch: pytest.MonkeyPatch) -> None:
    real = reduction.pace

    def slower(*args: Any) -> object:
        found = real(*args)
        return None if found is None else replace(found, step=found.step + 6)

    monkeypatch.setattr(reduction, "pace", slower)
    spec = OPERATORS["sum of rows"]
    assert max(ratios(spec, [(6, 512), (48, 64)])) > 1


def test_bound_knows_what_the_family_leaves_to_others() -> None:
    spec = OPERATORS["sum of rows"]
    assert bound_of(spec, np.array([[12, 1], [1, 1]])).tolist() == [IMPOSSIBLE] * 2
    elementwise = replace(
        spec,
        axes=tuple(replace(axis, kind="parallel") for axis in spec.axes),
        output=replace(spec.output, dims=spec.inputs[0].dims, shape=spec.inputs[0].shape),
        combine="none",
    )
    assert reduction_bound(elementwise, np.array([[12, 8]])) is None
    unknown = operator("mk", (("i64", "m k"),), "m", identity(), "sum", "i64")
    assert reduction_bound(unknown, np.array([[12, 8]])) is None


@pytest.mark.parametrize("is_squared", [False, True])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_constants_that_issue_beside_pointers_are_not_counted_twice(dtype: str, *, is_squared: bool) -> None:
    """The nest that a bound is read off has fewer pointers: constants stand alone there."""
    for n_constants in range(3, 7):
        widened = [] if dtype == "f32" else [ScalarOp("arith.extf", (i,), "f32") for i in (0, 1)]
        operands = (0, 1) if dtype == "f32" else (2, 3)
        ops = [*widened, ScalarOp("arith.addf", operands, "f32")]
        for n in range(n_constants):
            opcode = "arith.mulf" if n % 2 else "arith.addf"
            ops.append(ScalarOp("const", (), "f32", repr(0.3 + 1.7 * n)))
            ops.append(ScalarOp(opcode, (len(ops), 1 + len(ops)), "f32"))
        last = 1 + len(ops)
        ops += [ScalarOp("arith.mulf", (last, last), "f32")] if is_squared else []
        body = ScalarFunction(2, tuple(ops), 1 + len(ops))
        spec = operator("mk", ((dtype, "m k"), (dtype, "m k")), "m", body, "sum", "f32")
        sizes = [(m, k) for m in (1, 2, 5, 6, 7) for k in (16, 33, 64, 128)]
        known = [(box, count) for box in sizes if (count := counted(spec, box)) is not None]
        assert known or n_constants > 4, "registers suffice for a few"
        boxes = np.array([box for box, _ in known], np.int64)
        bounds: list[int] = list(bound_of(spec, boxes)) if known else []
        assert [box for (box, count), bound in zip(known, bounds, strict=True) if bound > count] == []


def with_constants(n_inputs: int, dtype: str, n_constants: int) -> ScalarFunction:
    """Return differences of all inputs, then so many constants, one after another."""
    ops: list[ScalarOp] = []

    def last() -> int:
        return n_inputs + len(ops) - 1 if ops else 0

    for value in range(1, n_inputs):
        ops.append(ScalarOp("arith.subf", (last(), value), dtype))
    for n in range(n_constants):
        before = last()
        ops.append(ScalarOp("const", (), dtype, repr(0.3 + 1.7 * n)))
        ops.append(ScalarOp(("arith.maximumf", "arith.mulf", "arith.addf")[n % 3], (before, last()), dtype))
    return ScalarFunction(n_inputs, tuple(ops), last())


SMALL = function(3, ("arith.muli", (0, 1), "i16"), ("arith.muli", (3, 2), "i16"))
TWO, THREE = with_constants(2, "f16", 6), with_constants(3, "f32", 4)
SCARCE = {
    "columns alone": operator(
        "ab", (("f16", "b"), ("f16", "a")), "a", with_constants(2, "f16", 4), "max", "f16"
    ),
    "one output": operator("ab", (("i16", "a"), ("i16", "b"), ("i16", "b")), "", SMALL, "max", "i16"),
    "loops": operator("abcde", (("f16", "a e d b"), ("f16", "a d c")), "e a d", TWO, "sum", "f16"),
    "loops of f32": operator("abc", (("f32", "c"), ("f32", "b c a"), ("f32", "b")), "", THREE, "min", "f32"),
}
"""Bodies that leave few registers, so that some of their nests have no code in vectors, or only of few outputs."""


LEAST_PARTS = {"columns alone": 0.5, "one output": 0.1, "loops": 0.15, "loops of f32": 0.15}
"""Of what is counted: a bound of one output does not know how many loops leave registers."""


@pytest.mark.parametrize("name", SCARCE)
def test_bound_where_registers_are_scarce(name: str) -> None:
    spec, rng = SCARCE[name], Random(f"{SEED} {name}")
    boxes = [
        *boxes_of(spec, rng, 20, 6),
        *((1,) * i + (8,) + (1,) * (len(spec.axes) - i - 1) for i in range(2)),
    ]
    boxes = [box for box in boxes if prod(box[axis] for axis in spec.reduction_axes) > 1]
    found = np.broadcast_to(sub_task_bound(spec, np.array(boxes, np.int64)), (len(boxes),))
    for box, bound in zip(boxes, found, strict=True):
        cycles = cycles_of(sub_task(spec, box))
        assert cycles is not None
        assert cycles * LEAST_PARTS[name] < bound <= cycles, f"box {box}: bound {bound}, counted {cycles}"
