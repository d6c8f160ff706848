"""Random small operators: 2 to 5 axes, compound axes, several tensors, sums and maxima, epilogues, selectors.

Everything follows from one `random.Random`, so that a seed names a case. Values stay small integers, exact in every
element type.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from support.reference import Array
from t10.core.dtypes import is_float, numpy_dtype
from t10.core.expression import (
    AffineDim,
    Axis,
    Combine,
    Operand,
    OperatorKind,
    OperatorSpec,
    Role,
    Selector,
    Term,
)
from t10.core.graph import Graph, GraphOutput, TensorValue, View
from t10.core.scalar import ScalarFunction, ScalarOp, identity

LARGEST_SPACE = 1500
"""Points of the iteration space."""


def random_operator(rng: Random, name: str = "op", largest: int = LARGEST_SPACE) -> OperatorSpec:
    """Return a random operator of at most `largest` points whose values are named after it."""
    axes = _axes(rng, largest)
    dtype = rng.choice(["i32", "i32", "i64", "f32", "f16"])
    shapes = [_operand(rng, axes, dtype, f"{name}_in{i}") for i in range(rng.choice([1, 2, 2, 2, 3]))]
    reductions = [i for i, axis in enumerate(axes) if axis.kind == "reduction"]
    inputs = _with_all_axes(rng, axes, shapes, reductions)
    parallels = [i for i, axis in enumerate(axes) if axis.kind == "parallel"]
    rng.shuffle(parallels)
    combine: Combine = rng.choice(["sum", "sum", "sum", "max", "min"]) if reductions else "none"
    selectors: tuple[Selector, ...] = ()
    if combine == "sum" and rng.random() < 0.2:
        inputs, selectors = _selected(rng, axes, inputs, reductions, name)
    acc = _acc_dtype(rng, dtype, combine)
    body = _body(rng, inputs, acc, axes, bool(selectors))
    shape = tuple(axes[i].extent for i in parallels)
    epilogue, extra = _epilogue(rng, axes, parallels, acc, dtype, name)
    out_dtype = dtype if epilogue is not None else acc
    output = Operand(
        f"{name}_out", "output", out_dtype, shape, tuple(AffineDim((Term(i, 1),)) for i in parallels)
    )
    return OperatorSpec(
        name=name,
        kind=_kind(inputs, reductions, body, combine, bool(selectors)),
        axes=axes,
        inputs=inputs,
        output=output,
        combine=combine,
        body=body,
        acc_dtype=acc,
        epilogue=epilogue,
        epilogue_inputs=extra,
        selectors=selectors,
    )


def _axes(rng: Random, largest: int) -> tuple[Axis, ...]:
    """Return 2 to 5 axes, at least one of them parallel, in a space that is not too large."""
    n_axes = rng.choice([2, 3, 3, 4, 4, 5])
    kinds = ["parallel", *(rng.choice(["parallel", "reduction"]) for _ in range(n_axes - 1))]
    rng.shuffle(kinds)
    left = largest
    axes: list[Axis] = []
    for i, kind in enumerate(kinds):
        extent = min(rng.choice([1, 2, 3, 4, 4, 5, 6, 6, 7, 8, 12]), left)
        left //= extent
        splittable = rng.random() < 0.95
        axes.append(Axis(f"x{i}", extent, "parallel" if kind == "parallel" else "reduction", splittable))
    return tuple(axes)


def _operand(rng: Random, axes: tuple[Axis, ...], dtype: str, name: str) -> Operand:
    """Return an input over some of the axes, perhaps with a compound dim, an offset or padding."""
    own = [i for i in range(len(axes)) if rng.random() < 0.7]
    rng.shuffle(own)
    dims = [AffineDim((Term(i, 1),)) for i in own]
    parallels = [i for i in own if axes[i].kind == "parallel"]
    windows = [i for i in own if axes[i].kind == "reduction" and axes[i].extent <= 4]
    if parallels and windows and rng.random() < 0.4:
        outer, inner = rng.choice(parallels), rng.choice(windows)
        dims = [dim for dim in dims if not set(dim.axes) & {outer, inner}]
        terms = (Term(outer, rng.choice([1, 1, 2])), Term(inner, rng.choice([1, 1, 2])))
        dims.insert(rng.randrange(len(dims) + 1), AffineDim(terms, -rng.choice([0, 0, 1, 2])))
    elif dims and rng.random() < 0.1:
        number = rng.randrange(len(dims))
        dims[number] = AffineDim((Term(dims[number].axes[0], rng.choice([1, 2])),), rng.choice([-1, 0, 1]))
    return _shaped(rng, axes, dtype, name, tuple(dims))


def _shaped(
    rng: Random, axes: tuple[Axis, ...], dtype: str, name: str, dims: tuple[AffineDim, ...]
) -> Operand:
    """Return the operand with a shape that its indices reach, or overrun where it is padded."""
    shape: list[int] = []
    is_padded = False
    for dim in dims:
        last = dim.offset + sum(t.coefficient * (axes[t.axis].extent - 1) for t in dim.terms)
        extent = max(1, last + 1)
        if not dim.is_simple:
            extent = max(1, extent + rng.choice([-1, 0, 0, 1]))
        is_padded |= dim.offset < 0 or last >= extent
        shape.append(extent)
    pad = rng.choice(["0", "1", "-2"]) if is_padded else ""
    if is_padded and is_float(dtype):
        pad = f"{pad}.0"
    role: Role = rng.choice(["weight", "activation"])
    return Operand(name, role, dtype, tuple(shape), dims, pad)


def _with_all_axes(
    rng: Random, axes: tuple[Axis, ...], inputs: list[Operand], reductions: list[int]
) -> tuple[Operand, ...]:
    """Return the inputs, each reduction axis being in at least one of them."""
    seen = {axis for operand in inputs for axis in operand.axes}
    missing = [axis for axis in reductions if axis not in seen]
    if missing:
        last = inputs[-1]
        dims = (*last.dims, *(AffineDim((Term(axis, 1),)) for axis in missing))
        shape = (*last.shape, *(axes[axis].extent for axis in missing))
        inputs[-1] = Operand(last.name, last.role, last.dtype, shape, dims, last.pad_value)
    return tuple(inputs)


def _selected(
    rng: Random, axes: tuple[Axis, ...], inputs: tuple[Operand, ...], reductions: list[int], name: str
) -> tuple[tuple[Operand, ...], tuple[Selector, ...]]:
    """Return the inputs with a tensor of indices in front, and the selector that reads it."""
    axis = rng.choice(reductions)
    own = [i for i in range(len(axes)) if i != axis and rng.random() < 0.5]
    dims = tuple(AffineDim((Term(i, 1),)) for i in own)
    shape = tuple(axes[i].extent for i in own)
    ids = Operand(f"{name}_ids", "activation", rng.choice(["i32", "i64"]), shape, dims)
    return (ids, *inputs), (Selector(axis, ScalarFunction(1 + len(inputs), (), 0)),)


def _acc_dtype(rng: Random, dtype: str, combine: Combine) -> str:
    """Return the accumulator's element type: wider for sums of f16, sometimes for sums of i32."""
    if combine == "sum" and dtype == "f16":
        return "f32"
    return "i64" if combine == "sum" and dtype == "i32" and rng.random() < 0.2 else dtype


def _body(
    rng: Random, inputs: tuple[Operand, ...], acc: str, axes: tuple[Axis, ...], is_gather: bool
) -> ScalarFunction:
    """Return a product, sum or maximum of the inputs in the accumulator's type, sometimes with an index in it."""
    n_inputs = len(inputs)
    ops: list[ScalarOp] = []
    values: list[int] = []
    for number, operand in enumerate(inputs):
        if is_gather and number == 0:
            continue
        values.append(number)
        if operand.dtype != acc:
            ops.append(ScalarOp("arith.extf" if is_float(acc) else "arith.extsi", (number,), acc))
            values[-1] = n_inputs + len(ops) - 1
    letter = "f" if is_float(acc) else "i"
    opcode = rng.choice([f"arith.mul{letter}"] * 3 + [f"arith.add{letter}", f"arith.sub{letter}"])
    total = values[0]
    for value in values[1:]:
        ops.append(ScalarOp(opcode, (total, value), acc))
        total = n_inputs + len(ops) - 1
    if not is_float(acc) and rng.random() < 0.15:
        ops.append(ScalarOp("index", (), "index", str(rng.randrange(len(axes)))))
        ops.append(ScalarOp("arith.index_cast", (n_inputs + len(ops) - 1,), acc))
        ops.append(ScalarOp("arith.addi", (total, n_inputs + len(ops) - 1), acc))
        total = n_inputs + len(ops) - 1
    if not ops and total == 0 and n_inputs == 1:
        return identity()
    return ScalarFunction(n_inputs, tuple(ops), total)


def _epilogue(
    rng: Random, axes: tuple[Axis, ...], parallels: list[int], acc: str, dtype: str, name: str
) -> tuple[ScalarFunction | None, tuple[Operand, ...]]:
    """Return nothing, or bias and relu, with a cast back to the tensors' type where needed."""
    if acc == dtype and rng.random() < 0.5:
        return None, ()
    extra: tuple[Operand, ...] = ()
    ops: list[ScalarOp] = []
    letter, zero = ("f", "0.0") if is_float(acc) else ("i", "0")
    total = 0
    if rng.random() < 0.6:
        own = [i for i in parallels if rng.random() < 0.6]
        shape = tuple(axes[i].extent for i in own)
        role: Role = rng.choice(["weight", "activation"])
        extra = (Operand(f"{name}_bias", role, acc, shape, tuple(AffineDim((Term(i, 1),)) for i in own)),)
        ops.append(ScalarOp(f"arith.add{letter}", (0, 1), acc))
        total = 2
    first = 1 + len(extra)
    ops.append(ScalarOp("const", (), acc, zero))
    ops.append(
        ScalarOp("arith.maximumf" if letter == "f" else "arith.maxsi", (total, first + len(ops) - 1), acc)
    )
    if acc != dtype:
        ops.append(
            ScalarOp("arith.truncf" if letter == "f" else "arith.trunci", (first + len(ops) - 1,), dtype)
        )
    return ScalarFunction(first, tuple(ops), first + len(ops) - 1), extra


def with_position(rng: Random, spec: OperatorSpec) -> OperatorSpec:
    """Return an operator whose epilogue keeps what it makes at some points, by their indices, and else has 1."""
    output, before = spec.output, spec.epilogue or identity()
    axes = sorted(output.axes)
    first, last = rng.choice(axes), rng.choice(axes)
    one = "1.0" if is_float(output.dtype) else "1"
    n = before.n_inputs + len(before.ops)
    ops = (
        *before.ops,
        ScalarOp("index", (), "index", str(first)),
        ScalarOp("index", (), "index", str(last)),
        ScalarOp("const", (), "index", str(rng.randrange(spec.extents[last]))),
        ScalarOp("arith.addi", (n + 1, n + 2), "index"),
        ScalarOp("arith.cmpi", (n, n + 3), "i1", rng.choice(["sgt", "sle", "ne"])),
        ScalarOp("const", (), output.dtype, one),
        ScalarOp("arith.select", (n + 4, before.result, n + 5), output.dtype),
    )
    return replace(spec, epilogue=ScalarFunction(before.n_inputs, ops, n + 6))


def with_positions(rng: Random, graph: Graph) -> Graph:
    """Return a graph whose epilogues depend on where in the result a point lies."""
    return replace(graph, operators=tuple(with_position(rng, spec) for spec in graph.operators))


def _kind(
    inputs: tuple[Operand, ...],
    reductions: list[int],
    body: ScalarFunction,
    combine: Combine,
    is_gather: bool,
) -> OperatorKind:
    """Return the kind an importer would give the operator."""
    if is_gather:
        return "gather"
    if not reductions:
        return "elementwise"
    is_compound = any(len(dim.terms) > 1 for operand in inputs for dim in operand.dims)
    opcodes = [op.opcode for op in body.ops]
    products = sum(opcode.startswith("arith.mul") for opcode in opcodes)
    if len(inputs) == 2 and combine == "sum" and products == 1 and "index" not in opcodes:
        return "convolution" if is_compound else "contraction"
    return "pooling" if is_compound else "reduction"


def random_graph(rng: Random, largest: int = LARGEST_SPACE) -> Graph:
    """Return one random operator, or it and an elementwise one that reads its result, perhaps through a view."""
    first = random_operator(rng, "first", largest)
    specs, views = [first], list[View]()
    if rng.random() < 0.4:
        source, shape = first.output.name, first.output.shape
        kind = rng.random()
        if kind < 0.3:
            permutation = list(range(len(shape)))
            rng.shuffle(permutation)
            shape = tuple(shape[i] for i in permutation)
            views.append(
                View(
                    "turned",
                    "transpose",
                    (source,),
                    shape,
                    first.output.dtype,
                    permutation=tuple(permutation),
                )
            )
            source = "turned"
        elif kind < 0.6:
            shape = _regrouped(rng, shape)
            views.append(View("regrouped", "reshape", (source,), shape, first.output.dtype))
            source = "regrouped"
        specs.append(_second(rng, source, shape, first.output.dtype))
    made = {spec.output.name for spec in specs} | {view.name for view in views}
    tensors = {o.name: o for spec in specs for o in spec.operands if o.name not in made}
    values = {
        role: tuple(
            TensorValue(o.name, o.shape, o.dtype)
            for o in tensors.values()
            if (o.role == "weight") is is_weight
        )
        for role, is_weight in (("weights", True), ("inputs", False))
    }
    outputs = [GraphOutput("result", specs[-1].output.name)]
    if len(specs) > 1 and rng.random() < 0.3:
        outputs.append(GraphOutput("middle", first.output.name))
    return Graph("random", values["inputs"], values["weights"], tuple(specs), tuple(views), tuple(outputs))


def _regrouped(rng: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return another shape of as many elements: two dims joined, or one cut in two."""
    where = rng.randrange(len(shape))
    if rng.random() < 0.5 and where + 1 < len(shape):
        return (*shape[:where], shape[where] * shape[where + 1], *shape[where + 2 :])
    parts = [d for d in range(1, shape[where] + 1) if shape[where] % d == 0]
    outer = rng.choice(parts)
    return (*shape[:where], outer, shape[where] // outer, *shape[where + 1 :])


def _second(rng: Random, source: str, shape: tuple[int, ...], dtype: str) -> OperatorSpec:
    """Return an elementwise operator of a value and sometimes of another tensor over some of its axes."""
    axes = tuple(Axis(f"y{i}", extent, "parallel") for i, extent in enumerate(shape))
    every = tuple(AffineDim((Term(i, 1),)) for i in range(len(shape)))
    operands = [Operand(source, "activation", dtype, shape, every)]
    if rng.random() < 0.6:
        own = [i for i in range(len(shape)) if rng.random() < 0.6]
        if rng.random() < 0.2:
            operands.append(operands[0])
        else:
            role: Role = rng.choice(["weight", "activation"])
            small = tuple(shape[i] for i in own)
            operands.append(Operand("other", role, dtype, small, tuple(every[i] for i in own)))
    letter = "f" if is_float(dtype) else "i"
    if len(operands) == 2:
        body = ScalarFunction(2, (ScalarOp(f"arith.add{letter}", (0, 1), dtype),), 2)
    else:
        body = ScalarFunction(1, (ScalarOp(f"arith.add{letter}", (0, 0), dtype),), 1)
    output = Operand("second_out", "output", dtype, shape, every)
    return OperatorSpec("second", "elementwise", axes, tuple(operands), output, "none", body, dtype)


def random_arrays(rng: Random, graph: Graph) -> dict[str, Array]:
    """Return small integers for every input and weight, indices in range for tensors that selectors read."""
    bounds = {
        spec.inputs[0].name: spec.axes[spec.selectors[0].axis].extent
        for spec in graph.operators
        if spec.selectors
    }
    source = np.random.default_rng(rng.randrange(1 << 32))
    arrays: dict[str, Array] = {}
    for tensor in (*graph.inputs, *graph.weights):
        low, high = (0, bounds[tensor.name]) if tensor.name in bounds else (-3, 4)
        arrays[tensor.name] = source.integers(low, high, tensor.shape).astype(numpy_dtype(tensor.dtype))
    return arrays
