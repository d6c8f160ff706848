"""Modelled energy of a plan, from the energies per operation and byte of a chip file."""

from __future__ import annotations

from math import prod

from t10.chip import ChipSpec
from t10.chip.energy import Energy
from t10.core import geometry
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.movement import operand_of
from t10.core.own_weights import own_weights
from t10.core.plan import OperatorPlan
from t10.core.schedule import ModulePlan
from t10.cost import CostModel, IpuCostModel
from t10.plan.context import context_of
from t10.report.records import EnergyReport
from t10.report.traffic import operator_traffic

PICO = 1e-12


def energies(plan: ModulePlan, chip: ChipSpec, energy: Energy) -> tuple[EnergyReport, ...]:
    """Return the energy of every operator.

    Cores compute their whole parts, padding included; of a look-up they copy what is found. An epilogue computes every
    element of the result once, and so does each partial result that is added. What a core keeps is not moved.
    """
    own, fetched = own_weights(plan.graph), {fetch.operator for fetch in plan.fetches}
    found: list[EnergyReport] = []
    moved = bytes_of_all_cores(plan, chip, IpuCostModel(chip))
    for spec, scheduled, n_bytes in zip(plan.graph.operators, plan.operators, moved, strict=True):
        weights = own.get(scheduled.name, ()) if scheduled.name in fetched else ()
        found.append(
            _energy(
                energy,
                _n_points(spec, scheduled.active.plan),
                n_bytes,
                sum(prod(each.shape) * size_bytes(each.dtype) for each in weights),
                scheduled.active.cycles.total / chip.clock_hz,
            )
        )
    return tuple(found)


def bytes_of_all_cores(plan: ModulePlan, chip: ChipSpec, cost: CostModel) -> tuple[int, ...]:
    """Return by operator the bytes that all cores together take from others."""
    mover = context_of(plan.graph, chip, cost).mover
    layouts = {layout.value: layout for layout in (*plan.weight_layouts, *plan.input_layouts)}
    taken: list[int] = []
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        chosen, moved = scheduled.active.plan, operator_traffic(spec, scheduled)
        # Every core of an operator takes as much by shifts and of partial sums.
        total = prod(chosen.f_op) * (moved.shift + moved.reduce)
        for arrival in scheduled.arrivals:
            if arrival.kind != "in_place":
                n_elements = mover.traffic(spec, chosen, arrival.operand, layouts).total_elements
                total += n_elements * size_bytes(operand_of(spec, arrival.operand).dtype)
        layouts[spec.output.name] = scheduled.output_layout
        taken.append(total)
    return tuple(taken)


def _n_points(spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return how many elements all cores compute, or copy."""
    extents = [parts * length for parts, length in zip(plan.f_op, plan.lengths, strict=True)]
    selected = {selector.axis for selector in spec.selectors}
    n_points = prod(extent for axis, extent in enumerate(extents) if axis not in selected)
    n_outputs = prod(extents[axis] for axis in spec.output.axes)
    n_members = geometry.n_replicas(spec, plan, len(spec.inputs))
    return n_points + n_outputs * (n_members - 1 + (spec.epilogue is not None))


def _energy(energy: Energy, n_points: int, n_bytes: int, n_fetched: int, seconds: float) -> EnergyReport:
    return EnergyReport(
        compute=n_points * energy.mac_pj * PICO,
        exchange=n_bytes * energy.byte_pj * PICO,
        off_chip=n_fetched * energy.off_chip_byte_pj * PICO,
        static=energy.static_watts * seconds,
    )
