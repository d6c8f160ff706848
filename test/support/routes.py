"""What moves between layouts, slot by slot with numpy: the reference of native counting and of the simulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.core.loads import Loads, phase_loads
from t10.core.movement import (
    NO_LOADS,
    ElementMap,
    Pricing,
    Traffic,
    ViewElements,
    copy_choice,
    fill_runs,
    home_tables,
    take_runs,
)


@dataclass(frozen=True, slots=True)
class Route:
    """Where every destination slot takes its element from, arrays of shape (destination cores, slots).

    `source` numbers `ViewElements.sources`, -1 for slots that take a constant or nothing; `core` and `slot` are
    where it lies there; `constant` is k of `constants[k]`, -1 otherwise.
    """

    source: NDArray[np.int16]
    core: NDArray[np.int32]
    slot: NDArray[np.int32]
    constant: NDArray[np.int16]


def route(wanted: ElementMap, through: ViewElements, homes: list[tuple[ElementMap, int]]) -> Route:
    """Return where every slot of `wanted` (numbered in the value's own elements) takes its element from.

    `homes` gives, per source of `through`, its element map and its number of elements. A core takes from its own
    copy where a source has several. Slots that hold -1 take nothing.
    """
    flat = through.ids.reshape(-1)
    ids = np.where(
        wanted.elements >= 0, flat[np.maximum(wanted.elements, 0)], np.int64(np.iinfo(np.int64).min)
    )
    n_cores = len(ids)
    source = np.full(ids.shape, -1, np.int16)
    core = np.full(ids.shape, -1, np.int32)
    slot = np.full(ids.shape, -1, np.int32)
    constant = np.where((ids < 0) & (ids > np.iinfo(np.int64).min), -1 - ids, -1).astype(np.int16)
    first = 0
    for number, (home, n_elements) in enumerate(homes):
        here = (ids >= first) & (ids < first + n_elements)
        if here.any():
            home_core, home_slot = home_tables(home, n_elements)
            copy = copy_choice(home, n_cores)
            rows, _ = np.nonzero(here)
            local = ids[here] - first
            source[here] = number
            core[here] = home_core[copy[rows], local]
            slot[here] = home_slot[copy[rows], local]
        first += n_elements
    return Route(source, core, slot, constant)


def traffic(moves: Route, homes: list[tuple[ElementMap, int]], pricing: Pricing | None = None) -> Traffic:
    """Return what a route moves between different cores; what a core takes from itself counts in loads only."""
    cores = np.arange(len(moves.core), dtype=np.int32)[:, None]
    remote = (moves.source >= 0) & (moves.core != cores)
    received = remote.sum(axis=1)
    n_rows = max(len(cores), *(len(home.elements) for home, _ in homes)) if homes else len(cores)
    sent = np.zeros(n_rows, np.int64)
    for number, (home, _) in enumerate(homes):
        taken = np.zeros(home.elements.shape, np.bool_)
        here = remote & (moves.source == number)
        taken[moves.core[here], moves.slot[here]] = True
        sent[: len(taken)] += taken.sum(axis=1)
    runs = remote.copy()
    joined = (
        remote[:, 1:]
        & remote[:, :-1]
        & (moves.core[:, 1:] == moves.core[:, :-1])
        & (moves.source[:, 1:] == moves.source[:, :-1])
        & (moves.slot[:, 1:] == moves.slot[:, :-1] + 1)
    )
    runs[:, 1:] &= ~joined
    return Traffic(
        received_elements=int(received.max(initial=0)),
        sent_elements=int(sent.max(initial=0)),
        fragments=int(runs.sum(axis=1).max(initial=0)),
        total_elements=int(received.sum()),
        copied_elements=moves.core.shape[1] - int(received.min(initial=moves.core.shape[1])),
        loads=NO_LOADS if pricing is None else _route_loads(moves, n_rows, pricing),
    )


def _route_loads(moves: Route, n_cores: int, pricing: Pricing) -> Loads:
    """Return the loads of a route."""
    takes = moves.source >= 0
    numbers = np.array((*pricing.constants, 0 if pricing.is_padded else -1))
    # What takes neither an element nor a constant lies outside the tensor.
    fills = np.where(takes, -1, numbers[moves.constant])
    runs = take_runs(moves.source, moves.core, moves.slot, takes, 0)
    return phase_loads(runs, fill_runs(fills, 0), n_cores, pricing.item_bytes, pricing.rates)
