#!/usr/bin/env python3
"""Plan ResNet-18 (224 x 224, random weights), execute it on every core, compare with ONNX Runtime.

python benchmarks/resnet18.py                    # f32, batch 1, ipu-mk2: a minute or two on two cores
python benchmarks/resnet18.py --dtype float16 --chip ipu-mk2
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from bundled.vision import resnet18

from t10.driver import compile
from t10.random_inputs import random_inputs
from t10.reference import compare, default_tolerance, run_onnx_runtime
from t10.report.table import summary

WIDTHS = (64, 128, 256, 512)
CLASSES = 1000


def main() -> int:
    from rich.console import Console

    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet18.onnx"
        made = resnet18(
            arguments.dtype, batch=arguments.batch, picture=arguments.size, widths=WIDTHS, classes=CLASSES
        )
        path.write_bytes(made.model().SerializeToString())
        start = time.perf_counter()
        executable = compile(path, arguments.chip)
        planned = time.perf_counter()
        Console(width=120).print(summary(executable.report()))
        inputs = random_inputs(executable.plan.graph, seed=0)
        result = executable.execute(inputs)
        executed = time.perf_counter()
        references = run_onnx_runtime(path, inputs)
    print(
        f"planned in {planned - start:.1f} s, executed on every core in {executed - planned:.1f} s (wall time)"
    )
    print(f"{result.cycles:,} cycles by the simulator (modelled), peak {result.peak_bytes:,} bytes per core")
    is_right = True
    for each in compare(result.outputs, references, default_tolerance(executable.plan.graph)):
        is_right &= each.is_within
        verdict = "ok" if each.is_within else "DIFFERS"
        print(
            f"{each.name}: max|y-ref|/max|ref| = {each.error:.2e}, tolerance {each.tolerance:.0e}: {verdict}"
        )
    return 0 if is_right else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--chip", default="ipu-mk2")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--size", type=int, default=224, help="height and width of the image")
    parser.add_argument("--dtype", choices=("float32", "float16"), default="float32")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
