#!/usr/bin/env python3
"""Quantise float models with ONNX Runtime and plan both: CPU seconds and modelled cycles.

    python benchmarks/quantised.py [MODEL.onnx ...] [--chip NAME] [--limit RATIO]

Models are float, of opset 13 or newer, with static shapes, as `onnxruntime.quantization.shape_inference` leaves them;
without any, the bundled ones. Each is quantised with one random input as pairs of uint8 activations and int8 weights
per channel, and of int8 both per tensor. With --limit the exit code is 1 if a ratio is above it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = sorted((ROOT / "examples" / "models").glob("*_fp32.onnx"))
KINDS = {"uint8, int8 per channel": ("QUInt8", True), "int8 per tensor": ("QInt8", False)}
COLUMNS = f"{'model':<40} {'CPU s':>8} {'ratio':>6} {'cycles':>12}"


class OneInput:
    """What a quantiser calibrates with."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        """Take the one set of inputs."""
        self._left = [inputs]

    def get_next(self) -> dict[str, Any] | None:
        """Return the inputs once, then None."""
        return self._left.pop() if self._left else None


def main() -> int:
    arguments = _arguments()
    ratios: list[float] = []
    print(COLUMNS)
    with TemporaryDirectory() as folder:
        for model in arguments.models or BUNDLED:
            least, _ = _row(model, model.stem, arguments.chip, Path(folder), None)
            for kind in KINDS:
                made = Path(folder) / f"{model.stem}.onnx"
                quantised(model, made, kind)
                ratios.append(_row(made, f"  {kind}", arguments.chip, Path(folder), least)[1])
    return 1 if arguments.limit and max(ratios) > arguments.limit else 0


def quantised(model: Path, made: Path, kind: str) -> None:
    """Write a model with QDQ pairs."""
    library: Any = importlib.import_module("onnxruntime.quantization")
    activations, is_per_channel = KINDS[kind]
    library.quantize_static(
        str(model),
        str(made),
        OneInput(inputs_of(model)),
        quant_format=library.QuantFormat.QDQ,
        per_channel=is_per_channel,
        activation_type=library.QuantType[activations],
        weight_type=library.QuantType.QInt8,
    )


def inputs_of(model: Path) -> dict[str, Any]:
    """Return normal floats and integers 0 and 1 of a model's inputs."""
    runtime: Any = importlib.import_module("onnxruntime")
    rng: Any = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for each in runtime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).get_inputs():
        is_integer = "int" in each.type
        drawn = rng.integers(0, 2, each.shape) if is_integer else rng.standard_normal(each.shape)
        found[each.name] = drawn.astype(each.type[7:-1] if is_integer else np.float32)
    return found


def planned(model: Path, chip: str, folder: Path) -> tuple[float, int]:
    """Return the CPU seconds of planning a model without its program, and the cycles of the plan."""
    out = folder / "out"
    command = [
        "tools/t10",
        "compile",
        str(model),
        "--chip",
        chip,
        "-o",
        str(out),
        "--no-program",
        "--no-cache",
        "--quiet",
    ]
    before = os.times()
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    after = os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return used, json.loads((out / "report.json").read_text(encoding="utf-8"))["total_cycles"]


def _row(model: Path, name: str, chip: str, folder: Path, least: float | None) -> tuple[float, float]:
    seconds, cycles = planned(model.resolve(), chip, folder)
    ratio = seconds / least if least else 1.0
    print(f"{name:<40} {seconds:>8.1f} {ratio:>6.2f} {cycles:>12,}", flush=True)
    return seconds, ratio


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", type=Path, nargs="*", metavar="MODEL.onnx", help="(default: bundled)")
    parser.add_argument("--chip", default="ipu-mk2", metavar="NAME", help="(default: %(default)s)")
    parser.add_argument("--limit", type=float, default=0.0, metavar="RATIO", help="fail above this ratio")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
