"""What the parts of the evaluation share: their rows in CSV files, models as the other systems get them, pictures.

A part is a module with `plan(say)`, which works out what its file lacks, `pictures()`, `claims()` and `section()`.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from paper.systems import builder_of, graph_of
from t10.chip import ChipSpec, load_chip
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.cost import CostModel
from t10.cost.registry import cost_model, given
from t10.plan.options import PlanOptions
from t10.plan.search.operator import SearchResult, search_operator
from t10.report.plots import svg_text

CHIP, COST = "ipu-mk2", "ipu"
MODELLED = f"modelled, chip {CHIP}, cost model {COST}"
FOLDER = "evaluation"
NOT_PLANNED = "(not planned yet)"

SECONDS_FIELDS = ("model", "batch", "what", "cpu_seconds_as_measured")

Say = Callable[[str], object]
Line = Mapping[str, str]
Job = tuple[str, ...]
Result = TypeVar("Result")


class Data:
    """Where the files are: tests have their own folder."""

    folder = Path(__file__).resolve().parent / "data"


def read(name: str) -> list[dict[str, str]]:
    """Return the lines of a file, none where there is no file."""
    path = Data.folder / name
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill(
    name: str,
    fields: Sequence[str],
    jobs: Sequence[Job],
    make: Callable[..., Iterable[Sequence[object]]],
    say: Say,
) -> None:
    """Work out the jobs of which a file has no line; a job's values are the first fields of its lines.

    `make` is called with them and returns the other values of each line. The file is written after every job, in the
    order of `jobs`.
    """
    n_key = len(jobs[0])
    known: dict[Job, list[list[str]]] = {}
    for line in read(name):
        values = [line[field] for field in fields]
        known.setdefault(tuple(values[:n_key]), []).append(values)
    for job in jobs:
        if job in known:
            continue
        known[job] = [[*job, *map(str, rest)] for rest in make(*job)]
        lines = [line for each in jobs for line in known.get(each, [])]
        _write(Data.folder / name, fields, lines)
        say(f"{name}: {' '.join(job)}")


def cpu_seconds() -> float:
    """Return the CPU seconds of this process."""
    return time.process_time()


def in_own_process(work: Callable[..., Result], *arguments: object) -> tuple[Result, float]:
    """Return what work returns in a new process, and the CPU seconds of that process and of its helpers.

    Helpers of a planner outlive what they help with: in one process they would be charged to whatever comes next.
    """
    before = os.times()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        result = pool.submit(work, *arguments).result()
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return result, spent


def note_seconds(name: str, key: Job, spent: float) -> None:
    """Keep the CPU seconds that a job took on this machine, in a file of such alone: they differ from run to run."""
    known = {tuple(line[f] for f in SECONDS_FIELDS[:-1]): line[SECONDS_FIELDS[-1]] for line in read(name)}
    known[key] = f"{spent:.1f}"
    _write(Data.folder / name, SECONDS_FIELDS, [[*each, seconds] for each, seconds in sorted(known.items())])


def noted_seconds(name: str) -> dict[Job, float]:
    """Return the seconds that jobs took, wherever they ran last."""
    return {
        tuple(line[f] for f in SECONDS_FIELDS[:-1]): float(line[SECONDS_FIELDS[-1]]) for line in read(name)
    }


def _write(path: Path, fields: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([fields, *lines])
    part.replace(path)


@lru_cache(maxsize=1)
def chip_and_costs() -> tuple[ChipSpec, CostModel]:
    """Return the chip, and its cost model."""
    chip = load_chip(CHIP)
    return chip, cost_model(given(COST), chip)


@lru_cache(maxsize=16)
def unfused(model: str, batch: int) -> Graph:
    """Return a model with sums in f16, no operator joined to another: as the systems of the paper get it."""
    return graph_of(builder_of(model)(batch), chip_and_costs()[0], joins=False)


@lru_cache(maxsize=16)
def searched(model: str, batch: int, operator: str) -> tuple[SearchResult, float]:
    """Return what a search of an operator finds, and the CPU seconds that it took: several figures ask for the same."""
    chip, cost = chip_and_costs()
    spec = operator_of(unfused(model, batch), operator)
    start = cpu_seconds()
    found = search_operator(spec, chip, cost, PlanOptions())
    return found, cpu_seconds() - start


def operator_of(graph: Graph, name: str) -> OperatorSpec:
    """Return an operator by its name."""
    return next(spec for spec in graph.operators if spec.name == name)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) if len(lines) > 2 else NOT_PLANNED


def shown(name: str) -> str:
    """Return a picture in Markdown."""
    return f"![{name}]({FOLDER}/{name}.svg)"


def svg(picture: Any) -> str:
    """Return a picture, a figure or text already, as SVG text."""
    return picture if isinstance(picture, str) else svg_text(picture)
