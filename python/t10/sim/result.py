"""What a simulation returns: outputs, modelled time by phase, traffic, peak memory and a timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from t10.core.plan import Cycles

PhaseKind = Literal["setup", "relayout", "compute", "shift", "reduce", "wait"]
PHASE_KINDS: tuple[PhaseKind, ...] = ("setup", "relayout", "compute", "shift", "reduce", "wait")


@dataclass(frozen=True, slots=True)
class PhaseRecord:
    """One phase of the bulk-synchronous timeline: all cores begin and end it together.

    `n_bytes` crossed cores in total; `max_bytes` is the most that any core received or sent.
    """

    operator: str
    kind: PhaseKind
    start_cycle: int
    cycles: int
    n_bytes: int = 0
    max_bytes: int = 0


@dataclass(frozen=True, slots=True)
class OperatorResult:
    """One executed operator: its cycles by kind, and the bytes that crossed cores by kind of phase."""

    name: str
    cycles: Cycles
    bytes_by_kind: Mapping[PhaseKind, int]


@dataclass(frozen=True, slots=True)
class SimResult:
    """A finished simulation: `outputs` by public name, operators in execution order, phases in time order.

    `peak_bytes` are the most bytes of a core in use at any moment, code and stacks included.
    """

    outputs: Mapping[str, NDArray[Any]]
    operators: tuple[OperatorResult, ...]
    timeline: tuple[PhaseRecord, ...]
    peak_bytes: int

    @property
    def cycles(self) -> int:
        """Return the modelled cycles of the whole run."""
        return sum(operator.cycles.total for operator in self.operators)

    @property
    def bytes_by_kind(self) -> Mapping[PhaseKind, int]:
        """Return the bytes that crossed cores by kind of phase, over all operators."""
        return {kind: sum(o.bytes_by_kind.get(kind, 0) for o in self.operators) for kind in PHASE_KINDS}


class Timeline:
    """Collects phases: each begins when the one before it ended."""

    def __init__(self) -> None:
        """Begin at cycle 0."""
        self.records: list[PhaseRecord] = []
        self.now = 0

    def add(self, operator: str, kind: PhaseKind, cycles: int, n_bytes: int = 0, max_bytes: int = 0) -> None:
        """Append a phase that takes `cycles`."""
        self.records.append(PhaseRecord(operator, kind, self.now, cycles, n_bytes, max_bytes))
        self.now += cycles

    def operator_result(self, operator: str, first: int) -> OperatorResult:
        """Return the sums of the phases recorded since record number `first`."""
        cycles: dict[PhaseKind, int] = dict.fromkeys(PHASE_KINDS, 0)
        n_bytes: dict[PhaseKind, int] = dict.fromkeys(PHASE_KINDS, 0)
        for record in self.records[first:]:
            cycles[record.kind] += record.cycles
            n_bytes[record.kind] += record.n_bytes
        return OperatorResult(operator, Cycles(**cycles), n_bytes)
