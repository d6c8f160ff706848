"""A root and the elementwise operations after it, put together as one `OperatorSpec`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from t10.core.dtypes import is_float
from t10.core.expression import AffineDim, Axis, Operand, OperatorKind, OperatorSpec, Selector
from t10.core.products import block_axis
from t10.core.scalar import ScalarFunction, parse_constant
from t10.errors import UnsupportedOpError
from t10.passes.bridge.affine import compose
from t10.passes.bridge.root import Known, Root, is_neutral, operand_of
from t10.passes.bridge.tree import (
    Accumulated,
    Apply,
    Constant,
    Extract,
    Index,
    Read,
    Scalar,
    function_of,
    rewrite,
    visit,
)


@dataclass(frozen=True, slots=True)
class Padding:
    """A tensor.pad in front of an operand: `low` per dim in front of `source`, elements around it hold `value`."""

    source: Known
    low: tuple[int, ...]
    value: str


@dataclass(frozen=True, slots=True)
class Chain:
    """An operator under construction: its root, where each dim of the running result comes from, its epilogue.

    `dims` are the running result's dims over the root's axes. `operands` are what root and `epilogue` read, by the
    numbers of their leaves; `order` is that of the epilogue's scalars.
    """

    root: Root
    dims: tuple[AffineDim, ...]
    shape: tuple[int, ...]
    dtype: str
    operands: dict[int, Operand]
    epilogue: Scalar | None = None
    order: tuple[Scalar, ...] = ()


def start_chain(root: Root) -> Chain:
    """Return the chain of a root alone; an initial value that is not neutral becomes its first epilogue step."""
    chain = Chain(root, root.output_dims, root.output_shape, root.dtype, root.operands)
    init = root.init
    if root.combine == "none" or not (init.name or init.fill):
        return chain
    if init.fill and is_neutral(root.combine, init.fill, root.dtype):
        return chain
    number = _next(chain)
    start = Constant(init.fill, root.dtype) if init.fill else Read(number, root.output_dims)
    extra = {} if init.fill else {number: operand_of(init, root.output_dims)}
    epilogue = Apply(root.combine_opcode, (Accumulated(), start), root.dtype)
    return replace(chain, epilogue=epilogue, operands=chain.operands | extra)


def extend_chain(chain: Chain, after: Root, reads: tuple[int, ...]) -> Chain:
    """Return the chain with an elementwise root after it whose operands `reads` are the chain's result.

    Raises `UnsupportedOpError` if they are not all read once per point through one permutation of the axes.
    """
    dims_read = after.operands[reads[0]].dims
    same = all(after.operands[i].dims == dims_read for i in reads)
    if after.combine != "none" or not same or any(dim.terms and not dim.is_simple for dim in dims_read):
        raise UnsupportedOpError("an operation fused behind a root must be elementwise on its result")
    by_axis = _loops_as_axes(chain, after, dims_read)
    first = _next(chain)
    running = chain.epilogue or Accumulated()
    others = {first + i: _through(o, by_axis) for i, o in after.operands.items() if i not in reads}
    memo: dict[int, Scalar] = {}

    def leaf(node: Scalar) -> Scalar:
        if isinstance(node, Read):
            number = first + node.value
            return running if node.value in reads else Read(number, others[number].dims)
        if isinstance(node, Extract):
            return Extract(first + node.table, node.indices)
        return Index(compose(node.form, by_axis)) if isinstance(node, Index) else node

    return Chain(
        chain.root,
        tuple(compose(dim, by_axis) for dim in after.output_dims),
        after.output_shape,
        after.dtype,
        chain.operands | others,
        rewrite(after.body, leaf, memo),
        (*chain.order, *(rewrite(node, leaf, memo) for node in after.order)),
    )


def _next(chain: Chain) -> int:
    """Return a number that no operand of a chain has, nor any after it."""
    return max(chain.operands, default=-1) + 1


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
    body, epilogue, order = root.body, chain.epilogue, (*root.order, *chain.order)
    if root.combine == "none" and epilogue is not None:
        memo: dict[int, Scalar] = {}
        computed = [rewrite(each, partial(_computed, root.body), memo) for each in (epilogue, *order)]
        body, epilogue, order = computed[0], None, tuple(computed[1:])
    if isinstance(epilogue, Accumulated):
        epilogue = None
    inputs, functions = _functions(chain, (body, *(index for _, index in root.selected)), order)
    extra, after = _functions(chain, () if epilogue is None else (epilogue,), order, first=1)
    spec = OperatorSpec(
        name=name,
        kind=_kind(chain, inputs, body),
        axes=root.axes,
        inputs=tuple(_fold_padding(operand, paddings) for operand in inputs),
        output=Operand(result, "output", chain.dtype, chain.shape, chain.dims),
        combine=root.combine,
        body=functions[0],
        acc_dtype=chain.dtype if root.combine == "none" else root.dtype,
        epilogue=after[0] if after else None,
        epilogue_inputs=tuple(_fold_padding(operand, paddings) for operand in extra),
        selectors=tuple(
            Selector(axis, index) for (axis, _), index in zip(root.selected, functions[1:], strict=True)
        ),
        location=location,
    )
    axes, block = _named_axes(spec), block_axis(spec)
    # Blocks of the matrix engine stay whole.
    return replace(spec, axes=tuple([replace(axis, is_splittable=i != block) for i, axis in enumerate(axes)]))


def _computed(body: Scalar, leaf: Scalar) -> Scalar:
    """Return the body for the value that an epilogue starts from."""
    return body if isinstance(leaf, Accumulated) else leaf


def _functions(
    chain: Chain, scalars: tuple[Scalar, ...], order: tuple[Scalar, ...], first: int = 0
) -> tuple[tuple[Operand, ...], list[ScalarFunction]]:
    """Return what scalars read, equal operands once, and the scalars as functions of it; `first` inputs are others."""
    read = {number for scalar in scalars for number in _numbers(scalar)}
    places: dict[Operand, int] = {}
    for number in sorted(read):
        places.setdefault(chain.operands[number], first + len(places))

    def place(node: Scalar) -> int:
        return places[chain.operands[_number(node)]] if isinstance(node, Read | Extract) else 0

    return tuple(places), [function_of(each, first + len(places), place, order) for each in scalars]


def _number(node: Read | Extract) -> int:
    return node.value if isinstance(node, Read) else node.table


def _numbers(scalar: Scalar) -> list[int]:
    """Return the numbers of the operands that a scalar reads."""
    return [_number(node) for node in visit(scalar) if isinstance(node, Read | Extract)]


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


def _kind(chain: Chain, inputs: tuple[Operand, ...], body: Scalar) -> OperatorKind:
    """Classify an expression: gathers select, convolutions slide one of two factors, contractions multiply two."""
    root = chain.root
    if root.selected:
        return "gather"
    if root.combine == "none":
        return "elementwise"
    slides = any(len(dim.terms) > 1 for operand in inputs for dim in operand.dims)
    multiplies = False
    if isinstance(body, Apply) and body.opcode == "arith.truncf":
        # What a core hands on of a product is rounded.
        body = body.operands[0]
    if len(inputs) == 2 and isinstance(body, Apply) and body.opcode in ("arith.mulf", "arith.muli"):
        left, right = ({chain.operands[i] for i in _numbers(side)} for side in body.operands)
        multiplies = len(left) == len(right) == 1 and left != right
    if slides:
        return "convolution" if multiplies else "pooling"
    return "contraction" if multiplies and root.combine == "sum" else "reduction"


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
