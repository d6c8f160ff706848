"""Figure 17: time against memory of four operators, T10's fronts beside the plans of the other systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paper.claims import Claim
from paper.part_data import (
    MODELLED,
    Say,
    chip_and_costs,
    fill,
    operator_of,
    read,
    searched,
    shown,
    table,
    unfused,
)
from t10.baselines.ansor import Ansor
from t10.baselines.load_compute_store import Shared, tile_bytes
from t10.baselines.poplin import DEFAULT_PROPORTION, fastest_within
from t10.baselines.roller import Roller
from t10.baselines.vgm import TileSearch, regions_of, room_bytes
from t10.report.plots import KIB, new_figure

FILE = "fronts.csv"
FIELDS = ("model", "batch", "operator", "system", "shared_bytes", "bytes", "cycles", "steps")
"""`bytes` per core while the operator runs; of them `shared_bytes` are shares of the virtual global memory."""
FRONT, ROLLER, SPLIT, ANSOR, POPART = "T10", "Roller", "Roller, split sums", "Ansor", "PopART 0.6"
SYSTEMS = (FRONT, ROLLER, SPLIT, ANSOR, POPART)
VGM: dict[str, TileSearch] = {ROLLER: Roller(), SPLIT: Roller(splits_sums=True), ANSOR: Ansor()}
OPERATORS = (
    ("resnet18", "32", "/layer2/0/conv2/Conv"),
    ("bert-large", "1", "/layer0/intermediate/MatMul"),
    ("nerf-frame", "1", "/layer1/MatMul"),
    ("opt-13b", "1", "/fc1/MatMul"),
)
PICTURE = "figure-17-fronts"
MARKS = {ROLLER: ("^", "#e0a500"), SPLIT: ("v", "#b05ab0"), ANSOR: ("x", "#a0522d"), POPART: ("s", "#888888")}
PAPER_SPREAD = 20
FEW_POWERS = 10
"""Up to this ratio of cycles the numbers between powers of ten are written, too."""

Point = tuple[int, int, int, int]
"""Bytes in the virtual global memory, bytes, cycles, steps."""


def plan(say: Say) -> None:
    """Plan what has no row yet."""
    fill(FILE, FIELDS, [(*each, system) for each in OPERATORS for system in SYSTEMS], _made, say)


def _made(model: str, batch: str, operator: str, system: str) -> Iterator[Point]:
    chip, cost = chip_and_costs()
    graph = unfused(model, int(batch))
    spec = operator_of(graph, operator)
    if system == FRONT:
        for each in searched(model, int(batch), operator)[0].front:
            yield 0, each.active_bytes, each.cycles.total, each.plan.n_sub_tasks
        return
    if system == POPART:
        found = fastest_within(spec, chip, cost, int(DEFAULT_PROPORTION * chip.sram_bytes))
        yield 0, found.active_bytes, found.cycles.total, found.plan.n_sub_tasks
        return
    regions = dict(zip([each.name for each in graph.operators], regions_of(graph, chip.n_cores), strict=True))
    room = room_bytes(chip, VGM[system]) - regions[operator].total_bytes
    best = VGM[system].best_tile(Shared.of(graph, spec, chip.n_cores), chip, cost, room)
    active = regions[operator].active_bytes
    waves = best.tiling.n_waves(spec, chip.n_cores) * best.tiling.n_own_steps(spec)
    yield active, active + tile_bytes(spec, best.tiling), best.cycles, waves


def _points() -> dict[tuple[str, str, str], dict[str, list[Point]]]:
    """Return the points by operator and system."""
    found: dict[tuple[str, str, str], dict[str, list[Point]]] = {}
    for line in read(FILE):
        systems = found.setdefault((line["model"], line["batch"], line["operator"]), {})
        point = (int(line["shared_bytes"]), int(line["bytes"]), int(line["cycles"]), int(line["steps"]))
        systems.setdefault(line["system"], []).append(point)
    return {key: systems for key, systems in found.items() if len(systems) == len(SYSTEMS)}


def pictures() -> dict[str, Any]:
    """Return a panel per operator."""
    points = _points()
    if not points:
        return {}
    figure = new_figure(11, 3.2)
    for number, ((model, batch, operator), systems) in enumerate(points.items()):
        axes = figure.add_subplot(1, len(OPERATORS), number + 1)
        front = [(n_bytes / KIB, cycles / 1e3) for _, n_bytes, cycles, _ in systems[FRONT]]
        axes.plot(*zip(*front, strict=True), "*-", color="#4a6fd0", drawstyle="steps-post", label=FRONT)
        for system, (mark, colour) in MARKS.items():
            _, n_bytes, cycles, _ = systems[system][0]
            axes.plot([n_bytes / KIB], [cycles / 1e3], mark, color=colour, label=system)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        if max(y for _, y in front) < FEW_POWERS * min(y for _, y in front):
            axes.yaxis.set_minor_formatter("{x:g}")
        axes.set_title(f"{model}, batch {batch}\n{operator}", loc="left")
    axes = figure.axes[0]
    axes.legend(frameon=False, fontsize=8)
    figure.supylabel("thousand cycles")
    figure.supxlabel(f"KiB per core while the operator runs ({MODELLED})")
    return {PICTURE: figure}


def claims() -> list[Claim]:
    """Return what the paper says of figure 17."""
    points = _points()
    if not points:
        return []
    return [_popart(points), _roller(points), _spread(points)]


def _popart(points: dict[tuple[str, str, str], dict[str, list[Point]]]) -> Claim:
    better, equal = 0, 0
    for systems in points.values():
        _, n_bytes, cycles, _ = systems[POPART][0]
        better += any(b < n_bytes and c < cycles for _, b, c, _ in systems[FRONT])
        equal += any((b, c) == (n_bytes, cycles) for _, b, c, _ in systems[FRONT])
    return Claim(
        "a plan faster and smaller than PopART's, figure 17",
        "for most operators",
        f"for {better} of {len(points)}; PopART's plan is on our front for {equal}",
        better > len(points) / 2,
        "our stand-in chooses the fastest plan of our own space that does not rotate, at exact costs: it is the "
        "fastest end of each of the fronts, which offer smaller plans beside it",
    )


def _roller(points: dict[tuple[str, str, str], dict[str, list[Point]]]) -> Claim:
    texts: list[str] = []
    is_slower = True
    for (model, _, _), systems in points.items():
        shared, n_bytes, cycles, _ = systems[SPLIT][0]
        fastest = systems[FRONT][-1]
        texts.append(f"{model} {shared / n_bytes:.0%}, {cycles / fastest[2]:.2f}x")
        is_slower &= cycles > fastest[2]
    return Claim(
        "Roller is limited by the shared region, figure 17",
        "T10 has faster plans, as it has no such region",
        "part of Roller's bytes that is shared (split sums), and its time beside T10's fastest: "
        + ", ".join(texts),
        is_slower,
        "an operator is faster with Roller",
    )


def _spread(points: dict[tuple[str, str, str], dict[str, list[Point]]]) -> Claim:
    spreads = {key[0]: systems[FRONT][-1][1] / systems[FRONT][0][1] for key, systems in points.items()}
    ours = spreads.get("bert-large", 0.0)
    rest = ", ".join(f"{model} {ratio:.1f}x" for model, ratio in spreads.items())
    return Claim(
        "memory of the fastest plan against the smallest's, a MatMul (a comment in the paper's text)",
        f"> {PAPER_SPREAD}x",
        rest,
        ours > PAPER_SPREAD,
        "no plan of BERT's product that takes more than its fastest, 34.8 KiB, is faster: more copies save no cycles",
    )


def section() -> str:
    """Return the part of the page."""
    rows: list[tuple[str, ...]] = []
    for (model, batch, operator), systems in _points().items():
        front = systems[FRONT]
        ends = [f"{n_bytes / KIB:,.1f} KiB, {cycles:,}" for _, n_bytes, cycles, _ in (front[0], front[-1])]
        others = [f"{systems[s][0][1] / KIB:,.1f} KiB, {systems[s][0][2]:,}" for s in SYSTEMS[1:]]
        rows.append((f"{model}-{batch} `{operator}`", str(len(front)), *ends, *others))
    headings = ("operator", "plans", "smallest", "fastest", *SYSTEMS[1:])
    return f"""## Time against memory of four operators

{shown(PICTURE)}

T10's Pareto front of an operator beside the one plan of each other system: KiB per core while it runs, and
modelled cycles. All fetch what they read from anywhere; what T10 spends on setting up weights is
[below](#idle-and-active-memory). Roller's and Ansor's memory is their shares of the virtual global memory and a tile.

{table(headings, rows)}
"""
