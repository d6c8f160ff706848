"""Figure 8: what steps are priced at against what they take, counted from code and by the paper's linear regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from paper.claims import Claim
from paper.part_data import Say, fill, read, shown, table
from t10.core.arrays import Floats
from t10.profile.compute_step import ComputeStep
from t10.profile.operators import made_steps
from t10.profile.step_profile import profiled
from t10.report.plots import new_figure

FILE = "accuracy.csv"
FIELDS = ("kind", "step", "run", "counted", "regression")
"""Cycles of a sub-task: run on the instruction-set simulator, counted ("" where they depend on data), and those of the
regression for sub-tasks that were held back from it ("" for others)."""
STEPS_PER_KIND = 4
SAMPLES = 80
PICTURE = "figure-8-accuracy"
NEAR, FAR = 0.05, 0.1
"""Errors of costs that are near-perfect, in the median, and what is no more so."""
COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """A sub-task of a kind; None for what is not known of it."""

    kind: str
    run: int
    counted: int | None
    regression: float | None


@lru_cache(maxsize=1)
def _steps() -> dict[tuple[str, str], ComputeStep]:
    """Return some steps of every kind, evenly from those that `t10 profile` goes through, by kind and title."""
    by_kind: dict[str, list[ComputeStep]] = {}
    for each in made_steps():
        by_kind.setdefault(each.kind, []).append(each)
    found: dict[tuple[str, str], ComputeStep] = {}
    for kind, steps in sorted(by_kind.items()):
        n = min(STEPS_PER_KIND, len(steps))
        for each in (steps[number * (len(steps) - 1) // max(n - 1, 1)] for number in range(n)):
            found.setdefault((kind, each.title), each)
    return found


def plan(say: Say) -> None:
    """Count and run what has no row yet."""
    fill(FILE, FIELDS, list(_steps()), _made, say)


def _made(kind: str, title: str) -> Iterator[tuple[object, object, object]]:
    found = profiled(_steps()[kind, title], SAMPLES, 0)
    for sample, regression in zip(found.samples, found.regression, strict=True):
        counted = "" if sample.counted is None else sample.counted
        yield sample.cycles, counted, "" if regression is None else f"{regression:.0f}"


def _samples() -> list[Sample]:
    return [
        Sample(
            line["kind"],
            int(line["run"]),
            int(line["counted"]) if line["counted"] else None,
            float(line["regression"]) if line["regression"] else None,
        )
        for line in read(FILE)
    ]


def _by_kind() -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for each in _samples():
        found.setdefault(each.kind, []).append(each)
    return found


def pictures() -> dict[str, Any]:
    """Return a panel per kind of step: predicted against run cycles, of sub-tasks that were held back."""
    kinds = _by_kind()
    if not kinds:
        return {}
    n_rows = -(-len(kinds) // COLUMNS)
    figure = new_figure(10, 2.5 * n_rows)
    for number, (kind, samples) in enumerate(kinds.items()):
        axes = figure.add_subplot(n_rows, COLUMNS, number + 1)
        held = [each for each in samples if each.regression is not None]
        if held:
            pairs = [(each.run, each.regression) for each in held]
            axes.plot(*zip(*pairs, strict=True), "x", color="#e0a500", markersize=4, label="regression")
        counted = [(each.run, each.counted) for each in held if each.counted is not None]
        if counted:
            axes.plot(*zip(*counted, strict=True), ".", color="#4a6fd0", markersize=3, label="counted")
        ends = [min(each.run for each in samples), max(each.run for each in samples)]
        axes.plot(ends, ends, color="black", linewidth=0.6)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(kind, loc="left")
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.supxlabel("cycles on the instruction-set simulator")
    figure.supylabel("predicted cycles (modelled)")
    return {PICTURE: figure}


def _errors(samples: list[Sample]) -> Floats:
    """Return the relative errors of the regression, of the sub-tasks that were held back from it."""
    return np.array([abs(each.regression / each.run - 1) for each in samples if each.regression is not None])


def claims() -> list[Claim]:
    """Return what the paper says of figure 8."""
    kinds = _by_kind()
    if not kinds:
        return []
    samples = [each for each in _samples() if each.counted is not None]
    right = sum(each.counted == each.run for each in samples)
    medians = {kind: float(np.median(errors)) for kind, each in kinds.items() if len(errors := _errors(each))}
    good = [kind for kind, median in medians.items() if median <= NEAR]
    texts = ", ".join(f"{kind} {median:.0%}" for kind, median in sorted(medians.items()))
    return [
        Claim(
            "costs of steps, ours, figure 8",
            "near-perfect, but for convolutions",
            f"{right:,} of {len(samples):,} sub-tasks take what is counted",
            right == len(samples),
            "counts are not those of runs",
        ),
        Claim(
            "costs of steps, the paper's linear regression, figure 8",
            "near-perfect, but for convolutions",
            f"median errors on shapes that were held back: {texts}",
            set(medians) - set(good) <= {"convolution"},
            "code takes other loops for other shapes: blocks of 16, pairs of elements, six workers, lines that end "
            "inside 8 bytes; a cost that is linear in points and extents cannot follow",
        ),
    ]


def section() -> str:
    """Return the part of the page."""
    rows: list[tuple[str, ...]] = []
    for kind, samples in _by_kind().items():
        counted = [each for each in samples if each.counted is not None]
        right = f"{sum(each.counted == each.run for each in counted)} of {len(counted)}"
        errors = _errors(samples)
        quantiles = [f"{np.quantile(errors, q):.0%}" for q in (0.5, 0.9)] if len(errors) else ["-", "-"]
        rows.append((kind, str(len(samples)), right, str(len(errors)), *quantiles))
    headings = ("kind", "sub-tasks", "counted = run", "held back", "regression off: median", "nine in ten")
    return f"""## Accuracy of costs

{shown(PICTURE)}

Random sub-tasks of steps of every kind, as `t10 profile` draws them: what is counted from their code, and
what a linear regression says that is fitted to other shapes of the same step, against a run on the
instruction-set simulator. No silicon is measured. Sub-tasks whose time depends on data are not counted.

{table(headings, rows)}
"""
