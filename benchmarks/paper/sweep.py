"""Plan every model at every batch with every system, and keep what comes out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

from paper.results import Key, read_operators, read_rows, write_operators, write_rows
from paper.systems import FRAME, SYSTEMS, Row, builder_of, graph_of, row_of, weight_bytes_of
from t10.chip import load_chip
from t10.compare import MAIN, compared
from t10.core.graph import Graph
from t10.cost.registry import cost_model, given


@dataclass(frozen=True, slots=True)
class Point:
    """A model at a batch on a chip, and which systems plan it."""

    model: str
    batch: int
    systems: tuple[str, ...] = MAIN
    chip: str = "ipu-mk2"
    cost_model: str = "ipu"


@dataclass(frozen=True, slots=True)
class Made:
    """What a system made of a model: its row, cycles of operators by name, CPU seconds of planning."""

    row: Row
    by_operator: dict[str, int]
    seconds: float


CHIP = "ipu-mk2"
ALL = tuple(SYSTEMS)
SPLIT = "Roller, split sums"
ANSOR = "Ansor"
OURS = ("ours", "T10 as published")
NO_SEARCH = tuple(name for name in MAIN if name != ANSOR)
"""Without the one that takes longest to plan, for models and batches that it need not be seen on."""
MEMORIES_KIB = (96, 192, 384)
"""Memory of a core from which it is seen where plans begin to rotate."""
CORES = ("ipu-mk2:n_cores=368", "ipu-mk2:n_cores=736", "v-ipu-2", "v-ipu-4")
"""Fewer cores than a chip has, and chips joined to one."""
LAYERS = ("opt-1.3b", "opt-2.7b", "opt-6.7b", "opt-13b", "llama2-7b", "llama2-13b")

SUBSET = (Point("retnet-1.3b", 1, ALL), Point("opt-1.3b", 1, (*OURS, SPLIT)))
"""What is planned where minutes count."""

POINTS = (
    Point("bert-large", 1),
    Point("bert-large", 8, OURS),
    Point("vit-b32", 1),
    Point("vit-b32", 8, NO_SEARCH),
    Point("resnet18", 1),
    Point(FRAME, 1),
    Point(FRAME, 2, (*OURS, SPLIT)),
    Point("opt-13b", 1),
    Point("llama2-13b", 1, NO_SEARCH),
    Point("opt-1.3b", 1, (*OURS, SPLIT, ANSOR)),
    *(Point(model, 1, (*OURS, SPLIT)) for model in ("opt-2.7b", "opt-6.7b", "llama2-7b")),
    *(Point(model, 8, (*OURS, SPLIT)) for model in ("opt-1.3b", "opt-13b")),
    Point("retnet-1.3b", 1, ALL),
    Point("retnet-1.3b", 8, NO_SEARCH),
    Point("retnet-1.3b", 32, NO_SEARCH),
    *(
        Point(model, 1, ("T10 as published",), "ipu-mk2", "t10-paper")
        for model in ("vit-b32", FRAME, "bert-large")
    ),
    *(Point("retnet-1.3b", 1, OURS, f"ipu-mk2:sram_bytes={size}KiB") for size in MEMORIES_KIB),
    *(Point("retnet-1.3b", 1, ("ours", SPLIT), chip) for chip in CORES),
)


def key_of(point: Point, system: str) -> Key:
    """Return the key of a row."""
    chip = load_chip(point.chip)
    cost = cost_model(given(point.cost_model), chip)
    return point.chip, cost.name, point.model, point.batch, system


def planned(point: Point, systems: Sequence[str]) -> list[Made]:
    """Plan a model as some systems do."""
    chip, graphs = load_chip(point.chip), dict[bool, Graph]()
    cost = cost_model(given(point.cost_model), chip)
    result: list[Made] = []
    for name in systems:
        system = SYSTEMS[name]
        if system.joins not in graphs:
            graphs[system.joins] = graph_of(builder_of(point.model)(point.batch), chip, joins=system.joins)
        found = compared(graphs[system.joins], system, chip, cost)
        row = row_of(*key_of(point, name)[:4], found, weight_bytes_of(graphs[system.joins]))
        result.append(Made(row, dict(found.by_operator or {}), found.seconds))
    return result


def _made(todo: Sequence[tuple[Point, tuple[str, ...]]], n_jobs: int) -> Iterator[list[Made]]:
    """Plan points side by side, each in one process on one core."""
    if n_jobs == 1 or len(todo) == 1:
        yield from (planned(*each) for each in todo)
        return
    with ProcessPoolExecutor(n_jobs, get_context("spawn"), _use_one_core) as pool:
        calls = [pool.submit(planned, *each) for each in todo]
        try:
            yield from (call.result() for call in as_completed(calls))
        finally:
            pool.shutdown(cancel_futures=True)


def _use_one_core() -> None:
    """Keep this process on one core, so that planning does not start helpers of its own."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def sweep(points: Iterable[Point], *, n_jobs: int = 1, say: bool = True) -> None:
    """Plan what has no row yet, so many models at a time; rows are written as they come."""
    rows, operators = read_rows(), read_operators()
    todo: list[tuple[Point, tuple[str, ...]]] = []
    for point in points:
        missing = tuple(name for name in point.systems if key_of(point, name) not in rows)
        if missing:
            todo.append((point, missing))
    for found in _made(todo, n_jobs):
        for made in found:
            row = made.row
            rows[row.key] = row
            if not SYSTEMS[row.system].joins and made.by_operator and row.chip == CHIP:
                operators[row.key] = made.by_operator
            if say:
                shown = row.status if row.status != "ok" else f"{row.cycles:,} cycles"
                head = f"{row.chip} {row.cost_model} {row.model} x{row.batch} {row.system}"
                print(f"{head}: {shown} [{made.seconds:.1f} s]", flush=True)
        write_rows(rows.values())
        write_operators(operators)
