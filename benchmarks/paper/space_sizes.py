"""How many plans an operator has, counted without listing them.

A legal plan (`t10.core.legal`) cuts every axis in 1 to N_a parts, at most as many in all as there are cores, and every
tensor in time along axes of its own, into parts whose number divides that of the cores that share it. How many ways
there are for a tensor depends on the number of its sharers alone: partitions of the same sharers are counted as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from math import comb, prod

from t10.core.expression import OperatorSpec
from t10.core.legal import Expression, expression_of

Counts = dict[int, int]
"""How many choices have a product."""


def unrestricted_plans(spec: OperatorSpec) -> int:
    """Return how many F_op and ft there are if each number is only at most the extent of its axis."""
    cuts = prod(n for n, axis in zip(spec.extents, spec.axes, strict=True) if axis.is_splittable)
    return cuts * prod(spec.extents[axis] for operand in spec.rotatable for axis in operand.axes)


def plans_on_any_number_of_cores(spec: OperatorSpec, most: int) -> int | None:
    """Return how many plans there were if only each single axis had at most `most` parts, and not all together.

    Every tensor is cut along any axis of its own then: what compound dims allow is left out. None where several
    tensors share the parts of an axis, as their ways are not independent.
    """
    expression = expression_of(spec)
    groups: dict[tuple[int, ...], list[int]] = {}
    for axis in range(len(spec.extents)):
        groups.setdefault(_sharing(expression, axis), []).append(axis)
    total = 1
    for missing, axes in groups.items():
        parts = [_parts(expression, axis, most) for axis in axes]
        if len(missing) > 1:
            return None
        n_axes = sum(len(expression.uses[number]) for number in missing)
        counts = _products(parts, most ** len(axes))
        total *= sum(count * factorisations(value, n_axes) for value, count in counts.items())
    return total


def legal_plans(spec: OperatorSpec, n_cores: int) -> int:
    """Return how many legal F_op with legal ft there are on so many cores."""
    expression = expression_of(spec)
    ways = _TemporalWays(expression)
    groups: dict[tuple[int, ...], list[int]] = {}
    for axis in range(len(spec.extents)):
        groups.setdefault(_sharing(expression, axis), []).append(axis)
    counted = [
        (missing, _products([_parts(expression, axis, n_cores) for axis in axes], n_cores))
        for missing, axes in groups.items()
    ]
    return _summed(counted, (1,) * len(expression.uses), n_cores, ways)


def _sharing(expression: Expression, axis: int) -> tuple[int, ...]:
    """Return the tensors that an axis does not index: its parts share them."""
    return tuple(number for number, uses in enumerate(expression.uses) if axis not in uses)


def _parts(expression: Expression, axis: int, n_cores: int) -> range:
    return range(1, 1 + (1 if axis in expression.whole else min(expression.extents[axis], n_cores)))


def _products(factors: Iterable[range], most: int) -> Counts:
    """Return how many choices of one factor each have each product, up to the most."""
    found: Counts = {1: 1}
    for each in factors:
        finer: Counts = {}
        for value, count in found.items():
            for factor in each[: most // value]:
                finer[value * factor] = finer.get(value * factor, 0) + count
        found = finer
    return found


def _summed(
    groups: list[tuple[tuple[int, ...], Counts]], sharers: tuple[int, ...], room: int, ways: _TemporalWays
) -> int:
    """Return the plans whose groups of axes have at most `room` parts in all."""
    if not groups:
        return ways.count(sharers)
    missing, counts = groups[0]
    total = 0
    for value, count in counts.items():
        if value <= room:
            shared = tuple(n * value if i in missing else n for i, n in enumerate(sharers))
            total += count * _summed(groups[1:], shared, room // value, ways)
    return total


class _TemporalWays:
    """How many ft the tensors of an operator have by the numbers of their sharers."""

    def __init__(self, expression: Expression) -> None:
        """Tell the axes along which compound dims move in whole blocks: there tensors depend on each other."""
        tensors = range(len(expression.uses))
        self.rotating = [
            [axis for axis in expression.uses[i] if expression.may_rotate(i, axis)] for i in tensors
        ]
        self.blocks = sorted(
            {axis for i in tensors for axis in self.rotating[i] if axis in expression.compound[i]}
        )
        self.compound = expression.compound
        self.known: dict[tuple[int, tuple[int, ...]], int] = {}

    def count(self, sharers: tuple[int, ...]) -> int:
        """Return the ways of all tensors together."""
        return self._from(0, sharers)

    def _from(self, number: int, left: tuple[int, ...]) -> int:
        """Return the ways along the block axes from one on, and along all others."""
        if number == len(self.blocks):
            rest = [sum(axis not in self.blocks for axis in axes) for axes in self.rotating]
            return prod(map(factorisations, left, rest))
        key = number, left
        if key not in self.known:
            self.known[key] = sum(
                self._from(number + 1, tuple(n // factor for n, factor in zip(left, row, strict=True)))
                for row in self._rows(self.blocks[number], left)
            )
        return self.known[key]

    def _rows(self, axis: int, left: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
        """Yield the factors of all tensors along an axis: equal ones where a compound dim rotates."""
        per_tensor = [
            divisors(n) if axis in axes else (1,) for n, axes in zip(left, self.rotating, strict=True)
        ]
        for row in product(*per_tensor):
            rotates = any(factor > 1 and axis in own for factor, own in zip(row, self.compound, strict=True))
            if not rotates or len({factor for factor in row if factor > 1}) == 1:
                yield row


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a number, the least first."""
    return tuple(each for each in range(1, number + 1) if number % each == 0)


@lru_cache(maxsize=1 << 18)
def factorisations(number: int, n_factors: int) -> int:
    """Return how many rows of so many factors have a product that divides a number.

    Each prime's exponent is dealt out to the factors and to what is left over, on its own.
    """
    ways, prime = 1, 2
    while prime * prime <= number:
        exponent = 0
        while number % prime == 0:
            number, exponent = number // prime, exponent + 1
        ways *= comb(exponent + n_factors, n_factors)
        prime += 1
    return ways * (n_factors + 1 if number > 1 else 1)
