"""A value handed over from one group of cores to another: an exchange phase over the links between them.

The cores of the group that takes it want it as their first reader does; each element is sent once, by one core that has
it, to all that want it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import TensorValue
from t10.core.laid_out import LayoutOperators
from t10.core.links import RATE_CYCLES, Links
from t10.core.loads import Loads, phase_loads
from t10.core.movement import ElementMap, LoadCosts, fill_runs, home_tables, layout_map, take_runs
from t10.core.schedule import ModulePlan, ValueLayout
from t10.errors import T10Error


@dataclass(frozen=True, slots=True)
class End:
    """Where a value lies on one side: in a group that begins at core `first_core`."""

    first_core: int
    layout: ValueLayout
    spec: OperatorSpec | None


def leaving(plan: ModulePlan, number: int, first_core: int) -> End:
    """Return where output `number` of a planned model lies; it must be an operator's result or an input."""
    value = plan.graph.outputs[number].value
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        if spec.output.name == value:
            return _end(plan, scheduled.output_layout, first_core)
    return _end(plan, _input_layout(plan, value), first_core)


def entering(plan: ModulePlan, number: int, first_core: int) -> End:
    """Return where input `number` of a planned model lies."""
    return _end(plan, _input_layout(plan, plan.graph.inputs[number].name), first_core)


def hand_over_cycles(
    value: TensorValue, source: End, target: End, n_cores: int, costs: LoadCosts, is_padded: bool = False
) -> int:
    """Return the cycles of handing a value over; links are those of `costs` on a chip of `n_cores`."""
    rates = costs.move_rates
    if rates is None:
        raise T10Error("the costs look at no loads of links")
    n_elements = prod(value.shape)
    home, wanted = (layout_map(end.spec, end.layout, n_elements) for end in (source, target))
    core, slot = _first_copies(home, n_elements)
    takes = wanted.elements >= 0
    elements = np.where(takes, wanted.elements, 0)
    runs = take_runs(
        np.zeros_like(elements), core[elements] + source.first_core, slot[elements], takes, target.first_core
    )
    fills = fill_runs(np.where(takes | (not is_padded), -1, 0), target.first_core)
    return costs.move_cycles(phase_loads(runs, fills, n_cores, size_bytes(value.dtype), rates))


def least_cycles(n_bytes: int, first: int, second: int, links: Links, costs: LoadCosts) -> int:
    """Return what no hand-over of so many bytes takes less than, between groups that begin at two cores.

    All of its bytes leave over one link.
    """
    level = next(each for each in reversed(links.levels) if first // each.stride != second // each.stride)
    return costs.move_cycles(Loads(port_cycles=-(-n_bytes * RATE_CYCLES // level.rate)))


def _first_copies(home: ElementMap, n_elements: int) -> tuple[np.ndarray, np.ndarray]:
    """Return core and slot of every element in the first copy that has it."""
    cores, slots = home_tables(home, n_elements)
    copy = np.argmax(cores >= 0, axis=0)
    every = np.arange(n_elements)
    return cores[copy, every], slots[copy, every]


def _input_layout(plan: ModulePlan, value: str) -> ValueLayout:
    return next(layout for layout in plan.input_layouts if layout.value == value)


def _end(plan: ModulePlan, layout: ValueLayout, first_core: int) -> End:
    return End(first_core, layout, LayoutOperators(plan.graph).of(layout))
