#!/usr/bin/env python3
"""Print every bar of the planner with its value and verdict.

python benchmarks/planner                         # all of it: some minutes on two cores
python benchmarks/planner --only paper,models     # some sections
python benchmarks/planner --only gap --models bert-large,nerf --json bars.json

Sections: search (one operator), models (seconds of whole models), paper (published predictions), gap (proved gaps and
the largest batch that fits), peak (memory). Cycles are modelled; seconds are wall time on this machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from planner.bars import Bar, bar_lines
from planner.models import MODELS, SEVEN
from planner.settings import CHIP, Settings

SECTIONS = {
    "search": "planner.operators",
    "models": "planner.whole",
    "paper": "planner.paper",
    "gap": "planner.batches",
    "peak": "planner.peak",
}


def main(command_line: list[str] | None = None) -> int:
    arguments = _arguments(command_line)
    names = arguments.only.split(",") if arguments.only else list(SECTIONS)
    unknown = [name for name in names if name not in SECTIONS]
    models = tuple(arguments.models.split(",")) if arguments.models else tuple(m.name for m in SEVEN)
    unknown += [name for name in models if name not in MODELS]
    if unknown:
        print(f"unknown: {', '.join(unknown)} (sections: {', '.join(SECTIONS)}; models: {', '.join(MODELS)})")
        return 2
    settings = Settings(
        chip=arguments.chip,
        cost_model=arguments.cost_model,
        models=models,
        max_batch=arguments.max_batch,
        exhaustive=not arguments.no_exhaustive,
    )
    bars: list[Bar] = []
    for name in names:
        start = time.perf_counter()
        bars += importlib.import_module(SECTIONS[name]).run(settings)
        print(f"[{name}: {time.perf_counter() - start:.0f} s]", flush=True)
    print()
    print("\n".join(bar_lines(bars)))
    missed = sum(not bar.is_met for bar in bars)
    print(f"{len(bars) - missed} of {len(bars)} bars met")
    if arguments.json:
        arguments.json.write_text(
            json.dumps([bar.record() for bar in bars], indent=1) + "\n", encoding="utf-8"
        )
    return 1 if missed else 0


def _arguments(command_line: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/planner", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--only", default="", metavar="SECTIONS", help=f"comma-separated: {', '.join(SECTIONS)}"
    )
    parser.add_argument(
        "--models", default="", help=f"comma-separated, of {', '.join(MODELS)} (default: the seven)"
    )
    parser.add_argument("--chip", default=CHIP, help="default: %(default)s")
    parser.add_argument(
        "--cost-model", default="ipu", help="of search, models and gap (default: %(default)s)"
    )
    parser.add_argument(
        "--max-batch", type=int, default=4096, help="largest batch tried (default: %(default)s)"
    )
    parser.add_argument("--no-exhaustive", action="store_true", help="leave out searches without constraints")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the bars there too")
    return parser.parse_args(command_line)


if __name__ == "__main__":
    sys.exit(main())
