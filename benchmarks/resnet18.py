#!/usr/bin/env python3
"""Full ResNet-18 (224 x 224, random weights): plan it, execute it on every core, compare with ONNX Runtime.

python benchmarks/resnet18.py                    # f32, batch 1, ipu-mk2: a minute or two on two cores
python benchmarks/resnet18.py --dtype float16 --chip ipu-mk2
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from t10.driver import compile  # noqa: E402
from t10.random_inputs import random_inputs  # noqa: E402
from t10.reference import compare, default_tolerance, run_onnx_runtime  # noqa: E402
from t10.report.table import summary  # noqa: E402

onnx: Any = untyped_onnx

WIDTHS = (64, 128, 256, 512)
CLASSES = 1000


@dataclass
class Builder:
    """An ONNX graph that grows node by node; weights keep the size of what passes through (He initialisation)."""

    dtype: str
    generator: np.random.Generator
    nodes: list[Any] = field(default_factory=list[Any])
    weights: list[Any] = field(default_factory=list[Any])

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        """Append a node and return the name of its output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def weight(self, *shape: int, scale: float) -> str:
        """Append a weight and return its name."""
        name = f"w{len(self.weights)}"
        array = (self.generator.standard_normal(shape) * scale).astype(self.dtype)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def conv(self, x: str, c_in: int, c_out: int, size: int, stride: int) -> str:
        """Append a convolution with bias, as inference graphs have it: the normalisation is folded in."""
        weight = self.weight(c_out, c_in, size, size, scale=(2 / (c_in * size * size)) ** 0.5)
        bias = self.weight(c_out, scale=0.1)
        pads = [size // 2] * 4
        return self.node(
            "Conv", [x, weight, bias], kernel_shape=[size, size], strides=[stride] * 2, pads=pads
        )

    def block(self, x: str, c_in: int, c_out: int, stride: int) -> str:
        """Append a basic block: two 3 x 3 convolutions and a shortcut."""
        y = self.node("Relu", [self.conv(x, c_in, c_out, 3, stride)])
        y = self.conv(y, c_out, c_out, 3, 1)
        shortcut = x if c_in == c_out else self.conv(x, c_in, c_out, 1, stride)
        return self.node("Relu", [self.node("Add", [y, shortcut])])


def resnet18(path: Path, batch: int, size: int, dtype: str) -> Path:
    """Write ResNet-18 with random weights to a file and return its path."""
    build = Builder(dtype, np.random.default_rng(18))
    x = build.node("Relu", [build.conv("image", 3, WIDTHS[0], 7, 2)])
    x = build.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    c_in = WIDTHS[0]
    for stage, width in enumerate(WIDTHS):
        x = build.block(x, c_in, width, stride=2 if stage else 1)
        x = build.block(x, width, width, stride=1)
        c_in = width
    x = build.node("Flatten", [build.node("GlobalAveragePool", [x])])
    weight = build.weight(CLASSES, c_in, scale=c_in**-0.5)
    logits = build.node("Gemm", [x, weight, build.weight(CLASSES, scale=0.1)], transB=1)
    element = TensorProto.FLOAT16 if dtype == "float16" else TensorProto.FLOAT
    graph = helper.make_graph(
        build.nodes,
        "resnet18",
        [helper.make_tensor_value_info("image", element, [batch, 3, size, size])],
        [helper.make_tensor_value_info(logits, element, [batch, CLASSES])],
        build.weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))
    return path


def main() -> int:
    from rich.console import Console

    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        path = resnet18(Path(folder) / "resnet18.onnx", arguments.batch, arguments.size, arguments.dtype)
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
