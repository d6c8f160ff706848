"""Where everything lies in every tile's memory while a device program runs: a plot and a table."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from t10.core.device import DeviceProgram, Exchange, Execute, Reference, Step, Variable
from t10.core.dtypes import size_bytes
from t10.report.plots import KIB, MOST_VECTOR_BOXES, new_figure, svg_text

INTERLEAVED_BASE = 0x80000
"""First address of the interleaved memory, which holds no code (timing reference §1)."""

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
    memory = program.memory
    bounds = (
        ("code", memory.code, memory.state),
        ("vertex state", memory.state, memory.scratch),
        ("scratch", memory.scratch, memory.stack),
        ("stacks", memory.stack, memory.exchange),
        ("exchange code", memory.exchange, memory.free),
        ("free", memory.free, memory.data),
        ("data", memory.data, memory.end),
    )
    return tuple(Region(*each) for each in bounds)


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


def memory_table(program: DeviceProgram) -> str:
    """Return the regions of a tile's memory as lines of text: name, addresses, bytes."""
    lines = [f"{'region':16}{'first':>10}{'last':>10}{'bytes':>12}"]
    for region in regions(program):
        lines.append(f"{region.name:16}{region.first:>#10x}{region.last:>#10x}{region.size_bytes:>12,}")
    return "\n".join(lines) + "\n"


def device_memory_plot(program: DeviceProgram) -> str:
    """Return what lies where in every tile's memory over the operators of a program, as SVG."""
    patches = importlib.import_module("matplotlib.patches")
    collections = importlib.import_module("matplotlib.collections")
    figure = new_figure(11, 4.8)
    axes = figure.add_subplot()
    end = max(len(program.operators), 1)
    by_colour: dict[str, list[Any]] = {}
    for life in lives(program):
        variable = life.variable
        n_bytes = prod(variable.shape) * size_bytes(variable.dtype)
        begin, stop = max(life.first, 0), min(life.last + 1, end)
        box = patches.Rectangle((begin, variable.address_bytes / KIB), max(stop - begin, 0.2), n_bytes / KIB)
        by_colour.setdefault(variable.role, []).append(box)
    is_large = len(program.variables) > MOST_VECTOR_BOXES
    for role, boxes in by_colour.items():
        axes.add_collection(
            collections.PatchCollection(
                boxes,
                facecolor=ROLE_COLOURS.get(role, "#bbbbbb"),
                edgecolor="white",
                linewidth=0.0 if is_large else 0.3,
                rasterized=is_large,
            )
        )
    handles = [patches.Patch(color=ROLE_COLOURS.get(role, "#bbbbbb"), label=role) for role in by_colour]
    for region in regions(program):
        colour = REGION_COLOURS.get(region.name)
        if colour is None or not region.size_bytes:
            continue
        axes.axhspan(region.first / KIB, region.last / KIB, color=colour)
        handles.append(patches.Patch(color=colour, label=region.name))
    axes.axhline(INTERLEAVED_BASE / KIB, color="#333333", linewidth=0.8, linestyle=":")
    axes.annotate("interleaved from here on", (0, INTERLEAVED_BASE / KIB), va="bottom", fontsize=7)
    axes.set_xlim(0, end)
    axes.set_ylim(program.memory.base / KIB, program.memory.end / KIB)
    axes.set_xlabel("operator, in the order of the program")
    axes.set_ylabel("address in every tile, KiB")
    axes.legend(handles=handles, frameon=False, ncols=6, loc="upper center", bbox_to_anchor=(0.5, 1.17))
    return svg_text(figure)


def _steps(steps: tuple[Step, ...]) -> Iterator[Execute | Exchange]:
    """Yield every compute set and copy once per place in the program."""
    for step in steps:
        if isinstance(step, (Execute, Exchange)):
            yield step
        else:
            yield from _steps(step.body)
