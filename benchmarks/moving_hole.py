#!/usr/bin/env python3
"""Bound the gain of shifts without a buffer: plan with shifts that copy nothing.

python benchmarks/moving_hole.py FOLDER                       # every model of a folder, on ipu-mk2
python benchmarks/moving_hole.py FOLDER --only 'bert*,resnet*'

A shift goes through the shift buffer and copies what arrived to where it belongs. A shard in slots with one more that
is free (a *moving hole*) needs no copy. The bound is generous: every shift is priced without its copy, and neither the
slot nor the codelets' second set of addresses is charged. Cycles are modelled.
"""

from __future__ import annotations

import argparse
import sys
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from t10.core.arrays import Ints
from t10.cost.ipu import IpuCostModel
from t10.cost.registry import register_cost_model
from t10.driver import Executable, compile
from t10.errors import T10Error

FREE = "moving-hole"


class WithoutCopies(IpuCostModel):
    """The default costs, with shifts that leave what arrives where it arrives."""

    def fingerprint(self) -> str:
        """Return a name of its own, so that cached plans stay apart."""
        return f"{FREE}:{super().fingerprint()}"

    def shift_cycles_many(self, n_bytes: Ints) -> Ints:
        """Return the cycles of one shift for every candidate: the phases of the default model alone."""
        full, rest = np.divmod(n_bytes, self.chip.shift_buffer_bytes)
        whole = self.exchange_cycles(self.chip.shift_buffer_bytes, 1, neighbour=True)
        words = self.chip.port_cycles(rest)
        first = self.exchange_cycles(1, 1, neighbour=True) - 1
        return full * whole + np.where(rest > 0, first + words, 0)


def main() -> int:
    arguments = _arguments()
    register_cost_model(FREE, WithoutCopies)
    print(f"{'model':40s} {'plan':>12s} {'its shifts':>12s} {'no copies':>12s} {'saved':>7s}")
    worst = 0.0
    for path in sorted(arguments.folder.glob("*.onnx")):
        if not any(fnmatch(path.stem, pattern) for pattern in arguments.only.split(",")):
            continue
        try:
            plan, free = (compile(path, chip=arguments.chip, cost_model=name) for name in ("ipu", FREE))
        except T10Error as error:
            print(f"{path.stem:40s} {str(error).splitlines()[0][:80]}")
            continue
        cycles, without = (executable.report().total_cycles for executable in (plan, free))
        saved = 1 - without / cycles
        worst = max(worst, saved)
        print(f"{path.stem:40s} {cycles:12,} {_shifts(plan):12,} {without:12,} {saved:7.2%}", flush=True)
    print(f"at most {worst:.2%} saved")
    return 0


def _shifts(executable: Executable) -> int:
    """Return the cycles of all shifts of a plan."""
    return sum(op.active.cycles.shift for op in executable.plan.operators)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of .onnx files")
    parser.add_argument("--chip", default="ipu-mk2", help="chip name or file (default: ipu-mk2)")
    parser.add_argument("--only", default="*", help="patterns of model names, separated by commas")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
