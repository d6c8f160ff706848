"""How six workers share the rows of a block: in order, in units of a row or a segment, as evenly as possible."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from t10.codelets.matrix.product import ProductLoop
from t10.core.tile import N_WORKERS

SEGMENT_SLOTS = 25
"""Slots of a segment besides its rows: filling and emptying the pipeline, addresses."""

RECIPROCAL_BITS = 20
SHARINGS = 1024


@dataclass(frozen=True, slots=True)
class Sharing:
    """`n` rows in segments of `length`, dealt out in units of `unit` rows."""

    n: int
    length: int
    unit: int

    def worker_loops(self) -> tuple[tuple[int, ...], ...]:
        """Return the rows of every loop of every worker."""
        return _worker_loops(self.n, self.length, self.unit)

    @property
    def least_rows(self) -> int:
        """Return the rows of the shortest loop, 0 where a worker has none."""
        return min(min(loops, default=0) for loops in self.worker_loops())

    @property
    def most_rows(self) -> int:
        """Return the rows of the longest loop."""
        return max(max(loops, default=0) for loops in self.worker_loops())

    def slots(self, slots_per_row: float) -> float:
        """Return the slots of the worker that has most to do."""
        return max(len(loops) * SEGMENT_SLOTS + sum(loops) * slots_per_row for loops in self.worker_loops())

    @property
    def reciprocal(self) -> int | None:
        """Return the factor that divides a worker's first row by the length; None where that is not exact."""
        factor = -(-(1 << RECIPROCAL_BITS) // self.length)
        starts = range(0, self.n + 1, self.unit)
        if self.n * factor >= 1 << 32:
            return None
        is_exact = all(start * factor >> RECIPROCAL_BITS == start // self.length for start in starts)
        return factor if is_exact else None


@lru_cache(maxsize=SHARINGS)
def _worker_loops(n: int, length: int, unit: int) -> tuple[tuple[int, ...], ...]:
    """Return `Sharing.worker_loops`."""
    share, rest = divmod(n // unit, N_WORKERS)
    result: list[tuple[int, ...]] = []
    for worker in range(N_WORKERS):
        start = (worker * share + min(worker, rest)) * unit
        left = (share + (worker < rest)) * unit
        loops: list[int] = []
        while left:
            loops.append(min(left, length - start % length))
            start += loops[-1]
            left -= loops[-1]
        result.append(tuple(loops))
    return tuple(result)


def sharing(rows: tuple[ProductLoop, ...], slots_per_row: float) -> Sharing:
    """Return how rows are shared; of two loops, whole segments are dealt out where that is faster."""
    n = 1
    for loop in rows:
        n *= loop.extent
    if len(rows) < 2:
        return Sharing(n, n, 1)
    length = rows[-1].extent
    return min((Sharing(n, length, 1), Sharing(n, length, length)), key=lambda s: s.slots(slots_per_row))
