"""Storage orders: the dim orders that operators prefer for their tensors, and the cost of others.

Costs are bytes, weighted: those that a reader's cores get element by element because maker and reader disagree about
the innermost dim, those that are merely in another order, and what all links could carry while products
are computed. Orders are chosen before there are plans. Extents of 1 never count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from t10.core.orders import Order, given_order, moved_last, significant

REORDERED = 1
"""Weight of a byte whose maker and reader agree about the innermost dim, but not about the others."""
TURNED = 8
"""Weight of a byte that a core gets element by element: two bytes take about 4 cycles more, gathered, sent, scattered.
It holds where it is known how often a byte is taken, and where rows are put together, once."""
TRANSPOSED = 4 * TURNED
"""Weight of a byte whose maker and reader disagree about the innermost dim: several cores take it, some more than
others (BERT's layers paid three to five times as much as `TURNED` says)."""
SCATTERED = 32
"""Weight of a byte of what no engine reads or writes in a row."""

Axes = tuple[int | None, ...]
"""Per given dim the loop axis that indexes it, None where none does alone."""

Orders = Mapping[int, Order]
ProductOrders = tuple[Order, Order, Order]
"""Orders of the operands of a product and of its result."""
ProductPrice = Callable[[ProductOrders, tuple[bool, bool]], int]


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor: extents per given dim, bytes, and whether it must stay in the given order."""

    extents: tuple[int, ...]
    n_bytes: int
    is_fixed: bool = False

    @property
    def given(self) -> Order:
        """Return the given order."""
        return given_order(len(self.extents))


Tensors = Mapping[int, Stored]


def walked(order: Order, axes: Axes, extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes in the order in which their dims stand in memory, without dims of extent 1 or of no one axis."""
    return tuple(axis for dim in significant(order, extents) if (axis := axes[dim]) is not None)


def innermost(order: Order, axes: Axes, extents: tuple[int, ...]) -> int | None:
    """Return the axis of the last dim that is not of extent 1, None if there is none or no one axis indexes it."""
    dims = significant(order, extents)
    return axes[dims[-1]] if dims else None


@dataclass(frozen=True, slots=True)
class Follow:
    """Two tensors that one loop nest walks together: best if their common axes stand in one order.

    `is_view` where the follower is the leader padded, cut or joined with others, dim by dim: then any difference is a
    transpose between them.
    """

    leader: int
    follower: int
    leader_axes: Axes
    follower_axes: Axes
    is_view: bool = False

    @property
    def values(self) -> tuple[int, ...]:
        """Return the tensors it is about."""
        return (self.leader, self.follower)

    def cost(self, orders: Orders, tensors: Tensors) -> int:
        """Return the weighted bytes of the follower if the orders differ."""
        first, second = tensors[self.leader], tensors[self.follower]
        if self.is_view and orders[self.leader] != orders[self.follower]:
            return max(TRANSPOSED * second.n_bytes * self._differ(orders, tensors), 1)
        leading = walked(orders[self.leader], self.leader_axes, first.extents)
        following = walked(orders[self.follower], self.follower_axes, second.extents)
        common = frozenset(leading) & frozenset(following)
        leading = tuple(axis for axis in leading if axis in common)
        if leading == tuple(axis for axis in following if axis in common):
            return 0
        last = innermost(orders[self.leader], self.leader_axes, first.extents)
        is_apart = last in common and last != innermost(
            orders[self.follower], self.follower_axes, second.extents
        )
        return second.n_bytes * (TRANSPOSED if is_apart else REORDERED)

    def _differ(self, orders: Orders, tensors: Tensors) -> bool:
        """Return whether a tensor and what it is a view of stand in different orders in memory."""
        kept = (significant(orders[value], tensors[value].extents) for value in self.values)
        first, second = kept
        common = frozenset(first) & frozenset(second)
        return [d for d in first if d in common] != [d for d in second if d in common]

    def induced(self, source: int, orders: Orders, tensors: Tensors) -> Order | None:
        """Return the order that the other tensor takes to agree with `source`; its other dims keep their places."""
        if self.is_view:
            return orders[source]
        pairs = ((self.leader, self.leader_axes), (self.follower, self.follower_axes))
        (_, axes), (other, other_axes) = pairs if source == self.leader else pairs[::-1]
        extents = tensors[other].extents
        dim_by_axis = {
            axis: dim for dim, axis in enumerate(other_axes) if axis is not None and extents[dim] != 1
        }
        walk = dict.fromkeys(walked(orders[source], axes, tensors[source].extents))
        wanted = [axis for axis in walk if axis in dim_by_axis]
        moving = iter([dim_by_axis[axis] for axis in wanted])
        placed = {dim_by_axis[axis] for axis in wanted}
        return tuple(next(moving) if dim in placed else dim for dim in tensors[other].given)

    def wishes(self, value: int, orders: Orders, tensors: Tensors) -> list[Order]:
        """Return the orders of one tensor that would please, given those of the others."""
        other = self.follower if value == self.leader else self.leader
        made = None if other == value else self.induced(other, orders, tensors)
        return [] if made is None else [made]


@dataclass(frozen=True, slots=True)
class Regroup:
    """A reshape: dims of the longer shape stand in `groups`, one per dim of the shorter.

    It renames as long as the dims of a group stay together, in sequence, and groups stand as the shorter dims do.
    """

    longer: int
    shorter: int
    groups: tuple[tuple[int, ...], ...]

    @property
    def values(self) -> tuple[int, ...]:
        """Return the tensors it is about."""
        return (self.longer, self.shorter)

    def cost(self, orders: Orders, tensors: Tensors) -> int:
        """Return the weighted bytes if there must be a transpose on one side, 1 if it moves dims of extent 1 only."""
        spread = tuple(dim for group in orders[self.shorter] for dim in self.groups[group])
        if spread == orders[self.longer]:
            return 0
        extents = tensors[self.longer].extents
        if significant(orders[self.longer], extents) == significant(spread, extents):
            return 1
        return TRANSPOSED * tensors[self.longer].n_bytes

    def induced(self, source: int, orders: Orders, tensors: Tensors) -> Order | None:
        """Return the order that the other tensor takes to agree with `source`, None if none does."""
        if source == self.shorter:
            return tuple(dim for group in orders[source] for dim in self.groups[group])
        group_of = {dim: number for number, group in enumerate(self.groups) for dim in group}
        extents = tensors[self.longer].extents
        kept = significant(orders[source], extents)
        sequence = list(dict.fromkeys(group_of[dim] for dim in kept))
        if tuple(d for g in sequence for d in self.groups[g] if extents[d] != 1) != kept:
            return None
        moving = iter(sequence)
        return tuple(next(moving) if g in sequence else g for g in tensors[self.shorter].given)

    def wishes(self, value: int, orders: Orders, tensors: Tensors) -> list[Order]:
        """Return the orders of one tensor that would please, given those of the others."""
        other = self.shorter if value == self.longer else self.longer
        made = self.induced(other, orders, tensors)
        return [] if made is None else [made]


@dataclass(frozen=True, slots=True)
class RowRule:
    """The price of a product in which both operands have many rows: engines stream one and hold blocks of the other.

    Both have one of the summed axes `inner` innermost then, the result one of `rows`. `axes` and `tensors` are those of
    the operands and the result; `lanes` are, per operand, axes that may as well be innermost: those of a matrix that is
    multiplied with a vector, where there is nothing for the engine to do.
    """

    axes: tuple[Axes, Axes, Axes]
    tensors: tuple[Stored, Stored, Stored]
    inner: frozenset[int]
    rows: frozenset[int]
    lanes: tuple[frozenset[int], frozenset[int]]

    def __call__(self, orders: ProductOrders, turned: tuple[bool, bool]) -> int:
        """Return the weighted bytes of what is transposed on its way, and of what engines do not read or write so."""
        first, second, last = (
            innermost(order, axes, tensor.extents)
            for order, axes, tensor in zip(orders, self.axes, self.tensors, strict=True)
        )
        moved = sum(
            TURNED * t.n_bytes for t, is_turned in zip(self.tensors[:2], turned, strict=True) if is_turned
        )
        for tensor, innermost_axis, lanes in zip(self.tensors[:2], (first, second), self.lanes, strict=True):
            moved += SCATTERED * tensor.n_bytes * (innermost_axis not in self.inner | lanes)
        if first != second and {first, second} <= self.inner:
            moved += SCATTERED * self.tensors[0].n_bytes
        return moved if last is None or last in self.rows else moved + SCATTERED * self.tensors[2].n_bytes


@dataclass(frozen=True, slots=True)
class Product:
    """A sum of products: how fast it is computed depends on how its operands and its result are stored.

    `values` are the operands, then the result, and `axes` theirs; `inner` are the summed axes that index a dim of each
    operand alone, `own` the axes that may be the result's innermost. An operand is read as it is stored, or through a
    transpose that brings a summed axis to its end. `price` gives weighted bytes, for the three orders in which cores
    hold all, and for each operand whether it is transposed on its way.
    """

    values: tuple[int, int, int]
    axes: tuple[Axes, Axes, Axes]
    inner: tuple[int, ...]
    own: frozenset[int]
    price: ProductPrice

    def cost(self, orders: Orders, tensors: Tensors) -> int:
        """Return the weighted bytes of the best way to read the operands."""
        return self._best(orders, tensors)[0]

    def read_orders(self, orders: Orders, tensors: Tensors) -> tuple[Order, Order]:
        """Return the orders in which the operands are read: as they are stored where that is not slower."""
        return self._best(orders, tensors)[1]

    def _best(self, orders: Orders, tensors: Tensors) -> tuple[int, tuple[Order, Order]]:
        one, other, result = (orders[value] for value in self.values)
        ways = [
            (self.price((first, second, result), (first != one, second != other)), (first, second))
            for first in self._ways(0, one, tensors)
            for second in self._ways(1, other, tensors)
        ]
        return min(ways, key=lambda way: way[0])

    def _ways(self, number: int, stored: Order, tensors: Tensors) -> list[Order]:
        """Return the orders in which an operand may be read: as it is stored, or with a summed axis innermost."""
        last = innermost(stored, self.axes[number], tensors[self.values[number]].extents)
        turned = [self._wanted(number, axis, stored) for axis in self.inner if axis != last]
        return list(dict.fromkeys([stored, *turned]))

    def _wanted(self, number: int, axis: int, order: Order) -> Order:
        """Return an operand's order with the dims of the summed axes at its end, that of `axis` last."""
        dim_by_axis = {a: dim for dim, a in enumerate(self.axes[number]) if a is not None}
        others = sorted(dim_by_axis[a] for a in self.inner if a != axis)
        return moved_last(order, (*others, dim_by_axis[axis]))

    def wishes(self, value: int, orders: Orders, tensors: Tensors) -> list[Order]:
        """Return the orders of an operand with a summed axis innermost, of the result with any that may be."""
        del orders
        given = tensors[value].given
        found: list[Order] = []
        for number, operand in enumerate(self.values[:2]):
            if operand == value:
                found += [self._wanted(number, axis, given) for axis in reversed(self.inner)]
        if value == self.values[2]:
            dims = [dim for dim, axis in enumerate(self.axes[2]) if axis in self.own]
            found += [moved_last(given, (dim,)) for dim in reversed(dims)]
        return found


@dataclass(frozen=True, slots=True)
class AsGiven:
    """A tensor that an operation must have in the given order."""

    value: int
    weight: int = TRANSPOSED

    @property
    def values(self) -> tuple[int, ...]:
        """Return the tensor it is about."""
        return (self.value,)

    def cost(self, orders: Orders, tensors: Tensors) -> int:
        """Return the weighted bytes if the tensor is stored in another order, 1 if only dims of extent 1 are moved."""
        tensor = tensors[self.value]
        if orders[self.value] == tensor.given:
            return 0
        kept = significant(orders[self.value], tensor.extents)
        return 1 if kept == significant(tensor.given, tensor.extents) else self.weight * tensor.n_bytes

    def wishes(self, value: int, orders: Orders, tensors: Tensors) -> list[Order]:
        """Return the given order."""
        del orders
        return [tensors[value].given]


@dataclass(frozen=True, slots=True)
class Joined:
    """A tensor that is joined along a dim and then read: rows of pieces are put together where that is innermost."""

    value: int
    dim: int

    @property
    def values(self) -> tuple[int, ...]:
        """Return the tensor it is about."""
        return (self.value,)

    def cost(self, orders: Orders, tensors: Tensors) -> int:
        """Return the weighted bytes if the tensor is joined along its innermost dim."""
        tensor = tensors[self.value]
        dims = significant(orders[self.value], tensor.extents)
        return TURNED * tensor.n_bytes * (dims[-1:] == (self.dim,))

    def wishes(self, value: int, orders: Orders, tensors: Tensors) -> list[Order]:
        """Return the given order."""
        del orders
        return [tensors[value].given]


@dataclass(frozen=True, slots=True)
class Channels:
    """Products summed for each channel by itself: the short-window engine takes neighbouring channels at once.

    `values` are the operands, then the result, and `dims` those of channels.
    """

    values: tuple[int, int, int]
    dims: tuple[int, int, int]

    def cost(self, orders: Orders, tensors: Tensors) -> int:
        """Return the weighted bytes of tensors whose channels are not innermost."""
        return sum(
            SCATTERED * tensors[value].n_bytes
            for value, dim in zip(self.values, self.dims, strict=True)
            if significant(orders[value], tensors[value].extents)[-1:] != (dim,)
        )

    def wishes(self, value: int, orders: Orders, tensors: Tensors) -> list[Order]:
        """Return the given order with channels innermost."""
        del orders
        pairs = zip(self.values, self.dims, strict=True)
        return [moved_last(tensors[value].given, (dim,)) for each, dim in pairs if each == value]


Relation = Follow | Regroup | Product | Channels | AsGiven | Joined


def total_cost(relations: Sequence[Relation], orders: Orders, tensors: Tensors) -> int:
    """Return the weighted bytes of several relations."""
    return sum(relation.cost(orders, tensors) for relation in relations)
