"""Plan every model at every batch with every system, and keep what comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paper.results import Key, read_operators, read_rows, write_operators, write_rows
from paper.systems import FRAME, SYSTEMS, builder_of, graph_of, row_of
from t10.chip import load_chip
from t10.compare import MAIN, compared
from t10.core.graph import Graph
from t10.cost.registry import cost_model, given


@dataclass(frozen=True, slots=True)
class Point:
    """A model at a batch on a chip, and which systems plan it."""

    model: str
    batch: int
    systems: tuple[str, ...]
    chip: str = "ipu-mk2"
    cost_model: str = "ipu"


CHIP = "ipu-mk2"
ALL = tuple(SYSTEMS)
SPLIT = "Roller, split sums"
OURS = ("ours", "T10 as published")
MEMORIES_KIB = (64, 96, 192)
"""Memory of a core from which it is seen where plans begin to rotate."""
CORES = (368, 736)

SUBSET = (Point("retnet-1.3b", 1, MAIN), Point("opt-1.3b", 1, MAIN))
"""What is planned where minutes count."""

POINTS = (
    Point("retnet-1.3b", 1, MAIN),
    Point("vit-b32", 1, MAIN),
    Point(FRAME, 1, MAIN),
    Point("bert-large", 1, MAIN),
    *(Point("retnet-1.3b", 1, OURS, f"ipu-mk2:sram_bytes={size}KiB") for size in MEMORIES_KIB),
    *(
        Point(model, 1, ("T10 as published",), "ipu-mk2", "t10-paper")
        for model in ("vit-b32", FRAME, "bert-large")
    ),
    Point("retnet-1.3b", 1, ALL),
    Point("opt-13b", 1, MAIN),
    Point("resnet18", 1, MAIN),
    Point("llama2-13b", 1, MAIN),
    *(Point("retnet-1.3b", 1, ("ours", SPLIT), f"ipu-mk2:n_cores={cores}") for cores in CORES),
    Point("vit-b32", 1, ALL),
    Point("vit-b32", 8, MAIN),
    Point("bert-large", 8, MAIN),
)


def key_of(point: Point, system: str) -> Key:
    """Return the key of a row."""
    chip = load_chip(point.chip)
    cost = cost_model(given(point.cost_model), chip)
    return point.chip, cost.name, point.model, point.batch, system


def sweep(points: Iterable[Point], *, say: bool = True) -> None:
    """Plan what has no row yet; rows are written as they come."""
    rows, operators = read_rows(), read_operators()
    for point in points:
        missing = [name for name in point.systems if key_of(point, name) not in rows]
        graphs: dict[bool, Graph] = {}
        for name in missing:
            system, key = SYSTEMS[name], key_of(point, name)
            chip = load_chip(point.chip)
            if system.joins not in graphs:
                graphs[system.joins] = graph_of(
                    builder_of(point.model)(point.batch), chip, joins=system.joins
                )
            cost = cost_model(given(point.cost_model), chip)
            found = compared(graphs[system.joins], system, chip, cost)
            rows[key] = row_of(*key[:4], found)
            if not system.joins and found.by_operator and point.chip == CHIP:
                operators[key] = dict(found.by_operator)
            write_rows(rows.values())
            write_operators(operators)
            if say:
                shown = found.reason or f"{found.cycles:,} cycles"
                print(
                    f"{point.chip} {point.model} x{point.batch} {name}: {shown} [{found.seconds:.1f} s]",
                    flush=True,
                )
