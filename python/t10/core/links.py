"""Links between groups of cores: what passes over them in an exchange phase, and how long that takes.

Cores are numbered group by group, innermost level first: chips of a pair, pairs of a pod. A transfer uses the links of
the outermost level on which its ends lie in different groups, and no others.

| topology | links of a level | way |
|---|---|---|
| `exchange` | none: the ports of cores are all there is | |
| `all-to-all` | one from every group to every other | 1 hop |
| `switch` | one out of every group, one into it | 1 hop |
| `tree` | groups have switches above them, `width` nodes each, up to one: a link up from every node, one down | up to \
the first common switch, then down; a hop for every switch |
| `mesh` | to the neighbours in rows of `width` and in columns, one in each direction | along the row, then the column |
| `torus` | the same, and from each end to the other | the shorter way round, forward of two equal ones |

Groups of a mesh or torus stand at its positions in order, row by row. Positions may be `missing`: their routers and
links pass what is on its way, but no group is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from t10.core import _loads
from t10.core.arrays import Ints

RATE_CYCLES = _loads.RATE_CYCLES
"""Rates of links are bytes in so many cycles."""
Topology = Literal["exchange", "all-to-all", "switch", "mesh", "torus", "tree"]
TOPOLOGIES: tuple[Topology, ...] = ("exchange", "all-to-all", "switch", "mesh", "torus", "tree")


@dataclass(frozen=True, slots=True)
class LinkLevel:
    """`count` groups of `stride` cores each, and the links between them.

    A link passes `rate` bytes in `RATE_CYCLES` cycles in its direction; `latency_cycles` are those of a hop. Positions
    of a mesh or torus that are `missing`, ascending, have no group.
    """

    stride: int
    count: int
    topology: Topology
    width: int
    rate: int
    latency_cycles: int
    is_multicast: bool
    missing: tuple[int, ...] = ()

    @property
    def n_links(self) -> int:
        """Return how many links join the groups of one parent, one per direction."""
        by_topology = {"exchange": 0, "all-to-all": self.count**2, "switch": 2 * self.count}
        if self.topology == "tree":
            nodes = [self.count]
            while nodes[-1] > 1:
                nodes.append(-(-nodes[-1] // self.width))
            return 2 * sum(nodes[:-1])
        return by_topology.get(self.topology, 4 * (self.count + len(self.missing)))


@dataclass(frozen=True)
class Links:
    """All levels of a chip, innermost first."""

    levels: tuple[LinkLevel, ...]

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Return all numbers in the order in which native code takes them."""
        return tuple(
            number
            for each in self.levels
            for number in (
                each.stride,
                each.count,
                TOPOLOGIES.index(each.topology),
                each.width,
                each.rate,
                each.latency_cycles,
                int(each.is_multicast),
                len(each.missing),
                *each.missing,
            )
        )

    @cached_property
    def least_cores(self) -> int:
        """Return how many of the first cores lie in one group, so that nothing between them passes a link."""
        return min(each.stride for each in self.levels if each.n_links)

    def rates(self, n_cores: int) -> Ints:
        """Return by link the bytes it passes in `RATE_CYCLES` cycles; links are those among the first cores."""
        parents = [-(-n_cores // (each.stride * each.count)) * each.n_links for each in self.levels]
        return np.repeat(np.array([each.rate for each in self.levels], np.int64), parents)

    def loads(self, n_cores: int, transfers: Ints) -> tuple[Ints, int]:
        """Return the bytes that pass every link, and the latency of the longest way.

        `transfers` (n, 4) are number of the transfer, core that sends, core that takes, bytes; ascending by number.
        """
        n_bytes: Ints = np.zeros(len(self.rates(n_cores)), np.int64)
        rows = np.ascontiguousarray(transfers, np.int64)
        latency = _loads.link_loads(self.numbers, n_cores, rows, n_bytes)
        return n_bytes, latency

    def cycles(self, n_cores: int, n_bytes: Ints) -> int:
        """Return until when the busiest link has passed so many bytes, by link."""
        return int((-(-n_bytes * RATE_CYCLES // self.rates(n_cores))).max(initial=0))


def sent_alone(sources: Sequence[Ints], n_bytes: Sequence[int]) -> Ints:
    """Return the transfers of a phase in which every core takes so many bytes from its source, part by part."""
    n_cores = len(sources[0])
    rows = np.empty((len(sources), n_cores, 4), np.int64)
    rows[:, :, 0] = np.arange(len(sources) * n_cores).reshape(len(sources), n_cores)
    rows[:, :, 1] = np.stack(sources)
    rows[:, :, 2] = np.arange(n_cores)
    rows[:, :, 3] = np.array(n_bytes)[:, None]
    return rows.reshape(-1, 4)
