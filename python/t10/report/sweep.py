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

    Of fields with as many values a number goes first. Words stand side by side in their order, without a line between
    them. Where models run in stages, results per second instead of time.
    """
    names = [name for name, _ in points[0].setting]
    values = [list(dict.fromkeys(point.setting[place][1] for point in points)) for place in range(len(names))]
    is_word = [
        any(_number(name, each) is None for each in of) for name, of in zip(names, values, strict=True)
    ]
    place = max(range(len(names)), key=lambda n: (len(values[n]), not is_word[n], -n), default=0)
    has_words = bool(names) and is_word[place]
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    lines: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        if point.reason:
            continue
        others = ", ".join(f"{name} {value}" for n, (name, value) in enumerate(point.setting) if n != place)
        at = values[place].index(point.setting[place][1]) if has_words else _at(point, place)
        lines.setdefault(others, []).append(
            (at, point.results_per_second if in_stages else point.microseconds)
        )
    for name, line in lines.items():
        axes.plot(
            *zip(*sorted(line), strict=True),
            marker="o",
            linestyle="" if has_words else "-",
            label=label(name),
        )
    found = [at for line in lines.values() for at, _ in line]
    if has_words:
        axes.set_xticks(range(len(values[place])), values[place])
        axes.set_xlim(-0.5, len(values[place]) - 0.5)
    elif found and min(found) > 0 and max(found) >= WIDE * min(found):
        axes.set_xscale("log", base=2)
    axes.set_xlabel(label(names[place]) if names else "")
    axes.set_ylabel(f"modelled {'results per second' if in_stages else 'microseconds'}")
    axes.set_ylim(bottom=0)
    if len(lines) > 1:
        axes.legend(frameon=False)
    return svg_text(figure)


def _at(point: Point, place: int) -> float:
    """Return where a point lies along the field at a place; a point of no field at 0."""
    return (_number(*point.setting[place]) or 0.0) if point.setting else 0.0


def _number(field: str, text: str) -> float | None:
    """Return the number that a field has, None for a word."""
    from t10.sweep import number

    try:
        return number(text, field)
    except ValueError:
        return None
