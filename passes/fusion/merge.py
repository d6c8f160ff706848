"""Which nests become one: elementwise chains, epilogues behind a root, prologues in front of reductions.

Nothing but casts is put in front of a contraction or convolution: there every element is read many times. What is cheap
against moving a tensor of its size is computed once per reader (the exponential of a softmax, the centred values of a
normalisation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import prod

from t10.core.expression import AffineDim
from t10.dialect.mlir import ir
from t10.passes.bridge.affine import ZERO, axis_dim
from t10.passes.bridge.tree import (
    Accumulated,
    Apply,
    Index,
    Read,
    Scalar,
    cost,
    reads,
    rewrite,
    substitute_axes,
    tables,
    visit,
)
from t10.passes.fusion.graph import (
    PARALLEL,
    FusionGraph,
    Nest,
    Node,
    Opaque,
    is_rounded,
    kind_of,
    with_leaves,
)
from t10.passes.fusion.views import axes_read, inlined, is_bijective

Rule = Callable[[FusionGraph, Nest], bool]

MAX_COST_BY_READERS = {1: 3, 2: 20, 3: 3}
"""How much an elementwise nest may cost (a math function is 16) to be computed again by so many readers ..."""
MAX_COST_COMPARED = 3
"""How much it may cost if a reader compares floats of it: code of two operators may round a function differently, which
a comparison would tell as a difference; and what is compared pair by pair (a rank) is asked for many times."""
MAX_WHOLE_READS = 1
"""... if it reads at most so many tensors of its own size: then a reader reads no more than before ..."""
LITTLE = 8
"""... or if it is little to each reader: at most one part in so many of what that reads, and of the points that it
computes. An operator of its own would wait for exchanges as long as a large one."""

MAX_SCALARS = 200
"""How many scalars a nest may hold when another is put into it: code for more needs more registers than there are,
and what walks over them takes the square of their number."""


MAX_READS = 15
"""How many tensors it may then read, one at two places counted twice: an operator has 16 operands, one its result."""


def merge(graph: FusionGraph) -> None:
    """Fuse until nothing changes."""
    for _ in range(len(graph.owners) + 1):
        changed = _for_all(graph, _join_maps)
        changed |= _for_all(graph, _absorb_behind_product)
        changed |= _for_all(graph, _join_chain)
        changed |= _for_all(graph, _absorb_epilogue)
        changed |= _for_all(graph, _join_chain)
        if not changed and not _for_all(graph, _recompute):
            break
    _for_all(graph, _absorb_rounding_of_reader)


def merge_rounding(graph: FusionGraph) -> None:
    """Put only casts that narrow behind the sums that make what they read."""

    def absorb(graph: FusionGraph, root: Nest) -> bool:
        reader = graph.only_user(root.result)
        is_cast = (
            isinstance(reader, Nest) and is_rounded(reader.body) and isinstance(reader.body.operands[0], Read)
        )
        return is_cast and _absorb_epilogue(graph, root)

    _for_all(graph, absorb)


def recompute(graph: FusionGraph, values: Iterable[int]) -> None:
    """Let the readers of these values compute them anew where those of any value would."""
    for value in values:
        nest = graph.owner(value)
        if isinstance(nest, Nest):
            _recompute(graph, nest)


def _for_all(graph: FusionGraph, rule: Rule) -> bool:
    changed = False
    for nest in graph.nests():
        current = graph.owner(nest.result)
        while isinstance(current, Nest) and rule(graph, current):
            changed = True
            current = graph.owner(nest.result)
    return changed


def _join_maps(graph: FusionGraph, nest: Nest) -> bool:
    """Join an elementwise nest with those before it."""
    return nest.is_elementwise and _join_chain(graph, nest)


def _absorb_behind_product(graph: FusionGraph, root: Nest) -> bool:
    """Put the elementwise reader of a product behind it where a sum would take it in, which alone reads that.

    So the product is rounded at once: half as much is moved, and its sums may be kept in 16 bits.
    """
    if kind_of(root) not in ("contraction", "convolution"):
        return False
    reader = graph.only_user(root.result)
    user = graph.only_user(reader.result) if isinstance(reader, Nest) else None
    return isinstance(user, Nest) and bool(user.combine) and _absorb_epilogue(graph, root)


def _join_chain(graph: FusionGraph, nest: Nest) -> bool:
    """Put a producer that only this nest reads, point for point, into the nest's elementwise part."""
    if nest.is_transpose:
        return False
    for producer, found in _elementwise_producers(graph, nest):
        where = _part_read(nest, found)
        if where == "" or graph.only_user(producer.result) is not nest:
            continue
        axes = range(len(nest.extents)) if where == "body" else _parallel_axes(nest)
        if not _prologue_allowed(nest, producer, where) or not _is_short(nest, producer):
            continue
        if is_bijective(found[0].dims, axes):
            _inline(graph, nest, producer)
            return True
    return False


def _absorb_epilogue(graph: FusionGraph, root: Nest) -> bool:
    """Put the one elementwise reader of a root behind it; the root then makes the reader's result."""
    if not root.combine:
        return False
    reader = graph.only_user(root.result)
    if not isinstance(reader, Nest) or not reader.is_elementwise or reader.epilogue is not None:
        return False
    if reader.is_transpose or not _is_short(root, reader):
        return False
    if _is_normalised_residual(graph, root, reader):
        return _absorb_rounding(graph, root, reader)
    found = [read for read in reader.all_reads if read.value == root.result]
    dims = found[0].dims
    if any(read.dims != dims for read in found) or not is_bijective(dims, range(len(reader.extents))):
        return False
    by_axis = [ZERO] * len(reader.extents)
    for mine, theirs in zip(root.out_dims, dims, strict=True):
        if theirs.terms:
            by_axis[theirs.terms[0].axis] = mine
    if any(not form.terms for form in by_axis):
        return False
    out_dims = _with_unit_axes(root, [_through(dim, by_axis) for dim in reader.out_dims])
    if out_dims is None:
        return False
    before = root.epilogue if root.epilogue is not None else Accumulated()

    def leaf(scalar: Scalar) -> Scalar:
        return before if isinstance(scalar, Read) and scalar.value == root.result else scalar

    epilogue = rewrite(substitute_axes(reader.body, by_axis), leaf)
    graph.add(
        replace(
            root,
            result=reader.result,
            out_dims=out_dims,
            epilogue=None if isinstance(epilogue, Accumulated) else epilogue,
            rank=reader.rank,
            forced=root.forced or reader.forced,
        )
    )
    graph.remove_dead(root.result)
    return True


def _is_normalised_residual(graph: FusionGraph, root: Nest, reader: Nest) -> bool:
    """Return whether a reader adds a residual to a product, and what normalises rows reads the sum.

    That is read several times, whole rows of it: cores that hold these keep the residual as well, and the product's
    result is brought to them once. Behind the product the sum would lie as that leaves it.
    """
    users = [graph.owners[user] for user in graph.users[reader.result]]
    if len(users) < 2 or not any(_sums_rows(graph, user, reader.result) for user in users):
        return False
    if kind_of(root) not in ("contraction", "convolution"):
        return False
    axes = {axis for axis, extent in enumerate(reader.extents) if extent > 1}
    others = [read for read in reader.all_reads if read.value != root.result]
    return any({axis for dim in read.dims for axis in dim.axes} >= axes for read in others)


def _absorb_rounding(graph: FusionGraph, root: Nest, reader: Nest) -> bool:
    """Round a product's sum behind it where its reader does nothing else with it: half as much is moved."""
    nodes = [node for part in reader.parts for node in visit(part)]
    applied = [node for node in nodes if isinstance(node, Apply)]
    users = [node for node in applied if any(_is_of(operand, root) for operand in node.operands)]
    kinds = {node.dtype for node in users}
    if root.epilogue is not None or len(kinds) != 1 or not all(map(is_rounded, users)):
        return False
    (kind,) = kinds
    rounded = graph.new_value(graph.shapes[root.result], kind)
    made: dict[int, Scalar] = {}
    for node in nodes:
        if not isinstance(node, Apply):
            made[id(node)] = (
                Read(rounded, node.dims) if isinstance(node, Read) and _is_of(node, root) else node
            )
        elif is_rounded(node) and _is_of(node.operands[0], root):
            made[id(node)] = made[id(node.operands[0])]
        else:
            made[id(node)] = replace(node, operands=tuple(made[id(operand)] for operand in node.operands))
    body, init, epilogue = (part and made[id(part)] for part in (reader.body, reader.init, reader.epilogue))
    assert body is not None
    graph.add(replace(reader, body=body, init=init, epilogue=epilogue))
    total = Apply("arith.truncf", (Accumulated(),), kind)
    graph.add(replace(root, result=rounded, epilogue=total))
    graph.remove_dead(root.result)
    return True


def _absorb_rounding_of_reader(graph: FusionGraph, root: Nest) -> bool:
    """Round a product's sum behind it where another product's epilogue rounds it first."""
    reader = graph.only_user(root.result)
    is_one = kind_of(root) in ("contraction", "convolution") and root.epilogue is None
    return is_one and isinstance(reader, Nest) and _absorb_rounding(graph, root, reader)


def _is_of(scalar: Scalar, nest: Nest) -> bool:
    return isinstance(scalar, Read) and scalar.value == nest.result


def _sums_rows(graph: FusionGraph, node: Node, value: int) -> bool:
    """Return whether a node adds up or compares rows of a value and of no other as large, in an earlier run or now."""
    if isinstance(node, Opaque):
        is_operator = node.op.name == "rtensor.operator"
        if not is_operator or ir.StringAttr(node.op.attributes["kind"]).value != "reduction":
            return False
    elif not isinstance(node, Nest) or kind_of(node) != "reduction":
        return False
    return all(other == value or prod(graph.shapes[other]) < prod(graph.shapes[value]) for other in node.uses)


def _with_unit_axes(root: Nest, out_dims: list[AffineDim]) -> tuple[AffineDim, ...] | None:
    """Return the dims with every parallel axis of the root among them: those of extent 1 take constant dims."""
    present = {term.axis for dim in out_dims for term in dim.terms}
    missing = [axis for axis in _parallel_axes(root) if axis not in present]
    free = [i for i, dim in enumerate(out_dims) if not dim.terms]
    if len(missing) > len(free) or any(root.extents[axis] != 1 for axis in missing):
        return None
    for axis, i in zip(missing, free, strict=False):
        out_dims[i] = axis_dim(axis)
    return tuple(out_dims)


def _through(dim: AffineDim, by_axis: list[AffineDim]) -> AffineDim:
    return by_axis[dim.terms[0].axis] if dim.terms else ZERO


def _recompute(graph: FusionGraph, producer: Nest) -> bool:
    """Let every reader of a cheap elementwise nest compute it anew."""
    if not producer.is_elementwise or producer.epilogue is not None or producer.result in graph.outputs:
        return False
    users = [graph.owners[user] for user in sorted(graph.users[producer.result])]
    if not users or not all(isinstance(user, Nest) and _may_recompute(user, producer) for user in users):
        return False
    if len(users) > 1 and not _is_cheap(graph, producer):
        return False
    if cost(producer.body) > MAX_COST_COMPARED and any(
        isinstance(user, Nest) and _compares(user, producer.result) for user in users
    ):
        return False
    for user in users:
        assert isinstance(user, Nest)
        if len(users) == 1 and not _reads_once(user, producer) and not _is_cheap(graph, producer):
            return False
    for user in users:
        current = graph.owners[user.results[0]]
        assert isinstance(current, Nest)
        _inline(graph, current, producer)
    return True


def _is_short(nest: Nest, other: Nest) -> bool:
    """Return whether two nests together hold few enough scalars, and read few enough tensors, to become one."""
    parts = [part for each in (nest, other) for part in (each.body, each.epilogue) if part is not None]
    if sum(len(visit(part)) for part in parts) > MAX_SCALARS:
        return False
    reader, producer = (nest, other) if other.result in nest.uses else (other, nest)
    places = {(read.value, read.dims) for read in reader.all_reads}
    n_times = sum(value == producer.result for value, _ in places)
    n_before = [_n_reads(each) for each in (reader, producer)]
    return n_before[0] - n_times + n_times * n_before[1] <= max(MAX_READS, *n_before)


def _n_reads(nest: Nest) -> int:
    """Return how many tensors a nest reads, one at two places counted twice."""
    found = {(read.value, read.dims) for read in nest.all_reads}
    return len(found) + len({table for part in nest.parts for table in tables(part)})


def _is_cheap(graph: FusionGraph, producer: Nest) -> bool:
    """Return whether computing a nest anew for its readers costs little beside moving its result.

    What makes a float or a truth value of integers of 64 bits takes scalar loops, and its readers with it.
    """
    from_wide = any(graph.types[read.value] == "i64" for read in reads(producer.body))
    if from_wide and (producer.acc_type == "i1" or not _is_integer(producer)):
        return False
    size = len(producer.extents)
    whole = {
        read.value
        for read in reads(producer.body)
        if len({t.axis for d in read.dims for t in d.terms}) == size
    }
    users = graph.users[producer.result]
    if cost(producer.body) > MAX_COST_BY_READERS.get(len(users), 0):
        return False
    return len(whole) <= MAX_WHOLE_READS or all(
        _is_little(graph, graph.owners[user], producer) for user in users
    )


def _is_little(graph: FusionGraph, user: Node, producer: Nest) -> bool:
    """Return whether a reader that computes a nest anew hardly reads or computes more."""
    if not isinstance(user, Nest):
        return False
    found = [read for read in user.all_reads if read.value == producer.result]
    inside = range(len(user.extents)) if _part_read(user, found) == "body" else _parallel_axes(user)
    n_points = prod(user.extents[axis] for axis in inside) * len(set(found)) * cost(producer.body)
    n_read = max(prod(graph.shapes[read.value]) for read in user.all_reads)
    return prod(producer.extents) * LITTLE <= n_read and n_points * LITTLE <= prod(user.extents)


def _may_recompute(user: Nest, producer: Nest) -> bool:
    if user.is_transpose or not _is_short(user, producer):
        return False
    found = [read for read in user.all_reads if read.value == producer.result]
    where = _part_read(user, found)
    if where == "" or not _prologue_allowed(user, producer, where):
        return False
    return all(_can_inline(producer, read.dims) for read in found)


def _compares(user: Nest, value: int) -> bool:
    """Return whether a comparison of floats in a nest's body depends on a tensor."""
    return any(
        isinstance(node, Apply) and node.opcode == "arith.cmpf" and any(r.value == value for r in reads(node))
        for node in visit(user.body)
    )


def _reads_once(user: Nest, producer: Nest) -> bool:
    """Return whether the reader asks for every element of the producer once."""
    found = [read for read in user.all_reads if read.value == producer.result]
    axes = range(len(user.extents)) if _part_read(user, found) == "body" else _parallel_axes(user)
    return all(read.dims == found[0].dims for read in found) and is_bijective(found[0].dims, axes)


def _prologue_allowed(user: Nest, producer: Nest, where: str) -> bool:
    """Return whether a producer may be computed inside the part of a nest that reads it."""
    if where == "epilogue" or user.is_elementwise:
        return True
    kind = kind_of(user)
    if kind == "gather":
        return _is_integer(producer)
    return kind == "reduction"


def _is_integer(producer: Nest) -> bool:
    return producer.acc_type.startswith(("i", "index")) and producer.is_elementwise


def _can_inline(producer: Nest, dims: tuple[AffineDim, ...]) -> bool:
    """Return whether the producer's indices stay readable: a position on an axis must not become a sum."""
    if not any(isinstance(node, Index) for node in visit(producer.body)):
        return True
    return all(len(form.terms) <= 1 for form in axes_read(producer, dims))


def _elementwise_producers(graph: FusionGraph, nest: Nest) -> list[tuple[Nest, list[Read]]]:
    """Return what a nest reads from elementwise nests, by producer, if all reads of it are alike."""
    found: dict[int, list[Read]] = {}
    for read in nest.all_reads:
        found.setdefault(read.value, []).append(read)
    producers: list[tuple[Nest, list[Read]]] = []
    for value, each in found.items():
        owner = graph.owner(value)
        if not isinstance(owner, Nest) or not owner.is_elementwise or owner.epilogue is not None:
            continue
        if all(read.dims == each[0].dims for read in each) and _can_inline(owner, each[0].dims):
            producers.append((owner, each))
    return producers


def _part_read(nest: Nest, found: list[Read]) -> str:
    """Return the part of a nest that all given reads are in, empty if there are several or it is the initial value."""
    if not found:
        return ""
    value = found[0].value
    inside = [
        name
        for name, part in (("body", nest.body), ("init", nest.init), ("epilogue", nest.epilogue))
        if _has(part, value)
    ]
    return inside[0] if len(inside) == 1 and inside[0] != "init" else ""


def _has(part: Scalar | None, value: int) -> bool:
    return part is not None and any(read.value == value for read in reads(part))


def _parallel_axes(nest: Nest) -> list[int]:
    return [axis for axis, kind in enumerate(nest.kinds) if kind == PARALLEL]


def _inline(graph: FusionGraph, nest: Nest, producer: Nest) -> None:
    """Replace every read of the producer by what it computes."""
    made: dict[tuple[AffineDim, ...], Scalar] = {}

    def leaf(scalar: Scalar) -> Scalar:
        if not isinstance(scalar, Read) or scalar.value != producer.result:
            return scalar
        if scalar.dims not in made:
            made[scalar.dims] = inlined(producer, scalar.dims)
        return made[scalar.dims]

    graph.add(with_leaves(nest, leaf))
    graph.remove_dead(producer.result)
