"""The virtual global memory (T10 §2.2): every tensor in row-major order, cut in equal shares, one per core.

What an operand reads through views is cut where it goes on elsewhere, so that loads can be counted run by run.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from math import prod

import numpy as np

from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.graph import Graph
from t10.core.movement import view_ids
from t10.plan.memory.liveness import reshapes_of, unshaped

GRAIN_BYTES = 8
"""Shares are whole words of this many bytes, so that all of them begin at one."""


def share_elements(n_elements: int, dtype: str, n_cores: int) -> int:
    """Return the elements of a tensor that a core holds, the last of them fewer."""
    grain = max(GRAIN_BYTES // size_bytes(dtype), 1)
    n_grains = -(-n_elements // grain)
    return -(-n_grains // n_cores) * grain


@dataclass(frozen=True, slots=True)
class Segments:
    """A value in row-major order, cut into runs that lie in one share each; arrays (segments,).

    `starts` are positions in the value; `sources` number what it reads (`names`), -1 for constants; `cores` and
    `slots` say where a run begins there, slots of constants which of `constants` it is.
    """

    names: tuple[str, ...]
    starts: Ints
    sources: Ints
    cores: Ints
    slots: Ints
    n_elements: int
    constants: tuple[str, ...] = ()

    def digest(self) -> str:
        """Return a digest of where everything lies, names left out."""
        found = sha256(str(len(self.names)).encode())
        for array in (self.starts, self.sources, self.cores, self.slots):
            found.update(array.tobytes())
        return found.hexdigest()


def segments_of(graph: Graph, name: str, dtype: str, n_cores: int) -> Segments:
    """Return how a value of a graph lies in the virtual global memory."""
    shapes, names = graph.shape_by_value, graph.sources_of(name)
    n_elements = prod(shapes[name])
    behind = unshaped(name, reshapes_of(graph))
    if names == (behind,):
        return whole(behind, n_elements, dtype, n_cores)
    ids, constants = view_ids(graph, name, np.int64)
    flat = np.ascontiguousarray(ids).reshape(-1)
    sizes = [prod(shapes[source]) for source in names]
    firsts = np.array([0, *accumulate(sizes)][:-1], np.int64)
    shares = np.array([share_elements(size, dtype, n_cores) for size in sizes], np.int64)
    source = np.searchsorted(firsts, flat, "right") - 1
    local = flat - firsts[np.maximum(source, 0)]
    share = shares[np.maximum(source, 0)]
    core, slot = np.where(source < 0, 0, local // share), np.where(source < 0, -1 - flat, local % share)
    goes_on = (flat[1:] == flat[:-1] + 1) & (core[1:] == core[:-1]) & (source[1:] == source[:-1])
    goes_on &= source[1:] >= 0
    goes_on |= (flat[1:] == flat[:-1]) & (source[1:] < 0)
    starts = np.flatnonzero(np.concatenate(([True], ~goes_on)))
    return Segments(names, starts, source[starts], core[starts], slot[starts], n_elements, constants)


def whole(name: str, n_elements: int, dtype: str, n_cores: int) -> Segments:
    """Return how a tensor lies that is read as it is."""
    share = share_elements(n_elements, dtype, n_cores)
    starts = np.arange(0, n_elements, share, dtype=np.int64)
    zeros = np.zeros(len(starts), np.int64)
    return Segments((name,), starts, zeros, np.arange(len(starts), dtype=np.int64), zeros, n_elements)
