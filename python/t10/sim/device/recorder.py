"""Collects what a run of a device program took: phases one after another, vertices by codelet, busy tiles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t10.core.arrays import Array, Ints
from t10.core.device import ComputeSet, Copy, CopyKind, VertexKind
from t10.core.plan import Cycles
from t10.sim.device.phase import PhaseTime
from t10.sim.device.result import DevicePhase, DeviceResult, TileSample, VertexRecord
from t10.sim.result import PHASE_KINDS, OperatorResult, PhaseKind

MOST_SAMPLED_TILES = 8
PHASE_BY_VERTEX: dict[VertexKind, PhaseKind] = {
    "fill": "compute",
    "sub_task": "compute",
    "combine": "reduce",
    "epilogue": "compute",
}
PHASE_BY_COPY: dict[CopyKind, PhaseKind] = {
    "relayout": "relayout",
    "setup": "setup",
    "shift": "shift",
    "copy_out": "shift",
    "reduce": "reduce",
}


class Recorder:
    """The clock of a run; a sample of tiles is recorded phase by phase."""

    def __init__(self, n_tiles: int) -> None:
        """Begin at cycle 0 with a sample of tiles spread over all."""
        n_sampled = min(n_tiles, MOST_SAMPLED_TILES)
        self.tiles = tuple(number * n_tiles // max(n_sampled, 1) for number in range(n_sampled))
        self.now = 0
        self._first = 0
        self._phases: list[DevicePhase] = []
        self._busy: list[Ints] = []
        self._operators: list[OperatorResult] = []
        self._operator = ""
        self._codelets: dict[str, tuple[str, ...]] = {}
        self._vertices: dict[tuple[str, int], tuple[ComputeSet, int, int, int]] = {}

    def begin(self, operator: str) -> None:
        """Begin an operator."""
        self._operator, self._first = operator, len(self._phases)

    def end(self) -> None:
        """End the operator: its phases become one result."""
        cycles: dict[PhaseKind, int] = dict.fromkeys(PHASE_KINDS, 0)
        n_bytes: dict[PhaseKind, int] = dict.fromkeys(PHASE_KINDS, 0)
        for phase in self._phases[self._first :]:
            cycles[phase.kind] += phase.cycles
            n_bytes[phase.kind] += phase.n_bytes
        self._operators.append(OperatorResult(self._operator, Cycles(**cycles), n_bytes))

    def add_vertices(self, compute_set: ComputeSet, groups: Ints, cycles: Ints) -> None:
        """Record executed vertices: the number of each one's group and its cycles."""
        for number in np.unique(groups):
            own = cycles[groups == number]
            key = (compute_set.name, int(number))
            _, n, total, most = self._vertices.get(key, (compute_set, 0, 0, 0))
            self._vertices[key] = (
                compute_set,
                n + len(own),
                total + int(own.sum()),
                max(most, int(own.max())),
            )

    def add_compute(self, compute_set: ComputeSet, cycles: int, busy: Ints) -> None:
        """Advance the clock by a compute set."""
        kind = PHASE_BY_VERTEX[compute_set.kind]
        self._add(kind, compute_set.name, cycles, compute_set.cycles, busy)
        if compute_set.name not in self._codelets:
            self._codelets[compute_set.name] = self._sampled_codelets(compute_set)

    def _sampled_codelets(self, compute_set: ComputeSet) -> tuple[str, ...]:
        found = dict.fromkeys(self.tiles, "")
        for group in compute_set.groups:
            found |= dict.fromkeys(found.keys() & set(group.tiles), group.codelet)
        return tuple(found[tile] for tile in self.tiles)

    def add_exchange(self, copy: Copy, time: PhaseTime) -> None:
        """Advance the clock by an exchange phase."""
        kind = PHASE_BY_COPY[copy.kind]
        self._add(kind, copy.name, time.cycles, copy.cycles, time.busy_cycles, time.n_bytes, time.max_bytes)

    def _add(
        self,
        kind: PhaseKind,
        step: str,
        cycles: int,
        modelled: int,
        busy: Ints,
        n_bytes: int = 0,
        max_bytes: int = 0,
    ) -> None:
        self._phases.append(
            DevicePhase(self._operator, kind, step, self.now, cycles, modelled, n_bytes, max_bytes)
        )
        self._busy.append(busy[list(self.tiles)])
        self.now += cycles

    def result(self, outputs: Mapping[str, Array]) -> DeviceResult:
        """Return all that was recorded, with the run's outputs."""
        busy = np.array(self._busy, np.int64).reshape(len(self._busy), len(self.tiles))
        return DeviceResult(
            outputs=outputs,
            operators=tuple(self._operators),
            timeline=tuple(self._phases),
            vertices=tuple(self._vertex_records()),
            sample=TileSample(self.tiles, busy, self._codelets),
        )

    def _vertex_records(self) -> list[VertexRecord]:
        records: list[VertexRecord] = []
        for (_, number), (compute_set, n, total, most) in self._vertices.items():
            group = compute_set.groups[number]
            records.append(
                VertexRecord(
                    compute_set.operator, compute_set.name, group.codelet, n, total, most, group.cycles
                )
            )
        return records
