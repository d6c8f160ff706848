"""Compile random small models for chips with more cores than elements; read back, prove and simulate each.

usage: python tools/check_small_models.py [COUNT [FIRST]]          (make small-models: 1,000 take some ten minutes)
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from support.agreement import disagreement
from support.small_models import chip_of, small_model


def main(arguments: list[str]) -> int:
    """Print every model on which planner, checker and IR disagree; return 1 if there are some."""
    count, first = (int(each) for each in (*arguments, *("1000", "0")[len(arguments) :]))
    start, n_wrong = time.perf_counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            found = disagreement(*small_model(seed), chip_of(seed), Path(folder))
            if found:
                n_wrong += 1
                print(f"model {seed} on {chip_of(seed)}: {found}", flush=True)
    print(f"{count} models in {time.perf_counter() - start:.0f} s: {n_wrong} disagreements")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
