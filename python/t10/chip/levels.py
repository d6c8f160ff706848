"""Levels of a chip file: how cores are grouped, and the links between groups."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from math import prod
from operator import mul
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from t10.chip.refusals import unsuitable
from t10.chip.units import MOST_RATE, Plain, per_cycle_field, rate_field
from t10.core.links import RATE_CYCLES, LinkLevel, Links, Topology

MOST_LEVELS = 8
MOST_CYCLES = 1 << 20
MOST_BYTES_PER_SECOND = 1e14
"""Far above any link."""
MOST_MISSING = 1 << 12
"""Positions of a level that are listed one by one."""
MOST_PAIRS = 1 << 10
"""Groups that may each be linked with every other."""
KEPT_LINKS = 64


class Level(BaseModel):
    """`count` groups of what the level below makes up, and the links between them.

    A link has a direction. `ring` and `line` are a torus and a mesh of one row.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: Annotated[str, Field(min_length=1, max_length=40, description="what is counted: core, chip, pair")]
    count: Annotated[int, Field(ge=1, le=1 << 20, description="how many of them the level joins"), Plain]
    topology: Annotated[
        Literal["exchange", "all-to-all", "switch", "ring", "line", "mesh", "torus", "tree"],
        Field(description="how they are linked; only cores may share an exchange"),
    ] = "exchange"
    columns: Annotated[int, Field(ge=0, le=1 << 20, description="of a mesh or torus; rows follow"), Plain] = 0
    children: Annotated[
        int, Field(ge=0, le=1 << 20, description="of every switch of a tree; groups are its leaves"), Plain
    ] = 0
    link_bytes_per_cycle: Annotated[
        float,
        Field(ge=0, le=MOST_RATE, description="that a link passes in its direction"),
        per_cycle_field("link"),
    ] = 0
    link_bytes_per_second: Annotated[
        float,
        Field(ge=0, le=1e18, description="the same, or as 96 GB/s"),
        rate_field("link", MOST_BYTES_PER_SECOND),
    ] = 0
    latency_cycles: Annotated[int, Field(ge=0, le=MOST_CYCLES, description="of a hop"), Plain] = 0
    missing: Annotated[
        tuple[Annotated[int, Field(ge=0, le=1 << 20), Plain], ...],
        Field(
            max_length=MOST_MISSING,
            description="positions of a mesh, torus, line or ring, row by row from 0, where none of those counted is; "
            "their routers work",
        ),
    ] = ()
    multicast: Annotated[
        bool, Field(description="whether bytes that many want pass a link once; else once for each")
    ] = True

    @model_validator(mode="after")
    def _is_linked(self) -> Level:
        """Refuse links without a rate, rates without links, and grids that are none."""
        rates = ("link_bytes_per_cycle", "link_bytes_per_second")
        has_rate = bool(self.link_bytes_per_cycle) + bool(self.link_bytes_per_second)
        if self.topology == "exchange":
            if has_rate or self.latency_cycles:
                raise unsuitable(
                    f"level {self.name}: an exchange has no links: its rate and latency are those of the chip",
                    *rates,
                    "latency_cycles",
                )
        elif has_rate != 1:
            found = " and ".join(f"{getattr(self, name):g}" for name in rates)
            raise unsuitable(
                f"level {self.name}: expected one of {' and '.join(rates)} for {self.topology}, found {found}",
                *rates,
            )
        self._check_positions()
        if (self.topology == "tree") != (self.children > 1) or self.children == 1:
            raise unsuitable(
                f"level {self.name}: children = {self.children}, expected 2 or more for a tree, none otherwise",
                "children",
            )
        if self.topology == "all-to-all" and self.count > MOST_PAIRS:
            raise unsuitable(
                f"level {self.name}: count = {self.count}, expected at most {MOST_PAIRS} that are each linked with"
                " every other",
                "count",
            )
        return self

    def _check_positions(self) -> None:
        """Refuse grids that are none, and missing positions of what has no positions."""
        is_grid = self.topology in ("mesh", "torus")
        n_positions = self.count + len(self.missing)
        if self.missing and self.kind not in ("mesh", "torus"):
            raise unsuitable(
                f"level {self.name}: missing = {list(self.missing)}, expected none for {self.topology}: only a mesh, "
                "torus, line or ring has positions",
                "missing",
            )
        if is_grid != bool(self.columns) or (is_grid and n_positions % self.columns):
            whole = f"count + missing = {n_positions}" if self.missing else f"count = {self.count}"
            raise unsuitable(
                f"level {self.name}: columns = {self.columns}, expected a divisor of {whole} for a mesh or torus, none "
                "otherwise",
                "columns",
            )
        distinct = set(self.missing)
        if len(distinct) < len(self.missing) or max(distinct, default=0) >= n_positions:
            raise unsuitable(
                f"level {self.name}: missing = {list(self.missing)}, expected positions from 0 to {n_positions - 1} "
                f"(count + missing = {n_positions}), each once",
                "missing",
            )

    def rate(self, clock_hz: float) -> int:
        """Return the bytes that a link passes in `RATE_CYCLES` cycles."""
        per_cycle = self.link_bytes_per_cycle or self.link_bytes_per_second / clock_hz
        return max(round(per_cycle * RATE_CYCLES), 1)

    @property
    def summary(self) -> str:
        """Return in words how its groups are linked."""
        if self.topology == "exchange":
            return "one exchange"
        passed = (
            f"{self.link_bytes_per_cycle:g} B/cycle"
            if self.link_bytes_per_cycle
            else f"{self.link_bytes_per_second / 1e9:g} GB/s"
        )
        missing = f", {len(self.missing)} positions without a {self.name}" if self.missing else ""
        return f"{self.topology}, {passed} a link, {self.latency_cycles} cycles a hop{missing}"

    @property
    def kind(self) -> Topology:
        """Return the topology that it is a case of."""
        return "torus" if self.topology == "ring" else "mesh" if self.topology == "line" else self.topology


def n_cores_of(levels: tuple[Level, ...]) -> int:
    """Return how many cores levels make up."""
    return prod(level.count for level in levels)


@lru_cache(maxsize=KEPT_LINKS)
def links_of(levels: tuple[Level, ...], clock_hz: float) -> Links | None:
    """Return the links of a chip, None where all its cores share one exchange."""
    if all(level.topology == "exchange" for level in levels):
        return None
    strides = (1, *accumulate((level.count for level in levels), mul))
    return Links(
        tuple(
            LinkLevel(
                stride=stride,
                count=level.count,
                topology=level.kind,
                width=level.columns or level.children or level.count + len(level.missing),
                rate=level.rate(clock_hz) if level.topology != "exchange" else 1,
                latency_cycles=level.latency_cycles,
                is_multicast=level.multicast,
                missing=tuple(sorted(level.missing)),
            )
            for stride, level in zip(strides, levels, strict=False)
        )
    )
