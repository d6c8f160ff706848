"""The function as a graph of loop nests, reshapes and everything else, open to rewriting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeGuard

from t10.core.expression import AffineDim, OperatorKind
from t10.passes.bridge.affine import is_zero
from t10.passes.bridge.tree import (
    Apply,
    Constant,
    Extract,
    Read,
    Scalar,
    has_extract,
    reads,
    rewrite,
    tables,
)

PARALLEL, REDUCTION = "parallel", "reduction"


@dataclass(frozen=True, slots=True)
class Nest:
    """A linalg operation with one result: `result[out_dims] = epilogue(combine over the reduction axes of body)`.

    `combine` is an opcode and empty without reduction axes; `init` is what accumulation starts from; `epilogue` (None:
    the accumulated value itself) is over the parallel axes. Every parallel axis is one of `out_dims`, other dims of
    the result are constant 0. `rank` orders nests as in the source; `forced` is the attribute `rtensor.forced`.
    `sum_type` is the 16-bit type of a sum that is kept in f32, until the operator is made (`wide.py`).
    `is_transpose` marks what stands between two storage orders: nothing is computed in it. `is_copy` marks an operator
    that only copies, to another order (`copies.py`).
    """

    result: int
    extents: tuple[int, ...]
    kinds: tuple[str, ...]
    body: Scalar
    out_dims: tuple[AffineDim, ...]
    acc_type: str
    location: Any
    rank: int
    combine: str = ""
    init: Scalar | None = None
    epilogue: Scalar | None = None
    name: str = ""
    forced: Any = None
    sum_type: str = ""
    is_transpose: bool = False
    is_copy: bool = False

    @property
    def results(self) -> tuple[int, ...]:
        """Return the values it makes."""
        return (self.result,)

    @property
    def is_elementwise(self) -> bool:
        """Return whether it has neither reduction axes nor gathers."""
        return not self.combine and not has_extract(self.body)

    @property
    def is_gather(self) -> bool:
        """Return whether it reads a tensor at computed indices."""
        return has_extract(self.body)

    @property
    def parts(self) -> tuple[Scalar, ...]:
        """Return its scalars: body, init and epilogue where there are any."""
        return tuple(part for part in (self.body, self.init, self.epilogue) if part is not None)

    @property
    def all_reads(self) -> list[Read]:
        """Return the reads of all its scalars."""
        return [read for part in self.parts for read in reads(part)]

    @property
    def uses(self) -> tuple[int, ...]:
        """Return the tensors it reads, without repeats."""
        found = [read.value for read in self.all_reads] + [
            table for part in self.parts for table in tables(part)
        ]
        return tuple(dict.fromkeys(found))

    @property
    def is_move(self) -> bool:
        """Return whether it only shows elements of one tensor (transpose, broadcast) or repeats one constant."""
        is_plain = not self.combine and self.epilogue is None and not self.is_copy
        return is_plain and isinstance(self.body, Read | Constant)


@dataclass(frozen=True, slots=True)
class Reshape:
    """`tensor.expand_shape` (`expands`) or `tensor.collapse_shape`; `groups` number the dims of the longer shape."""

    result: int
    source: int
    groups: tuple[tuple[int, ...], ...]
    expands: bool
    location: Any
    rank: int

    @property
    def results(self) -> tuple[int, ...]:
        """Return the value it makes."""
        return (self.result,)

    @property
    def uses(self) -> tuple[int, ...]:
        """Return the tensor it reads."""
        return (self.source,)


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any other operation, kept as it is: `operands` are values, None where an operand is no tensor of the function.

    `order`, if there is one, is that of the dims of its tensors, which no longer is that of `op`.
    """

    results: tuple[int, ...]
    operands: tuple[int | None, ...]
    op: Any
    rank: int
    order: tuple[int, ...] = ()

    @property
    def uses(self) -> tuple[int, ...]:
        """Return the values it reads, without repeats."""
        return tuple(dict.fromkeys(value for value in self.operands if value is not None))


Node = Nest | Reshape | Opaque

TRANSPOSE = "transpose"
"""`kind` of a copy between two storage orders: a view, which has no name."""


class FusionGraph:
    """Nodes by the value they make, who uses what, and the shape and element type of every value."""

    def __init__(self) -> None:
        """Start empty."""
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.types: dict[int, str] = {}
        self.owners: dict[int, Node] = {}
        self.users: dict[int, set[int]] = {}
        self.outputs: list[int] = []

    def new_value(self, shape: tuple[int, ...], element_type: str) -> int:
        """Return a fresh value."""
        value = len(self.shapes)
        self.shapes[value] = shape
        self.types[value] = element_type
        self.users[value] = set()
        return value

    def add(self, node: Node) -> None:
        """Put a node in, or replace the one that makes the same values."""
        old = self.owners.get(node.results[0])
        if old is not None:
            self._forget(old)
        for value in node.results:
            self.owners[value] = node
        for value in node.uses:
            self.users[value].add(node.results[0])

    def _forget(self, node: Node) -> None:
        for value in node.uses:
            self.users[value].discard(node.results[0])
        for value in node.results:
            del self.owners[value]

    def remove_dead(self, *values: int) -> None:
        """Remove nodes that nothing reads, and then those that only they read; given values, only of their makers."""
        candidates = (
            [self.owners[value] for value in values if value in self.owners] if values else self.nodes()
        )
        dead = [node for node in candidates if self._is_dead(node)]
        while dead:
            node = dead.pop()
            if self.owners.get(node.results[0]) is not node:
                continue
            self._forget(node)
            sources = {value for value in node.uses if value in self.owners}
            dead += [self.owners[value] for value in sorted(sources) if self._is_dead(self.owners[value])]

    def _is_dead(self, node: Node) -> bool:
        return not any(self.users[value] or value in self.outputs for value in node.results)

    def nodes(self) -> list[Node]:
        """Return the nodes in the order of the source."""
        unique = {node.results[0]: node for node in self.owners.values()}
        return sorted(unique.values(), key=lambda node: (node.rank, node.results[0]))

    def nests(self) -> list[Nest]:
        """Return the loop nests in the order of the source."""
        return [node for node in self.nodes() if isinstance(node, Nest)]

    def owner(self, value: int) -> Node | None:
        """Return what makes a value, None for arguments of the function."""
        return self.owners.get(value)

    def only_user(self, value: int) -> Node | None:
        """Return the one node that reads a value, None if there are several or the function returns it."""
        users = self.users[value]
        if len(users) != 1 or value in self.outputs:
            return None
        return self.owners[next(iter(users))]

    def replace_uses(self, old: int, new: int) -> None:
        """Make everything that reads `old` read `new`, a value of the same shape."""
        for user in sorted(self.users[old]):
            node = self.owners[user]
            self.add(_renamed(node, old, new))
        self.outputs = [new if value == old else value for value in self.outputs]


def _renamed(node: Node, old: int, new: int) -> Node:
    if isinstance(node, Reshape):
        return replace(node, source=new)
    if isinstance(node, Opaque):
        return replace(node, operands=tuple(new if value == old else value for value in node.operands))

    def leaf(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Read) and scalar.value == old:
            return Read(new, scalar.dims)
        if isinstance(scalar, Extract) and scalar.table == old:
            return Extract(new, scalar.indices)
        return scalar

    return with_leaves(node, leaf)


def with_leaves(nest: Nest, leaf: Callable[[Scalar], Scalar]) -> Nest:
    """Return the nest with the leaves of all its scalars replaced."""
    memo: dict[int, Scalar] = {}
    body, init, epilogue = (
        None if part is None else rewrite(part, leaf, memo) for part in (nest.body, nest.init, nest.epilogue)
    )
    assert body is not None
    return replace(nest, body=body, init=init, epilogue=epilogue)


def sources_of(graph: FusionGraph, value: int) -> set[int]:
    """Return the values of which a value shows elements through views."""
    owner = graph.owner(value)
    if owner is None or (isinstance(owner, Nest) and not owner.is_move):
        return {value}
    return {source for shown in owner.uses for source in sources_of(graph, shown)}


def axis_of(nest: Nest, dim: int) -> int | None:
    """Return the axis that is dim `dim` of the result, None where the dim is constant 0."""
    form = nest.out_dims[dim]
    return None if is_zero(form) else form.terms[0].axis


def n_terms(nest: Nest) -> int:
    """Return how many terms are combined to one result."""
    return prod(extent for extent, kind in zip(nest.extents, nest.kinds, strict=True) if kind == REDUCTION)


def n_rows(graph: FusionGraph, nest: Nest) -> int:
    """Return the rows of the smaller operand of a product of two matrices, 0 for another nest (one with a batch).

    Operands are looked at through broadcasts and reshapes: it is the same before and after views are folded.
    """
    if not is_product(nest):
        return 0
    rows = [_n_elements(graph, read.value) // n_terms(nest) for read in reads(nest.body)]
    n_results = prod(nest.extents) // n_terms(nest)
    return min(rows) if len(rows) == 2 and rows[0] * rows[1] == n_results else 0


def n_rows_each(graph: FusionGraph, nest: Nest) -> int:
    """Return the rows of the smaller operand of every product in a batch of them; see `n_rows`.

    A convolution is a product of its features, and of as many rows as a feature has results.
    """
    body_reads = reads(nest.body)
    n_results = prod(nest.extents) // n_terms(nest)
    windows = [read for read in body_reads if any(len(dim.terms) > 1 for dim in read.dims)]
    if not windows:
        return n_results // max(*(_n_elements(graph, read.value) // n_terms(nest) for read in body_reads), 1)
    if len(windows) == len(body_reads):
        return 0
    (weights,) = (read for read in body_reads if read not in windows)
    n_features = max(_n_elements(graph, weights.value) // n_terms(nest), 1)
    walked = [{term.axis for dim in read.dims for term in dim.terms} for read in body_reads]
    batch = set[int].intersection(*walked)
    n_groups = prod(
        n for axis, n in enumerate(nest.extents) if axis in batch and nest.kinds[axis] != REDUCTION
    )
    return min(n_results // n_features, n_features // n_groups)


def _n_elements(graph: FusionGraph, value: int) -> int:
    """Return the elements of the tensor that a value shows, repeats not counted."""
    owner = graph.owner(value)
    while isinstance(owner, Reshape) or (isinstance(owner, Nest) and owner.is_move):
        sources = owner.uses
        if not sources:
            break
        (value,) = sources
        owner = graph.owner(value)
    return prod(graph.shapes[value])


def is_rounded(scalar: Scalar) -> TypeGuard[Apply]:
    """Return whether a scalar is another one rounded to a narrower type of floats."""
    return isinstance(scalar, Apply) and scalar.opcode == "arith.truncf"


def is_product(nest: Nest) -> bool:
    """Return whether the body multiplies two different reads, each through casts at most, and rounds that at most."""
    body = nest.body.operands[0] if is_rounded(nest.body) else nest.body
    if not isinstance(body, Apply) or body.opcode not in ("arith.mulf", "arith.muli"):
        return False
    left, right = (_through_casts(operand) for operand in body.operands)
    if not isinstance(left, Read) or not isinstance(right, Read):
        return False
    return left.value != right.value or left.dims != right.dims


def _through_casts(scalar: Scalar) -> Scalar:
    while isinstance(scalar, Apply) and len(scalar.operands) == 1 and scalar.opcode.startswith("arith."):
        scalar = scalar.operands[0]
    return scalar


def kind_of(nest: Nest) -> OperatorKind:
    """Return contraction, convolution, reduction, pooling, elementwise or gather."""
    if nest.is_gather:
        return "gather"
    if not nest.combine:
        return "elementwise"
    body_reads = reads(nest.body)
    if any(len(dim.terms) > 1 for read in body_reads for dim in read.dims):
        return "convolution" if is_product(nest) else "pooling"
    everywhere = all(
        {t.axis for dim in r.dims for t in dim.terms} == set(range(len(nest.extents))) for r in body_reads
    )
    if is_product(nest) and not everywhere and nest.combine in ("arith.addf", "arith.addi"):
        return "contraction"
    return "reduction"
