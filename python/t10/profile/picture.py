"""The accuracy figure (T10 §6): counted cycles, and those of a linear regression, against cycles of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t10.core.atomic import replaced_file
from t10.profile.step_profile import StepProfile, errors_of

SIZE_INCHES = (11.0, 5.6)
DOTS_PER_INCH = 150


def accuracy_picture(profiles: Sequence[StepProfile], path: Path) -> None:
    """Draw counted and regressed against run cycles, a colour per kind of step, as .png or .svg."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # matplotlib's types leave too much open to be of use.
    figure: Any = Figure(figsize=SIZE_INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    counts, regressions = figure.subplots(1, 2, sharex=True, sharey=True)
    for kind in sorted({each.one.kind for each in profiles}):
        members = [each for each in profiles if each.one.kind == kind]
        samples = [each for one in members for each in one.samples if each.counted is not None]
        counts.scatter(
            [s.run for s in samples], [s.counted for s in samples], s=6, label=f"{kind} ({len(samples)})"
        )
        held = [pair for one in members for pair in one.held_back]
        if held:
            label = f"{kind}: median {np.median(errors_of(members)):.0%} off ({len(held)})"
            regressions.scatter(*zip(*held, strict=True), s=6, alpha=0.6, label=label)
    low, high = (end(s.run for one in profiles for s in one.samples) for end in (min, max))
    for axes, title in (
        (counts, "counted from the code"),
        (regressions, "linear regression, shapes held back"),
    ):
        axes.plot([low, high], [low, high], color="black", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="cycles on the instruction-set simulator", title=title)
        axes.legend(fontsize="small")
    counts.set(ylabel="cycles", ylim=(low / 2, high * 2))
    figure.suptitle("Random sub-tasks (cycles are modelled: no silicon)")
    with replaced_file(path) as temporary:
        figure.savefig(
            temporary, dpi=DOTS_PER_INCH, metadata={"Date": None} if path.suffix == ".svg" else None
        )
