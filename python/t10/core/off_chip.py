"""Memory outside of the chip: what it takes to bring weights from there, one fetch after the other."""

from __future__ import annotations

from dataclasses import dataclass

from t10.core.links import RATE_CYCLES


@dataclass(frozen=True, slots=True)
class OffChip:
    """Memory that passes `rate` bytes in `RATE_CYCLES` cycles; what is asked for arrives `latency_cycles` later."""

    rate: int
    latency_cycles: int = 0

    def cycles(self, n_bytes: int) -> int:
        """Return the cycles in which the memory passes so many bytes and can pass no others."""
        return -(-n_bytes * RATE_CYCLES // self.rate)
