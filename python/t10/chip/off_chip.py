"""Off-chip memory in a chip file: channels, their rate and latency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field

from t10.chip.units import Plain, rate_field
from t10.core.links import RATE_CYCLES
from t10.core.off_chip import OffChip
from t10.errors import InputError

MEMORY_KEY, BANDWIDTH_KEY = "memory", "hbm_bandwidth"
MOST_CHANNELS = 1 << 16
MOST_BYTES_PER_SECOND = 1e15
"""Far above any memory; it may be that of all channels."""


class OffChipMemory(BaseModel):
    """Memory beside the chip: `channels` that work side by side, each passing `bytes_per_second`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    channels: Annotated[int, Field(ge=1, le=MOST_CHANNELS, description="that work side by side"), Plain] = 1
    bytes_per_second: Annotated[
        float,
        Field(gt=0, le=1e18, description="of a channel, or as 500 GB/s"),
        rate_field("memory", MOST_BYTES_PER_SECOND),
    ]
    latency_cycles: Annotated[
        int, Field(ge=0, le=1 << 20, description="from when bytes are asked for until they arrive"), Plain
    ] = 0

    def off_chip(self, clock_hz: float) -> OffChip:
        """Return it as the planner takes it."""
        passed = self.channels * self.bytes_per_second / clock_hz * RATE_CYCLES
        return OffChip(max(round(passed), 1), self.latency_cycles)

    @property
    def summary(self) -> str:
        """Return in words what it passes."""
        in_all = f"{self.channels * self.bytes_per_second / 1e9:g} GB/s in all"
        return f"{self.channels} channels, {in_all}, {self.latency_cycles} cycles latency"


def with_bandwidth(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a chip in which `hbm_bandwidth` is short for a memory, or the rate in all of the given."""
    if BANDWIDTH_KEY not in fields:
        return fields
    kept = {key: value for key, value in fields.items() if key != BANDWIDTH_KEY}
    known = kept.get(MEMORY_KEY)
    given = dict(cast("dict[str, Any]", known)) if isinstance(known, dict) else {}
    return {**kept, MEMORY_KEY: {**given, "channels": 1, "bytes_per_second": fields[BANDWIDTH_KEY]}}


def check_one_way(fields: Mapping[str, Any], source: str) -> None:
    """Raise `InputError` for a chip file that states the memory and its bandwidth beside it, after its `source`."""
    if MEMORY_KEY in fields and BANDWIDTH_KEY in fields:
        raise InputError(
            f"{source}field {BANDWIDTH_KEY}: found {fields[BANDWIDTH_KEY]!r:.60} beside {MEMORY_KEY}, expected one of"
            " them",
            hint=f"{MEMORY_KEY}.bytes_per_second is of each channel, {BANDWIDTH_KEY} of all together",
        )
