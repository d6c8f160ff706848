"""What surrounds a sum of 16-bit floats is computed in f32, as the sum is: one rounding per operator.

```
acc: f32 += extf(x * x);  y = sqrt(truncf(acc) / 64)
acc: f32 += extf(x) * extf(x);  y = truncf(sqrt(acc / 64))     is what the first becomes
```

A sum, or a square that is summed, may leave the range of f16 where a mean, a norm or a deviation does not. If other
operators compute with the sum, they read it in f32:

```
m = truncf(acc / 64);  y = sqrt(m);  z = x * m
m = acc / 64;  y = truncf(sqrt(m));  z = x * truncf(m)     is what the first becomes
```
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from t10.passes.bridge.affine import ZERO, axis_dim
from t10.passes.bridge.tree import Accumulated, Apply, Index, Read, Scalar, reads, tables, visit
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, kind_of, with_leaves
from t10.passes.fusion.wide_scalars import WIDE, WideScalars

BEHIND_A_PRODUCT = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "math.sqrt")
"""Biases, scales and roots: what stands right behind the total of a contraction, and may bring it into range."""
OF_ANY_SIZE = ("arith.divf",)
"""What a tile computes in f32 anyway: a large tensor is divided by a total in f32."""


def stay_wide(graph: FusionGraph) -> None:
    """Compute products that are summed, and what follows a widened sum, in f32.

    In the operator of a reduction or pooling that is everything. Behind a contraction or convolution it is biases,
    scales and roots, and in other operators what has no more elements than the sum: the rest is computed for every
    element of a large tensor, in 16 bits.
    """
    sharing = _Sharing(graph)
    for value in [nest.result for nest in graph.nests()]:
        nest = graph.owners[value]
        assert isinstance(nest, Nest)
        if nest.sum_type and nest.combine:
            graph.add(_in_single(graph, nest))
            if kind_of(nest) == "reduction" and not _has_cast(nest):
                sharing.share(value)
        elif value in sharing.rounded:
            sharing.share(value)


def _in_single(graph: FusionGraph, nest: Nest) -> Nest:
    """Return the nest of a widened sum with its products, and what follows the sum, in f32."""
    nodes = () if nest.epilogue is None else visit(nest.epilogue)
    totals = {
        id(node) for node in nodes if _is_conversion(node) and isinstance(node.operands[0], Accumulated)
    }
    n_uses = Counter(id(operand) for node in nodes if isinstance(node, Apply) for operand in node.operands)

    def is_right_behind(scalar: Scalar) -> bool:
        if not isinstance(scalar, Apply) or scalar.opcode not in BEHIND_A_PRODUCT:
            return False
        of_total = [operand for operand in scalar.operands if wide.depends(operand)]
        if len(of_total) != 1 or n_uses[id(of_total[0])] != 1:
            return False
        return id(of_total[0]) in totals or is_right_behind(of_total[0])

    def fits(scalar: Apply) -> bool:
        return not wide.is_product or is_right_behind(scalar)

    wide = WideScalars(graph, nest, nest.sum_type, totals, fits)
    epilogue = None if nest.epilogue is None else wide.rounded(nest.epilogue)
    return replace(nest, body=wide.summed(nest.body), epilogue=epilogue, sum_type="")


@dataclass(slots=True)
class _Sharing:
    """Values kept in f32 between operators.

    `wide` are these values; `rounded` those that are now made by rounding an f32, where the model computes in 16 bits.
    """

    graph: FusionGraph
    wide: set[int] = field(default_factory=set[int])
    rounded: set[int] = field(default_factory=set[int])

    def share(self, value: int) -> None:
        """Make a value, and its rounding apart from it, if a reader computes with what is not rounded."""
        graph = self.graph
        nest = graph.owners[value]
        assert isinstance(nest, Nest)
        conversion = nest.epilogue if nest.combine else nest.body
        if not _is_conversion(conversion):
            return
        source = conversion.operands[0]
        wide = graph.new_value(graph.shapes[value], WIDE)
        users = [graph.owners[user] for user in sorted(graph.users[value])]
        readers = [user for user in users if isinstance(user, Nest) and _may_read_wide(user, value)]
        made = [self._reading(reader, value, wide) for reader in readers]
        if not any(_computes_with(reader, wide) for reader in made):
            return
        self.wide.add(wide)
        if nest.combine:
            graph.add(
                replace(nest, result=wide, epilogue=None if isinstance(source, Accumulated) else source)
            )
        else:
            graph.add(replace(nest, result=wide, body=source, acc_type=WIDE))
        for old, new in zip(readers, made, strict=True):
            graph.add(new)
            if self._is_rounded(old, new):
                self.rounded.add(new.result)
        if graph.users[value] or value in graph.outputs:
            graph.add(self._rounding(nest, value, wide))
        else:
            graph.remove_dead(value)

    def _reading(self, reader: Nest, value: int, wide: int) -> Nest:
        """Return a reader of a value that reads it in f32."""
        narrow = self.graph.types[value]

        def leaf(scalar: Scalar) -> Scalar:
            if not isinstance(scalar, Read) or scalar.value != value:
                return scalar
            return Apply("arith.truncf", (Read(wide, scalar.dims),), narrow)

        taken = with_leaves(reader, leaf)
        found = {
            id(node): _axes(node)
            for part in (taken.body, taken.epilogue)
            for node in _conversions(part)
            if isinstance(node.operands[0], Read) and node.operands[0].value in {*self.wide, wide}
        }

        def fits(scalar: Apply) -> bool:
            of_totals = {axis for node in visit(scalar) for axis in found.get(id(node), ())}
            return scalar.opcode in OF_ANY_SIZE or _axes(scalar) <= of_totals

        scalars = WideScalars(self.graph, reader, narrow, found, fits)
        epilogue = None if taken.epilogue is None else scalars.rounded(taken.epilogue)
        return replace(taken, body=scalars.rounded(taken.body), epilogue=epilogue)

    def _is_rounded(self, old: Nest, new: Nest) -> bool:
        """Return whether a nest that has as many elements as what it reads in f32 has come to round its result."""
        if new.combine or not _is_conversion(new.body) or _is_conversion(old.body):
            return False
        of_wide = [read for read in reads(new.body) if read.value in self.wide]
        return {axis for read in of_wide for axis in _axes(read)} == set(range(len(new.extents)))

    def _rounding(self, nest: Nest, value: int, wide: int) -> Nest:
        """Return what makes a value of the one in f32: for outputs, and readers of 16 bits."""
        shape = self.graph.shapes[value]
        long = [dim for dim, extent in enumerate(shape) if extent != 1]
        dims = tuple(axis_dim(long.index(dim)) if dim in long else ZERO for dim in range(len(shape)))
        narrow = self.graph.types[value]
        return Nest(
            result=value,
            extents=tuple(shape[dim] for dim in long),
            kinds=(PARALLEL,) * len(long),
            body=Apply("arith.truncf", (Read(wide, dims),), narrow),
            out_dims=dims,
            acc_type=narrow,
            location=nest.location,
            rank=nest.rank,
        )


def _may_read_wide(reader: Nest, value: int) -> bool:
    """Return whether a nest may read a value in f32: not where the matrix engine reads it, or a gather."""
    if reader.is_transpose or any(value in tables(part) for part in reader.parts):
        return False
    if reader.init is not None and _reads(reader.init, value):
        return False
    return not _reads(reader.body, value) or kind_of(reader) in ("elementwise", "reduction")


def _computes_with(reader: Nest, wide: int) -> bool:
    """Return whether a nest does more with a value in f32 than to round it."""
    nodes = [node for part in reader.parts for node in visit(part) if isinstance(node, Apply)]
    return any(not _is_conversion(node) and _reads_directly(node, wide) for node in nodes)


def _reads(scalar: Scalar, value: int) -> bool:
    return any(read.value == value for read in reads(scalar))


def _reads_directly(node: Apply, value: int) -> bool:
    return any(isinstance(operand, Read) and operand.value == value for operand in node.operands)


def _has_cast(nest: Nest) -> bool:
    """Return whether the model itself rounds what the nest of a widened sum makes."""
    return _is_conversion(nest.epilogue) and not isinstance(nest.epilogue.operands[0], Accumulated)


def _is_conversion(scalar: Scalar | None) -> TypeGuard[Apply]:
    return isinstance(scalar, Apply) and scalar.opcode == "arith.truncf"


def _conversions(part: Scalar | None) -> Iterator[Apply]:
    """Yield what is rounded in a scalar."""
    return (node for node in (() if part is None else visit(part)) if _is_conversion(node))


def _axes(scalar: Scalar) -> set[int]:
    """Return the axes that a scalar depends on."""
    found: set[int] = set()
    for node in visit(scalar):
        if isinstance(node, Read):
            found.update(axis for dim in node.dims for axis in dim.axes)
        elif isinstance(node, Index):
            found.update(node.form.axes)
    return found
