#!/usr/bin/env python3
"""Measure CPU seconds of `t10 compile` with its program and without.

usage: benchmarks/program_time.py MODEL [--chip CHIP] [--runs N] [--most RATIO]

With --most the exit code is 1 if the least time with the program is more than RATIO times the least without.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def cpu_seconds(model: Path, chip: str, folder: Path, *options: str) -> float:
    """Return user and system seconds of one compilation into a folder, nothing kept from before."""
    command = [sys.executable, str(ROOT / "tools" / "t10"), "compile", str(model), "-o", str(folder)]
    before = os.times()
    subprocess.run([*command, "--chip", chip, "--no-cache", "--quiet", *options], check=True)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def main() -> int:
    """Print the least seconds of both, and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path, help="what to compile")
    parser.add_argument("--chip", default="ipu-mk2", help="what for (default: %(default)s)")
    parser.add_argument(
        "--runs", type=int, default=2, help="of each; the least counts (default: %(default)s)"
    )
    parser.add_argument("--most", type=float, default=0.0, help="ratio that is a failure beyond")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = {"with": Path(scratch) / "with", "without": Path(scratch) / "without"}
        options = {"with": (), "without": ("--no-program",)}
        seconds = {name: float("inf") for name in folders}
        for _ in range(arguments.runs):
            for name, folder in folders.items():
                used = cpu_seconds(arguments.model, arguments.chip, folder, *options[name])
                seconds[name] = min(seconds[name], used)
        report = json.loads((folders["with"] / "report.json").read_text(encoding="utf-8"))
    ratio = seconds["with"] / seconds["without"]
    print(
        f"{arguments.model.name} on {arguments.chip}: {seconds['with']:.1f} s with its program, "
        f"{seconds['without']:.1f} s without: {ratio:.2f}; chosen {report['optimality']['n_choices']} times"
    )
    return int(bool(arguments.most) and ratio > arguments.most)


if __name__ == "__main__":
    sys.exit(main())
