"""Nests brought to one form: no unit axes, neutral initial values, wide accumulators, one gather each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from t10.core.expression import AffineDim
from t10.passes.bridge.affine import ZERO, axis_dim
from t10.passes.bridge.body import COMBINE_BY_OPCODE
from t10.passes.bridge.root import is_neutral
from t10.passes.bridge.tree import (
    Accumulated,
    Apply,
    Constant,
    Extract,
    Index,
    Read,
    Scalar,
    reads,
    rewrite,
    substitute_axes,
    tables,
    visit,
)
from t10.passes.fusion.graph import PARALLEL, REDUCTION, FusionGraph, Nest, is_product, with_leaves


def normalize(graph: FusionGraph, is_narrow: Callable[[Nest], bool]) -> None:
    """Bring every nest of the graph to the form the rewrites expect: 16-bit sums in f32 but those that are narrow."""
    for nest in graph.nests():
        if nest.is_transpose:
            continue
        plain = drop_unit_axes(with_leaves(nest, partial(_constant, graph)))
        if plain.combine:
            plain = start_neutral(plain)
            plain = plain if is_narrow(plain) else widen(plain)
        graph.add(plain)
    for nest in graph.nests():
        split_gathers(graph, nest)


def _constant(graph: FusionGraph, leaf: Scalar) -> Scalar:
    """Return the constant that a leaf reads: a fill an operation starts from must be known for what it is."""
    owner = graph.owner(leaf.value) if isinstance(leaf, Read) else None
    if isinstance(owner, Nest) and not owner.combine and owner.epilogue is None:
        return owner.body if isinstance(owner.body, Constant) else leaf
    return leaf


def resolve_gathers(graph: FusionGraph) -> None:
    """Turn gathers at positions and constants alone into plain reads."""
    for nest in graph.nests():
        if nest.is_gather:
            graph.add(with_leaves(nest, partial(_affine_read, graph)))


def _affine_read(graph: FusionGraph, leaf: Scalar) -> Scalar:
    if not isinstance(leaf, Extract):
        return leaf
    forms = [_form(index) for index in leaf.indices]
    dims = tuple(form for form in forms if form is not None)
    shape = graph.shapes[leaf.table]
    if len(dims) != len(forms):
        return leaf
    inside = all(dim.terms or 0 <= dim.offset < extent for dim, extent in zip(dims, shape, strict=True))
    return Read(leaf.table, dims) if inside else leaf


def _form(index: Scalar) -> AffineDim | None:
    """Return an index as an affine form, None if it depends on data."""
    while isinstance(index, Apply) and index.opcode == "arith.index_cast":
        index = index.operands[0]
    if isinstance(index, Index):
        return index.form
    if isinstance(index, Constant):
        return AffineDim((), int(index.text))
    return None


def drop_unit_axes(nest: Nest) -> Nest:
    """Return the nest without axes of extent 1; a reduction over nothing but such axes becomes elementwise.

    An axis that is one term of a longer index (a convolution with one output row) stays: without it, the other term
    would have to run over the whole dim.
    """
    slides = _compound_axes(nest)
    kept = [axis for axis, extent in enumerate(nest.extents) if extent != 1 or axis in slides]
    if len(kept) == len(nest.extents):
        return nest
    by_axis = [ZERO] * len(nest.extents)
    for new, old in enumerate(kept):
        by_axis[old] = axis_dim(new)
    small = over_axes(nest, by_axis, [nest.extents[a] for a in kept], [nest.kinds[a] for a in kept])
    if not small.combine or REDUCTION in small.kinds:
        return small
    body = small.body
    if not _starts_neutral(small):
        assert small.init is not None
        body = Apply(small.combine, (small.init, body), small.acc_type)
    return replace(small, body=body, combine="", init=None)


def _compound_axes(nest: Nest) -> set[int]:
    """Return the axes that occur in an index which is not one axis alone."""
    return {
        term.axis for read in nest.all_reads for dim in read.dims if not dim.is_simple for term in dim.terms
    }


def over_axes(nest: Nest, by_axis: list[AffineDim], extents: list[int], kinds: list[str]) -> Nest:
    """Return the nest over other axes; axis `a` of the old ones is `by_axis[a]`."""
    parts = [
        None if part is None else substitute_axes(part, by_axis)
        for part in (nest.body, nest.init, nest.epilogue)
    ]
    assert parts[0] is not None
    return replace(
        nest,
        extents=tuple(extents),
        kinds=tuple(kinds),
        body=parts[0],
        init=parts[1],
        epilogue=parts[2],
        out_dims=tuple(ZERO if not dim.terms else by_axis[dim.terms[0].axis] for dim in nest.out_dims),
    )


def _starts_neutral(nest: Nest) -> bool:
    """Return whether what a nest starts from changes nothing."""
    init = nest.init
    return isinstance(init, Constant) and is_neutral(COMBINE_BY_OPCODE[nest.combine], init.text, init.dtype)


def neutral(combine: str, element_type: str) -> Constant | None:
    """Return the neutral element of a combination, None where it has no short spelling."""
    texts = {
        "arith.addf": "0.0", "arith.mulf": "1.0", "arith.addi": "0", "arith.muli": "1", "arith.ori": "0",
    }  # fmt: skip
    text = texts.get(combine)
    return None if text is None or element_type == "i1" else Constant(text, element_type)


def start_neutral(nest: Nest) -> Nest:
    """Return the nest starting from the neutral element; another initial value is combined in the epilogue (a bias)."""
    init = nest.init
    assert init is not None
    if _starts_neutral(nest):
        return nest
    start = neutral(nest.combine, nest.acc_type)
    if start is None or nest.epilogue is not None:
        return nest
    epilogue = Apply(nest.combine, (Accumulated(), init), nest.acc_type)
    return replace(nest, init=start, epilogue=epilogue)


def widen(nest: Nest) -> Nest:
    """Return a sum of 16-bit floats accumulated in f32 and rounded once: what an AMP unit does."""
    if nest.acc_type not in ("f16", "bf16") or nest.combine not in ("arith.addf", "arith.mulf"):
        return nest
    if not isinstance(nest.init, Constant):
        return nest
    wide = "f32"
    body: Scalar = Apply("arith.extf", (nest.body,), wide)
    if isinstance(nest.body, Apply) and nest.body.opcode == "arith.mulf":
        factors = tuple(Apply("arith.extf", (factor,), wide) for factor in nest.body.operands)
        body = Apply("arith.mulf", factors, wide)
    rounded = Apply("arith.truncf", (Accumulated(),), nest.acc_type)
    epilogue: Scalar = rounded
    if nest.epilogue is not None:
        epilogue = rewrite(nest.epilogue, lambda leaf: rounded if isinstance(leaf, Accumulated) else leaf)
    return replace(
        nest,
        body=body,
        acc_type=wide,
        init=Constant(nest.init.text, wide),
        epilogue=epilogue,
        sum_type=nest.acc_type,
    )


def mark_products(graph: FusionGraph, is_narrow: Callable[[Nest], bool]) -> None:
    """Take products of 16-bit floats that are summed in f32 and then rounded, as MatMul is imported, for 16-bit sums.

    Those that are to be narrow are left alone.
    To be done before casts are folded into what reads them: a product of casts to f32 is one of f32.
    """
    for nest in graph.nests():
        rounding = graph.only_user(nest.result)
        if nest.combine != "arith.addf" or nest.acc_type != "f32" or not is_product(nest):
            continue
        if is_narrow(nest) or not isinstance(rounding, Nest) or not isinstance(rounding.body, Apply):
            continue
        kinds = {graph.types[read.value] for read in reads(nest.body)}
        is_rounded = rounding.body.opcode == "arith.truncf" and isinstance(rounding.body.operands[0], Read)
        if is_rounded and kinds == {rounding.acc_type}:
            graph.add(replace(nest, sum_type=rounding.acc_type))


def split_gathers(graph: FusionGraph, nest: Nest) -> None:
    """Give every gather of a body a nest of its own, so that its result is an ordinary operand of the rest."""
    count = sum(len(tables(part)) for part in nest.parts)
    if count == 0 or (count == 1 and isinstance(nest.body, Extract) and not nest.combine):
        return
    if nest.combine and any(tables(part) for part in nest.parts[1:]):
        return

    def leaf(scalar: Scalar) -> Scalar:
        return _own_nest(graph, nest, scalar) if isinstance(scalar, Extract) else scalar

    graph.add(replace(nest, body=rewrite(nest.body, leaf)))


def _own_nest(graph: FusionGraph, nest: Nest, scalar: Extract) -> Read:
    """Add the nest of one gather, over the axes it depends on only, and return how `nest` reads its result."""
    kept = sorted({term.axis for node in visit(scalar) for form in _forms(node) for term in form.terms})
    by_axis = [ZERO] * len(nest.extents)
    for new, old in enumerate(kept):
        by_axis[old] = axis_dim(new)
    extents = tuple(nest.extents[axis] for axis in kept)
    element_type = graph.types[scalar.table]
    value = graph.new_value(extents, element_type)
    gather = Nest(
        result=value,
        extents=extents,
        kinds=(PARALLEL,) * len(kept),
        body=substitute_axes(scalar, by_axis),
        out_dims=tuple(axis_dim(axis) for axis in range(len(kept))),
        acc_type=element_type,
        location=nest.location,
        rank=nest.rank,
    )
    graph.add(gather)
    return Read(value, tuple(axis_dim(axis) for axis in kept))


def _forms(node: Scalar) -> tuple[AffineDim, ...]:
    if isinstance(node, Read):
        return node.dims
    return (node.form,) if isinstance(node, Index) else ()
