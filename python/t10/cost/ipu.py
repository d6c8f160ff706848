"""`IpuCostModel`: an IPU core and exchange, from a chip file's numbers (ipu timing reference, sections 5 and 8)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, prod

import numpy as np

from t10.chip import ChipSpec, load_chip
from t10.codelets.compile import may_be_own, own_digest
from t10.core.arrays import Bools, Ints
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.geometry import partition_shape, window_lengths
from t10.core.links import Links
from t10.core.loads import Loads, MoveRates
from t10.core.placed_costs import StepLies
from t10.core.plan import OperatorPlan
from t10.core.program import ReduceMode, Shift
from t10.core.shift_rounds import rotating_dtype, shift_bytes
from t10.core.sub_task_nest import is_filled
from t10.cost import counted, shifts
from t10.cost.bound.least import LeastSteps
from t10.cost.closed_forms import ClosedForms
from t10.cost.code_digest import code_digest
from t10.cost.counted import CountedSteps, slots_and_runs
from t10.cost.crossing import combine_crossing_cycles
from t10.cost.exchange import exchange_rates, further_part_cycles, phase_cycles, shifted_part_cycles
from t10.cost.formula import Formula
from t10.cost.model import PlainForms, chip_fingerprint
from t10.cost.overlap import waiting_cycles
from t10.cost.reductions import all_reduce_formula, different_groups, reduce_scatter_formula
from t10.cost.steps import Steps

COUNTED_CHIP = "ipu-mk2"
"""The chip for whose core code is generated and counted."""


def compute_part(chip: ChipSpec) -> tuple[object, ...]:
    """Return what of a chip decides how long compute steps take."""
    units = tuple(
        sorted((u.in_dtype, u.acc_dtype, u.in_block, u.out_block, u.row_cycles) for u in chip.matrix_units)
    )
    return (chip.n_workers, chip.vector_width_f16, chip.vector_width_f32, units)


@lru_cache(maxsize=1)
def counted_compute() -> tuple[object, ...]:
    """Return what decides how long compute steps take on the core that code is generated for."""
    return compute_part(load_chip(COUNTED_CHIP))


def is_counted(chip: ChipSpec) -> bool:
    """Return whether compute steps are priced from their code: it runs on a core that computes as an IPU's does."""
    return compute_part(chip) == counted_compute()


@dataclass(frozen=True, slots=True)
class IpuCostModel(PlainForms):
    """The `CostModel` of a chip built like an IPU. Numbers are modelled, not measured on silicon.

    On a core that computes as an IPU's does a step takes what is counted from its code (`t10.cost.counted`), on others
    what closed forms say. With `is_least`, the numbers are lower bounds of that, quick and traceable. Operands of steps
    lie as `lies` says, as well as they can without it.
    """

    chip: ChipSpec
    name: str = "ipu"
    is_least: bool = False
    lies: StepLies | None = None

    def lying(self, lies: StepLies) -> IpuCostModel:
        """Return the model of steps whose operands lie so, as far as the chip's memory lets them."""
        return replace(self, lies=lies if self.chip.has_interleaved_data else lies.without_interleaved())

    @property
    def is_counted(self) -> bool:
        """Return whether compute steps are priced from their code: it runs on a core that computes as an IPU's does."""
        return is_counted(self.chip)

    @property
    def least(self) -> IpuCostModel:
        """Return the model whose numbers are never above this one's and are quick; itself where its own are."""
        is_slow = self._schedules_shifts or self.overlaps
        return replace(self, is_least=True) if is_slow and not self.is_least else self

    def fingerprint(self) -> str:
        """Return a text that differs whenever any number differs: the chip, the code, what exchanges take."""
        code = f"{code_digest()} {own_digest()}" if self.is_counted else ""
        return (
            f"ipu {chip_fingerprint(self.chip)} {code} {self.move_rates.numbers} {self.is_least} {self.lies}"
        )

    def steps_alike(self, spec: OperatorSpec) -> Hashable:
        """Return all of an operator but what follows its steps; see `t10.cost.model.AlikeCosts`."""
        output = replace(spec.output, dtype=spec.acc_dtype)
        alone = replace(
            spec, name="", output=output, epilogue=None, epilogue_inputs=(), location="", first=None
        )
        return own_digest(), alone

    def reductions_alike(self, spec: OperatorSpec) -> Hashable:
        """Return what of an operator reductions look at; see `t10.cost.model.AlikeCosts`."""
        return own_digest(), spec.acc_dtype, spec.combine

    @property
    def move_rates(self) -> MoveRates:
        """Return the rates at which loads of relayouts and set-ups are counted."""
        return replace(exchange_rates(self.chip), links=self.chip.links)

    def move_cycles(self, loads: Loads, *, is_joined: bool = False) -> int:
        """Return the cycles of a relayout or set-up with these loads; see `phase_cycles`."""
        return phase_cycles(self.chip, loads, is_joined=is_joined)

    @property
    def _bounds_steps(self) -> bool:
        """Return whether steps are bounded: closed forms are what they take."""
        return self.is_least and self.is_counted

    @property
    def _steps(self) -> Steps | CountedSteps:
        if not self.is_counted:
            return ClosedForms(self.chip)
        return LeastSteps(self.chip.launch_cycles) if self.is_least else CountedSteps(self.chip, self.lies)

    def sub_task_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes`, shape (candidates, axes)."""
        return self.chip.launch_cycles + self._steps.sub_task(spec, boxes)

    def epilogue_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints) -> Ints:
        """Return the cycles of the epilogue for every candidate; the closed form does not ask for the runs."""
        if spec.epilogue is None:
            return np.zeros_like(n_slots)
        return self.chip.launch_cycles + self._steps.epilogue(spec, n_slots, runs)

    def step_cycles_many(self, spec: OperatorSpec, boxes: Ints, windows: Ints, adds: Bools) -> Ints:
        """Return the cycles of compute steps; see `t10.core.costs.WindowCosts`."""
        steps = self._steps
        if not isinstance(steps, CountedSteps):
            return self.sub_task_cycles_many(spec, boxes)
        return self.chip.launch_cycles + steps.step(spec, boxes, windows, adds)

    def lying_cycles_many(
        self, spec: OperatorSpec, boxes: Ints, windows: Ints, *, adds: bool = False
    ) -> Ints:
        """Return the cycles of steps in windows whose ends none crosses; see `t10.cost.model.LyingCosts`."""
        steps = self._steps
        if not isinstance(steps, LeastSteps):
            return self.sub_task_cycles_many(spec, boxes)
        return self.chip.launch_cycles + steps.step(spec, boxes, windows, adds=adds)

    def part_cycles(
        self, spec: OperatorSpec, plan: OperatorPlan
    ) -> Mapping[AxisSizes, tuple[int, ...]] | None:
        """Return by loop positions the cycles of a sub-task's parts; see `t10.core.costs.PartCosts`."""
        is_exact = self.is_counted and not self.is_least
        return counted.part_cycles(self.chip, self.lies, spec, plan) if is_exact else None

    def takes_first(self, spec: OperatorSpec) -> bool:
        """Return whether sums begin with a bias where they can: somebody's own codelets would not match them."""
        return self.is_counted and not may_be_own(spec.body)

    def fills(self, spec: OperatorSpec, plan: OperatorPlan) -> bool:
        """Return whether some core's accumulators are filled before the first step."""
        has_zeros = self.lies is None or self.lies.has_zeros
        return self.is_counted and not self.is_least and is_filled(spec, plan, has_zeros=has_zeros)

    def wrapped_end_cycles(self, spec: OperatorSpec, plan: OperatorPlan) -> int | None:
        """Return the cycles of an epilogue that is cut where windows wrap; see `t10.core.costs.PartCosts`."""
        is_exact = self.is_counted and not self.is_least
        return counted.wrapped_end_cycles(self.chip, self.lies, spec, plan) if is_exact else None

    def fill_cycles_many(self, spec: OperatorSpec, n_slots: Ints) -> Ints:
        """Return the cycles in which a core fills so many accumulators, 0 where nothing is counted."""
        steps = self._steps
        if not isinstance(steps, CountedSteps):
            return np.zeros_like(n_slots)
        return self.chip.launch_cycles + steps.fill(spec, n_slots)

    def end_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        """Return the cycles in which accumulators become results; see `t10.core.costs.WindowCosts`."""
        steps = self._steps
        if not isinstance(steps, CountedSteps):
            return self.chunk_cycles_many(spec, *slots_and_runs(spec, windows, n_members), n_members)
        return self.chip.launch_cycles + steps.end(spec, windows, n_members)

    def fused_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        """Return the cycles that reductions take less because ends do their last additions."""
        steps = self._steps
        if not isinstance(steps, CountedSteps):
            return np.zeros_like(n_members)
        return steps.fused(spec, windows, n_members)

    def sees_windows(self, spec: OperatorSpec) -> bool:
        """Return whether a bound of steps is higher where windows are no longer than the box: of bounds it is."""
        del spec
        return self._bounds_steps

    def whole_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of steps whose operands are as large as the box; see `t10.cost.model.WholeCosts`."""
        if not self._bounds_steps:
            return self.sub_task_cycles_many(spec, boxes)
        steps = LeastSteps(self.chip.launch_cycles, is_whole=True)
        return self.chip.launch_cycles + steps.sub_task(spec, boxes)

    def chunk_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints, n_members: Ints) -> Ints:
        """Return the cycles in which accumulators become results; see `t10.cost.model.ChunkCosts`."""
        steps = self._steps
        if not isinstance(steps, LeastSteps):
            return self.epilogue_cycles_many(spec, n_slots, runs)
        return steps.end(spec, n_slots, runs, n_members)

    def step_formula(self, spec: OperatorSpec, *, is_whole: bool = False) -> Formula | None:
        """Return the formula of `sub_task_cycles_many`, or of `whole_cycles_many`; see `FormulaCosts`."""
        if not self._has_formulas:
            return None
        return LeastSteps(self.chip.launch_cycles, is_whole).sub_task_formula(spec)

    def end_formula(self, spec: OperatorSpec) -> Formula | None:
        """Return the formula of `chunk_cycles_many`; see `t10.cost.model.FormulaCosts`."""
        return LeastSteps(self.chip.launch_cycles).end_formula(spec) if self._has_formulas else None

    @property
    def _has_formulas(self) -> bool:
        """Return whether its own formulas say what it answers: a model made of this one may answer otherwise."""
        return self._bounds_steps and type(self) is IpuCostModel

    def exchange_cycles(self, max_bytes: int, fragments: int, *, neighbour: bool) -> int:
        """Return the cycles of one exchange phase in which no core sends or receives more than `max_bytes`."""
        if max_bytes == 0:
            return 0
        words = self.chip.port_cycles(max_bytes)
        return self._phase_cycles(neighbour) + words + self.chip.fragment_cycles * (max(fragments, 1) - 1)

    def copy_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core copies or fills at most `n_bytes` of its own memory; 0 for none."""
        if n_bytes == 0:
            return 0
        return self.chip.copy_launch_cycles + -(-n_bytes // self.chip.copy_bytes_per_cycle)

    @property
    def sees_shifts(self) -> bool:
        """Return whether shifts are priced as their exchanges are scheduled; see `t10.core.costs.ShiftCosts`."""
        return (self._schedules_shifts or self.overlaps) and not self.is_least

    @property
    def _schedules_shifts(self) -> bool:
        """Return whether shifts take what their exchanges do as scheduled, not what their bytes say."""
        return self.is_counted or self.links is not None

    @property
    def overlaps(self) -> bool:
        """Return whether the chip computes and transfers at once; see `t10.core.costs.OverlapCosts`."""
        return self.chip.overlaps

    @property
    def links(self) -> Links | None:
        """Return the links between groups of cores; bounds do not look at them."""
        return None if self.is_least else self.chip.links

    def crossing_cycles(self, spec: OperatorSpec, plan: OperatorPlan) -> int:
        """Return what combining partial sums takes because parts pass links; see `t10.core.costs.LinkCosts`."""
        return combine_crossing_cycles(self.chip, spec, plan)

    def round_cycles(self, spec: OperatorSpec, plan: OperatorPlan, statement: Shift) -> tuple[int, ...]:
        """Return the cycles of a shift by round through the shift buffer."""
        if not self._schedules_shifts:
            return (self.shift_cycles(shift_bytes(spec, plan, statement)),)
        return shifts.round_cycles(self.chip, spec, plan, statement, self.lies and self.lies.shift_places)

    def nest_shift_cycles(self, spec: OperatorSpec, plan: OperatorPlan, most: float = inf) -> int:
        """Return the cycles of all shifts of a plan's loops that steps do not hide, or a lower bound above `most`."""
        places = self.lies and self.lies.shift_places
        if self.overlaps:
            return waiting_cycles(self, spec, plan, is_apart=places is None)
        return shifts.nest_cycles(self.chip, spec, plan, places, self.shift_cycles, most)

    def shift_cycles_many(self, n_bytes: Ints) -> Ints:
        """Return the cycles of one shift of one operand in a row, the least of any; `n_bytes` may have any shape."""
        full, rest = np.divmod(n_bytes, self.chip.shift_buffer_bytes)
        whole = self._round_cycles(np.full_like(rest, self.chip.shift_buffer_bytes))
        return full * whole + np.where(rest > 0, self._round_cycles(rest), 0)

    def least_shift_cycles_many(self, spec: OperatorSpec, n_bytes: Ints) -> Ints:
        """Return the least cycles of shifts; see `t10.core.costs.ShiftCosts`."""
        if not self._schedules_shifts:
            return self.shift_cycles_many(n_bytes.sum(axis=-1))
        by_dtype: dict[str, list[int]] = {}
        for number in range(len(spec.rotatable)):
            by_dtype.setdefault(rotating_dtype(spec, number), []).append(number)
        total = np.zeros(n_bytes.shape[:-1], np.int64)
        for numbers in by_dtype.values():
            own = n_bytes[..., numbers].sum(axis=-1)
            more = np.maximum((n_bytes[..., numbers] > 0).sum(axis=-1) - 1, 0)
            # Where an exchange may be several, each may bring what belongs to one operand.
            more = np.where(own > self.chip.shift_buffer_bytes, 0, more)
            total += self.shift_cycles_many(own) + further_part_cycles(self.chip, more)
        return total

    def reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of a reduce-scatter for every candidate; 0 where it has one member."""
        steps = self._steps
        if isinstance(steps, CountedSteps):
            return steps.reductions(spec, "scatter", n_members, n_slots)
        return reduce_scatter_formula(self.chip, steps, spec, n_members, n_slots)

    def all_reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of an all-reduce for every candidate; 0 where it has one member."""
        steps = self._steps
        if isinstance(steps, CountedSteps):
            return steps.reductions(spec, "all", n_members, n_slots)
        return all_reduce_formula(self.chip, steps, spec, n_members, n_slots, may_pair=self._bounds_steps)

    def combine_cycles(self, spec: OperatorSpec, plan: OperatorPlan) -> int | None:
        """Return the cycles in which a plan's cores combine partial sums; see `t10.core.costs.GroupCosts`."""
        steps = self._steps
        if not isinstance(steps, CountedSteps) or spec.combine == "none":
            return None
        mode: ReduceMode = "all" if plan.reduce == "all" else "scatter"
        n_slots = prod(partition_shape(spec.output, window_lengths(plan, len(spec.inputs))))
        return steps.combined(spec, mode, n_slots, different_groups(spec, plan))

    def _phase_cycles(self, neighbour: bool) -> int:
        chip = self.chip
        latency = chip.latency_neighbour_cycles if neighbour else chip.latency_any_cycles
        return chip.sync_cycles + chip.setup_cycles + latency

    def _round_cycles(self, n_bytes: Ints) -> Ints:
        """Return the cycles of one round of a shift: exchange into the shift buffer, copy to where it belongs."""
        chip = self.chip
        words = chip.port_cycles(n_bytes)
        return self._phase_cycles(True) + words + shifted_part_cycles(chip, n_bytes)
