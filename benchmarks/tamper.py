"""Edit planned modules in every way; say which edits are refused or caught.

    python benchmarks/tamper.py                         every edit of 20 modules at the compute-shift level
    python benchmarks/tamper.py --level ipu --part 0.1  a tenth of the edits of the graphs they are lowered to
    python benchmarks/tamper.py square --list refused   one module, with every edit that is refused and why

Prints how many edits of each kind came to what, and which equivalences (`support.tampered`) the edits without effect
are examples of. An edit without effect that has no name, or one that crashes, is a defect: then it exits with 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

TEST_FOLDER = Path(__file__).resolve().parent.parent / "test"
Row = tuple[str, str, str, str]
"""Outcome, kind, description and reason of an edit."""


def tampered(name: str, level: str, part: float) -> tuple[str, list[Row]]:
    """Return what became of the edits of a module; `part` of them are tried."""
    sys.path.insert(0, str(TEST_FOLDER))
    from support.tampered import trials

    return name, [(v.outcome, e.kind, e.what, v.reason) for e, v in trials(name, level, part)]


def _report(rows: list[tuple[str, Row]], outcomes: tuple[str, ...]) -> None:
    """Print how many edits of each kind came to what."""
    kinds = Counter((row[1], row[0]) for _, row in rows)
    columns = [outcome for outcome in outcomes if any(row[0] == outcome for _, row in rows)]
    print(f"{'kind of edit':28}" + "".join(f"{column:>24}" for column in columns))
    for kind in sorted({kind for kind, _ in kinds}):
        print(f"{kind:28}" + "".join(f"{kinds[kind, column]:>24,}" for column in columns))
    total = Counter(row[0] for _, row in rows)
    print(f"{'all':28}" + "".join(f"{total[column]:>24,}" for column in columns))


def main() -> int:
    parser = argparse.ArgumentParser(description="what becomes of edits of planned modules")
    parser.add_argument("modules", nargs="*", help="names (default: all)")
    parser.add_argument("--level", choices=("rtensor", "ipu"), default="rtensor", help="of which text")
    parser.add_argument(
        "--part", type=float, default=1.0, help="part of the edits that are tried (default 1.0)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--list", action="append", default=[], help="an outcome whose edits are listed")
    options = parser.parse_args()
    sys.path.insert(0, str(TEST_FOLDER))
    from support.tampered import OUTCOMES, sources

    began, rows, defects = time.monotonic(), list[tuple[str, Row]](), 0
    names = options.modules or list(sources())
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, found in pool.map(tampered, names, repeat(options.level), repeat(options.part)):
            rows += [(name, row) for row in found]
            print(f"{name:20} {len(found):>6,} edits", file=sys.stderr, flush=True)
    _report(rows, OUTCOMES)
    for name, (outcome, kind, what, reason) in rows:
        is_defect = outcome in ("without effect", "crash")
        defects += is_defect
        if is_defect or outcome in options.list:
            print(f"{name}: {outcome}: {kind}: {what}: {reason}")
    names_given = Counter(row[3] for _, row in rows if row[0] == "equivalent")
    for reason, count in sorted(names_given.items()):
        print(f"  {count:>6,} {reason}")
    print(
        f"{len(rows):,} edits of {len(names)} modules, {defects} defects, {time.monotonic() - began:.0f} seconds"
    )
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
