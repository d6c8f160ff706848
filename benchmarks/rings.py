"""Compare numberings of cores for rings on a mesh: natural order, and the one that planning derives.

    python benchmarks/rings.py [--grids 240,360,480,600,720]

A product on P x P cores rotates one operand along rows of the mesh. In natural order all ways of a step are one hop but
that from the last core of a row to the first; folded, as 0, 2, 4 ... 5, 3, 1, none is longer than two. A link passes a
word in a cycle, and a hop takes one: a step takes about words + P - 1 or words + 2 cycles. Every hop and the load of
every link are counted, on all cores; the orders are those of `t10.plan.search.laid_out`. No chip's clock comes in.

Decode: a row of activations over the cores of a row of the mesh. Prefill: a block of rows. Published ratios (5.7 for
decode, 160 for prefill) are of whole kernels against other ones: computing, and other ways of moving, are in them, and
neither is here.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

import numpy as np
from support import specs

from t10.core.arrays import Ints
from t10.core.geometry import shift_sources
from t10.core.links import RATE_CYCLES, LinkLevel, Links, sent_alone
from t10.plan.search.alignment import align_pace
from t10.plan.search.laid_out import laid_out
from t10.plan.search.placement import place

WORD_BYTES = 4
GRIDS = "240,360,480,600,720"
WIDTHS = {"llama3-8b": 4096, "llama2-13b": 5120, "qwen2-72b": 8192}
"""Widths of the hidden state."""
PREFILL_ROWS = 4096


def sources_of_rings(n: int) -> tuple[Ints, Ints]:
    """Return from whom every core of a line takes the next window of a ring: in natural order, and as derived."""
    spec, rows = specs.matmul(1, n, n, "f16"), ((1, 1, n), (1, 1, 1), (1, 1, 1))
    plan = place(spec, (1, n, 1), rows, align_pace(spec, (1, n, 1), rows))
    assert plan is not None
    line = Links((LinkLevel(1, n, "mesh", n, WORD_BYTES * RATE_CYCLES, 1, is_multicast=True),))
    (axis,) = plan.loop_order
    natural, derived = (shift_sources(spec, each, 0, axis, 1) for each in (plan, laid_out(line, spec, plan)))
    return natural, derived


def step_cycles(n: int, sources: Ints, words: int) -> tuple[int, int]:
    """Return the cycles of a step in which all rows of a mesh rotate at once, and the hops of its longest way."""
    mesh = Links((LinkLevel(1, n * n, "mesh", n, WORD_BYTES * RATE_CYCLES, 1, is_multicast=True),))
    every: Ints = (np.arange(n)[:, None] * n + sources[None, :]).reshape(-1)
    loads, hops = mesh.loads(n * n, sent_alone([every], [words * WORD_BYTES]))
    return mesh.cycles(n * n, loads) + hops, hops


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--grids", default=GRIDS)
    options = parser.parse_args()
    print(
        f"{'width':10} {'P':>4} {'':7} {'words':>6} {'natural':>8} {'hops':>5} {'folded':>7} {'hops':>5} ratio model"
    )
    begin = time.process_time()
    for n in map(int, options.grids.split(",")):
        natural, derived = sources_of_rings(n)
        for name, width in WIDTHS.items():
            part = -(-width // n)
            for what, rows in (("decode", 1), ("prefill", -(-PREFILL_ROWS // n))):
                words = -(-part * rows // 2)
                (slow, far), (fast, near) = (step_cycles(n, each, words) for each in (natural, derived))
                model = (n - 1 + words) / (2 + words)
                orders = f"{slow:8,} {far:5} {fast:7,} {near:5} {slow / fast:5.1f}"
                print(f"{name:10} {n:4} {what:7} {words:6,} {orders} {model:5.1f}")
    print(f"{time.process_time() - begin:.1f} s of CPU")


if __name__ == "__main__":
    main()
