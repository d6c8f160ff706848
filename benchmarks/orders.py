"""Measure how much the written order of a model's tensors matters.

Random chains of products with a ReLU behind each are written four ways: `x W`, `x V^T`, `W^T x` and `V x`, where `V` is
the transpose of `W`. Each is planned; printed are the modelled cycles of every writing and the worst over the best.

    python benchmarks/orders.py --chips test-4,test-16,test-64,ipu-mk2 --cases 20
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import t10
from t10.chip import load_chip
from t10.errors import T10Error

WRITINGS = ("x W", "x V^T", "W^T x", "V x")
EXTENTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 128, 192, 256, 384, 512, 640, 768, 1024)
MOST_ROWS = 256
LEAST_BYTES = 1 << 12


@dataclass(frozen=True)
class Chain:
    """`n_rows` rows multiplied with matrices of these extents, one behind the other, in floats of so many bits."""

    n_rows: int
    extents: tuple[int, ...]
    bits: int

    @property
    def n_bytes(self) -> int:
        """Return the bytes of the weights."""
        return sum(a * b for a, b in zip(self.extents, self.extents[1:], strict=False)) * self.bits // 8

    def __str__(self) -> str:
        """Return rows, extents and type."""
        return f"{self.n_rows} x {'-'.join(map(str, self.extents))} f{self.bits}"


def drawn(random: np.random.Generator, most_bytes: int) -> Chain:
    """Return a random chain of one to three products whose weights have at most so many bytes."""
    while True:
        rows = int(random.choice([n for n in EXTENTS if n <= MOST_ROWS]))
        extents = tuple(int(random.choice(EXTENTS[5:])) for _ in range(random.integers(2, 5)))
        chain = Chain(rows, extents, 16 if random.random() < 0.7 else 32)
        if LEAST_BYTES <= chain.n_bytes <= most_bytes:
            return chain


def written(chain: Chain, writing: str, path: Path) -> None:
    """Write a chain as a model."""
    kind, dtype = (TensorProto.FLOAT16, np.float16) if chain.bits == 16 else (TensorProto.FLOAT, np.float32)
    is_turned, is_kept = writing.endswith("x"), "V" not in writing
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value = "x"
    for number, (k, n) in enumerate(zip(chain.extents, chain.extents[1:], strict=False)):
        w = np.full((k, n) if is_kept else (n, k), 0.01, dtype)
        weights.append(numpy_helper.from_array(w, f"w{number}"))
        used = f"w{number}"
        if is_kept == is_turned:
            used = f"v{number}"
            nodes.append(helper.make_node("Transpose", [f"w{number}"], [used], perm=[1, 0]))
        operands = [used, value] if is_turned else [value, used]
        nodes.append(helper.make_node("MatMul", operands, [f"m{number}"], name=f"product{number}"))
        nodes.append(helper.make_node("Relu", [f"m{number}"], [f"y{number}"]))
        value = f"y{number}"
    shapes = [[chain.n_rows, extent][:: -1 if is_turned else 1] for extent in chain.extents]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", kind, shapes[0])],
        [helper.make_tensor_value_info(value, kind, shapes[-1])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def cycles(chain: Chain, writing: str, chip: str) -> int | None:
    """Return the modelled cycles of a chain, None where it does not fit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.onnx"
        written(chain, writing, path)
        try:
            found = t10.compile(path, chip).plan.optimality
        except T10Error:
            return None
    return None if found is None else found.cycles


def main() -> int:
    """Plan every chain in every writing on every chip; print them, and the worst ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chips", default="test-4,test-16,test-64", help="names, separated by commas")
    parser.add_argument("--cases", type=int, default=10, help="chains per chip (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the chains (default: %(default)s)")
    parser.add_argument("--most", type=float, default=1.1, help="worst ratio with exit code 0")
    given = parser.parse_args()
    worst = 1.0
    for chip in given.chips.split(","):
        random = np.random.default_rng(given.seed)
        for _ in range(given.cases):
            chain = drawn(random, load_chip(chip).n_cores << 18)
            found = {writing: cycles(chain, writing, chip) for writing in WRITINGS}
            known = [each for each in found.values() if each is not None]
            ratio = max(known) / min(known) if known else 1.0
            worst = max(worst, ratio)
            listed = "  ".join(f"{writing} {each or 0:,}" for writing, each in found.items())
            print(f"{ratio:5.2f}  {chip:8}  {chain!s:40}  {listed}", flush=True)
    print(f"worst: {worst:.2f} (modelled)")
    return int(worst > given.most)


if __name__ == "__main__":
    sys.exit(main())
