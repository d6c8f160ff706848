"""Run codelets on the instruction-set simulator: cycles beside poplibs' formulas and the hardware's bound.

    python benchmarks/codelets.py                 all families
    python benchmarks/codelets.py matrix          one of them
    python benchmarks/codelets.py --markdown      as a table for a page
    python benchmarks/codelets.py --counting      what it takes to count their cycles, in milliseconds of CPU time

A vertex starts when its tile does; the formulas count from there as well.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from time import process_time

from codelet_cases.case import Case

FAMILIES = ("matrix", "vector", "reduce", "gather", "loops")
HEADER = ("task", "cycles", "formula", "ratio", "inner loop", "whole", "codelet")


def known_families() -> tuple[str, ...]:
    """Return the families that have cases."""
    folder = Path(__file__).parent / "codelet_cases"
    return tuple(name for name in FAMILIES if (folder / f"{name}.py").exists())


def measure(case: Case) -> tuple[str, ...]:
    """Return a row of the table: the case compiled, run and checked for stray writes."""
    from support.codelet_runs import run_task

    from t10.codelets.compile import compile_task

    compiled = compile_task(case.task)
    run = run_task(case.task, compiled)
    if run.touched:
        raise RuntimeError(f"{case.name} wrote outside its output")
    formula = case.formula_cycles
    return (
        case.name,
        f"{run.cycles:,}",
        "" if formula is None else f"{formula:,.0f}",
        "" if formula is None else f"{run.cycles / formula:.2f}",
        "" if case.inner is None else f"{case.inner:.0%}",
        "" if case.least_cycles is None else f"{case.least_cycles / run.cycles:.0%}",
        compiled.codelet.name,
    )


def counting(cases: Iterable[Case]) -> str:
    """Return what a count takes, from a task to its cycles, where all codelets are known."""
    from t10.codelets.compile import compile_task
    from t10.codelets.count import cycles_of
    from t10.codelets.counter import counted

    tasks = [case.task for case in cases]
    seconds = 0.0
    for _ in range(2):
        compile_task.cache_clear()
        counted.cache_clear()
        begin = process_time()
        for task in tasks:
            cycles_of(task)
        seconds = process_time() - begin
    return f"{len(tasks)} tasks, {1e3 * seconds / len(tasks):.2f} ms each"


def print_table(rows: Iterable[tuple[str, ...]], *, markdown: bool) -> None:
    """Print rows under the header."""
    table = [HEADER, *rows]
    if markdown:
        lines = [f"| {' | '.join(row)} |" for row in table]
        lines.insert(1, "|" + "---|" * len(HEADER))
        print("\n".join(lines))
        return
    widths = [max(len(row[i]) for row in table) for i in range(len(HEADER))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", help=f"of {', '.join(known_families())} (default: all)")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.add_argument("--counting", action="store_true", help="print what a count takes")
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))
    for family in arguments.families or known_families():
        cases: tuple[Case, ...] = import_module(f"codelet_cases.{family}").cases()
        print(f"\n## {family}\n")
        if arguments.counting:
            print(counting(cases))
            continue
        print_table((measure(case) for case in cases), markdown=arguments.markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
