"""Holds the cost model's exchange phases against the exchange simulator, over random patterns.

    python benchmarks/exchange.py [--chip ipu-mk2] [--seed 0] [--count 40] [--json FILE]

Families: rings (shifts), multicasts, all-to-all among groups, halos, strided relayouts (4 and 2 byte pieces), random.
Printed per family: what share of the schedule's length its busiest port is busy, and predicted / simulated cycles.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from t10.chip import load_chip
from t10.core.device import CopyKind, Pattern
from t10.cost.ipu import IpuCostModel
from t10.sim.device.phase import ExchangeModel, PhaseTime, pattern_time

Random = np.random.Generator
Rows = list[list[int]]
SOURCE_OFFSET, TARGET_OFFSET = 0x40000, 0x80000
WORD = 4


@dataclass(frozen=True)
class Sample:
    """One pattern: cycles the model predicts, cycles simulated, and what its busiest port needs at least."""

    family: str
    n_tiles: int
    predicted: int
    simulated: int
    transfer: int
    bound: int
    seconds: float


def run_row(source: int, target: int, n: int, at: int = 0, to: int = 0) -> list[int]:
    return [0, source, at, target, to, n, 1, 0, 0]


def ring(random: Random, n_tiles: int) -> Rows:
    length = int(random.choice([n for n in range(2, n_tiles + 1) if n_tiles % n == 0]))
    n = WORD * int(2 ** random.uniform(0, 11))
    return [
        run_row(tile // length * length + (tile + 1) % length, tile, n)
        for tile in range(n_tiles)
        if length > 1
    ]


def groups_of(random: Random, n_tiles: int) -> NDArray[np.int64]:
    """Return tiles in equal groups, (groups, members): consecutive or strided."""
    size = int(random.choice([n for n in range(2, min(n_tiles, 64) + 1) if n_tiles % n == 0]))
    tiles = np.arange(n_tiles).reshape(-1, size)
    return tiles if random.random() < 0.5 else np.arange(n_tiles).reshape(size, -1).T


def multicast(random: Random, n_tiles: int) -> Rows:
    groups = groups_of(random, n_tiles)
    n = WORD * int(2 ** random.uniform(0, 8))
    return [
        run_row(int(source), int(target), n, to=n * rank)
        for group in groups
        for rank, source in enumerate(group)
        for target in group
        if source != target
    ]


def all_to_all(random: Random, n_tiles: int) -> Rows:
    groups = groups_of(random, n_tiles)
    n = WORD * int(2 ** random.uniform(0, 8))
    return [
        run_row(int(source), int(target), n, at=n * to, to=n * rank)
        for group in groups
        for rank, source in enumerate(group)
        for to, target in enumerate(group)
        if source != target
    ]


def halo(random: Random, n_tiles: int) -> Rows:
    n_rows, row = int(random.integers(1, 9)), WORD * int(2 ** random.uniform(0, 6))
    rows: Rows = []
    for tile in range(n_tiles):
        for side, other in enumerate((tile - 1, tile + 1)):
            if 0 <= other < n_tiles:
                rows += [
                    run_row(other, tile, row, at=4 * row * k, to=4 * row * k + side * row)
                    for k in range(n_rows)
                ]
    return rows


def strided(random: Random, n_tiles: int, piece: int = WORD) -> Rows:
    size = int(random.choice([2, 4, 8]))
    count = int(2 ** random.uniform(1, 7))
    rows: Rows = []
    for tile in range(n_tiles):
        base = tile // size * size
        for k in range(min(size, n_tiles - base)):
            if base + k != tile:
                rows.append(
                    [
                        0,
                        base + k,
                        piece * (tile - base),
                        tile,
                        piece * k,
                        piece,
                        count,
                        piece * size,
                        piece * size,
                    ]
                )
    return rows


def halves(random: Random, n_tiles: int) -> Rows:
    return strided(random, n_tiles, 2)


def scattered(random: Random, n_tiles: int) -> Rows:
    n_partners = int(random.integers(1, 9))
    rows: Rows = []
    for tile in range(n_tiles):
        partners = random.choice(n_tiles, n_partners, replace=False)
        to = 0
        for other in partners:
            n = WORD * int(2 ** random.uniform(0, 8))
            if int(other) != tile:
                rows.append(run_row(int(other), tile, n, at=WORD * int(random.integers(0, 64)), to=to))
            to += n
    return rows


FAMILIES: dict[str, tuple[Callable[[Random, int], Rows], CopyKind]] = {
    "ring": (ring, "shift"),
    "multicast": (multicast, "reduce"),
    "all-to-all": (all_to_all, "relayout"),
    "halo": (halo, "relayout"),
    "strided 4 bytes": (strided, "relayout"),
    "strided 2 bytes": (halves, "relayout"),
    "random": (scattered, "relayout"),
}


def pattern_of(rows: Rows) -> Pattern:
    """Return the pattern of these runs."""
    ordered = np.array(sorted(rows, key=lambda row: (row[3], row[4])), np.int32).reshape(-1, 9)
    return Pattern("p", ordered, np.zeros((0, 5), np.int32), np.zeros(0, np.int32))


def predicted(model: IpuCostModel, kind: CopyKind, time: PhaseTime, rows: Rows) -> int:
    """Return what the cost model says of the same phase, from what a planner knows of it."""
    pieces = np.bincount([row[3] for row in rows], [row[6] for row in rows])
    fragments = 1 if kind == "shift" else int(pieces.max())
    return model.exchange_cycles(time.max_bytes, fragments, neighbour=kind == "shift")


def samples(chip_name: str, seed: int, count: int) -> list[Sample]:
    """Return `count` random patterns of every family, timed."""
    chip = load_chip(chip_name)
    model, exchange = IpuCostModel(chip), ExchangeModel(chip)
    result: list[Sample] = []
    for family, (make, kind) in FAMILIES.items():
        random = np.random.default_rng([seed, len(family)])
        for _ in range(count):
            rows = make(random, chip.n_cores)
            pattern = pattern_of(rows)
            begin = time.perf_counter()
            timed = pattern_time(
                pattern,
                exchange,
                chip.n_cores,
                source_offsets=np.array([SOURCE_OFFSET], np.int64),
                target_offset=TARGET_OFFSET,
                is_neighbour=kind == "shift",
            )
            seconds = time.perf_counter() - begin
            guess = predicted(model, kind, timed, rows)
            result.append(
                Sample(
                    family,
                    chip.n_cores,
                    guess,
                    timed.cycles,
                    timed.transfer_cycles,
                    timed.bound_cycles,
                    seconds,
                )
            )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--chip", default="ipu-mk2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = samples(options.chip, options.seed, options.count)
    print(f"{'family':18}{'n':>4}  {'busy/length: mean, least':26}{'|error|: median, p99':24}{'s, most':>8}")
    for family in FAMILIES:
        own = [each for each in found if each.family == family]
        busy = np.array([each.bound / max(each.transfer, 1) for each in own])
        error = np.array([abs(each.predicted / each.simulated - 1) for each in own])
        slowest = max(each.seconds for each in own)
        print(
            f"{family:18}{len(own):>4}  {busy.mean():>10.1%}{busy.min():>10.1%}      "
            f"{np.median(error):>10.1%}{np.quantile(error, 0.99):>10.1%}    {slowest:>8.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1))


if __name__ == "__main__":
    main()
