"""Vary the rate of off-chip memory: the paper's prefetching (Single Op, Inter Op), ours, and the bound.

    python benchmarks/hbm.py [--models llama2-13b,bert-large] [--batch 1] [--chip ipu-mk2] [--rates 0.3,8] [--json FILE]

Language models are their layer, planned once and run as often as there are layers, each time on weights of its own;
others are planned whole.
*ideal*: every operator has all of the memory to itself, and fetches are hidden; that all weights are fetched is part of
it, so that a schedule which keeps some may take less. *bound*: no schedule over the same plans and layouts takes less.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from planner.graphs import graph_of
from planner.models import MODELS

from t10.chip import load_chip
from t10.cost.registry import cost_model
from t10.errors import InfeasiblePlanError
from t10.plan.context import Context, context_of
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.greedy.algorithm1 import tables_of
from t10.plan.joint.choose import JointPlanner
from t10.plan.options import PlanOptions
from t10.plan.prefetch.choose import FetchedChoice
from t10.plan.prefetch.paper import Group, double_buffered, inter_op, single_op
from t10.plan.search.pareto import Front

RATES = (0.3, 0.5, 1, 2, 4, 8, 12, 16)
LAYERS = {"llama2-7b": 32, "llama2-13b": 40, "opt-1.3b": 24, "opt-13b": 40, "retnet-1.3b": 24}
"""Language models of which there is one layer, and how many they have."""
Way = Callable[[Context, tuple[Front, ...]], tuple[Group, ...]]
"""How operators are grouped."""


@dataclass(frozen=True)
class Row:
    """A model at a rate, in TB/s; times in cycles, those of the paper's two ways with our plans of operators.

    None where an operator does not fit in the paper's buffer to execute in.
    """

    model: str
    batch: int
    rate: float
    single_op: int | None
    inter_op: int | None
    ours: int
    ideal: int
    bound: int
    n_kept: int
    milliseconds: float


def _groups(way: Way, context: Context, fronts: tuple[Front, ...], repeats: int) -> tuple[Group, ...] | None:
    try:
        return way(context, fronts) * repeats
    except InfeasiblePlanError:
        return None


def rows(name: str, batch: int, chip_name: str, rates: list[float]) -> Iterator[Row]:
    """Yield a row per rate; fronts and states of the model are found once."""
    chip, repeats = load_chip(chip_name), LAYERS.get(name, 1)
    graph = graph_of(MODELS[name].build(batch), chip=chip_name)
    cost, options = cost_model("ipu", chip), PlanOptions()
    fronts = operator_fronts(graph, chip, cost, options)
    context = context_of(graph, chip, cost)
    planner = JointPlanner(context, fronts, options, {})
    choice = FetchedChoice(context, planner, tables_of(context, fronts), repeats)
    single, inter = (_groups(way, context, fronts, repeats) for way in (single_op, inter_op))
    for rate in rates:
        memory = load_chip(f"{chip_name}{',' if ':' in chip_name else ':'}hbm_bandwidth={rate}TB/s").off_chip
        assert memory is not None
        found = choice.best(memory)
        if found is None:
            return
        yield Row(
            name,
            batch,
            rate,
            None if single is None else double_buffered(single, memory),
            None if inter is None else double_buffered(inter, memory),
            found.run.cycles,
            choice.ideal(memory),
            choice.bound(memory),
            len(found.kept),
            found.run.cycles / chip.clock_hz * 1000,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", default="llama2-13b,opt-13b,bert-large")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--chip", default="ipu-mk2")
    parser.add_argument("--rates", default=",".join(map(str, RATES)), help="in TB/s")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: list[Row] = []
    print(
        f"{'model':12} {'TB/s':>5} {'Single Op':>11} {'Inter Op':>11} {'ours':>11} {'ms':>8} of ideal of bound kept"
    )
    for name in options.models.split(","):
        begin = time.process_time()
        for row in rows(
            name, options.batch, options.chip, [float(rate) for rate in options.rates.split(",")]
        ):
            papers = ["-" if each is None else f"{each:,}" for each in (row.single_op, row.inter_op)]
            cycles = f"{papers[0]:>11} {papers[1]:>11} {row.ours:11,}"
            shares = f"{row.ideal / row.ours:8.1%} {row.bound / row.ours:8.1%}"
            print(
                f"{name:12} {row.rate:5g} {cycles} {row.milliseconds:8.3f} {shares} {row.n_kept:4}",
                flush=True,
            )
            found.append(row)
        print(f"{name}: {time.process_time() - begin:.0f} s of CPU")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
