"""A plot of a sweep: time against what is varied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from t10.report.plots import label, new_figure, svg_text

if TYPE_CHECKING:
    from t10.sweep import Point

WIDE = 8
"""A field whose greatest value is so many times its least is drawn on a scale of powers."""


def sweep_plot(points: Sequence[Point], *, in_stages: bool = False) -> str:
    """Return time against the field that takes most values as SVG text, a line per value of the others.

    Where models run in stages, results per second instead of time.
    """
    names = [name for name, _ in points[0].setting]
    n_values = [len({point.setting[place][1] for point in points}) for place in range(len(names))]
    place = n_values.index(max(n_values)) if names else 0
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    lines: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        if point.reason:
            continue
        others = ", ".join(f"{name} {value}" for n, (name, value) in enumerate(point.setting) if n != place)
        at = _number(*point.setting[place]) if names else 0.0
        lines.setdefault(others, []).append(
            (at, point.results_per_second if in_stages else point.microseconds)
        )
    for name, line in lines.items():
        axes.plot(*zip(*sorted(line), strict=True), marker="o", label=label(name))
    found = [at for line in lines.values() for at, _ in line]
    if found and min(found) > 0 and max(found) >= WIDE * min(found):
        axes.set_xscale("log", base=2)
    axes.set_xlabel(label(names[place]) if names else "")
    axes.set_ylabel(f"modelled {'results per second' if in_stages else 'microseconds'}")
    axes.set_ylim(bottom=0)
    if len(lines) > 1:
        axes.legend(frameon=False)
    return svg_text(figure)


def _number(field: str, text: str) -> float:
    from t10.sweep import number

    return number(text, field)
