#!/usr/bin/env python3
"""Compare modelled cycles of whole models with the chip's peak, by type of partials.

    python benchmarks/speed.py                            # the models of docs/benchmarks.md, f32 and f16 partials
    python benchmarks/speed.py --only opt-13b --partials f32
    python benchmarks/speed.py --program                  # with programs, timed on the device simulator

"limit" adds up the larger of two times over all products: their multiply-accumulates at the engine's f16 peak, and the
elements of their larger operand at 4 per cycle and core, which is what a core loads. "peak" is the share of the f16
peak, "moves" the share of cycles in which nothing is computed: shifts, reductions, relayouts, set-up.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from math import prod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from bundled.builder import Builder
from planner import models

from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.driver import Executable, compile
from t10.errors import T10Error
from t10.report.rates import PRODUCTS

PEAK_MACS = 64
LOADED = 4
"""Multiply-accumulates of f16, and elements loaded, per cycle and core."""
CASES: dict[str, Callable[[], Builder]] = {
    "bert-large b1": lambda: models.bert_large(1),
    "bert-large b8": lambda: models.bert_large(8),
    "vit-b16 b1": lambda: models.vit_b16(1),
    "resnet18 b1": lambda: models.resnet18(1),
    "opt-13b b1": lambda: models.opt_13b(1),
    "opt-13b b2": lambda: models.opt_13b(2),
    "opt-13b b16": lambda: models.opt_13b(16),
    "llama2-13b b2": lambda: models.llama2_13b(2),
    "nerf b1": lambda: models.nerf(1),
}


def main() -> int:
    """Print a row per model and partials type; exits non-zero where one does not compile."""
    arguments = _arguments()
    print(
        f"{'model':<16} {'partials':<8} {'planned':>11} {'timed':>11} {'limit':>9} {'peak':>5} {'moves':>5}"
    )
    n_failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, build in CASES.items():
            if arguments.only not in name:
                continue
            path = Path(scratch) / f"{name.replace(' ', '_')}.onnx"
            path.write_bytes(build().model().SerializeToString())
            for partials in arguments.partials.split(","):
                n_failed += not _measured(name, path, arguments.chip, partials, program=arguments.program)
    return 1 if n_failed else 0


def _measured(name: str, path: Path, chip: str, partials: str, *, program: bool) -> bool:
    """Print a model's row; return whether it compiles."""
    try:
        executable = compile(path, chip, program=program, partials=partials)
    except T10Error as error:
        print(f"{name:<16} {partials:<8} {type(error).__name__}: {error}", flush=True)
        return False
    timed = executable.with_measured_steps().timed_cycles if program else None
    print(_row(name, partials, executable, timed, load_chip(chip).n_cores), flush=True)
    return True


def _row(name: str, partials: str, executable: Executable, timed: int | None, n_cores: int) -> str:
    report = executable.report()
    total = report.total_cycles
    products = [spec for spec in executable.plan.graph.operators if spec.kind in PRODUCTS]
    limit = sum(_limit(spec, n_cores) for spec in products)
    moves = 1 - report.cycles.compute / total
    shares = f"{report.utilisation or 0.0:>5.0%} {moves:>5.0%}"
    return f"{name:<16} {partials:<8} {total:>11,} {timed or '-':>11} {round(limit):>9,} {shares}"


def _limit(spec: OperatorSpec, n_cores: int) -> float:
    """Return the cycles that a product takes at least on so many cores."""
    loaded = max(prod(operand.shape) for operand in spec.inputs)
    return max(spec.n_points / PEAK_MACS, loaded / LOADED) / n_cores


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose name holds this")
    parser.add_argument("--partials", default="f32,f16", help="comma-separated (default: %(default)s)")
    parser.add_argument("--chip", default="ipu-mk2", help="(default: %(default)s)")
    parser.add_argument("--program", action="store_true", help="emit programs, and time them")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
