#!/usr/bin/env python3
"""Regenerate the evaluation of the paper on our simulators; all times are modelled.

python benchmarks/paper             # plan what has no row yet, draw, write docs/evaluation.md
python benchmarks/paper --jobs 2    # the same, two models at a time
python benchmarks/paper --subset    # two small models, nothing written but their rows
python benchmarks/paper --check     # every claim of the paper with ours beside it
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for folder in ("benchmarks", "tools", "python"):
    sys.path.insert(0, str(ROOT / folder))


def main(command_line: list[str] | None = None) -> int:
    """Run; 0 unless `--check` finds a claim about which nothing can be said."""
    parser = argparse.ArgumentParser(prog="benchmarks/paper", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--subset", action="store_true", help="two small models only")
    parser.add_argument("--check", action="store_true", help="print every claim; plan nothing")
    parser.add_argument("--jobs", type=int, default=1, help="so many models are planned at a time")
    arguments = parser.parse_args(command_line)
    from paper.sweep import POINTS, SUBSET, sweep

    if not arguments.check:
        sweep(SUBSET if arguments.subset else POINTS, n_jobs=arguments.jobs)
    if arguments.subset:
        return 0
    from paper.page import check, plan_parts, write_page

    if arguments.check:
        return check()
    plan_parts()
    write_page(ROOT / "docs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
