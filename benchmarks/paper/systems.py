"""The models of the paper, and what a system makes of one, as a row of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from math import prod

from bundled.builder import Builder
from planner import paper_models
from planner.models import MODELS

from t10.chip import ChipSpec
from t10.compare import SYSTEMS, Compared, graph_for
from t10.core.dtypes import size_bytes
from t10.core.graph import Graph
from t10.core.partials import Partials
from t10.frontend.importer import import_proto

FRAME = "nerf-frame"
"""The paper's NeRF: one frame of 1920 x 1080 points per unit of batch, 6 products of 64 x 64 and one of 64 x 3."""


@dataclass(frozen=True, slots=True)
class Row:
    """A system's plan of a model; cycles are modelled. `status` is `ok`, or why there is no plan.

    `moved_bytes` are what the busiest core of every phase takes from others while a model runs, `total_bytes` what all
    cores take; `rotating` operators have more than one step.
    """

    chip: str
    cost_model: str
    model: str
    batch: int
    system: str
    status: str
    operators: int = 0
    compute_cycles: int = 0
    transfer_cycles: int = 0
    moved_bytes: int = 0
    total_bytes: int = 0
    peak_bytes: int = 0
    rotating: int = 0
    weight_bytes: int = 0

    @property
    def cycles(self) -> int:
        """Return all cycles."""
        return self.compute_cycles + self.transfer_cycles

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """Return what tells rows apart."""
        return self.chip, self.cost_model, self.model, self.batch, self.system

    def record(self) -> dict[str, object]:
        """Return the row as plain data."""
        return asdict(self)


ROW_FIELDS = tuple(field.name for field in fields(Row))


def builder_of(model: str) -> Callable[[int], Builder]:
    """Return what builds a model at a batch."""
    if model == FRAME:
        return lambda batch: paper_models.nerf(batch * paper_models.NERF_POINTS)
    return MODELS[model].build


def graph_of(made: Builder, chip: ChipSpec, *, joins: bool, partials: str = "f16") -> Graph:
    """Return a model imported for a chip, its operators joined or apart."""
    imported = import_proto(made.model(), source=made.name)
    return graph_for(imported, chip, joins=joins, partials=Partials(partials))


def weight_bytes_of(graph: Graph) -> int:
    """Return the bytes of a model's weights."""
    return sum(prod(value.shape) * size_bytes(value.dtype) for value in graph.weights)


def row_of(chip: str, cost_model: str, model: str, batch: int, found: Compared, weight_bytes: int) -> Row:
    """Return what a system makes of a model as a row."""
    status = f"does not fit: {found.reason}" if found.reason else "ok"
    return Row(
        chip, cost_model, model, batch, found.system, status, found.n_operators, found.compute_cycles,
        found.transfer_cycles + found.wait_cycles, found.moved_bytes, found.total_bytes, found.peak_bytes,
        found.rotating, weight_bytes,
    )  # fmt: skip


__all__ = ["FRAME", "ROW_FIELDS", "SYSTEMS", "Row", "builder_of", "graph_of", "row_of", "weight_bytes_of"]
