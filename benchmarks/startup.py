#!/usr/bin/env python3
"""Measure CPU milliseconds that `t10-opt` takes to start.

usage: benchmarks/startup.py [--runs N] [--limit-ms MS]

With --limit-ms the exit code is 1 if the median is above the limit (the house's limit for t10-opt is 300).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE = "func.func @f(%x: tensor<4xf16>) -> tensor<4xf16> { return %x : tensor<4xf16> }\n"
COMMANDS = {
    "t10-opt": ["tools/t10-opt", "-"],
    "t10-opt --canonicalize --t10-verify-layouts": [
        "tools/t10-opt",
        "--canonicalize",
        "--t10-verify-layouts",
        "-",
    ],
    "t10-opt --version": ["tools/t10-opt", "--version"],
}


def cpu_ms(command: list[str]) -> float:
    """Return user and system milliseconds of one run."""
    before = os.times()
    subprocess.run(
        [sys.executable, *command], cwd=ROOT, input=MODULE.encode(), stdout=subprocess.DEVNULL, check=True
    )
    after = os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return 1000 * used


def main() -> int:
    parser = argparse.ArgumentParser(description="CPU milliseconds that t10-opt takes to start.")
    parser.add_argument("--runs", type=int, default=9, help="runs of each command (default: 9)")
    parser.add_argument(
        "--limit-ms", type=float, default=0.0, help="fail above this median, in ms (default: none)"
    )
    arguments = parser.parse_args()
    worst = 0.0
    for name, command in COMMANDS.items():
        runs = [cpu_ms(command) for _ in range(arguments.runs)]
        worst = max(worst, statistics.median(runs))
        print(f"{name:<46} best {min(runs):5.0f} ms   median {statistics.median(runs):5.0f} ms CPU")
    return 1 if arguments.limit_ms and worst > arguments.limit_ms else 0


if __name__ == "__main__":
    sys.exit(main())
