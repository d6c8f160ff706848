"""Search every operator of the bundled models stage by stage, nothing left out, and compare with native search.

usage: python tools/check_stages.py [CHIP]          (make stages; test-64 takes some minutes)
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from support.bundled import bundled_kinds, bundled_models
from support.stages import staged_front

from t10.chip import load_chip
from t10.cost import IpuCostModel
from t10.plan.options import PlanOptions
from t10.plan.search.operator import operator_space, plan_operator


def main(arguments: list[str]) -> int:
    """Print a line per operator; return 1 if some fronts differ."""
    chip = load_chip(arguments[0] if arguments else "test-64")
    cost, options = IpuCostModel(chip), PlanOptions()
    n_wrong = 0
    for path, spec in bundled_kinds(cost, bundled_models()):
        start = time.perf_counter()
        n_partitions = operator_space(spec, chip, cost, options).at_most
        is_equal = staged_front(spec, chip, cost, options) == plan_operator(spec, chip, cost, options)
        n_wrong += not is_equal
        seconds = time.perf_counter() - start
        verdict = "equal" if is_equal else "DIFFERS"
        print(f"{path.stem:40} {spec.kind:12} {n_partitions:8} partitions {seconds:6.1f} s  {verdict}")
    print(f"{n_wrong} fronts differ on {chip.name}")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
