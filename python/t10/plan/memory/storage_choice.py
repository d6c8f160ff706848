"""Choosing the orders in which tensors are stored.

Tensors that loop nests walk together form groups (a residual stream; all feature maps of a convolutional network). Each
group takes the cheapest of: all as given; or what one wish of one reader or maker, spread through the group, makes of
it. Then single tensors, and those that gain with them, change as long as that saves something. Ties leave what is
given; nothing depends on chance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from t10.core.orders import Order
from t10.plan.memory.storage import Follow, Regroup, Relation, Tensors, total_cost

MAX_SWEEPS = 16


def choose_orders(tensors: Tensors, relations: Sequence[Relation]) -> dict[int, Order]:
    """Return the order of every tensor, by its number in `tensors`; those that are fixed keep the given one."""
    search = _Search(tensors, relations)
    for group in search.groups():
        search.settle(group)
    for _ in range(MAX_SWEEPS):
        if not sum(search.improve(value) for value in sorted(tensors)):
            break
    return search.orders


@dataclass
class _Search:
    tensors: Tensors
    relations: Sequence[Relation]
    orders: dict[int, Order] = field(init=False)
    touching: dict[int, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.orders = {value: tensor.given for value, tensor in self.tensors.items()}
        self.touching = {value: [] for value in self.tensors}
        for number, relation in enumerate(self.relations):
            for value in dict.fromkeys(relation.values):
                self.touching[value].append(number)

    def groups(self) -> list[list[int]]:
        """Return the groups of free tensors that follow one another, each sorted, in the order of their first ones."""
        found: list[list[int]] = []
        seen: set[int] = set()
        for value in sorted(self.tensors):
            if value not in seen and not self.tensors[value].is_fixed:
                group = self._reached(value)
                seen.update(group)
                found.append(sorted(group))
        return found

    def settle(self, group: list[int]) -> None:
        """Give a group the cheapest orders that one wish leads to."""
        members = frozenset(group)
        concerned = self._concerned(group)
        best = {value: self.orders[value] for value in group}
        best_cost = total_cost(concerned, self.orders, self.tensors)
        tried: set[tuple[int, Order]] = set()
        for value in group:
            for wish in self._wishes(value, self.orders):
                if (value, wish) in tried or wish == self.tensors[value].given:
                    continue
                spread = self._spread(value, wish, members)
                tried.update(spread.items())
                cost = total_cost(concerned, {**self.orders, **spread}, self.tensors)
                if cost < best_cost:
                    best, best_cost = spread, cost
        self.orders.update(best)

    def improve(self, value: int) -> bool:
        """Give one tensor, and those that gain when it does, a better order if there is one; returns whether."""
        if self.tensors[value].is_fixed:
            return False
        best: dict[int, Order] = {}
        best_gain = 0
        for wish in (self.tensors[value].given, *self._wishes(value, self.orders)):
            if wish == self.orders[value]:
                continue
            changes = self._grown(value, wish)
            concerned = self._concerned(list(changes))
            gain = total_cost(concerned, self.orders, self.tensors)
            gain -= total_cost(concerned, {**self.orders, **changes}, self.tensors)
            if gain > best_gain:
                best, best_gain = changes, gain
        self.orders.update(best)
        return best_gain > 0

    def _grown(self, value: int, wish: Order) -> dict[int, Order]:
        """Return a change of one tensor, and of those around it that are then better off in another order."""
        orders = {**self.orders, value: wish}
        changes = {value: wish}
        queue = deque([value])
        while queue:
            for other, _ in self._neighbours(queue.popleft()):
                best = orders[other] if other in changes else self._best(other, orders)
                if best != orders[other]:
                    orders[other] = changes[other] = best
                    queue.append(other)
        return changes

    def _best(self, value: int, orders: dict[int, Order]) -> Order:
        """Return the cheapest of the orders wanted of a tensor, its present one if none is cheaper."""
        concerned = self._concerned([value])
        best = orders[value]
        best_cost = total_cost(concerned, orders, self.tensors)
        for wish in (self.tensors[value].given, *self._wishes(value, orders)):
            cost = total_cost(concerned, {**orders, value: wish}, self.tensors)
            if cost < best_cost:
                best, best_cost = wish, cost
        return best

    def _wishes(self, value: int, orders: Mapping[int, Order]) -> list[Order]:
        """Return the orders that relations want of a tensor, given those of the others; without repeats."""
        found = [
            wish
            for number in self.touching[value]
            for wish in self.relations[number].wishes(value, orders, self.tensors)
        ]
        return list(dict.fromkeys(found))

    def _concerned(self, values: Sequence[int]) -> list[Relation]:
        numbers = {number for value in values for number in self.touching[value]}
        return [self.relations[number] for number in sorted(numbers)]

    def _reached(self, start: int) -> list[int]:
        """Return the free tensors that `start` is tied to by relations that carry orders on."""
        reached = {start: None}
        queue = deque([start])
        while queue:
            for other, _ in self._neighbours(queue.popleft()):
                if other not in reached:
                    reached[other] = None
                    queue.append(other)
        return list(reached)

    def _neighbours(self, value: int) -> list[tuple[int, Follow | Regroup]]:
        found: list[tuple[int, Follow | Regroup]] = []
        for number in self.touching[value]:
            relation = self.relations[number]
            if isinstance(relation, Follow | Regroup):
                found += [
                    (other, relation)
                    for other in relation.values
                    if other != value and not self.tensors[other].is_fixed
                ]
        return found

    def _spread(self, value: int, wish: Order, members: frozenset[int]) -> dict[int, Order]:
        """Return the orders of a group in which one tensor has its wish; where it is not carried on, the given ones."""
        made: dict[int, Order] = {value: wish}
        queue = deque([value])
        while queue:
            source = queue.popleft()
            for other, relation in self._neighbours(source):
                if other in made:
                    continue
                induced = relation.induced(source, made, self.tensors)
                if induced is not None:
                    made[other] = induced
                    queue.append(other)
        return {each: made.get(each, self.tensors[each].given) for each in sorted(members)}
