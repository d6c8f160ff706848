"""Products without what they take in of other results: two of one tensor can then become one (`join_products`).

```
g[i, n] = silu(sum over k of x[i, k] * wg[k, n]) * u[i, n]          s[i, n] = sum over k of x[i, k] * wg[k, n]
u[i, n] = sum over k of x[i, k] * wu[k, n]                 becomes  g[i, n] = silu(s[i, n]) * u[i, n]
```
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from t10.passes.bridge.affine import axis_dim, compose
from t10.passes.bridge.tree import Accumulated, Apply, Read, Scalar, reads, spelled, substitute_axes, visit
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, is_product, is_rounded, sources_of


def without_gate(graph: FusionGraph, nest: Nest) -> tuple[Nest, Nest | None]:
    """Return a product without what its epilogue makes of it and of a computed tensor as large, and that as a nest.

    None of that where it makes nothing of the kind. A bias stays, and sums are rounded as the results are.
    """
    epilogue, size = nest.epilogue, prod(graph.shapes[nest.result])
    if epilogue is None or not is_product(nest):
        return nest, None
    if not any(
        is_computed(graph, read) and prod(graph.shapes[read.value]) >= size for read in reads(epilogue)
    ):
        return nest, None
    kind = graph.types[nest.result]
    sums = {spelled(sum_): sum_ for sum_ in _sums(graph, epilogue)}
    last, *others = sums.values()
    if others:
        last = Accumulated()
    narrow = last if kind == nest.acc_type or is_rounded(last) else Apply("arith.truncf", (last,), kind)
    made = graph.new_value(graph.shapes[nest.result], kind)
    parallel = [axis for axis, each in enumerate(nest.kinds) if each == PARALLEL]
    by_axis = [axis_dim(parallel.index(axis) if axis in parallel else 0) for axis in range(len(nest.extents))]
    out_dims = tuple(compose(dim, by_axis) for dim in nest.out_dims)
    read: Scalar = Read(made, out_dims)
    if narrow is not last:
        read = Apply("arith.extf", (read,), nest.acc_type)
    rest = replace(
        nest,
        extents=tuple(nest.extents[axis] for axis in parallel),
        kinds=(PARALLEL,) * len(parallel),
        body=_with_sums(substitute_axes(epilogue, by_axis), spelled(substitute_axes(last, by_axis)), read),
        out_dims=out_dims,
        acc_type=kind,
        combine="",
        init=None,
        epilogue=None,
        sum_type="",
    )
    return replace(nest, result=made, epilogue=None if isinstance(narrow, Accumulated) else narrow), rest


def is_computed(graph: FusionGraph, read: Read) -> bool:
    """Return whether a tensor shows more than arguments and constants."""
    owners = [graph.owner(source) for source in sources_of(graph, read.value)]
    return any(owner is not None and owner.uses for owner in owners)


def _sums(graph: FusionGraph, epilogue: Scalar) -> list[Scalar]:
    """Return what an epilogue makes of its sums alone: rounded or not, with a bias or without."""
    users: dict[int, list[Apply]] = {}
    for node in visit(epilogue):
        if isinstance(node, Apply):
            for operand in node.operands:
                users.setdefault(id(operand), []).append(node)
    found: list[Scalar] = []
    for node in visit(epilogue):
        if not isinstance(node, Accumulated):
            continue
        last: Scalar = node
        while len(above := users.get(id(last), [])) == 1 and _adds_bias(graph, above[0], last):
            (last,) = above
        rounded = users.get(id(last), [])
        found += rounded if rounded and all(map(is_rounded, rounded)) else [last]
    return found


def _adds_bias(graph: FusionGraph, node: Apply, value: Scalar) -> bool:
    """Return whether a node adds to a value what is not computed."""
    others = [read for operand in node.operands if operand is not value for read in reads(operand)]
    return node.opcode == "arith.addf" and bool(others) and not any(is_computed(graph, r) for r in others)


def _with_sums(scalar: Scalar, sums: tuple[Any, ...], read: Scalar) -> Scalar:
    """Return a scalar that reads what a nest of its own makes of sums."""
    made: dict[int, Scalar] = {}
    for node in visit(scalar):
        if spelled(node) == sums:
            made[id(node)] = read
        elif isinstance(node, Apply):
            made[id(node)] = replace(node, operands=tuple(made[id(operand)] for operand in node.operands))
        else:
            made[id(node)] = node
    return made[id(scalar)]
