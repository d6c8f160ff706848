"""`--mlir-timing` and `--mlir-pass-statistics`: reports on standard error after a run, in mlir-opt's form."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from t10.dialect.mlir import walk

_RULE = f"==={'-' * 73}==="


class Timing:
    """Wall seconds per step, in the order steps ran."""

    def __init__(self) -> None:
        """Start the clock."""
        self._start = time.perf_counter()
        self._seconds: list[tuple[str, float]] = []

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        """Measure what happens inside."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds.append((name, time.perf_counter() - start))

    def show(self) -> None:
        """Print the report."""
        total = time.perf_counter() - self._start
        rest = total - sum(seconds for _, seconds in self._seconds)
        lines = [
            _RULE,
            f"{'... Execution time report ...':>54}",
            _RULE,
            f"  Total Execution Time: {total:.4f} seconds",
            "",
        ]
        lines.append("  ----Wall Time----  ----Name----")
        for name, seconds in [*self._seconds, ("Rest", rest), ("Total", total)]:
            lines.append(f"  {seconds:8.4f} ({100 * seconds / total:5.1f}%)  {name}")
        print("\n".join(lines), file=sys.stderr)


def operation_counts(module: Any) -> Counter[str]:
    """Return the number of operations of a module by name."""
    return Counter(op.operation.name for op in walk(module))


def show_statistics(name: str, before: Counter[str], after: Counter[str]) -> None:
    """Print how many operations a pass made and removed, by name."""
    lines = [_RULE, f"{'... Pass statistics report ...':>54}", _RULE, name]
    lines.append(f"  (S) {before.total()} operations-before")
    lines.append(f"  (S) {after.total()} operations-after")
    for operation in sorted(before | after):
        change = after[operation] - before[operation]
        if change:
            lines.append(f"  (S) {change:+d} {operation}")
    print("\n".join(lines), file=sys.stderr)
