"""Where everything lies in every tile's memory while a device program runs: a plot and a table."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from t10.core.device import DeviceProgram, Exchange, Execute, Reference, Step, Variable
from t10.core.dtypes import size_bytes
from t10.report.plots import MOST_VECTOR_BOXES, new_figure, svg_text

ROLE_COLOURS = {
    "weight": "#4a6fd0",
    "input": "#3b9bb3",
    "activation": "#3a923a",
    "output": "#7fbf7f",
    "partial": "#b05ab0",
    "buffer": "#e0a500",
    "scratch": "#999999",
}
REGION_COLOURS = {
    "code": "#555555",
    "vertex state": "#d04a4a",
    "scratch": "#999999",
    "stacks": "#8d6e63",
    "exchange code": "#bbbbbb",
}

GAP_SHARE = 50
LEAST_TICK = 0.035
JOINED_BYTES = 256
"""Gaps of addresses up to this long are drawn as they are."""


@dataclass(frozen=True, slots=True)
class Region:
    """Addresses `[first, last)` of every tile that serve one purpose."""

    name: str
    first: int
    last: int

    @property
    def size_bytes(self) -> int:
        """Return its size."""
        return self.last - self.first


@dataclass(frozen=True, slots=True)
class Life:
    """A variable and the operators (by number) between which it is used; -1 is before the first."""

    variable: Variable
    first: int
    last: int


def regions(program: DeviceProgram) -> tuple[Region, ...]:
    """Return what every tile's memory is divided into, in the order of addresses."""
    named = {"state": "vertex state", "stack": "stacks", "exchange": "exchange code"}
    return tuple(
        Region(named.get(name, name), first, first + size) for name, first, size in program.memory.regions
    )


def lives(program: DeviceProgram) -> tuple[Life, ...]:
    """Return when every variable is used, in the program's order of variables."""
    words = {s.name: s for s in program.compute_sets}
    copies = {c.name: c for c in program.copies}
    spans: dict[str, tuple[int, int]] = {}

    def use(names: Iterable[str], number: int) -> None:
        for name in names:
            first, last = spans.get(name, (number, number))
            spans[name] = (min(first, number), max(last, number))

    for tensor in (*program.weights, *program.inputs):
        use((piece.variable for piece in tensor.pieces), -1)
    for number, operator in enumerate(program.operators):
        for step in _steps(operator.steps):
            if isinstance(step, Exchange):
                use((*copies[step.copy].sources, copies[step.copy].target), number)
            else:
                every = (w for group in words[step.compute_set].groups for w in group.words)
                use((w.variable for w in every if isinstance(w, Reference)), number)
    for tensor in program.outputs:
        use((piece.variable for piece in tensor.pieces if piece.variable), len(program.operators))
    for tensor in program.weights:
        # Weights stay for the next run.
        use((piece.variable for piece in tensor.pieces), len(program.operators))
    return tuple(Life(v, *spans[v.name]) for v in program.variables if v.name in spans)


@dataclass(frozen=True, slots=True)
class Scale:
    """Addresses as heights in a plot: used ranges to scale, gaps between them cut to a small one."""

    used: tuple[tuple[int, int], ...]
    gap: int

    def height(self, address: int) -> float:
        """Return the height of an address; within a gap, that of its begin."""
        height = 0
        for first, last in self.used:
            if address < first:
                return height
            if address <= last:
                return height + address - first
            height += last - first + self.gap
        return height

    @property
    def top(self) -> float:
        """Return the height of the last used address."""
        return self.height(self.used[-1][1]) if self.used else 1.0


def scale_of(program: DeviceProgram) -> Scale:
    """Return the scale that shows what a program uses of a tile's memory."""
    ranges = [(r.first, r.last) for r in regions(program) if r.name in REGION_COLOURS and r.size_bytes]
    ranges += [(v.address_bytes, v.address_bytes + _bytes(v)) for v in program.variables]
    used: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if used and first <= used[-1][1] + JOINED_BYTES:
            used[-1] = (used[-1][0], max(used[-1][1], last))
        else:
            used.append((first, last))
    total = sum(last - first for first, last in used)
    return Scale(tuple(used), max(total // GAP_SHARE, 1))


def device_memory_plot(program: DeviceProgram, interleaved_base: int) -> str:
    """Return what lies where in every tile's memory over the operators of a program, as SVG.

    Addresses nobody uses are left out: ticks show where used ranges begin. A line marks
    `interleaved_base`, from which on memory holds no code.
    """
    patches = importlib.import_module("matplotlib.patches")
    collections = importlib.import_module("matplotlib.collections")
    figure = new_figure(11, 4.8)
    axes = figure.add_subplot()
    scale = scale_of(program)
    end = max(len(program.operators), 1)
    by_role: dict[str, list[Any]] = {}
    for life in lives(program):
        low = scale.height(life.variable.address_bytes)
        high = scale.height(life.variable.address_bytes + _bytes(life.variable))
        begin, stop = max(life.first, 0), min(life.last + 1, end)
        box = patches.Rectangle((begin, low), max(stop - begin, 0.2), high - low)
        by_role.setdefault(life.variable.role, []).append(box)
    is_large = len(program.variables) > MOST_VECTOR_BOXES
    handles: list[Any] = []
    for role in sorted(by_role):
        colour = ROLE_COLOURS.get(role, "#bbbbbb")
        drawn = collections.PatchCollection(by_role[role], facecolor=colour, linewidth=0, rasterized=is_large)
        axes.add_collection(drawn)
        handles.append(patches.Patch(color=colour, label=role))
    for region in regions(program):
        colour = REGION_COLOURS.get(region.name)
        if colour is None or not region.size_bytes:
            continue
        axes.axhspan(scale.height(region.first), scale.height(region.last), color=colour, linewidth=0)
        if region.name not in by_role:
            handles.append(patches.Patch(color=colour, label=region.name))
    line = scale.height(interleaved_base)
    axes.axhline(line, color="#333333", linewidth=0.8, linestyle=":")
    axes.annotate("interleaved above", (end, line), va="bottom", ha="right", fontsize=7)
    ticks = _ticks(scale)
    axes.set_yticks([scale.height(address) for address in ticks], [f"{address:#x}" for address in ticks])
    axes.set_xlim(0, end)
    axes.set_ylim(0, max(scale.top, 1))
    axes.set_xlabel("operator, in the order of the program")
    axes.set_ylabel("address in every tile")
    axes.legend(handles=handles, frameon=False, ncols=6, loc="upper center", bbox_to_anchor=(0.5, 1.17))
    return svg_text(figure)


def _ticks(scale: Scale) -> list[int]:
    """Return the begins of used ranges and the last end, those left out that would lie on each other."""
    ticks: list[int] = []
    for address in (*(first for first, _ in scale.used), *(last for _, last in scale.used[-1:])):
        if not ticks or scale.height(address) - scale.height(ticks[-1]) >= LEAST_TICK * scale.top:
            ticks.append(address)
    return ticks


def _bytes(variable: Variable) -> int:
    return prod(variable.shape) * size_bytes(variable.dtype)


def _steps(steps: tuple[Step, ...]) -> Iterator[Execute | Exchange]:
    """Yield every compute set and copy once per place in the program."""
    for step in steps:
        if isinstance(step, (Execute, Exchange)):
            yield step
        else:
            yield from _steps(step.body)
