"""Figure 16: CPU seconds that systems plan models in; measured, so that no run gives the same."""

from __future__ import annotations

from typing import Any

from paper.claims import ANSOR, Claim
from paper.part_data import (
    Job,
    Say,
    chip_and_costs,
    in_own_process,
    note_seconds,
    noted_seconds,
    read,
    shown,
    table,
)
from paper.part_executed import FILE as EXECUTED
from paper.systems import builder_of, graph_of
from t10.baselines.ansor import EVALUATIONS
from t10.compare import MAIN, SYSTEMS, compared
from t10.report.plots import new_figure

FILE = "seconds-planning.csv"
MODELS = (("nerf", "1"), ("opt-1.3b", "1"))
"""Models that are planned for this figure alone; `noted` adds others."""
COLOURS = ("#3a923a", "#3b9bb3", "#e0a500", "#b05ab0", "#a0522d", "#888888")
PICTURE = "figure-16-seconds"
HOURS = 3600


def plan(say: Say) -> None:
    """Plan what was not measured yet."""
    known = noted_seconds(FILE)
    for model, batch in MODELS:
        for name in MAIN:
            if (model, batch, name) in known:
                continue
            _, spent = in_own_process(planned, model, int(batch), name)
            noted(model, int(batch), name, spent)
            say(f"{FILE}: {model} {batch} {name}")


def planned(model: str, batch: int, system: str) -> int:
    """Return the cycles of a model as a system plans it."""
    chip, cost = chip_and_costs()
    graph = graph_of(builder_of(model)(batch), chip, joins=SYSTEMS[system].joins)
    return compared(graph, SYSTEMS[system], chip, cost).cycles


def noted(model: str, batch: int, system: str, seconds: float) -> None:
    """Keep what planning a model took: for those who plan models for other figures."""
    note_seconds(FILE, (model, str(batch), system), seconds)


def _by_model() -> dict[tuple[str, str], dict[str, float]]:
    found: dict[tuple[str, str], dict[str, float]] = {}
    for (model, batch, system), seconds in noted_seconds(FILE).items():
        found.setdefault((model, batch), {})[system] = seconds
    return found


def pictures() -> dict[str, Any]:
    """Return bars of every system beside each other."""
    rows = _by_model()
    if not rows:
        return {}
    figure = new_figure(9, 3.4)
    axes = figure.add_subplot()
    width = 0.8 / len(MAIN)
    for place, (name, colour) in enumerate(zip(MAIN, COLOURS, strict=True)):
        at = [number + (place - len(MAIN) / 2 + 0.5) * width for number in range(len(rows))]
        axes.bar(at, [each.get(name, 0) for each in rows.values()], width, color=colour, label=name)
    axes.set_xticks(range(len(rows)), [f"{model}\nbatch {batch}" for model, batch in rows])
    axes.set_ylabel("CPU seconds (measured)")
    axes.legend(frameon=False, ncols=len(MAIN), fontsize=8)
    return {PICTURE: figure}


def claims() -> list[Claim]:
    """Return what the paper says of figure 16."""
    ours: dict[Job, float] = {key: each["ours"] for key, each in _by_model().items() if "ours" in each}
    if not ours:
        return []
    slowest = max(ours, key=lambda key: ours[key])
    return [
        Claim(
            "time of planning, figure 16",
            "a few hours for most models",
            f"seconds: {len(ours)} models, at most {ours[slowest]:.0f} CPU seconds ({'-'.join(slowest)})",
            max(ours.values()) <= HOURS,
            "a model takes longer",
        )
    ]


def _on_hardware() -> str:
    """Return what Ansor's measurements would take on hardware, of the model with most operators that is known."""
    found = [(int(line["distinct"]), line["model"]) for line in read(EXECUTED) if line["system"] == ANSOR]
    if not found:
        return ""
    n, model = max(found)
    return (
        f" Ansor measures on hardware, at about a second each:\n{EVALUATIONS} tilings of each of the {n} different "
        f"operators of {model} take {EVALUATIONS * n / 60:.0f} minutes at most."
    )


def section() -> str:
    """Return the part of the page."""
    rows = [
        (f"{model}-{batch}", *(f"{each[name]:.1f}" if name in each else "-" for name in MAIN))
        for (model, batch), each in _by_model().items()
    ]
    return f"""## Seconds of planning

{shown(PICTURE)}

CPU seconds of a process that imports a model and plans it, its helpers included, measured on whatever
machine did it, beside other work: they differ from run to run.{_on_hardware()}

{table(("model", *MAIN), rows)}
"""
