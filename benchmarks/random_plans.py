"""Run random expressions under random legal plans on the simulator; compare with numpy, exactly.

    python benchmarks/random_plans.py --cases 100000
    python benchmarks/random_plans.py --first 4711 --cases 1        one case again

Prints what was covered and every case that failed; exits with 1 if there was one. `--planned` takes the planner's
plans instead of random ones.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

TEST_FOLDER = Path(__file__).resolve().parent.parent / "test"
CHUNK = 250
"""Cases that a process takes at once."""


def run_chunk(first: int, n_cases: int, is_planned: bool) -> tuple[Counter[str], list[str]]:
    """Run cases `first` to `first + n_cases - 1`; return what they covered and what failed."""
    sys.path.insert(0, str(TEST_FOLDER))
    from support.random_cases import Case, planned_case, problems, random_case

    build: Callable[[int], Case] = planned_case if is_planned else random_case
    covered: Counter[str] = Counter()
    failed: list[str] = []
    for seed in range(first, first + n_cases):
        try:
            case = build(seed)
            found = problems(case)
        except Exception:
            covered["cases"] += 1
            failed.append(f"case {seed}: {traceback.format_exc()}")
            continue
        covered["cases"] += 1
        covered["operators"] += len(case.graph.operators)
        covered["operators that reduce over cores"] += case.n_reduced
        covered["operands in place"] += case.n_in_place
        covered["cases with rotation"] += case.n_rotating_axes > 0
        covered["cases with several rotating axes"] += case.n_rotating_axes > 1
        covered["cases with gathers"] += any(spec.selectors for spec in case.graph.operators)
        covered["cases with compound dims"] += any(
            len(dim.terms) > 1 for spec in case.graph.operators for o in spec.inputs for dim in o.dims
        )
        covered["cases with epilogues"] += any(spec.epilogue is not None for spec in case.graph.operators)
        covered["sub-tasks"] += sum(op.active.plan.n_sub_tasks for op in case.plan.operators)
        failed += [f"case {seed}: {text}" for text in found]
    return covered, failed


def main() -> int:
    parser = argparse.ArgumentParser(description="random plans on the simulator against numpy")
    parser.add_argument("--cases", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--planned", action="store_true", help="the planner's plans instead of random ones")
    options = parser.parse_args()
    began = time.monotonic()
    starts = range(options.first, options.first + options.cases, CHUNK)
    sizes = [min(CHUNK, options.first + options.cases - start) for start in starts]
    total: Counter[str] = Counter()
    n_failed = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for covered, failed in pool.map(run_chunk, starts, sizes, repeat(options.planned)):
            total += covered
            n_failed += len(failed)
            for text in failed:
                print(text, flush=True)
            if sys.stderr.isatty():
                print(f"\r{total['cases']} of {options.cases}", end="", file=sys.stderr, flush=True)
    for name, count in total.items():
        print(f"{name:34} {count:>10,}")
    print(f"{'failures':34} {n_failed:>10,}")
    print(f"{'seconds':34} {time.monotonic() - began:>10.0f}")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
