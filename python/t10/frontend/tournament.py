"""How a TopK over a long axis is divided: chunks that are ranked by themselves, and whose first k are ranked again."""

from __future__ import annotations

from functools import lru_cache

PER_PAIR = 9
"""Issue slots of a rank per pair of elements: three comparisons, their join, 1 or 0, the sum. Measured: 8 to 10."""

PER_SELECTED = 10
"""Issue slots per element and result: comparison, choice and maximum, of values and of places. Measured: 8 to 13."""

PER_STAGE = 9_000_000
"""What a stage costs besides, in issue slots: some 6,000 cycles of exchanges and synchronisation on some 1,500 cores. A
stage more must save more than that."""


def stages(n: int, k: int, rows: int) -> tuple[int, ...]:
    """Return the chunk sizes of all stages, in order, for the first `k` of each of `rows` rows of `n` elements.

    The last is the extent of what is left, which is ranked whole. A chunk that does not divide what is there is padded.
    """
    return _best(n, k, rows)[1]


def issue_slots(n: int, k: int, chunk: int) -> int:
    """Return the issue slots of one stage over a row of `n` elements in chunks."""
    padded = -(-n // chunk) * chunk
    return padded * (PER_PAIR * chunk + PER_SELECTED * k)


@lru_cache(maxsize=4096)
def _best(n: int, k: int, rows: int) -> tuple[int, tuple[int, ...]]:
    best = (PER_STAGE + rows * issue_slots(n, k, n), (n,))
    for chunk in _chunks(n, k):
        left = -(-n // chunk) * k
        if left >= n:
            continue
        here = PER_STAGE + rows * issue_slots(n, k, chunk)
        if here >= best[0]:
            continue
        cost, following = _best(left, k, rows)
        best = min(best, (here + cost, (chunk, *following)))
    return best


def _chunks(n: int, k: int) -> list[int]:
    """Return sizes worth a try: powers of two, and divisors of the axis, which need no padding."""
    powers = [1 << bit for bit in range(1, n.bit_length()) if k < 1 << bit < n]
    divisors = [size for size in range(k + 1, min(n // 2, 4096) + 1) if n % size == 0]
    return sorted({*powers, *divisors})
