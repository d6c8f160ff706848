"""Plan models on the bundled chips: time, share of moving, gap, CPU seconds of planning.

    python benchmarks/chips.py [--models vit-b32,llama2-13b] [--chips ipu-mk2,v-ipu-4] [--batch 1] [--json FILE]

What a chip cannot hold is said in its row. Plans are made without a program and without a cache; cycles are modelled.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from planner.graphs import graph_of
from planner.models import MODELS

from t10.chip import bundled_chips, load_chip
from t10.core.document.encode import total_cycles
from t10.core.graph import Graph
from t10.cost.registry import cost_model
from t10.errors import InfeasiblePlanError
from t10.plan.schedule import plan_module

FEW = "bert-large,vit-b16,resnet18,opt-13b,llama2-13b"
TEST = "test-"
"""How the names of chips begin that are for tests."""


@dataclass(frozen=True)
class Row:
    """A model on a chip: modelled time, shares of it, and what planning took; without a plan, why."""

    model: str
    chip: str
    n_cores: int
    milliseconds: float = 0
    moving: float = 0
    waiting: float = 0
    gap: float | None = None
    cpu_seconds: float = 0
    problem: str = ""


def planned(name: str, graph: Graph, chip_name: str) -> Row:
    """Return what comes of planning a model for a chip."""
    chip = load_chip(chip_name)
    begin = time.process_time()
    try:
        plan = plan_module(graph, chip, cost=cost_model("ipu", chip))
    except InfeasiblePlanError as error:
        return Row(name, chip_name, chip.n_cores, cpu_seconds=time.process_time() - begin, problem=str(error))
    cycles = total_cycles(plan)
    return Row(
        name,
        chip_name,
        chip.n_cores,
        cycles.total / chip.clock_hz * 1000,
        (cycles.total - cycles.compute - cycles.wait) / cycles.total,
        cycles.wait / cycles.total,
        plan.optimality.gap if plan.optimality else None,
        time.process_time() - begin,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", default=FEW)
    parser.add_argument("--chips", default=",".join(c for c in bundled_chips() if not c.startswith(TEST)))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    print(
        f"{'model':12} {'chip':12} {'cores':>6} {'ms':>9} {'moving':>7} {'waiting':>7} {'gap':>7} {'CPU s':>6}"
    )
    for name in options.models.split(","):
        made = MODELS[name].build(options.batch)
        for chip_name in options.chips.split(","):
            graph = graph_of(made, chip=chip_name)
            row = planned(name, graph, chip_name)
            rows.append(row)
            gap = "-" if row.gap is None else f"{row.gap:.2%}"
            found = f"{row.milliseconds:9.4f} {row.moving:7.1%} {row.waiting:7.1%} {gap:>7} {row.cpu_seconds:6.1f}"
            print(f"{name:12} {chip_name:12} {row.n_cores:6,} {row.problem[:60] or found}", flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
