#!/usr/bin/env python3
"""Compare planned with timed cycles of whole models.

    python benchmarks/prices.py                 # small models on test-16 and test-64, layers and ResNet-18 on ipu-mk2
    python benchmarks/prices.py --only bert     # those whose name holds this
    python benchmarks/prices.py --memory full   # on a chip with no more memory than the plan takes; half: twice that
    python benchmarks/prices.py --chips test-16 FOLDER

"timed" is what the emitted program takes where it lies, every step on the simulators (docs/cost-model.md, "Timed
statements"). Exits non-zero where timed is not within 2 % of planned. Cycles are modelled.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from bundled.transformers import Sizes, bert
from planner import models

from t10.chip import ChipSpec, load_chip
from t10.core.tile import OVERREAD_BYTES
from t10.driver import Executable, compile
from t10.errors import T10Error

ROOT = Path(__file__).resolve().parents[1]

BUNDLED = ROOT / "examples" / "models"
LEAST_RATIO, MOST_RATIO = 0.98, 1.02
BERT_LAYER = Sizes(batch=1, length=128, width=1024, heads=16, inner=4096, words=1024)
LAYERS = (models.opt_13b, models.llama2_13b)
BATCHES = (1, 2, 16)
ROOM = {"": 0, "half": 2, "full": 1}
"""Memory of the chip by that of the plan; 0 for all that the chip has."""


def main() -> int:
    arguments = _arguments()
    print(f"{'model':<28} {'chip':<8} {'memory':>6} {'planned':>11} {'timed':>11}  ratio")
    n_rows = n_far = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, path, chip in _cases(arguments, Path(scratch)):
            if arguments.only in name:
                n_rows, n_far = n_rows + 1, n_far + (not _is_near(name, path, chip, arguments.memory))
    print(f"{n_rows - n_far} of {n_rows} within {LEAST_RATIO:g} to {MOST_RATIO:g}")
    return 1 if n_far else 0


def _cases(arguments: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield name, file and chip of every program."""
    folder: Path = arguments.folder or BUNDLED
    for path in sorted(folder.glob("*.onnx" if arguments.folder else "*_fp[13]*.onnx")):
        yield from ((path.stem, path, chip) for chip in arguments.chips.split(","))
    if arguments.folder:
        return
    made = {"bert-large layer": lambda: bert("float16", BERT_LAYER, weight_free=True)}
    made["resnet18 224x224"] = lambda: models.resnet18(1)
    for layer in LAYERS:
        for batch in BATCHES:
            made[f"{layer.__name__} b{batch}"] = lambda layer=layer, batch=batch: layer(batch)
    for name, build in made.items():
        if arguments.only in name:
            path = scratch / f"{name.replace(' ', '_')}.onnx"
            path.write_bytes(build().model().SerializeToString())
            yield name, path, "ipu-mk2"


def _is_near(name: str, path: Path, chip_name: str, memory: str) -> bool:
    """Print the row of a program; return whether it takes what it was priced at."""
    chip = load_chip(chip_name)
    try:
        executable = _in_room(path, chip, ROOM[memory])
    except T10Error as error:
        print(f"{name:<28} {chip_name:<8} {type(error).__name__}: {error}", flush=True)
        return False
    report = executable.report()
    planned, timed = report.total_cycles, report.timed_cycles or 0
    share = report.peak_bytes / report.capacity_bytes
    ratio = timed / max(planned, 1)
    print(
        f"{name:<28} {chip_name:<8} {share:>6.0%} {planned:>11,} {timed:>11,} {ratio:>6.3f}{_worst(executable)}",
        flush=True,
    )
    return LEAST_RATIO <= ratio <= MOST_RATIO


def _in_room(path: Path, chip: ChipSpec, room: int) -> Executable:
    """Return a model compiled and timed on a chip with `room` times the memory that its plan takes."""
    executable = compile(path, chip, program=True)
    if room:
        size = room * (executable.plan.peak_bytes + OVERREAD_BYTES) // 8 * 8
        small = chip.model_copy(update={"sram_bytes": min(size, chip.sram_bytes)})
        executable = compile(path, small, program=True)
    return executable.with_measured_steps()


def _worst(executable: Executable) -> str:
    """Return the operator whose time is farthest from its price, as a suffix; nothing where all are near."""
    far: list[tuple[int, str]] = []
    for each in executable.plan.operators:
        more = sum(executable.measured[each.name]) - each.active.cycles.total
        far.append((abs(more), f"  {each.name} {more:+,}"))
    most, text = max(far, default=(0, ""))
    return text if most else ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", help="other models: where the .onnx files lie")
    parser.add_argument(
        "--chips", default="test-16,test-64", help="of models in files (default: %(default)s)"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose name holds this")
    parser.add_argument("--memory", choices=sorted(ROOM), default="", help="(default: all that the chip has)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
