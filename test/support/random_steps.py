"""Random steps other than products: maps, epilogues, look-ups and integer arithmetic, and boxes of them."""

from __future__ import annotations

from math import prod
from random import Random

from t10.core.expression import AffineDim, Axis, AxisSizes, Operand, OperatorSpec, Selector, Term
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.cost.work import box_bytes

FULL = 1 << 20
MOST_BYTES, MOST_POINTS = 1 << 18, 1 << 15
UNARY = ("math.exp", "math.sqrt", "math.tanh", "math.rsqrt", "arith.negf", "math.absf")
BINARY = ("arith.addf", "arith.mulf", "arith.subf", "arith.maximumf")
INTEGERS = ("arith.addi", "arith.muli", "arith.maxsi", "arith.subi")
DIVISIONS = ("arith.divsi", "arith.remsi")


class Body:
    """A function under construction."""

    def __init__(self, n_inputs: int) -> None:
        """Begin without operations."""
        self.n_inputs, self.ops = n_inputs, list[ScalarOp]()

    def add(self, opcode: str, operands: tuple[int, ...], dtype: str, attribute: str = "") -> int:
        """Add an operation and return the number of its value."""
        self.ops.append(ScalarOp(opcode, operands, dtype, attribute))
        return self.n_inputs + len(self.ops) - 1

    def cast(self, value: int, source: str, target: str) -> int:
        """Return a float value in another type."""
        if source == target:
            return value
        return self.add("arith.extf" if target == "f32" else "arith.truncf", (value,), target)

    def function(self, result: int) -> ScalarFunction:
        """Return it."""
        return ScalarFunction(self.n_inputs, tuple(self.ops), result)


def random_map(rng: Random) -> OperatorSpec:
    """Return an elementwise operator: broadcast, transposed, shifted and copied operands of floats or integers."""
    n_axes = rng.choice((1, 2, 2, 3, 3, 4))
    if rng.random() < 0.15:
        return integer_map(rng, n_axes)
    out = rng.choice(("f16", "f16", "f32"))
    inputs = tuple(
        _operand(rng, number, rng.choice(("f16", "f16", "f32")), n_axes)
        for number in range(rng.choice((1, 1, 2, 2, 3, 4)))
    )
    function = _floats(rng, [each.dtype for each in inputs], out)
    return _elementwise(inputs, out, function, n_axes)


def random_epilogue(rng: Random) -> OperatorSpec:
    """Return a contraction with an epilogue: casts, biases along any axes, activations."""
    n_axes = rng.choice((1, 2, 2, 3, 4))
    acc, out = rng.choice((("f32", "f16"), ("f32", "f16"), ("f16", "f16"), ("f32", "f32")))
    own = tuple(rng.sample(range(n_axes), n_axes)) if rng.random() < 0.2 else tuple(range(n_axes))
    extra = tuple(
        _operand(rng, number, rng.choice(("f16", "f32")), n_axes, is_shifted=False)
        for number in range(rng.choice((0, 1, 1, 2)))
    )
    function = _floats(rng, [acc, *(each.dtype for each in extra)], out)
    axes = (*_axes(n_axes), Axis("k", FULL, "reduction"))
    inputs = (_plain("x", "f16", (n_axes,)), _plain("w", "f16", (*range(n_axes), n_axes)))
    body = Body(2)
    operands = tuple(body.cast(value, "f16", acc) for value in (0, 1))
    product = body.function(body.add("arith.mulf", operands, acc))
    output = _plain("out", out, own)
    return OperatorSpec("e", "contraction", axes, inputs, output, "sum", product, acc, function, extra)


def random_look_up(rng: Random) -> OperatorSpec:
    """Return a gather of rows of a table by indices, which may count from the end."""
    dtype, index = rng.choice(("f16", "f16", "f32", "i8")), rng.choice(("i64", "i32"))
    n_rows, n_columns = rng.choice((1, 1, 2)), rng.choice((1, 1, 2))
    rows, columns = tuple(range(n_rows)), tuple(range(n_rows, n_rows + n_columns))
    selected = n_rows + n_columns
    body = Body(2)
    chosen = 0
    if rng.random() < 0.5:
        zero, size = body.add("const", (), index, "0"), body.add("const", (), index, "4096")
        below = body.add("arith.cmpi", (0, zero), "i1", "slt")
        chosen = body.add("arith.select", (below, body.add("arith.addi", (0, size), index), 0), index)
    axes = (*_axes(selected), Axis("rows", 4096, "reduction"))
    inputs = (_plain("at", index, rows), _plain("table", dtype, (selected, *columns)))
    output = _plain("out", dtype, (*rows, *columns))
    return OperatorSpec(
        "g", "gather", axes, inputs, output, "sum", ScalarFunction(2, (), 1), dtype,
        selectors=(Selector(selected, body.function(chosen)),),
    )  # fmt: skip


def random_box(rng: Random, spec: OperatorSpec, most_points: int = MOST_POINTS) -> AxisSizes:
    """Return extents of every magnitude, rows often of whole vectors, whose operands fit a core."""
    last = next(axis for dim in reversed(spec.output.dims) for axis in dim.axes)
    while True:
        box = tuple(_extent(rng, axis == last, len(spec.axes)) for axis in range(len(spec.axes)))
        if prod(box) <= most_points and box_bytes(spec, box) <= MOST_BYTES:
            return box


def _extent(rng: Random, is_row: bool, n_axes: int) -> int:
    if rng.random() < 0.15:
        return 1
    extent = max(round(512 ** (rng.random() ** max(n_axes / 2.5, 1.0))), 1)
    kind = rng.random()
    step = 1 if not is_row or kind > 0.85 else 2 if kind > 0.75 else 8
    return max(extent // step, 1) * step


def _axes(n: int) -> tuple[Axis, ...]:
    return tuple(Axis(f"a{number}", FULL, "parallel") for number in range(n))


def _plain(name: str, dtype: str, axes: AxisSizes) -> Operand:
    role = "output" if name == "out" else "activation"
    return Operand(name, role, dtype, (FULL,) * len(axes), tuple(AffineDim((Term(a, 1),)) for a in axes))


def _operand(rng: Random, number: int, dtype: str, n_axes: int, *, is_shifted: bool = True) -> Operand:
    """Return an input that varies along all axes, some of them, or all in another order, perhaps within a halo."""
    kind, axes = rng.random(), list(range(n_axes))
    if 0.45 < kind < 0.8:
        axes = [axis for axis in axes if rng.random() < 0.5]
    elif kind >= 0.8:
        rng.shuffle(axes)
    dims = [AffineDim((Term(axis, 1),)) for axis in axes]
    if is_shifted and dims and rng.random() < 0.1:
        place = rng.randrange(len(dims))
        dims[place] = AffineDim((Term(axes[place], rng.choice((1, 2))),), rng.choice((0, 1, 3)))
    return Operand(f"i{number}", "activation", dtype, (FULL,) * len(dims), tuple(dims))


def _elementwise(
    inputs: tuple[Operand, ...], out: str, function: ScalarFunction, n_axes: int
) -> OperatorSpec:
    output = _plain("out", out, tuple(range(n_axes)))
    return OperatorSpec("m", "elementwise", _axes(n_axes), inputs, output, "none", function, out)


def _floats(rng: Random, dtypes: list[str], out: str) -> ScalarFunction:
    """Return a function of floats: operands brought together, then some further operations, in one type."""
    body = Body(len(dtypes))
    own = rng.choice((out, "f32", "f16"))
    value = body.cast(0, dtypes[0], own)
    for number, dtype in enumerate(dtypes[1:], 1):
        value = body.add(rng.choice(BINARY), (value, body.cast(number, dtype, own)), own)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        kind = rng.random()
        if kind < 0.5:
            value = body.add(rng.choice(UNARY), (value,), own)
        else:
            constant = body.add("const", (), own, rng.choice(("1.0", "0.5", "0.7")))
            value = body.add(rng.choice((*BINARY, "arith.divf")), (value, constant), own)
            if kind > 0.8:
                holds = body.add("arith.cmpf", (value, constant), "i1", "ogt")
                value = body.add("arith.select", (holds, value, constant), own)
    return body.function(body.cast(value, own, out))


def integer_map(rng: Random, n_axes: int) -> OperatorSpec:
    """Return arithmetic of integers, divisions among it; fills of bytes are copies."""
    dtype = rng.choice(("i32", "i32", "i64", "i8"))
    inputs = tuple(
        _operand(rng, number, dtype, n_axes, is_shifted=False) for number in range(rng.choice((1, 2)))
    )
    body = Body(len(inputs))
    value = 0
    if dtype != "i8":
        opcode = rng.choice((*INTEGERS, *DIVISIONS))
        value = body.add(opcode, (0, len(inputs) - 1), dtype)
    return _elementwise(inputs, dtype, body.function(value), n_axes)
