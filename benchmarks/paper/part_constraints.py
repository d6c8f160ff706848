"""Figure 19: how strict the search is, against the seconds of planning and the cycles of what is planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paper.claims import Claim
from paper.part_data import (
    MODELLED,
    Say,
    chip_and_costs,
    fill,
    in_own_process,
    note_seconds,
    noted_seconds,
    read,
    shown,
    table,
)
from paper.systems import builder_of, graph_of
from t10.plan.fronts.canonical import canonical
from t10.plan.options import PlanOptions
from t10.plan.schedule import plan_module, sum_of_cycles
from t10.plan.search.operator import operator_space
from t10.report.plots import new_figure

FILE, SECONDS = "constraints.csv", "seconds-constraints.csv"
FIELDS = ("model", "batch", "constraint", "plans", "cycles")
"""`constraint` is both the parallelism and the padding; `plans` are at most within it, of all different operators."""
MODELS = (("nerf", "1"), ("opt-1.3b", "1"))
CONSTRAINTS = ("0.99", "0.9", "0.5")
"""Strict ones first."""
PICTURE = "figure-19-constraints"
NEAR_OPTIMAL = 1.05
MINUTE = 60


def plan(say: Say) -> None:
    """Plan what has no row yet."""
    fill(FILE, FIELDS, [(*each, limit) for each in MODELS for limit in CONSTRAINTS], _made, say)


def _made(model: str, batch: str, constraint: str) -> Iterator[tuple[int, int]]:
    found, spent = in_own_process(planned, model, int(batch), float(constraint))
    note_seconds(SECONDS, (model, batch, constraint), spent)
    yield found


def planned(model: str, batch: int, constraint: float) -> tuple[int, int]:
    """Return how many plans are at most within a constraint, and the cycles of a model."""
    chip, cost = chip_and_costs()
    graph = graph_of(builder_of(model)(batch), chip, joins=True)
    options = PlanOptions(parallelism=constraint, padding=constraint)
    different = {canonical(spec): spec for spec in graph.operators}.values()
    n_plans = sum(operator_space(spec, chip, cost, options).at_most for spec in different)
    return n_plans, sum_of_cycles(plan_module(graph, chip, options, None, cost))


def _rows() -> dict[tuple[str, str], dict[str, tuple[int, int]]]:
    """Return plans and cycles by constraint, by model and batch; models with all constraints only."""
    found: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
    for line in read(FILE):
        point = int(line["plans"]), int(line["cycles"])
        found.setdefault((line["model"], line["batch"]), {})[line["constraint"]] = point
    return {key: each for key, each in found.items() if set(each) >= set(CONSTRAINTS)}


def pictures() -> dict[str, Any]:
    """Return cycles, beside the best of a model, against seconds."""
    rows, seconds = _rows(), noted_seconds(SECONDS)
    if not rows:
        return {}
    figure = new_figure(7, 3.4)
    axes = figure.add_subplot()
    for (model, batch), points in rows.items():
        least = min(cycles for _, cycles in points.values())
        where = [
            (seconds[model, batch, each], 100 * (cycles / least - 1), each)
            for each, (_, cycles) in points.items()
            if (model, batch, each) in seconds
        ]
        if not where:
            continue
        axes.plot([x for x, _, _ in where], [y for _, y, _ in where], "o-", label=f"{model}, batch {batch}")
        for x, y, text in where:
            axes.annotate(text, (x, y), xytext=(3, 3), textcoords="offset points", fontsize=7)
    axes.set_ylim(bottom=-0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel("CPU seconds of planning (measured, differs from run to run)")
    axes.set_ylabel("% above the least cycles")
    axes.set_title(f"by parallelism and padding constraint ({MODELLED})", loc="left")
    axes.legend(frameon=False)
    return {PICTURE: figure}


def claims() -> list[Claim]:
    """Return what the paper says of figure 19."""
    rows, seconds = _rows(), noted_seconds(SECONDS)
    if not rows:
        return []
    quick: list[str] = []
    near = 0
    for (model, batch), points in rows.items():
        least = min(cycles for _, cycles in points.values())
        within = [each for each in points if seconds.get((model, batch, each), MINUTE) < MINUTE]
        ratio = min((points[each][1] for each in within), default=0) / least
        near += 0 < ratio <= NEAR_OPTIMAL
        quick.append(f"{model} {ratio - 1:+.1%}" if within else f"{model} has no plan by then")
    gains = [points[CONSTRAINTS[0]][1] / points[CONSTRAINTS[-1]][1] - 1 for points in rows.values()]
    texts = ", ".join(f"{model} {gain:.1%}" for (model, _), gain in zip(rows, gains, strict=True))
    return [
        Claim(
            "a minute of planning, figure 19",
            "near-optimal for most models",
            "against the best of all constraints: " + ", ".join(quick),
            near > len(rows) / 2,
            "planning takes longer",
        ),
        Claim(
            "relaxed constraints, figure 19 (a comment in the paper's text)",
            "slightly better for ResNet and ViT",
            f"saved from {CONSTRAINTS[0]} to {CONSTRAINTS[-1]}: {texts}",
            min(gains) >= 0,
            "relaxed, the choice of a whole model has more to choose from, and ends at a proved gap of 0.1 %",
        ),
    ]


def section() -> str:
    """Return the part of the page."""
    seconds = noted_seconds(SECONDS)
    rows: list[tuple[str, ...]] = []
    for (model, batch), points in _rows().items():
        for each, (n_plans, cycles) in points.items():
            spent = seconds.get((model, batch, each))
            shown_seconds = "-" if spent is None else f"{spent:.1f}"
            rows.append((f"{model}-{batch}", each, f"{n_plans:,}", f"{cycles:,}", shown_seconds))
    headings = ("model", "parallelism and padding", "plans within", "cycles", "CPU seconds (measured)")
    return f"""## Constraints of the search

{shown(PICTURE)}

`--parallelism` and `--padding` set how many cores an operator occupies at least, and how much of an axis is
real. Cycles are modelled. Seconds are measured, on a machine that did other work, too.

{table(headings, rows)}
"""
