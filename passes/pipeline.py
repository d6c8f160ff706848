"""The whole road from linalg to a planned module in one call, as the drivers take it.

Leaves exactly what `--t10-fuse --t10-partition --t10-align-pace --t10-pareto --t10-reconcile` leave. Nobody looks in
between, so native search takes the place of the three in the middle, and the fronts stay values.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.garbage import rare_collections
from t10.core.orders import Order
from t10.core.schedule import ModulePlan
from t10.cost import registry
from t10.dialect.mlir import ir
from t10.passes.bridge.annotate import COST_MODEL, annotate
from t10.passes.forced import forced_by_attributes
from t10.passes.planning import locating
from t10.passes.read_graph import ReadModule, read_graph
from t10.passes.registry import make, run
from t10.plan.cache import PlanCache
from t10.plan.explain_fit import explaining
from t10.plan.fronts import operator_fronts
from t10.plan.options import PlanOptions
from t10.plan.pinned import check_names
from t10.plan.pins import Pins
from t10.plan.schedule import schedule_module
from t10.plan.settled import as_written, settled

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, steps done and steps in all."""


@dataclass(frozen=True, slots=True)
class PlannedModule:
    """`plan`; by name, `constants` are values of the module that became weights, `orders` those of weights."""

    plan: ModulePlan
    constants: dict[str, NDArray[Any]]
    orders: dict[str, Order]


@rare_collections()
def plan_mlir(
    module: Any,
    chip: ChipSpec,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    *,
    cost_model: str = registry.DEFAULT_COST_MODEL,
    pins: Pins | None = None,
    executor: Executor | None = None,
    cache: PlanCache | None = None,
) -> PlannedModule:
    """Fuse and plan a linalg module for a chip and write the plan into it under a cost model.

    Plans pinned by attributes of operators, by `pins` and by `options` are kept; of two for one operator, the last of
    these. Operators are searched on `executor` and kept in `cache`. Raises `UnsupportedOpError` for operations that
    cannot be planned, `InfeasiblePlanError` if it does not fit, and what `pinned_front` raises for pins that are wrong.
    """
    with module.context, ir.Location.unknown():
        read = fused(module, progress)
        pinned = with_pins(read, options or PlanOptions(), pins)
        cost = registry.cost_model(cost_model, chip)
        with locating(read.graph.operators), explaining(read.graph, chip, cost, pinned):
            fronts = operator_fronts(read.graph, chip, cost, pinned, progress, executor=executor, cache=cache)
            plan = settled(read.graph, chip, cost, fronts, pinned)
            if plan is None:
                plan = schedule_module(read.graph, chip, cost, fronts, pinned, progress)
        if pins is not None:
            plan = as_written(plan, pins.whole)
        module.operation.attributes[COST_MODEL] = ir.StringAttr.get(cost_model)
        annotate(module, read, plan)
    return PlannedModule(plan, read.constants, read.orders)


def fused(module: Any, progress: Progress | None = None) -> ReadModule:
    """Fuse a linalg module and return the model it holds. Needs a current context and location."""
    if progress:
        progress("fuse", 0, 1)
    run(make("t10-fuse"), module)
    return read_graph(module)


def with_pins(read: ReadModule, options: PlanOptions, pins: Pins | None) -> PlanOptions:
    """Return the options with everything that is pinned; raises `InputError` for what the model does not have."""
    check_names((forced.operator for forced in options.forced), read.graph)
    forced = forced_by_attributes(read)
    with locating(read.graph.operators):
        of_file = pins.forced(read.graph) if pins is not None else ()
    for each in (*of_file, *options.forced):
        forced[each.operator] = each
    return replace(options, forced=tuple(forced.values()))
