"""What a run of a device program returns: outputs, cycles by phase, operator and codelet, and a sample of tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.sim.result import PHASE_KINDS, OperatorResult, PhaseKind


@dataclass(frozen=True, slots=True)
class DevicePhase:
    """One executed step: a compute set or a copy named `step`. All tiles begin and end it together.

    `cycles` come from the instruction-set and the exchange simulator, `modelled_cycles` from the cost model that
    planned it. `n_bytes` crossed tiles in total; `max_bytes` is the most that any tile received or sent.
    """

    operator: str
    kind: PhaseKind
    step: str
    start_cycle: int
    cycles: int
    modelled_cycles: int
    n_bytes: int = 0
    max_bytes: int = 0


@dataclass(frozen=True, slots=True)
class VertexRecord:
    """All vertices of one codelet in one compute set, over all executions of the set.

    `n_vertices` executions on tiles; `total_cycles` their sum, `max_cycles` the slowest; `modelled_cycles` is what the
    cost model says of one.
    """

    operator: str
    compute_set: str
    codelet: str
    n_vertices: int
    total_cycles: int
    max_cycles: int
    modelled_cycles: int


@dataclass(frozen=True, slots=True, eq=False)
class TileSample:
    """What some tiles did: cycles at work per phase and tile, (phases, tiles); the rest of a phase they waited.

    `codelets` are what they ran, one per tile ("" for nothing), by compute set.
    """

    tiles: tuple[int, ...]
    busy_cycles: NDArray[np.int64]
    codelets: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceResult:
    """A finished run: `outputs` by public name, operators in execution order, phases in time order.

    A run that stopped after an operator has the variables of its last steps as outputs, (tiles, slots), by their names.
    """

    outputs: Mapping[str, NDArray[Any]]
    operators: tuple[OperatorResult, ...]
    timeline: tuple[DevicePhase, ...]
    vertices: tuple[VertexRecord, ...]
    sample: TileSample

    @property
    def cycles(self) -> int:
        """Return the cycles of the whole run."""
        return sum(phase.cycles for phase in self.timeline)

    @property
    def modelled_cycles(self) -> int:
        """Return what the cost model says of the same steps."""
        return sum(phase.modelled_cycles for phase in self.timeline)

    @property
    def bytes_by_kind(self) -> Mapping[PhaseKind, int]:
        """Return the bytes that crossed tiles by kind of phase, over all operators."""
        return {kind: sum(o.bytes_by_kind.get(kind, 0) for o in self.operators) for kind in PHASE_KINDS}
