"""What one point of a loop nest computes, as a graph of immutable scalars whose leaves read tensors.

```
linalg body: %3 = arith.extf %in : f16 to f32      Apply("arith.extf", (Read(v, (d0, d2)),), "f32")
```

`body.BodyReader` reads them, `function_of` makes functions of values of them: `OperatorSpec` has those.

A node may have several parents. Nodes are equal only if they are the same object: comparing by content would visit
shared parts over and over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t10.core.expression import AffineDim
from t10.core.scalar import ScalarFunction
from t10.passes.bridge.affine import compose
from t10.passes.bridge.scalars import ScalarBuilder


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """An element of tensor `value` at an affine index over the axes of the nest."""

    value: int
    dims: tuple[AffineDim, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Constant:
    """A float, integer, index or boolean as `t10.core.scalar` spells it."""

    text: str
    dtype: str


@dataclass(frozen=True, eq=False, slots=True)
class Index:
    """The position on an axis, as `form` over the axes of the nest, of type index."""

    form: AffineDim


@dataclass(frozen=True, eq=False, slots=True)
class Accumulated:
    """In an epilogue: the result of the nest's reduction, or of its body if it reduces nothing."""


@dataclass(frozen=True, eq=False, slots=True)
class Apply:
    """An operation of `arith` or `math` on scalars; `attribute` as in `ScalarOp`."""

    opcode: str
    operands: tuple[Scalar, ...]
    dtype: str
    attribute: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Extract:
    """An element of tensor `table` at computed indices (`tensor.extract`)."""

    table: int
    indices: tuple[Scalar, ...]


Scalar = Read | Constant | Index | Accumulated | Apply | Extract

EXPENSIVE_PREFIX = "math."
EXPENSIVE = frozenset({"arith.divsi", "arith.divui", "arith.remf"})
WIDENING = frozenset({"arith.extf", "arith.extsi", "arith.extui"})


def rewrite(
    scalar: Scalar, leaf: Callable[[Scalar], Scalar], memo: dict[int, Scalar] | None = None
) -> Scalar:
    """Return the scalar with every leaf and every Extract replaced by `leaf(...)`; what is shared stays shared."""
    memo = {} if memo is None else memo
    known = memo.get(id(scalar))
    if known is not None:
        return known
    if isinstance(scalar, Apply):
        operands = tuple(rewrite(operand, leaf, memo) for operand in scalar.operands)
        same = all(new is old for new, old in zip(operands, scalar.operands, strict=True))
        made: Scalar = scalar if same else replace(scalar, operands=operands)
    elif isinstance(scalar, Extract):
        indices = tuple(rewrite(index, leaf, memo) for index in scalar.indices)
        same = all(new is old for new, old in zip(indices, scalar.indices, strict=True))
        made = leaf(scalar if same else Extract(scalar.table, indices))
    else:
        made = leaf(scalar)
    memo[id(scalar)] = made
    return made


def substitute_axes(scalar: Scalar, by_axis: Sequence[AffineDim]) -> Scalar:
    """Return the scalar over other axes: axis `a` becomes `by_axis[a]`."""

    def leaf(node: Scalar) -> Scalar:
        if isinstance(node, Read):
            return Read(node.value, tuple(compose(dim, by_axis) for dim in node.dims))
        if isinstance(node, Index):
            return Index(compose(node.form, by_axis))
        return node

    return rewrite(scalar, leaf)


def visit(scalar: Scalar) -> list[Scalar]:
    """Return every node of the graph once, operands before the operations that use them."""
    if not isinstance(scalar, Apply | Extract):
        return [scalar]
    found: list[Scalar] = []
    _collect(scalar, found, set())
    return found


def _collect(node: Scalar, found: list[Scalar], seen: set[int]) -> None:
    """Append every node of the graph that was not seen yet, operands first."""
    seen.add(id(node))
    inner = node.operands if isinstance(node, Apply) else node.indices if isinstance(node, Extract) else ()
    for operand in inner:
        if id(operand) not in seen:
            _collect(operand, found, seen)
    found.append(node)


def reads(scalar: Scalar) -> list[Read]:
    """Return the reads of a scalar, in order of evaluation."""
    return [node for node in visit(scalar) if isinstance(node, Read)]


def tables(scalar: Scalar) -> list[int]:
    """Return the tensors that a scalar indexes by computed indices."""
    return [node.table for node in visit(scalar) if isinstance(node, Extract)]


def has_extract(scalar: Scalar) -> bool:
    """Return whether a scalar reads a tensor at computed indices."""
    return bool(tables(scalar))


def cost(scalar: Scalar) -> int:
    """Return how much one evaluation costs in simple operations; math functions count 16, casts nothing."""
    total = 0
    for node in visit(scalar):
        if isinstance(node, Apply) and node.opcode not in WIDENING:
            expensive = node.opcode.startswith(EXPENSIVE_PREFIX) or node.opcode in EXPENSIVE
            total += 16 if expensive else 1
    return total


def function_of(
    scalar: Scalar, n_inputs: int, number: Callable[[Scalar], int], order: Sequence[Scalar] = ()
) -> ScalarFunction:
    """Return a scalar as a function of `n_inputs` values.

    `number` says which of them a read, an extract or the accumulated value is; what the scalar needs of `order` comes
    first, in that order.
    """
    needed = {id(node) for node in visit(scalar)} if order else set[int]()
    builder = ScalarBuilder(n_inputs)
    made: dict[int, int] = {}

    def add(node: Scalar) -> int:
        if id(node) not in made:
            made[id(node)] = append(node)
        return made[id(node)]

    def append(node: Scalar) -> int:
        if isinstance(node, Apply):
            return builder.add(
                node.opcode, tuple(add(each) for each in node.operands), node.dtype, node.attribute
            )
        if isinstance(node, Constant):
            return builder.constant(node.text, node.dtype)
        return builder.affine(node.form) if isinstance(node, Index) else number(node)

    for node in order:
        if id(node) in needed:
            add(node)
    return builder.finish(add(scalar))


def spelled(scalar: Scalar, numbers: Mapping[int, int] | None = None) -> tuple[Any, ...]:
    """Return a scalar as values that compare: its nodes in order, operands by number.

    Tensors have other numbers where `numbers` says so.
    """
    nodes = visit(scalar)
    place = {id(node): number for number, node in enumerate(nodes)}
    result: list[tuple[Any, ...]] = []
    for node in nodes:
        match node:
            case Apply():
                operands = tuple(place[id(operand)] for operand in node.operands)
                result.append((node.opcode, operands, node.dtype, node.attribute))
            case Read():
                result.append(("read", (numbers or {}).get(node.value, node.value), node.dims))
            case Constant():
                result.append(("constant", node.text, node.dtype))
            case Index():
                result.append(("index", node.form))
            case Accumulated():
                result.append(("accumulated",))
            case _:
                # What is gathered is never joined: no two are the same.
                result.append(("extract", id(node)))
    return tuple(result)
