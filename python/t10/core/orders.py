"""Orders of dims: how the dims of a tensor stand in memory, as permutations.

A tensor is stored row-major in the order of its dims. Storing it in another order renames its dims, nothing more:
`order[i]` is the given dim that is dim `i` of what is stored (numpy's convention of `transpose`).

    [K, N] stored as [N, K]          order (1, 0)
    [N, C, H, W] as [N, H, W, C]     order (0, 2, 3, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Order = tuple[int, ...]

Item = TypeVar("Item")


def given_order(rank: int) -> Order:
    """Return the order that changes nothing."""
    return tuple(range(rank))


def permuted(items: Sequence[Item], order: Order) -> tuple[Item, ...]:
    """Return what belongs to the given dims (extents, index forms) for the dims as stored."""
    return tuple(items[dim] for dim in order)


def composed(first: Order, second: Order) -> Order:
    """Return the order of a tensor stored in `first` and then, by its dims there, in `second`."""
    return permuted(first, second)


def inverse(order: Order) -> Order:
    """Return the order that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def relative(stored: Order, wanted: Order) -> Order:
    """Return the order that turns what is stored in `stored` into `wanted`, both in terms of the given dims."""
    return tuple(stored.index(dim) for dim in wanted)


def moved_last(order: Order, dims: Sequence[int]) -> Order:
    """Return the order with some dims moved to its end, in the sequence in which they are named."""
    return (*(dim for dim in order if dim not in dims), *dims)


def significant(order: Order, extents: Sequence[int]) -> Order:
    """Return the dims of an order without those of extent 1: where these stand changes nothing in memory."""
    return tuple(dim for dim in order if extents[dim] != 1)
