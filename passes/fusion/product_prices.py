"""What a product takes, as its three tensors are stored: counted for a chip, over boxes that a plan may use.

Which operand streams, whether operands are copied first and how results are written all follow from the order of dims
in memory: `x[m, k] * w[n, k]` summed to `y[m, n]` or to `y[n, m]` differ by up to seven times where m is small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import AffineDim, Axis, AxisSizes, Operand, OperatorSpec, Role
from t10.core.orders import permuted
from t10.core.part_lengths import whole_lengths
from t10.core.placed_costs import StepLies
from t10.core.products import n_nest_operands
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.vertex_nest import Lie
from t10.cost.counted import CountedSteps
from t10.plan.memory.storage import TURNED, ProductOrders, RowRule

LEAST_CYCLES = 16
"""Cycles are rounded down to a multiple of this. Between orders that then cost the same the rule decides."""
FEW_BOXES, MANY_BOXES = 8, 64
"""So many boxes are counted, those in which least is computed and moved by a simple rule."""
SLOWER, MORE_CYCLES = 1.25, 256
"""Sums in 16 bits are left unless they take so many times as long, and so much longer: what is counted is few boxes."""
PARTS_OF_WEIGHTS = 2
"""Weights fit every core if they take no more than such a part of its memory."""
OF_COPIES = 4
"""Of weights that fit every core such a part counts of what would move: what is counted is few boxes.

Tried 2, 4, and nothing counts: random products on 7 to 64 cores take 0.95, 0.93 and 0.91 of what they took, at most
1.00, 1.00 and 1.01; on 1,472 cores 1.00, 0.98 and 0.99, at most 1.00, 1.02 and 1.24.
"""
MACS_PER_CYCLE = 16
"""Of that rule: a rate that engines reach on small boxes."""
WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Tensor:
    """One of the three tensors of a product: type, extents and index forms per given dim."""

    dtype: str
    extents: tuple[int, ...]
    dims: tuple[AffineDim, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A chip, and the tensors that lie outside its interleaved region: it does not hold them all.

    All weights together fit every core if tensors are `everywhere`: then they need not move.
    """

    chip: ChipSpec
    outside: frozenset[int]
    everywhere: frozenset[int] = frozenset()

    @classmethod
    def of(cls, chip: ChipSpec, weights: Mapping[int, int]) -> Target:
        """Return the target of a model with weights of so many bytes."""
        memory = chip.tile_memory
        room = (memory.end - memory.interleaved_base) * chip.n_cores
        total, own_room = sum(weights.values()), chip.capacity_bytes // PARTS_OF_WEIGHTS
        outside, everywhere = (
            frozenset(weights if is_so else ()) for is_so in (total > room, total <= own_room)
        )
        return cls(chip, outside, everywhere)


@dataclass(frozen=True, slots=True, eq=False)
class CountedProduct:
    """A sum of products over `extents`, reduced along `reduced`, as it is counted for a chip.

    Operands whose numbers are in `outside` lie outside the interleaved region. Where a core `rounds` what it has summed
    (`mixed`), it sums in f32. Those in `everywhere` count less (`OF_COPIES`).
    """

    extents: AxisSizes
    reduced: frozenset[int]
    tensors: tuple[Tensor, Tensor, Tensor]
    chip: ChipSpec
    outside: frozenset[int]
    rounds: bool
    everywhere: frozenset[int] = frozenset()
    n_boxes: int = FEW_BOXES
    known: dict[ProductOrders, Ints] = field(default_factory=dict[ProductOrders, Ints])

    def link_bytes(self, orders: ProductOrders, turned: tuple[bool, bool] = (False, False)) -> int:
        """Return the bytes that a link carries while the product is computed, in the best box.

        `orders` are those in which cores hold operands and result; operands that are `turned` rest in other orders.
        """
        boxes = _boxes(
            self.extents, self.reduced, self.tensors, self.chip.n_cores, self.everywhere, self.n_boxes
        )
        if orders not in self.known:
            self.known[orders] = self._counted(self._spec(orders), boxes.parts)
        bytes_moved = self.known[orders] * WORD_BYTES + boxes.sums
        for number, is_turned in enumerate(turned):
            # What rests in another order comes whole, even where each core has its own part of it.
            arrivals = boxes.operands[number] * TURNED if is_turned else boxes.arrivals[number]
            bytes_moved = bytes_moved + arrivals
        return int(bytes_moved.min())

    def _counted(self, spec: OperatorSpec, parts: Ints) -> Ints:
        """Return the cycles (n,) of a step if an operator is cut in these parts (n, axes)."""
        lengths = whole_lengths(spec, parts)
        windows = np.repeat(lengths[:, None], len(spec.rotatable), axis=1)
        best = Lie.best(n_nest_operands(spec), is_wide=self.chip.has_interleaved_data)
        lie = Lie(best.interleaved - self.outside, best.apart)
        costs = CountedSteps(self.chip, StepLies(lie, lie, lie))
        return costs.step(spec, lengths, windows, np.zeros(len(lengths), bool))

    def _spec(self, orders: ProductOrders) -> OperatorSpec:
        names: tuple[Role, Role, Role] = ("activation", "activation", "output")
        first, second, result = (
            Operand(
                f"t{number}",
                role,
                tensor.dtype,
                permuted(tensor.extents, order),
                permuted(tensor.dims, order),
            )
            for number, (role, tensor, order) in enumerate(zip(names, self.tensors, orders, strict=True))
        )
        axes = tuple(
            Axis(f"a{number}", extent, "reduction" if number in self.reduced else "parallel")
            for number, extent in enumerate(self.extents)
        )
        acc = self.tensors[2].dtype
        return OperatorSpec(
            "product",
            "contraction",
            axes,
            (first, second),
            result,
            "sum",
            _body(first.dtype, second.dtype, acc, rounds=self.rounds),
            acc,
        )


def is_slower(narrow: int, wide: int) -> bool:
    """Return whether sums in 16 bits take so much longer than in f32, in bytes of a link, that they are left."""
    return narrow > SLOWER * wide and narrow - wide > MORE_CYCLES * WORD_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class CountedPrice:
    """The price of a product as its tensors are stored: what `rule` says, and what is counted.

    If it sums in 16 bits it may be `wide` instead, which sums in f32 (`is_slower`).
    """

    product: CountedProduct
    rule: RowRule
    wide: CountedProduct | None = None

    def __call__(self, orders: ProductOrders, turned: tuple[bool, bool]) -> int:
        """Return the bytes that all links carry while the product is computed; see `CountedProduct.link_bytes`."""
        unit = LEAST_CYCLES * WORD_BYTES
        counted = self.product.link_bytes(orders, turned)
        if self.wide is not None:
            wide = self.wide.link_bytes(orders, turned)
            counted = wide if is_slower(counted, wide) else counted
        return counted // unit * unit * self.product.chip.n_cores + self.rule(orders, turned)


def _body(first: str, second: str, acc: str, *, rounds: bool) -> ScalarFunction:
    """Return the product of two values in the type of the sum, or in f32 and rounded to it."""
    made = "f32" if rounds else acc
    ops: list[ScalarOp] = []
    values: list[int] = []
    for number, dtype in enumerate((first, second)):
        if dtype == made:
            values.append(number)
        else:
            values.append(2 + len(ops))
            ops.append(ScalarOp("arith.extf", (number,), made))
    ops.append(ScalarOp("arith.mulf", (values[0], values[1]), made))
    if rounds:
        ops.append(ScalarOp("arith.truncf", (1 + len(ops),), acc))
    return ScalarFunction(2, tuple(ops), 1 + len(ops))


@dataclass(frozen=True, slots=True)
class _Boxes:
    """Parts (n, axes) in which all cores together compute a product, and bytes (n,) of each core.

    `operands` are those of the two operands, `arrivals` what of them other cores have, `sums` what of results moves.
    """

    parts: Ints
    operands: tuple[Ints, Ints]
    arrivals: tuple[Ints, Ints]
    sums: Ints


@lru_cache(maxsize=256)
def _boxes(
    extents: AxisSizes,
    reduced: frozenset[int],
    tensors: tuple[Tensor, Tensor, Tensor],
    n_cores: int,
    everywhere: frozenset[int],
    n_boxes: int,
) -> _Boxes:
    """Return boxes in which little is computed and moved: the best of each length of each axis, of these the best."""
    sizes = _lengths(extents, n_cores)
    parts = -(-np.array(extents, np.int64) // sizes)
    n_parts = parts.prod(axis=1)
    first, second, results = (_elements(tensor, sizes) * size_bytes(tensor.dtype) for tensor in tensors)
    at_rest = [prod(tensor.extents) * size_bytes(tensor.dtype) // n_parts for tensor in tensors]
    arrivals = tuple(
        np.maximum(there - own, 0) // (OF_COPIES if number in everywhere else 1)
        for number, (there, own) in enumerate(zip((first, second), at_rest, strict=False))
    )
    split = parts[:, sorted(reduced)].prod(axis=1)
    sums = np.where(split > 1, results + results // split, 0)
    cycles = sizes.prod(axis=1) // MACS_PER_CYCLE + (sum(arrivals) + sums) // WORD_BYTES
    order = np.argsort(cycles, kind="stable")
    firsts = [np.unique(sizes[order, axis], return_index=True)[1] for axis in range(len(extents))]
    best = order[np.unique(np.concatenate(firsts))[:n_boxes]]
    operands = first[best], second[best]
    return _Boxes(parts[best], operands, (arrivals[0][best], arrivals[1][best]), sums[best])


def _lengths(extents: AxisSizes, n_cores: int) -> Ints:
    """Return boxes (n, axes) that leave less than half of the cores idle: lengths of 2^n and 3 * 2^n, whole axes."""
    rows = np.ones((1, 0), np.int64)
    n_parts = np.ones(1, np.int64)
    for extent in extents:
        powers = [1 << bit for bit in range(extent.bit_length())]
        lengths = sorted({extent, *(n for power in powers for n in (power, 3 * power) if n < extent)})
        rows = np.hstack([np.repeat(rows, len(lengths), axis=0), np.tile(lengths, len(rows))[:, None]])
        n_parts = np.repeat(n_parts, len(lengths)) * -(-extent // rows[:, -1])
        rows, n_parts = rows[n_parts <= n_cores], n_parts[n_parts <= n_cores]
    return rows[2 * n_parts > n_parts.max()]


def _elements(tensor: Tensor, sizes: Ints) -> Ints:
    """Return the elements (n,) of a tensor that boxes (n, axes) touch."""
    elements = np.ones(len(sizes), np.int64)
    for dim in tensor.dims:
        if dim.terms:
            elements *= 1 + sum(term.coefficient * (sizes[:, term.axis] - 1) for term in dim.terms)
    return elements
