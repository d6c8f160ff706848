"""The whole road from linalg to a planned module in one call, as the drivers take it.

Leaves exactly what `--t10-fuse --t10-partition --t10-align-pace --t10-pareto --t10-reconcile` leave, but keeps the
fronts as values in between instead of writing candidates into the module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.schedule import ModulePlan
from t10.dialect.mlir import ir
from t10.passes.bridge.annotate import annotate
from t10.passes.read_graph import read_graph
from t10.passes.registry import make, run
from t10.plan.options import PlanOptions
from t10.plan.schedule import plan_module

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, steps done and steps in all."""


@dataclass(frozen=True, slots=True)
class PlannedModule:
    """`plan`; `constants` are the values of constants in the module that became weights, by name."""

    plan: ModulePlan
    constants: dict[str, NDArray[Any]]


def plan_mlir(
    module: Any, chip: ChipSpec, options: PlanOptions | None = None, progress: Progress | None = None
) -> PlannedModule:
    """Fuse and plan a linalg module for a chip and write the plan into it.

    Raises `UnsupportedOpError` for operations that cannot be planned and `InfeasiblePlanError` if it does not fit.
    """
    with module.context, ir.Location.unknown():
        if progress:
            progress("fuse", 0, 1)
        run(make("t10-fuse"), module)
        read = read_graph(module)
        plan = plan_module(read.graph, chip, options, progress)
        annotate(module, read, plan)
    return PlannedModule(plan, read.constants)
