"""A phase on links, packet by packet: every port and every link serves one packet at a time, first come, first served.

Written apart from `t10.core.links`: ways are walked hop by hop here, and nothing is added up.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from t10.core.links import RATE_CYCLES, LinkLevel, Links

Resource = tuple[object, ...]
Way = list[tuple[Resource, float, int]]
"""Link, bytes per cycle and latency, hop by hop."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Bytes that a core sends to others at once."""

    source: int
    targets: tuple[int, ...]
    n_bytes: int


def way(links: Links, source: int, target: int) -> Way:
    """Return the links from a core to another, none within a group that shares an exchange."""
    for level in reversed(links.levels):
        here, there = source // level.stride, target // level.stride
        if here == there:
            continue
        parent = (level.stride, here // level.count)
        hops = list(_hops(level, here % level.count, there % level.count))
        # Into a switch and out of it is one hop: the way turns at the highest one.
        turn = len(hops) // 2 if level.topology in ("switch", "tree") else None
        latencies = [0 if number == turn else level.latency_cycles for number in range(len(hops))]
        rate = level.rate / RATE_CYCLES
        return [((*parent, *hop), rate, latency) for hop, latency in zip(hops, latencies, strict=True)]
    return []


def _hops(level: LinkLevel, here: int, there: int) -> Iterator[tuple[object, ...]]:
    if level.topology == "all-to-all":
        yield here, there
    if level.topology == "switch":
        yield "out", here
        yield "in", there
    if level.topology == "tree":
        yield from _through_tree(level.width, here, there)
    if level.topology not in ("mesh", "torus"):
        return
    positions = [at for at in range(level.count + len(level.missing)) if at not in level.missing]
    here, there = positions[here], positions[there]
    sides = ((level.count + len(level.missing)) // level.width, level.width)
    at, end = list(divmod(here, level.width)), divmod(there, level.width)
    for dim in (1, 0):
        n, distance = sides[dim], end[dim] - at[dim]
        step = 1 if distance > 0 else -1
        if level.topology == "torus":
            step = 1 if distance % n <= -distance % n else -1
        while at[dim] != end[dim]:
            before = tuple(at)
            at[dim] = (at[dim] + step) % n
            yield before, tuple(at)


def _through_tree(children: int, here: int, there: int) -> Iterator[tuple[object, ...]]:
    """Yield the links up and down: nodes of a height are numbered alike, their parent is above every so many."""
    if here == there:
        return
    yield "up", here
    for link in _through_tree(children, here // children, there // children):
        yield (*link, "above")
    yield "down", there


@dataclass
class _Run:
    links: Links
    port_rate: float
    free: dict[Resource, float] = field(default_factory=dict[Resource, float])
    events: list[tuple[float, int, int, Resource, int]] = field(
        default_factory=list[tuple[float, int, int, Resource, int]]
    )
    serial: int = 0
    end: float = 0.0
    nexts: dict[tuple[int, Resource], dict[Resource, tuple[float, int]]] = field(
        default_factory=dict[tuple[int, Resource], dict[Resource, tuple[float, int]]]
    )

    def push(self, time: float, number: int, resource: Resource, n_bytes: int) -> None:
        self.serial += 1
        heapq.heappush(self.events, (time, self.serial, number, resource, n_bytes))


def simulated(sent: list[Sent], links: Links, port_rate: float, packet_bytes: int) -> float:
    """Return when the last byte has arrived; ports pass `port_rate` bytes per cycle, each way."""
    run = _Run(links, port_rate)
    rates: dict[Resource, float] = {}
    for number, each in enumerate(sent):
        for target in each.targets:
            before: Resource = ("send", each.source)
            for resource, rate, latency in [
                *way(links, each.source, target),
                (("take", target), port_rate, 0),
            ]:
                rates[resource] = rate
                run.nexts.setdefault((number, before), {})[resource] = (rate, latency)
                before = resource
    packets = [
        [(n, min(packet_bytes, each.n_bytes - first)) for first in range(0, each.n_bytes, packet_bytes)]
        for n, each in enumerate(sent)
    ]
    for row in zip_longest(*packets):
        for packet in row:
            if packet is not None:
                run.push(0.0, packet[0], ("send", sent[packet[0]].source), packet[1])
    while run.events:
        time, _, number, resource, n_bytes = heapq.heappop(run.events)
        done = max(time, run.free.get(resource, 0.0)) + n_bytes / rates.get(resource, port_rate)
        run.free[resource] = done
        run.end = max(run.end, done)
        for following, (_, latency) in run.nexts.get((number, resource), {}).items():
            run.push(done + latency, number, following, n_bytes)
    return run.end
