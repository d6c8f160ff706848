"""Compare exchange phases of the cost model with the exchange simulator, on random phases.

    python benchmarks/exchange.py [--chip ipu-mk2] [--seed 0] [--count 40] [--json FILE]

Printed per kind: what share of the schedule's length its busiest port is busy, and how far predicted cycles are from
simulated ones.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from t10.chip import ChipSpec, load_chip
from t10.core.loads import phase_loads
from t10.cost.ipu import IpuCostModel
from t10.profile.exchange import timed
from t10.profile.random_phases import MAKERS, random_phases


@dataclass(frozen=True)
class Sample:
    """One phase: cycles the model predicts, cycles simulated, and what its busiest port needs at least."""

    kind: str
    predicted: int
    simulated: int
    transfer: int
    bound: int
    seconds: float


def samples(chip: ChipSpec, seed: int, count: int) -> list[Sample]:
    """Return `count` random phases of every kind, timed."""
    model = IpuCostModel(chip)
    result: list[Sample] = []
    for kind in MAKERS:
        for phase in random_phases(kind, chip.n_cores, count, seed):
            begin = time.perf_counter()
            found = timed(phase, chip).time
            seconds = time.perf_counter() - begin
            loads = phase_loads(phase.runs, phase.fills, chip.n_cores, phase.item_bytes, model.move_rates)
            predicted = model.move_cycles(loads)
            transfer, bound = found.transfer_cycles, found.bound_cycles
            result.append(Sample(kind, predicted, found.cycles, transfer, bound, seconds))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--chip", default="ipu-mk2")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = samples(load_chip(options.chip), options.seed, options.count)
    print(f"{'kind':28}{'n':>4}  {'busy/length: mean, least':26}{'|error|: median, p99':24}{'s, most':>8}")
    for kind in MAKERS:
        own = [each for each in found if each.kind == kind]
        busy = np.array([each.bound / max(each.transfer, 1) for each in own if each.transfer > 0])
        error = np.array([abs(each.predicted / each.simulated - 1) for each in own])
        slowest = max(each.seconds for each in own)
        print(
            f"{kind:28}{len(own):>4}  {busy.mean():>10.1%}{busy.min():>10.1%}      "
            f"{np.median(error):>10.2%}{np.quantile(error, 0.99):>10.2%}    {slowest:>8.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1))


if __name__ == "__main__":
    main()
