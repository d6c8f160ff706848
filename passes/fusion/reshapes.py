"""Reshapes moved, so that elementwise operations follow their producer directly.

```
expand(matmul[8, m, n]) + mask[2, 4, ...]   ->   matmul over (2, 4, m, n) + mask      (expand the producer)
collapse(x[b, s, h, d]) * scale[h d]        ->   collapse(x * expand(scale))          (expand the reader)
```
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from t10.core.expression import AffineDim, Term
from t10.passes.bridge.affine import ZERO, axis_dim, compose
from t10.passes.bridge.tree import Index, Read, Scalar, reads
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Reshape, axis_of, kind_of, with_leaves
from t10.passes.fusion.views import fold_views


def move_reshapes(graph: FusionGraph) -> None:
    """Move reshapes until none stands between an elementwise nest and a producer it could join."""
    for _ in range(len(graph.owners)):
        moves = [_move(graph, node) for node in graph.nodes() if isinstance(node, Reshape)]
        if not any(moves):
            return
        fold_views(graph)


def _move(graph: FusionGraph, reshape: Reshape) -> bool:
    """Move one reshape up into its producer or down past its reader; returns whether it moved."""
    if graph.owner(reshape.result) is not reshape:
        return False
    producer = graph.owner(reshape.source)
    if not isinstance(producer, Nest) or graph.only_user(reshape.source) is not reshape:
        return False
    if producer.is_transpose:
        return False
    if _make_units(graph, producer, reshape):
        return True
    if reshape.expands:
        return _expand_producer(graph, producer, reshape)
    return _expand_reader(graph, producer, reshape)


def _would_join(producer: Nest, reader: Nest) -> bool:
    """Return whether fusion would put the two in one operator."""
    if reader.is_elementwise:
        return not producer.is_gather and not reader.is_move
    return producer.is_elementwise and kind_of(reader) in ("reduction", "gather")


def _make_units(graph: FusionGraph, producer: Nest, reshape: Reshape) -> bool:
    """Let the producer make a result that differs from its own in dims of extent 1 only."""
    source, result = graph.shapes[reshape.source], graph.shapes[reshape.result]
    if [n for n in source if n != 1] != [n for n in result if n != 1]:
        return False
    if any(form.terms and n == 1 for form, n in zip(producer.out_dims, source, strict=True)):
        return False
    forms = iter([form for form, n in zip(producer.out_dims, source, strict=True) if n != 1])
    out_dims = tuple(ZERO if n == 1 else next(forms) for n in result)
    graph.add(replace(producer, result=reshape.result, out_dims=out_dims))
    graph.remove_dead(producer.result)
    return True


def _are_batch_axes(reader: Nest, split: dict[int, tuple[int, ...]]) -> bool:
    """Return whether the axes are batch axes of a contraction (every operand has them): heads merged with the batch.

    Two batch axes cost the planner little, and its operands then stay where their producers left them.
    """
    if kind_of(reader) != "contraction":
        return False
    axes = [{term.axis for dim in read.dims for term in dim.terms} for read in reads(reader.body)]
    return all(reader.kinds[axis] == PARALLEL and all(axis in each for each in axes) for axis in split)


def _expand_producer(graph: FusionGraph, producer: Nest, reshape: Reshape) -> bool:
    """Let the producer make the expanded result itself, with an axis per dim."""
    users = [graph.owners[user] for user in sorted(graph.users[reshape.result])]
    if not any(isinstance(user, Nest) and _would_join(producer, user) for user in users):
        return False
    shape = graph.shapes[reshape.result]
    split: dict[int, tuple[int, ...]] = {}
    for dim, group in enumerate(reshape.groups):
        axis = axis_of(producer, dim)
        factors = tuple(shape[i] for i in group if shape[i] != 1)
        if axis is not None and len(factors) > 1:
            split[axis] = factors
    if not can_split(producer, split):
        return False
    expanded, forms = split_axes(graph, producer, split)
    out_dims = [ZERO] * len(shape)
    for dim, group in enumerate(reshape.groups):
        axis = axis_of(producer, dim)
        if axis is None:
            continue
        # An axis of extent 1 stays that of a dim of extent 1.
        grown = [i for i in group if shape[i] != 1] or group[:1]
        for i, form in zip(grown, forms[axis], strict=True):
            out_dims[i] = form
    graph.add(replace(expanded, result=reshape.result, out_dims=tuple(out_dims)))
    graph.remove_dead(producer.result)
    return True


def _expand_reader(graph: FusionGraph, producer: Nest, reshape: Reshape) -> bool:
    """Let the only reader of a collapsed value loop over the dims before they were collapsed."""
    reader = graph.only_user(reshape.result)
    if not isinstance(reader, Nest):
        return False
    shape = graph.shapes[reshape.source]
    found = [read for read in reader.all_reads if read.value == reshape.result]
    if not found or any(read.dims != found[0].dims for read in found):
        return False
    split: dict[int, tuple[int, ...]] = {}
    for form, group in zip(found[0].dims, reshape.groups, strict=True):
        factors = tuple(shape[i] for i in group if shape[i] != 1)
        if len(factors) < 2:
            continue
        if not form.is_simple:
            return False
        split[form.terms[0].axis] = factors
    if not (_would_join(producer, reader) or _are_batch_axes(reader, split)) or not can_split(reader, split):
        return False
    expanded, _ = split_axes(graph, reader, split)
    _collapse_result(graph, reader, expanded, split)
    return True


def _collapse_result(
    graph: FusionGraph, reader: Nest, expanded: Nest, split: dict[int, tuple[int, ...]]
) -> None:
    """Add the expanded nest under a value of its own, and let the old value be its collapsed form."""
    groups: list[tuple[int, ...]] = []
    shape: list[int] = []
    out_dims: list[AffineDim] = []
    forms = axis_forms(len(reader.extents), split)
    for dim, extent in enumerate(graph.shapes[reader.result]):
        axis = axis_of(reader, dim)
        parts = forms[axis] if axis is not None else (ZERO,)
        factors = split.get(axis, (extent,)) if axis is not None else (extent,)
        groups.append(tuple(range(len(shape), len(shape) + len(parts))))
        shape.extend(factors)
        out_dims.extend(parts)
    if len(shape) == len(graph.shapes[reader.result]):
        graph.add(expanded)
        return
    value = graph.new_value(tuple(shape), graph.types[reader.result])
    graph.add(replace(expanded, result=value, out_dims=tuple(out_dims)))
    graph.add(Reshape(reader.result, value, tuple(groups), False, reader.location, reader.rank))


def can_split(nest: Nest, split: dict[int, tuple[int, ...]]) -> bool:
    """Return whether axes can be split: they are read as dims of their own, and the whole extent."""
    if any(prod(factors) != nest.extents[axis] for axis, factors in split.items()):
        return False
    for read in nest.all_reads:
        for dim in read.dims:
            if not dim.is_simple and any(term.axis in split for term in dim.terms):
                return False
    return True


def axis_forms(n_axes: int, split: dict[int, tuple[int, ...]]) -> list[tuple[AffineDim, ...]]:
    """Return, per old axis, the new axes it becomes, outermost first."""
    forms: list[tuple[AffineDim, ...]] = []
    count = 0
    for axis in range(n_axes):
        parts = len(split.get(axis, (0,)))
        forms.append(tuple(axis_dim(count + i) for i in range(parts)))
        count += parts
    return forms


def split_axes(
    graph: FusionGraph, nest: Nest, split: dict[int, tuple[int, ...]]
) -> tuple[Nest, list[tuple[AffineDim, ...]]]:
    """Return the nest over split axes and the new axes per old one; its operands are expanded by reshapes.

    The result's dims are left for the caller to set where an axis of the result is split.
    """
    forms = axis_forms(len(nest.extents), split)
    merged = [_merged(parts, split.get(axis, (1,))) for axis, parts in enumerate(forms)]

    def leaf(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Index):
            return Index(compose(scalar.form, merged))
        if not isinstance(scalar, Read):
            return scalar
        groups = [forms[d.terms[0].axis] if d.is_simple else (compose(d, merged),) for d in scalar.dims]
        if all(len(group) == 1 for group in groups):
            return Read(scalar.value, tuple(group[0] for group in groups))
        shape = graph.shapes[scalar.value]
        factors = [
            split.get(d.terms[0].axis, (n,)) if d.is_simple else (n,)
            for d, n in zip(scalar.dims, shape, strict=True)
        ]
        value = expanded_value(graph, scalar.value, factors, nest)
        return Read(value, tuple(form for group in groups for form in group))

    extents: list[int] = []
    kinds: list[str] = []
    for axis, extent in enumerate(nest.extents):
        factors = split.get(axis, (extent,))
        extents.extend(factors)
        kinds.extend([nest.kinds[axis]] * len(factors))
    out_dims = tuple(ZERO if not dim.terms else forms[dim.terms[0].axis][0] for dim in nest.out_dims)
    changed = with_leaves(nest, leaf)
    return replace(changed, extents=tuple(extents), kinds=tuple(kinds), out_dims=out_dims), forms


def _merged(parts: tuple[AffineDim, ...], factors: tuple[int, ...]) -> AffineDim:
    """Return an old axis as a form over the axes it was split into."""
    terms: list[Term] = []
    weight = 1
    for part, factor in zip(reversed(parts), reversed(factors), strict=True):
        terms.append(Term(part.terms[0].axis, weight))
        weight *= factor
    return AffineDim(tuple(reversed(terms)))


def expanded_value(graph: FusionGraph, value: int, factors: list[tuple[int, ...]], reader: Nest) -> int:
    """Return a value that is `value` with every dim split into `factors`, adding the reshape if there is none yet."""
    shape = tuple(n for group in factors for n in group)
    groups: list[tuple[int, ...]] = []
    for group in factors:
        start = sum(len(done) for done in groups)
        groups.append(tuple(range(start, start + len(group))))
    for user in sorted(graph.users[value]):
        node = graph.owners[user]
        if (
            isinstance(node, Reshape)
            and node.expands
            and graph.shapes[node.result] == shape
            and node.groups == tuple(groups)
        ):
            return node.result
    made = graph.new_value(shape, graph.types[value])
    owner = graph.owner(value)
    rank = owner.rank if owner is not None else 0
    graph.add(Reshape(made, value, tuple(groups), True, reader.location, rank))
    return made
