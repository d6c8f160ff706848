"""A root and the elementwise operations after it, put together as one `OperatorSpec`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from t10.core.dtypes import is_float
from t10.core.expression import AffineDim, Axis, Operand, OperatorKind, OperatorSpec, Selector
from t10.core.scalar import ScalarFunction, parse_constant
from t10.errors import UnsupportedOpError
from t10.passes.bridge.affine import compose
from t10.passes.bridge.root import Known, Root, is_neutral
from t10.passes.bridge.scalars import ScalarBuilder, drop_inputs, used_inputs


@dataclass(frozen=True, slots=True)
class Padding:
    """A tensor.pad in front of an operand: `low` per dim in front of `source`, elements around it hold `value`."""

    source: Known
    low: tuple[int, ...]
    value: str


@dataclass(frozen=True, slots=True)
class Chain:
    """An operator under construction: its root, where each dim of the running result comes from, its epilogue.

    `dims` are the running result's dims over the root's axes. `epilogue` takes the accumulator and `extra`.
    """

    root: Root
    dims: tuple[AffineDim, ...]
    shape: tuple[int, ...]
    dtype: str
    epilogue: ScalarFunction | None = None
    extra: tuple[Operand, ...] = ()


def start_chain(root: Root) -> Chain:
    """Return the chain of a root alone; an initial value that is not neutral becomes its first epilogue step."""
    chain = Chain(root, root.output_dims, root.output_shape, root.dtype)
    init = root.init
    if root.combine == "none" or not (init.name or init.fill):
        return chain
    if init.fill and is_neutral(root.combine, init.fill, root.dtype):
        return chain
    builder = ScalarBuilder(1 if init.fill else 2)
    other = builder.constant(init.fill, root.dtype) if init.fill else 1
    epilogue = builder.finish(builder.add(root.combine_opcode, (0, other), root.dtype))
    extra = () if init.fill else (_epilogue_operand(init, root.output_dims),)
    return replace(chain, epilogue=epilogue, extra=extra)


def extend_chain(chain: Chain, after: Root, reads: tuple[int, ...]) -> Chain:
    """Return the chain with an elementwise root after it whose inputs `reads` are the chain's result.

    Raises `UnsupportedOpError` if they are not all read once per point through one permutation of the axes.
    """
    dims_read = after.inputs[reads[0]].dims
    same = all(after.inputs[i].dims == dims_read for i in reads)
    if after.combine != "none" or not same or any(dim.terms and not dim.is_simple for dim in dims_read):
        raise UnsupportedOpError("an operation fused behind a root must be elementwise on its result")
    axis_by_loop = _loops_as_axes(chain, after, dims_read)
    others = [i for i in range(len(after.inputs)) if i not in reads]
    operands = tuple(_through(after.inputs[i], axis_by_loop) for i in others)
    before = chain.epilogue if chain.epilogue is not None else ScalarFunction(1, (), 0)
    extra = (*chain.extra, *operands)
    builder = ScalarBuilder(1 + len(extra))
    accumulated = builder.inline(before, tuple(range(1 + len(chain.extra))))
    arguments = [accumulated] * len(after.inputs)
    for position, i in enumerate(others):
        arguments[i] = 1 + len(chain.extra) + position
    epilogue = builder.finish(builder.inline(after.body, tuple(arguments)))
    dims = tuple(compose(dim, axis_by_loop) for dim in after.output_dims)
    return Chain(chain.root, dims, after.output_shape, after.dtype, epilogue, extra)


def _loops_as_axes(chain: Chain, after: Root, dims_read: tuple[AffineDim, ...]) -> dict[int, AffineDim]:
    """Return, per loop of an operation behind a chain, the form over the root's axes that it stands for."""
    found: dict[int, AffineDim] = {}
    for mine, theirs in zip(chain.dims, dims_read, strict=True):
        if theirs.terms:
            found[theirs.terms[0].axis] = mine
    for axis, loop in enumerate(after.axes):
        if axis not in found and loop.extent != 1:
            raise UnsupportedOpError("an operation fused behind a root repeats its result")
        found.setdefault(axis, AffineDim(()))
    return found


def finish_chain(
    chain: Chain, *, name: str, result: str, location: str, paddings: dict[str, Padding]
) -> OperatorSpec:
    """Return the operator of a chain; `result` names its value; operands read through `paddings`."""
    root = chain.root
    elementwise = root.combine == "none"
    body, epilogue, inputs, extra = root.body, chain.epilogue, root.inputs, chain.extra
    if elementwise and epilogue is not None:
        builder = ScalarBuilder(len(inputs) + len(extra))
        value = builder.inline(body, tuple(range(len(inputs))))
        behind = tuple(range(len(inputs), len(inputs) + len(extra)))
        body = builder.finish(builder.inline(epilogue, (value, *behind)))
        inputs, extra, epilogue = (*inputs, *extra), (), None
    body, inputs, selectors = _merge_equal(body, inputs, root.selectors)
    if epilogue is not None:
        epilogue, extra = _merge_equal_epilogue(epilogue, extra)
    if epilogue is not None and epilogue.is_identity and not extra:
        epilogue = None
    spec = OperatorSpec(
        name=name,
        kind=_kind(root, inputs, body),
        axes=root.axes,
        inputs=tuple(_fold_padding(operand, paddings) for operand in inputs),
        output=Operand(result, "output", chain.dtype, chain.shape, chain.dims),
        combine=root.combine,
        body=body,
        acc_dtype=chain.dtype if elementwise else root.dtype,
        epilogue=epilogue,
        epilogue_inputs=tuple(_fold_padding(operand, paddings) for operand in extra),
        selectors=selectors,
        location=location,
    )
    return replace(spec, axes=_named_axes(spec))


def _epilogue_operand(known: Known, dims: tuple[AffineDim, ...]) -> Operand:
    return Operand(
        known.name, "weight" if known.role == "weight" else "activation", known.dtype, known.shape, dims
    )


def _through(operand: Operand, by_axis: Mapping[int, AffineDim]) -> Operand:
    return replace(operand, dims=tuple(compose(dim, by_axis) for dim in operand.dims))


def _fold_padding(operand: Operand, paddings: dict[str, Padding]) -> Operand:
    """Return the operand reading through a pad: shifted indices, with the pad's value outside the source."""
    padding = paddings.get(operand.name)
    if padding is None:
        return operand
    dims = tuple(
        AffineDim(dim.terms, dim.offset - low) for dim, low in zip(operand.dims, padding.low, strict=True)
    )
    source = padding.source
    value = padding.value if parse_constant(padding.value) != 0 or is_float(operand.dtype) else ""
    return replace(operand, name=source.name, shape=source.shape, dims=dims, pad_value=value)


def _merge_equal(
    body: ScalarFunction, inputs: tuple[Operand, ...], selectors: tuple[Selector, ...]
) -> tuple[ScalarFunction, tuple[Operand, ...], tuple[Selector, ...]]:
    """Make inputs that read the same value at the same index one, and drop unread ones."""
    used = used_inputs(body).union(*(used_inputs(selector.index) for selector in selectors))
    kept, numbers = _distinct(inputs, used)
    functions = [
        _renumber(function, numbers, len(kept)) for function in (body, *(s.index for s in selectors))
    ]
    narrowed = tuple(Selector(s.axis, f) for s, f in zip(selectors, functions[1:], strict=True))
    return functions[0], kept, narrowed


def _merge_equal_epilogue(
    epilogue: ScalarFunction, extra: tuple[Operand, ...]
) -> tuple[ScalarFunction, tuple[Operand, ...]]:
    """As `_merge_equal` for an epilogue, whose input 0 is the accumulator."""
    used = {i - 1 for i in used_inputs(epilogue)}
    kept, numbers = _distinct(extra, used)
    shifted = {0: 0} | {old + 1: new + 1 for old, new in numbers.items()}
    return _renumber(epilogue, shifted, len(kept) + 1), kept


def _distinct(operands: tuple[Operand, ...], used: set[int]) -> tuple[tuple[Operand, ...], dict[int, int]]:
    kept: list[Operand] = []
    numbers: dict[int, int] = {}
    for i, operand in enumerate(operands):
        if i not in used:
            continue
        if operand not in kept:
            kept.append(operand)
        numbers[i] = kept.index(operand)
    return tuple(kept), numbers


def _renumber(function: ScalarFunction, numbers: dict[int, int], n_inputs: int) -> ScalarFunction:
    if numbers == {i: i for i in range(function.n_inputs)} and n_inputs == function.n_inputs:
        return function
    builder = ScalarBuilder(n_inputs)
    return builder.finish(
        builder.inline(function, tuple(numbers.get(i, -1) for i in range(function.n_inputs)))
    )


def _kind(root: Root, inputs: tuple[Operand, ...], body: ScalarFunction) -> OperatorKind:
    """Classify an expression: gathers select, convolutions slide one of two factors, contractions multiply two."""
    if root.selectors:
        return "gather"
    if root.combine == "none":
        return "elementwise"
    slides = any(len(dim.terms) > 1 for operand in inputs for dim in operand.dims)
    multiplies = len(inputs) == 2 and is_product(body)
    if slides:
        return "convolution" if multiplies else "pooling"
    return "contraction" if multiplies and root.combine == "sum" else "reduction"


def is_product(body: ScalarFunction) -> bool:
    """Return whether a function of two inputs is a product of a function of the first and one of the second."""
    if (
        body.n_inputs != 2
        or body.result < 2
        or body.ops[body.result - 2].opcode not in ("arith.mulf", "arith.muli")
    ):
        return False
    left, right = body.ops[body.result - 2].operands
    sides = [used_inputs(drop_inputs(ScalarFunction(2, body.ops, side), (0, 1))) for side in (left, right)]
    return sides in ([{0}, {1}], [{1}, {0}])


def _named_axes(spec: OperatorSpec) -> tuple[Axis, ...]:
    """Return the axes with the field's names: b, m, n, k for contractions, n, f, h, w, c, kh, kw for convolutions."""
    namer = {"contraction": _contraction_name, "convolution": _window_name, "pooling": _window_name}.get(
        spec.kind
    )
    stems = [
        namer(spec, i) if namer else ("r" if axis.kind == "reduction" else "i")
        for i, axis in enumerate(spec.axes)
    ]
    if spec.kind in ("convolution", "pooling"):
        stems = _spatial_names(spec, stems)
    if spec.kind == "gather":
        stems = [
            axis.name if axis.kind == "reduction" else stem
            for axis, stem in zip(spec.axes, stems, strict=True)
        ]
    counts = {stem: stems.count(stem) for stem in stems}
    seen: dict[str, int] = {}
    named: list[Axis] = []
    for stem, axis in zip(stems, spec.axes, strict=True):
        number = seen.get(stem, 0)
        seen[stem] = number + 1
        named.append(replace(axis, name=stem if counts[stem] == 1 else f"{stem}{number}"))
    return tuple(named)


def _contraction_name(spec: OperatorSpec, axis: int) -> str:
    if spec.axes[axis].kind == "reduction":
        return "k"
    left, right = (axis in operand.axes for operand in spec.inputs[:2])
    return {(True, True): "b", (True, False): "m", (False, True): "n"}.get((left, right), "i")


def _window_name(spec: OperatorSpec, axis: int) -> str:
    image, *filters = spec.inputs
    windows = [dim.axes for dim in image.dims if len(dim.axes) > 1]
    if any(axis in window for window in windows):
        return "kx" if spec.axes[axis].kind == "reduction" else "x"
    if spec.axes[axis].kind == "reduction":
        return "c"
    in_filter = bool(filters) and axis in filters[0].axes
    return "f" if in_filter and axis not in image.axes else ("c" if in_filter else "n")


def _spatial_names(spec: OperatorSpec, stems: list[str]) -> list[str]:
    """Name two sliding axes h and w (kh, kw); one or three keep x0, x1, ..."""
    for stem, names in (("x", ("h", "w")), ("kx", ("kh", "kw"))):
        where = [i for i, found in enumerate(stems) if found == stem]
        if len(where) == len(names):
            for i, name in zip(where, names, strict=True):
                stems[i] = name
    return stems
