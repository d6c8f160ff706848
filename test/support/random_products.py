"""Random products and boxes of them: contractions and convolutions as the matrix engine may get them."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from math import prod
from random import Random

from support.specs import dim
from t10.core.expression import AffineDim, Axis, AxisSizes, Operand, OperatorSpec, Role
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.cost.work import box_bytes

TYPES = (("f16", "f32"),) * 4 + (("f16", "f16"), ("f32", "f32"))
MOST_BYTES, MOST_POINTS = 1 << 18, 1 << 22
FULL = 1 << 20
Dims = list[AffineDim]
Operands = tuple[Dims, Dims, Dims]


def product_of(operands: Operands, reduced: set[int], types: tuple[str, str] = TYPES[0]) -> OperatorSpec:
    """Return out = sum of x * w with the given dims of x, w and out; `types` are the inputs' and the sum's."""
    dtype, acc_dtype = types
    x, w, out = operands
    n_axes = 1 + max(axis for dims in operands for each in dims for axis in each.axes)
    axes = tuple(Axis(f"a{i}", FULL, "reduction" if i in reduced else "parallel") for i in range(n_axes))
    body = ScalarFunction(2, (ScalarOp("arith.mulf", (0, 1), acc_dtype),), 2)
    if dtype != acc_dtype:
        wide = (ScalarOp("arith.extf", (0,), acc_dtype), ScalarOp("arith.extf", (1,), acc_dtype))
        body = ScalarFunction(2, (*wide, ScalarOp("arith.mulf", (2, 3), acc_dtype)), 4)
    inputs = (_operand("x", "activation", dtype, x), _operand("w", "weight", dtype, w))
    output = _operand("out", "output", acc_dtype, out)
    return OperatorSpec("product", "contraction", axes, inputs, output, "sum", body, acc_dtype)


def handed_on_rounded(spec: OperatorSpec) -> OperatorSpec:
    """Return a product of f16 that is summed in f32 as one that a core rounds to f16 to hand it on."""
    body, n = spec.body, spec.body.n_inputs + len(spec.body.ops)
    rounded = ScalarFunction(2, (*body.ops, ScalarOp("arith.truncf", (body.result,), "f16")), n)
    return replace(
        spec, body=rounded, acc_dtype="f16", output=replace(spec.output, dtype="f16"), epilogue=None
    )


def random_product(rng: Random) -> OperatorSpec:
    """Return a contraction or a convolution with its axes in any order that an importer may give them."""
    reduced, (x, w, out) = _convolution(rng) if rng.random() < 0.4 else _contraction(rng)
    inputs = (w, x) if rng.random() < 0.3 else (x, w)
    return product_of((*inputs, out), reduced, rng.choice(TYPES))


def random_box(rng: Random, spec: OperatorSpec) -> AxisSizes:
    """Return extents of every magnitude, often of one point or whole words, whose operands fit a core."""
    windows = spec.window_positions
    while True:
        box = tuple(
            rng.choice((1, 2, 3, 3, 5, 7)) if axis in windows else _extent(rng, len(spec.axes))
            for axis in range(len(spec.axes))
        )
        if prod(box) <= MOST_POINTS and box_bytes(spec, box) <= MOST_BYTES:
            return box


def _extent(rng: Random, n_axes: int) -> int:
    kind = rng.random()
    if kind < 0.15:
        return 1
    if kind < 0.3:
        return rng.randint(1, 16)
    largest = rng.choice((64, 512, 4096)) if n_axes < 4 else 128
    extent = max(round(largest ** rng.random()), 1)
    step = rng.choice((1, 2, 4, 8, 8, 16, 16))
    return max(extent // step, 1) * step


def _contraction(rng: Random) -> tuple[set[int], Operands]:
    """Return the reduced axes and the operands' dims: batches, rows, columns and sums of up to two axes each."""
    counts = [rng.choice(choice) for choice in ((0, 0, 1, 2), (0, 1, 1, 1, 2), (0, 1, 1, 1, 2), (1, 1, 1, 2))]
    ends = list(accumulate(counts))
    batches, rows, columns, sums = (list(range(end - n, end)) for end, n in zip(ends, counts, strict=True))

    def order(*groups: list[int]) -> Dims:
        axes = [axis for group in groups for axis in group]
        if rng.random() < 0.3:
            rng.shuffle(axes)
        return [dim((axis, 1)) for axis in axes]

    x = order(batches, sums, rows) if rng.random() < 0.15 else order(batches, rows, sums)
    w = order(batches, sums, columns) if rng.random() < 0.3 else order(batches, columns, sums)
    return set(sums), (x, w, order(batches, rows, columns))


def _convolution(rng: Random) -> tuple[set[int], Operands]:
    """Return the same of a convolution over one or two dims of an image, maybe in groups or depthwise."""
    image = rng.choice((1, 2, 2, 2))
    batch, group, feature, channel = 0, 1, 2, 3
    places = list(range(4, 4 + image))
    windows = list(range(4 + image, 4 + 2 * image))
    stride, dilation = rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 1, 2))
    pixels = [dim((p, stride), (k, dilation)) for p, k in zip(places, windows, strict=True)]
    kind = rng.random()
    if kind > 0.8:
        windows, pixels = [], [dim((p, stride)) for p in places]
    is_depthwise = kind < 0.1
    groups = [dim((group, 1))] if is_depthwise or rng.random() < 0.3 else []
    features = [] if is_depthwise else [dim((feature, 1))]
    channels = [] if is_depthwise else [dim((channel, 1))]
    taps, at, first = ([dim((axis, 1)) for axis in axes] for axes in (windows, places, [batch]))
    if rng.random() < 0.75:
        x, out = [*first, *pixels, *groups, *channels], [*first, *at, *groups, *features]
    else:
        x, out = [*first, *groups, *channels, *pixels], [*first, *groups, *features, *at]
    w = (
        [*groups, *features, *taps, *channels]
        if rng.random() < 0.7
        else [*groups, *features, *channels, *taps]
    )
    return _without_gaps({channel, *windows}, (x, w, out))


def _without_gaps(reduced: set[int], operands: Operands) -> tuple[set[int], Operands]:
    """Return the same with axes that no operand has left out."""
    used = sorted({axis for dims in operands for each in dims for axis in each.axes})
    number = {axis: i for i, axis in enumerate(used)}
    x, w, out = (
        [dim(*((number[t.axis], t.coefficient) for t in each.terms)) for each in dims] for dims in operands
    )
    return {number[axis] for axis in reduced & set(used)}, (x, w, out)


def _operand(name: str, role: Role, dtype: str, dims: Dims) -> Operand:
    return Operand(name, role, dtype, (FULL,) * len(dims), tuple(dims))
