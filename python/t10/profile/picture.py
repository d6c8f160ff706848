"""The accuracy figure: modelled against measured cycles of held-back shapes (T10 §6, accuracy of the cost model)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t10.core.atomic import replaced_file
from t10.cost.classes import OperatorClass
from t10.profile.model import Profile
from t10.profile.table import errors_of

SIZE_INCHES = (6.4, 5.6)
DOTS_PER_INCH = 150


def accuracy_picture(profiles: Sequence[Profile], path: Path) -> None:
    """Draw modelled against measured cycles, a colour per kind of operator, as .png or .svg."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # matplotlib's types leave too much open to be of use.
    figure: Any = Figure(figsize=SIZE_INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    by_kind: dict[str, list[Profile]] = {}
    for one in profiles:
        by_kind.setdefault(kind_of(one.one), []).append(one)
    low, high = 1e9, 1.0
    for kind, members in sorted(by_kind.items()):
        measured = np.concatenate([p.cycles[p.is_test] for p in members])
        modelled = np.concatenate([p.modelled[p.is_test] for p in members])
        errors = errors_of(members)
        low, high = min(low, float(measured.min())), max(high, float(measured.max()))
        label = f"{kind}: median {errors.median:.1%}, p99 {errors.p99:.1%} ({errors.n})"
        axes.scatter(measured, modelled, s=6, alpha=0.6, label=label)
    axes.plot([low, high], [low, high], color="black", linewidth=0.8)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="cycles on the instruction-set simulator",
        ylabel="fitted model",
    )
    axes.set_title("Compute steps on shapes held back (cycles are modelled: no silicon)")
    axes.legend(fontsize="small")
    with replaced_file(path) as temporary:
        figure.savefig(
            temporary, dpi=DOTS_PER_INCH, metadata={"Date": None} if path.suffix == ".svg" else None
        )


def kind_of(one: OperatorClass) -> str:
    """Return the kind of operators of a class."""
    if one.step == "epilogue":
        return "epilogue"
    return "product" if one.matrix is not None else one.spec.kind
