#!/usr/bin/env python3
"""Execute the emitted code of models, instruction by instruction, and compare with their plans.

    python benchmarks/device.py                                # bundled architectures on test-16 and test-64
    python benchmarks/device.py --large                        # a BERT-large layer and ResNet-18 on 1,472 tiles
    python benchmarks/device.py --emit MODEL.onnx              # time and size of a whole model's program
    python benchmarks/device.py FOLDER --chips test-16 --host  # other models; the C++ program is built and run as well

"ratio" is cycles of the device simulator by cycles of the plan simulator, "equal" the part of output elements that both
compute alike bit for bit. References are ONNX Runtime's. Cycles are modelled: nothing ran on silicon.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from bundled.transformers import Sizes, bert
from bundled.vision import resnet18

from t10.arrays import read_arrays
from t10.backend import Lowered, lowered, run_on_host, write_program
from t10.chip import load_chip
from t10.codelets.compile import compile_task
from t10.codelets.image import assembled
from t10.core.device import DeviceProgram
from t10.driver import Executable, compile
from t10.emit.exchange_code import exchange_code_bytes
from t10.emit.lower import lower
from t10.random_inputs import random_inputs
from t10.reference import compare, default_tolerance, run_onnx_runtime, split_reference
from t10.sim.device import run_device

ROOT = Path(__file__).resolve().parents[1]

BUNDLED = ROOT / "examples" / "models"
MOST_RATIO = 1.02
COLUMNS = (
    "model                     chip      tiles   ISS cycles plan cycles  ratio compute      error  tolerance"
    "  equal"
)


def main() -> int:
    arguments = _arguments()
    if arguments.emit is not None:
        return _emit(arguments.emit)
    print(COLUMNS)
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        if arguments.large:
            for name, path in _large(Path(folder)):
                is_good &= _row(name, path, "ipu-mk2", is_host=arguments.host)
        else:
            where, pattern = (
                (BUNDLED, "*_fp16.onnx") if arguments.folder is None else (arguments.folder, "*.onnx")
            )
            for path in sorted(where.glob(pattern)):
                for chip in arguments.chips.split(","):
                    if arguments.only in path.name:
                        is_good &= _row(path.stem, path, chip, is_host=arguments.host)
    print("all good" if is_good else "SOMETHING IS OFF")
    return 0 if is_good else 1


def _large(folder: Path) -> list[tuple[str, Path]]:
    """Write a layer of BERT-large and ResNet-18, random weights, and return their names and files."""
    sizes = Sizes(batch=1, length=128, width=1024, heads=16, inner=4096, words=1024)
    made = {
        "bert-large layer": bert("float16", sizes),
        "resnet18 224x224": resnet18(
            "float16", batch=1, picture=224, widths=(64, 128, 256, 512), classes=1000
        ),
    }
    found: list[tuple[str, Path]] = []
    for name, builder in made.items():
        path = folder / f"{name.split()[0]}.onnx"
        path.write_bytes(builder.model().SerializeToString())
        found.append((name, path))
    return found


def _row(name: str, path: Path, chip_name: str, *, is_host: bool) -> bool:
    """Print what one model does on one chip; return whether numbers and cycles are as they should be."""
    begin = time.perf_counter()
    chip = load_chip(chip_name)
    executable = compile(path, chip, program=True)
    made = lowered(executable)
    compiled = time.perf_counter()
    given = path.with_suffix(".npz")
    inputs, references = split_reference(read_arrays(given)) if given.exists() else ({}, {})
    inputs = inputs or random_inputs(executable.plan.graph, seed=0)
    references = references or run_onnx_runtime(path, inputs)
    ran = run_device(made.program, executable.chip, made.image, executable.weights, inputs)
    executed = time.perf_counter()
    planned = executable.execute(inputs)
    ratio = ran.cycles / planned.cycles
    parts = [sum(each.cycles.compute for each in result.operators) for result in (ran, planned)]
    errors = compare(ran.outputs, references, default_tolerance(executable.plan.graph))
    worst = max(errors, key=lambda each: each.error / each.tolerance)
    print(
        f"{name:<25} {chip_name:<8} {executable.chip.n_cores:>6} {ran.cycles:>12,} {planned.cycles:>11,} {ratio:>6.3f} "
        f"{parts[0] / max(parts[1], 1):>7.3f} {worst.error:>10.1e} {worst.tolerance:>10.0e} "
        f"{_equal(ran.outputs, planned.outputs):>6.1%}  "
        f"(compiled {compiled - begin:.1f} s, ran {executed - compiled:.1f} s)",
        flush=True,
    )
    if chip.n_cores > 64:
        _memory(made.program.memory.program_bytes, executable)
    is_good = all(each.is_within for each in errors) and 1 / MOST_RATIO <= ratio <= MOST_RATIO
    if is_host:
        with tempfile.TemporaryDirectory() as folder:
            write_program(executable, made, Path(folder))
            outputs = run_on_host(executable, Path(folder), inputs)
        hosted = compare(outputs, references, default_tolerance(executable.plan.graph))
        is_good &= all(each.is_within for each in hosted)
        print(f"    poplar-host: error {max(each.error for each in hosted):.1e}", flush=True)
    return is_good


def _memory(program_bytes: int, executable: Executable) -> None:
    """Print what the fullest core holds."""
    chip = executable.chip
    data = executable.plan.peak_bytes - executable.plan.reserved_bytes
    print(
        f"    code, vertex state, stacks and exchanges {program_bytes:,} B + data {data:,} B of {chip.sram_bytes:,} B"
    )


def _equal(these: Mapping[str, NDArray[Any]], those: Mapping[str, NDArray[Any]]) -> float:
    same = [np.asarray(these[name]).ravel() == np.asarray(those[name]).ravel() for name in these]
    return float(np.concatenate(same).mean())


def _emit(model: Path) -> int:
    """Print how long a whole model's program takes from its plan to files, how large it is, and what fits."""
    chip = load_chip("ipu-mk2")
    begin = time.perf_counter()
    executable = compile(model, chip, program=True)
    compiled = time.perf_counter()
    compile_task.cache_clear()
    program = lower(executable.plan, executable.chip, executable.costs())
    lowered_at = time.perf_counter()
    image = assembled(program.codelets, executable.chip.tile_memory)
    assembled_at = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        write_program(executable, Lowered(program, image), Path(folder))
        written = time.perf_counter()
        sizes = {path.name: path.stat().st_size for path in Path(folder).iterdir() if path.is_file()}
    print(f"planned beside its program in {compiled - begin:.1f} s")
    print(
        f"emitted in {written - compiled:.1f} s: lowered {lowered_at - compiled:.1f}, "
        f"assembled {assembled_at - lowered_at:.1f}, written {written - assembled_at:.1f}"
    )
    print(f"{len(program.codelets)} codelets, {len(program.patterns)} patterns")
    print(
        f"{executable.report().cycles.total:,} cycles; {executable.plan.reserved_bytes:,} B kept for the program"
    )
    _memory(program.memory.program_bytes, executable)
    _by_kind(program)
    print(", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in sorted(sizes.items())))
    return 0


def _by_kind(program: DeviceProgram) -> None:
    """Print the bytes of a tile by what they are for; exchange code by kind on the tile that has most, and on all."""
    for name, _, n_bytes in program.memory.regions:
        if name not in ("free", "data"):
            print(f"    {name:<10} {n_bytes:>8,} B")
    addresses = {variable.name: variable.address_bytes for variable in program.variables}
    patterns = {pattern.key: pattern for pattern in program.patterns}
    by_kind = exchange_code_bytes(program.copies, patterns, addresses, program.n_tiles, {})
    fullest = int(np.argmax(sum(by_kind.values(), np.zeros(program.n_tiles, np.int64))))
    for kind, n_bytes in sorted(by_kind.items()):
        count = sum(copy.kind == kind for copy in program.copies)
        print(
            f"        {kind:<10} {n_bytes[fullest]:>8,} B, mean {n_bytes.mean():>8,.0f} B, {count:,} copies"
        )
    sets: dict[str, set[int]] = {}
    for one in program.compute_sets:
        sets.setdefault(one.kind, set()).update(group.state_address_bytes for group in one.groups)
    for kind, states in sorted(sets.items()):
        count = sum(one.kind == kind for one in program.compute_sets)
        print(f"        {kind:<10} {count:,} compute sets with {len(states):,} states")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, help="a folder of models (default: the bundled ones, f16)"
    )
    parser.add_argument("--chips", default="test-16,test-64", help="chips by name, separated by commas")
    parser.add_argument("--only", default="", help="a text that names of models must hold")
    parser.add_argument("--large", action="store_true", help="a BERT-large layer and ResNet-18 on ipu-mk2")
    parser.add_argument("--host", action="store_true", help="also build the C++ program with g++ and run it")
    parser.add_argument("--emit", type=Path, help="time the emission of one model for ipu-mk2")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
