"""When weights are fetched, for given plans.

Operators run one after the other, each as soon as its weights have arrived. Off-chip memory serves one fetch after
the other, in the order of use. A fetch takes its space from the step on in which it begins.

```
step    0        1      2                 time ->
runs    [a a a]  [b b]  ....[c c c c]     . waits
fetches [b b][c c c c c c c c]
```
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """An operator that runs `cycles`: bytes of a core that are in use then, and its weights.

    `used_bytes` with its own weights, which lie in `rest_bytes` from their fetch on and take `load_cycles` of off-chip
    memory's time; `held_bytes` without them.
    """

    cycles: int
    used_bytes: int
    held_bytes: int
    rest_bytes: int = 0
    load_cycles: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """Per step: the step in which the fetch of its weights begins (-1: none), and the cycles it waits for them."""

    first: tuple[int, ...]
    waits: tuple[int, ...]
    cycles: int


def run(
    steps: Sequence[Step], room_bytes: int, latency_cycles: int = 0, kept: frozenset[int] = frozenset()
) -> Run | None:
    """Return the run in which every fetch begins as early as there is space, None where a step has none for itself.

    Weights of steps in `kept` are on the chip all the time. No order or beginning of fetches takes less: beginning one
    earlier never delays another, as what is fetched later is used later, and needs the space of a step that both see
    only after the first is there.
    """
    room = room_bytes - sum(steps[step].rest_bytes for step in kept)
    used = [step.held_bytes if n in kept else step.used_bytes for n, step in enumerate(steps)]
    ends: list[int] = []
    firsts: list[int] = []
    waits: list[int] = []
    now = free = lowest = 0
    for n, step in enumerate(steps):
        if used[n] > room:
            return None
        first, wait = -1, 0
        if step.load_cycles and n not in kept:
            first = n
            while first > lowest and used[first - 1] + step.rest_bytes <= room:
                first -= 1
            begin = max(free, ends[first - 1] if first else 0)
            while first < n and ends[first] <= begin:
                first += 1
            for between in range(first, n):
                used[between] += step.rest_bytes
            lowest, free = first, begin + step.load_cycles
            wait = max(free + latency_cycles - now, 0)
        now += wait + step.cycles
        ends.append(now)
        firsts.append(first)
        waits.append(wait)
    return Run(tuple(firsts), tuple(waits), now)


def waits_of(
    cycles: Sequence[int], fetches: Iterable[tuple[int, int, int]], latency_cycles: int
) -> tuple[int, ...]:
    """Return the cycles that each step waits; fetches are (step, step in which it begins, cycles), in their order."""
    pending = list(fetches)
    arrivals: dict[int, int] = {}
    waits: list[int] = []
    now = free = 0
    for step, own in enumerate(cycles):
        while pending and pending[0][1] <= step:
            owner, _, load = pending.pop(0)
            free = max(free, now) + load
            arrivals[owner] = free + latency_cycles
        wait = max(arrivals.get(step, 0) - now, 0)
        waits.append(wait)
        now += wait + own
    return tuple(waits)


def best_kept(
    steps: Sequence[Step], room_bytes: int, latency_cycles: int = 0
) -> tuple[frozenset[int], Run] | None:
    """Return the weights to keep on the chip that are found to help most, and the run with them; None if none fits.

    Tried are the first ones of the program, for which it would wait at its beginning, and ones that lie evenly apart;
    then single ones are added and taken away as long as that helps.
    """
    weighted = [n for n, step in enumerate(steps) if step.load_cycles]
    sets = [frozenset[int]()]
    count = 1
    while count <= len(weighted):
        sets += [
            frozenset(weighted[:count]),
            frozenset(weighted[i * len(weighted) // count] for i in range(count)),
        ]
        count = max(count + 1, count * 5 // 4)
    found: tuple[frozenset[int], Run] | None = None
    for kept in sets:
        found = _better(found, steps, room_bytes, latency_cycles, kept)
    before = None
    for _ in range(_ROUNDS):
        if found is None or before == found[0] or len(weighted) > _MOST_SINGLE:
            break
        before = found[0]
        for step in weighted:
            kept, _ = found
            found = _better(found, steps, room_bytes, latency_cycles, kept ^ {step}) or found
    return found


_ROUNDS = 2
_MOST_SINGLE = 64


def _better(
    found: tuple[frozenset[int], Run] | None,
    steps: Sequence[Step],
    room_bytes: int,
    latency_cycles: int,
    kept: frozenset[int],
) -> tuple[frozenset[int], Run] | None:
    """Return what is found, or the run that keeps other weights if that takes less."""
    if sum(steps[step].rest_bytes for step in kept) > room_bytes:
        return found
    tried = run(steps, room_bytes, latency_cycles, kept)
    if tried is None or (found is not None and tried.cycles >= found[1].cycles):
        return found
    return kept, tried
