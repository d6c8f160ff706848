"""Small builders of operators and graphs, shared by planner, simulator and verifier tests.

Every builder takes extents and returns an `OperatorSpec` that real models contain; `dtype` is the element type of the
tensors and accumulators are `f32` for floats (an f16 result is truncated by an epilogue).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from t10.core.dtypes import is_float
from t10.core.expression import AffineDim, Axis, Combine, Operand, OperatorSpec, Role, Selector, Term
from t10.core.graph import Graph, GraphOutput, TensorValue, View
from t10.core.scalar import ScalarFunction, ScalarOp, identity


def dims(*axes: int) -> tuple[AffineDim, ...]:
    """Return one simple dim per axis."""
    return tuple(AffineDim((Term(axis, 1),)) for axis in axes)


def dim(*terms: tuple[int, int], offset: int = 0) -> AffineDim:
    """Return a compound dim from (axis, coefficient) pairs."""
    return AffineDim(tuple(Term(axis, coefficient) for axis, coefficient in terms), offset)


def parallel(**extents: int) -> tuple[Axis, ...]:
    """Return parallel axes by name."""
    return tuple(Axis(name, extent, "parallel") for name, extent in extents.items())


def reduction(**extents: int) -> tuple[Axis, ...]:
    """Return reduction axes by name."""
    return tuple(Axis(name, extent, "reduction") for name, extent in extents.items())


def acc_dtype_of(dtype: str) -> str:
    """Return what sums of `dtype` are kept in: f32 for floats, the type itself for integers."""
    return "f32" if is_float(dtype) else dtype


def product_body(dtype: str) -> ScalarFunction:
    """Return a * b, in f32 for floats."""
    if dtype == "f16":
        ops = (
            ScalarOp("arith.extf", (0,), "f32"),
            ScalarOp("arith.extf", (1,), "f32"),
            ScalarOp("arith.mulf", (2, 3), "f32"),
        )
        return ScalarFunction(2, ops, 4)
    return ScalarFunction(2, (ScalarOp("arith.mulf" if is_float(dtype) else "arith.muli", (0, 1), dtype),), 2)


def unary(opcode: str, dtype: str) -> ScalarFunction:
    """Return a function of one input with one operation."""
    return ScalarFunction(1, (ScalarOp(opcode, (0,), dtype),), 1)


def binary(opcode: str, dtype: str) -> ScalarFunction:
    """Return a function of two inputs with one operation."""
    return ScalarFunction(2, (ScalarOp(opcode, (0, 1), dtype),), 2)


def truncation(dtype: str) -> ScalarFunction | None:
    """Return the epilogue that brings the accumulator back to `dtype`, None where it already is."""
    return unary("arith.truncf", "f16") if dtype == "f16" else None


def widening(dtype: str) -> ScalarFunction:
    """Return the body that hands a value of `dtype` to its accumulator."""
    return unary("arith.extf", "f32") if dtype == "f16" else identity()


def operand(
    name: str, role: Role, dtype: str, shape: tuple[int, ...], axes: tuple[AffineDim, ...]
) -> Operand:
    """Return an operand without padding."""
    return Operand(name, role, dtype, shape, axes)


def matmul(
    m: int,
    n: int,
    k: int,
    dtype: str = "f16",
    *,
    name: str = "matmul",
    a: str = "a",
    b: str = "b",
    c: str = "c",
) -> OperatorSpec:
    """Return c[m, n] += a[m, k] * b[k, n] with b a weight."""
    return OperatorSpec(
        name=name,
        kind="contraction",
        axes=(*parallel(m=m, n=n), *reduction(k=k)),
        inputs=(
            operand(a, "activation", dtype, (m, k), dims(0, 2)),
            operand(b, "weight", dtype, (k, n), dims(2, 1)),
        ),
        output=operand(c, "output", dtype, (m, n), dims(0, 1)),
        combine="sum",
        body=product_body(dtype),
        acc_dtype=acc_dtype_of(dtype),
        epilogue=truncation(dtype),
    )


def matmul_in_blocks(m: int, n: int, k: int, dtype: str = "f16") -> OperatorSpec:
    """Return a `matmul` whose sum walks blocks of the matrix engine: c[m, n] += a[m, k0, k1] * b[k0, n, k1]."""
    block = 32 // (2 if dtype == "f16" else 4)
    blocks = k // block
    return replace(
        matmul(m, n, k, dtype),
        axes=(*parallel(m=m, n=n), *reduction(k0=blocks, k1=block)),
        inputs=(
            operand("a", "activation", dtype, (m, blocks, block), dims(0, 2, 3)),
            operand("b", "weight", dtype, (blocks, n, block), dims(2, 1, 3)),
        ),
    )


def linear_relu(
    m: int,
    n: int,
    k: int,
    dtype: str = "f16",
    *,
    name: str = "linear",
    a: str = "a",
    b: str = "b",
    c: str = "c",
) -> OperatorSpec:
    """Return c[m, n] = relu(sum_k a[m, k] * b[k, n] + bias[n]) with the bias named `<b>_bias` added in an epilogue."""
    wide = acc_dtype_of(dtype)
    ops = [ScalarOp("arith.extf", (1,), wide)] if dtype == "f16" else []
    bias = 2 if ops else 1
    ops.append(ScalarOp("arith.addf", (0, bias), wide))
    ops.append(ScalarOp("const", (), wide, "0.0"))
    ops.append(ScalarOp("arith.maximumf", (len(ops), len(ops) + 1), wide))
    if dtype == "f16":
        ops.append(ScalarOp("arith.truncf", (len(ops) + 1,), "f16"))
    return OperatorSpec(
        name=name,
        kind="contraction",
        axes=(*parallel(m=m, n=n), *reduction(k=k)),
        inputs=(
            operand(a, "activation", dtype, (m, k), dims(0, 2)),
            operand(b, "weight", dtype, (k, n), dims(2, 1)),
        ),
        output=operand(c, "output", dtype, (m, n), dims(0, 1)),
        combine="sum",
        body=product_body(dtype),
        acc_dtype=wide,
        epilogue=ScalarFunction(2, tuple(ops), 1 + len(ops)),
        epilogue_inputs=(operand(f"{b}_bias", "weight", dtype, (n,), dims(1)),),
    )


def bmm(
    batch: int,
    m: int,
    n: int,
    k: int,
    dtype: str = "f16",
    *,
    name: str = "bmm",
    a: str = "a",
    b: str = "b",
    c: str = "c",
) -> OperatorSpec:
    """Return c[b, m, n] += a[b, m, k] * b[b, n, k]: both operands are activations (QK^T)."""
    return OperatorSpec(
        name=name,
        kind="contraction",
        axes=(*parallel(b=batch, m=m, n=n), *reduction(k=k)),
        inputs=(
            operand(a, "activation", dtype, (batch, m, k), dims(0, 1, 3)),
            operand(b, "activation", dtype, (batch, n, k), dims(0, 2, 3)),
        ),
        output=operand(c, "output", dtype, (batch, m, n), dims(0, 1, 2)),
        combine="sum",
        body=product_body(dtype),
        acc_dtype=acc_dtype_of(dtype),
        epilogue=truncation(dtype),
    )


def conv2d(
    n: int,
    f: int,
    h: int,
    w: int,
    c: int,
    kh: int,
    kw: int,
    dtype: str = "f16",
    *,
    stride: int = 1,
    pad: int = 0,
    name: str = "conv",
    x: str = "x",
    weight: str = "w",
    o: str = "o",
) -> OperatorSpec:
    """Return o[n, f, h, w] += x[n, c, stride*h + kh - pad, stride*w + kw - pad] * w[f, c, kh, kw]; h, w of o."""
    height, width = stride * (h - 1) + kh - 2 * pad, stride * (w - 1) + kw - 2 * pad
    x_dims = (
        *dims(0, 4),
        dim((2, stride), (5, 1), offset=-pad),
        dim((3, stride), (6, 1), offset=-pad),
    )
    return OperatorSpec(
        name=name,
        kind="convolution",
        axes=(*parallel(n=n, f=f, h=h, w=w), *reduction(c=c, kh=kh, kw=kw)),
        inputs=(
            Operand(x, "activation", dtype, (n, c, height, width), x_dims, "0.0" if pad else ""),
            operand(weight, "weight", dtype, (f, c, kh, kw), dims(1, 4, 5, 6)),
        ),
        output=operand(o, "output", dtype, (n, f, h, w), dims(0, 1, 2, 3)),
        combine="sum",
        body=product_body(dtype),
        acc_dtype=acc_dtype_of(dtype),
        epilogue=truncation(dtype),
    )


def depthwise2d(
    h: int, w: int, c: int, kh: int, kw: int, *, stride: int = 1, acc_dtype: str = "f32"
) -> OperatorSpec:
    """Return o[h, w, c] += x[stride*h + kh, stride*w + kw, c] * w[kh, kw, c] in f16; h, w of o."""
    height, width = stride * (h - 1) + kh, stride * (w - 1) + kw
    x_dims = (dim((0, stride), (3, 1)), dim((1, stride), (4, 1)), *dims(2))
    is_half = acc_dtype == "f16"
    return OperatorSpec(
        name="depthwise",
        kind="convolution",
        axes=(*parallel(h=h, w=w, c=c), *reduction(kh=kh, kw=kw)),
        inputs=(
            Operand("x", "activation", "f16", (height, width, c), x_dims),
            operand("w", "weight", "f16", (kh, kw, c), dims(3, 4, 2)),
        ),
        output=operand("o", "output", "f16", (h, w, c), dims(0, 1, 2)),
        combine="sum",
        body=ScalarFunction(2, (ScalarOp("arith.mulf", (0, 1), "f16"),), 2)
        if is_half
        else product_body("f16"),
        acc_dtype=acc_dtype,
        epilogue=None if is_half else truncation("f16"),
    )


def max_pool2d(
    n: int,
    c: int,
    h: int,
    w: int,
    size: int,
    dtype: str = "f16",
    *,
    stride: int = 2,
    pad: int = 0,
    name: str = "pool",
    x: str = "x",
    o: str = "o",
) -> OperatorSpec:
    """Return o[n, c, h, w] = max over a size x size window; padding reads -inf."""
    height, width = stride * (h - 1) + size - 2 * pad, stride * (w - 1) + size - 2 * pad
    x_dims = (*dims(0, 1), dim((2, stride), (4, 1), offset=-pad), dim((3, stride), (5, 1), offset=-pad))
    return OperatorSpec(
        name=name,
        kind="pooling",
        axes=(*parallel(n=n, c=c, h=h, w=w), *reduction(kh=size, kw=size)),
        inputs=(Operand(x, "activation", dtype, (n, c, height, width), x_dims, "-inf" if pad else ""),),
        output=operand(o, "output", dtype, (n, c, h, w), dims(0, 1, 2, 3)),
        combine="max",
        body=identity(),
        acc_dtype=dtype,
    )


def row_reduce(
    rows: int,
    columns: int,
    combine: Combine,
    dtype: str = "f16",
    *,
    name: str = "reduce",
    x: str = "x",
    o: str = "o",
) -> OperatorSpec:
    """Return o[r] = sum or max over c of x[r, c]: the first halves of softmax and layer norm."""
    is_sum = combine == "sum"
    return OperatorSpec(
        name=name,
        kind="reduction",
        axes=(*parallel(r=rows), *reduction(c=columns)),
        inputs=(operand(x, "activation", dtype, (rows, columns), dims(0, 1)),),
        output=operand(o, "output", dtype, (rows,), dims(0)),
        combine=combine,
        body=widening(dtype) if is_sum else identity(),
        acc_dtype=acc_dtype_of(dtype) if is_sum else dtype,
        epilogue=truncation(dtype) if is_sum else None,
    )


def elementwise(
    shape: tuple[int, ...],
    opcode: str = "arith.addf",
    dtype: str = "f16",
    *,
    name: str = "add",
    a: str = "a",
    b: str = "b",
    o: str = "o",
    b_axes: tuple[int, ...] | None = None,
) -> OperatorSpec:
    """Return o = a (opcode) b over all dims of `shape`; b may be indexed by some of the axes only (a broadcast)."""
    axes = tuple(range(len(shape)))
    chosen = axes if b_axes is None else b_axes
    return OperatorSpec(
        name=name,
        kind="elementwise",
        axes=tuple(Axis(f"d{i}", extent, "parallel") for i, extent in enumerate(shape)),
        inputs=(
            operand(a, "activation", dtype, shape, dims(*axes)),
            operand(b, "activation", dtype, tuple(shape[i] for i in chosen), dims(*chosen)),
        ),
        output=operand(o, "output", dtype, shape, dims(*axes)),
        combine="none",
        body=binary(opcode, dtype),
        acc_dtype=dtype,
    )


def map_unary(
    shape: tuple[int, ...],
    opcode: str = "math.exp",
    dtype: str = "f16",
    *,
    name: str = "map",
    x: str = "x",
    o: str = "o",
) -> OperatorSpec:
    """Return o = opcode(x) over all dims of `shape`."""
    axes = tuple(range(len(shape)))
    return OperatorSpec(
        name=name,
        kind="elementwise",
        axes=tuple(Axis(f"d{i}", extent, "parallel") for i, extent in enumerate(shape)),
        inputs=(operand(x, "activation", dtype, shape, dims(*axes)),),
        output=operand(o, "output", dtype, shape, dims(*axes)),
        combine="none",
        body=unary(opcode, dtype),
        acc_dtype=dtype,
    )


def gather(
    n: int,
    d: int,
    v: int,
    dtype: str = "f16",
    *,
    name: str = "gather",
    ids: str = "ids",
    table: str = "table",
    o: str = "o",
) -> OperatorSpec:
    """Return o[i, d] = table[ids[i], d], made affine: sum over v of [ids[i] = v] * table[v, d]."""
    return OperatorSpec(
        name=name,
        kind="gather",
        axes=(*parallel(i=n, d=d), *reduction(v=v)),
        inputs=(
            operand(ids, "activation", "i64", (n,), dims(0)),
            operand(table, "weight", dtype, (v, d), dims(2, 1)),
        ),
        output=operand(o, "output", dtype, (n, d), dims(0, 1)),
        combine="sum",
        body=ScalarFunction(2, (), 1),
        acc_dtype=dtype,
        selectors=(Selector(axis=2, index=ScalarFunction(2, (), 0)),),
    )


def one_operator_graph(spec: OperatorSpec) -> Graph:
    """Return the graph of a single operator: its weights and inputs come from outside, its output is the result."""
    inputs: dict[str, TensorValue] = {}
    weights: dict[str, TensorValue] = {}
    for o in spec.operands:
        (weights if o.role == "weight" else inputs)[o.name] = TensorValue(o.name, o.shape, o.dtype)
    outputs = (GraphOutput("result", spec.output.name),)
    return Graph(spec.name, tuple(inputs.values()), tuple(weights.values()), (spec,), (), outputs)


def chain_graph(name: str, specs: tuple[OperatorSpec, ...], views: tuple[View, ...] = ()) -> Graph:
    """Return the graph of operators that read each other by value name; the last one's output is the result.

    Operands with role `weight` become weights, other names that nothing makes become inputs.
    """
    made = {spec.output.name for spec in specs} | {view.name for view in views}
    inputs: dict[str, TensorValue] = {}
    weights: dict[str, TensorValue] = {}
    for spec in specs:
        for o in spec.operands:
            if o.name not in made:
                (weights if o.role == "weight" else inputs)[o.name] = TensorValue(o.name, o.shape, o.dtype)
    outputs = (GraphOutput("result", specs[-1].output.name),)
    return Graph(name, tuple(inputs.values()), tuple(weights.values()), specs, views, outputs)


def mlp_graph(m: int, widths: tuple[int, ...], dtype: str = "f16") -> Graph:
    """Return a chain of linear + bias + relu layers over `m` rows."""
    specs = tuple(
        linear_relu(m, n, k, dtype, name=f"linear{i}", a=f"x{i}", b=f"w{i}", c=f"x{i + 1}")
        for i, (k, n) in enumerate(pairwise(widths))
    )
    return chain_graph("mlp", specs)


def softmax_graph(rows: int, columns: int, dtype: str = "f16") -> Graph:
    """Return softmax over the columns: max, subtract, exp, sum, divide."""
    shape = (rows, columns)
    specs = (
        row_reduce(rows, columns, "max", dtype, name="max", x="x", o="m"),
        elementwise(shape, "arith.subf", dtype, name="sub", a="x", b="m", o="s", b_axes=(0,)),
        map_unary(shape, "math.exp", dtype, name="exp", x="s", o="e"),
        row_reduce(rows, columns, "sum", dtype, name="sum", x="e", o="t"),
        elementwise(shape, "arith.divf", dtype, name="div", a="e", b="t", o="y", b_axes=(0,)),
    )
    return chain_graph("softmax", specs)


def layer_norm_graph(rows: int, columns: int, dtype: str = "f16") -> Graph:
    """Return (x - sum) * rsqrt(sum of squares) * scale: two reductions, broadcasts of rows and of columns."""
    shape = (rows, columns)
    specs = (
        row_reduce(rows, columns, "sum", dtype, name="mean", x="x", o="mu"),
        elementwise(shape, "arith.subf", dtype, name="center", a="x", b="mu", o="d", b_axes=(0,)),
        elementwise(shape, "arith.mulf", dtype, name="square", a="d", b="d", o="q"),
        row_reduce(rows, columns, "sum", dtype, name="var", x="q", o="v"),
        map_unary((rows,), "math.rsqrt", dtype, name="rsqrt", x="v", o="r"),
        elementwise(shape, "arith.mulf", dtype, name="scale", a="d", b="r", o="n", b_axes=(0,)),
        elementwise(shape, "arith.mulf", dtype, name="gamma", a="n", b="g", o="y", b_axes=(1,)),
    )
    return chain_graph("layer_norm", specs)
