"""Do 16-bit partial sums ever cost time? Random convolutions and products, planned with every type of partials.

What is asked for and takes longer stays in f32 (docs/numerics.md). Printed are modelled cycles where a type takes more
than a quarter longer than f32, and the worst of all.

    python benchmarks/partials.py --chips test-4,test-16 --cases 30
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import t10

KINDS = ("f32", "mixed", "f16", "auto")
SLOWER = 1.25


def operator(rng: random.Random) -> tuple[onnx.NodeProto, list[int], list[int], list[int], str]:
    """Return a convolution or a product, the extents of its input, weights and result, and a name."""
    if rng.random() < 0.6:
        groups, window = rng.choice((1, 1, 1, 2, 4)), rng.choice((1, 3, 5))
        channels, features = (
            rng.choice((1, 2, 3, 4, 5, 8, 16, 24)),
            rng.choice((1, 2, 3, 4, 6, 9, 16, 17, 32)),
        )
        size = [rng.randint(5, 30), rng.randint(5, 30)]
        node = helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[window // 2] * 4, group=groups)
        x, y = [1, groups * channels, *size], [1, groups * features, *size]
        return (
            node,
            x,
            [groups * features, channels, window, window],
            y,
            f"conv {x} -> {y}, {window} x {window}",
        )
    m, n = rng.choice((2, 3, 9, 10, 16, 33, 64)), rng.choice((1, 3, 9, 16, 30, 64, 100))
    k = rng.choice((7, 16, 30, 64, 100, 256))
    return (
        helper.make_node("Gemm", ["x", "w", "b"], ["y"]),
        [m, k],
        [k, n],
        [m, n],
        f"product {m} x {k} x {n}",
    )


def written(folder: Path, rng: random.Random) -> tuple[Path, str]:
    """Write a model of one operator with a bias."""
    node, x, w, y, name = operator(rng)
    half, draw = TensorProto.FLOAT16, np.random.default_rng(rng.getrandbits(32))
    weights = {"w": draw.standard_normal(w) / 8, "b": draw.standard_normal(y[1])}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", half, x)],
        [helper.make_tensor_value_info("y", half, y)],
        [numpy_helper.from_array(value.astype(np.float16), key) for key, value in weights.items()],
    )
    path = folder / "operator.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path, name


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--chips", default="test-4,test-16", help="comma-separated")
    parser.add_argument("--cases", type=int, default=30, help="per chip (default: 30)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    worst = (1.0, "no type takes longer")
    with tempfile.TemporaryDirectory() as folder:
        for chip in given.chips.split(","):
            rng = random.Random(given.seed)
            for _ in range(given.cases):
                path, name = written(Path(folder), rng)
                cycles = {k: t10.compile(path, chip=chip, partials=k).report().total_cycles for k in KINDS}
                ratio = max(cycles.values()) / cycles["f32"]
                line = f"{ratio:5.2f}  {chip}: {name}: {cycles}"
                if ratio > SLOWER:
                    print(line, flush=True)
                worst = max(worst, (ratio, line))
    print(f"worst of {given.cases} operators on each chip (cycles, modelled):\n{worst[1]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
