"""What steps take, counted from the code that the codelets' generators write for them; launches are left out.

A step of given shapes runs the same code on every core, and that code's cycles are counted by the rules of the tile's
simulator (docs/tile-simulator.md). Nothing is fitted: what can be compiled has a price. Operands lie as well as they
can, until a plan is placed: then as they do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from threading import Lock

import numpy as np

from t10.chip import ChipSpec
from t10.codelets.body.picks import picking_axes
from t10.codelets.compile import own_digest
from t10.core.arrays import Bools, Ints
from t10.core.epilogue_nest import chunk_nests, epilogue_work
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.fused_ends import may_fuse
from t10.core.geometry import partition_elements, window_chunk_many
from t10.core.neutral import neutral_value
from t10.core.partial_sums import round_nest
from t10.core.placed_costs import StepLies
from t10.core.plan import OperatorPlan, final_positions
from t10.core.products import cut_axes, end_with_block, n_nest_operands
from t10.core.program import ReduceMode
from t10.core.reduction import Round
from t10.core.runs import epilogue_run_axes
from t10.core.scalar import constant_text
from t10.core.sub_task_nest import different_steps, whole_axes
from t10.core.task import Task
from t10.core.vertex_nest import Lie, lying
from t10.cost.bound.least import LeastSteps
from t10.cost.closed_forms import ClosedForms
from t10.cost.counts import UNKNOWN, Kept, kept_of
from t10.cost.fused import fused_end
from t10.cost.reductions import all_reduce_formula, reduce_scatter_formula, rounds_cycles
from t10.cost.slowest import slowest, sum_of_slowest, task_cycles
from t10.cost.steps import Steps
from t10.cost.work import at_places, end, fill, made_of_accumulators, rows, step, step_offsets, sub_task
from t10.errors import UnsupportedOpError

KEPT_OPERATORS = 4096
KEPT_NESTS = 1 << 10
KEPT_ENDS = 1 << 14
_lock = Lock()


@dataclass(frozen=True, slots=True)
class CountedSteps:
    """Cycles of steps on a core of `chip`, counted from their code.

    What no codelet computes has the closed form as its price, at least what search bounds it by. Operands lie as `lies`
    says, as well as they can without it.
    """

    chip: ChipSpec
    lies: StepLies | None = None

    def sub_task(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes` (n, axes)."""

        def cycles_of_row(box: AxisSizes) -> int | None:
            return _most(map(task_cycles, at_places(spec, sub_task(spec, box, simplify=False))))

        cycles = _each_of(_kept("sub_task", *_computed(spec)), boxes, cycles_of_row)
        return self._known(cycles, lambda steps: steps.sub_task(spec, boxes))

    def step(self, spec: OperatorSpec, boxes: Ints, windows: Ints, adds: Bools) -> Ints:
        """Return the cycles of compute steps over boxes (n, axes) of windows (n, rotatable operands, axes).

        Those of `adds` (n,) combine with what is there. A step takes as long as its slowest core: where an axis is no
        whole number of boxes, the last core's box ends with the tensor, and code for less may be slower. Where a box is
        longer than the tensor, no core has a whole one.
        """
        rests = _rests(spec, boxes, windows, has_zeros=self.lies is None or self.lies.has_zeros)
        wholes = np.where(boxes > np.array(spec.extents), rests, boxes)
        cycles = self._step(spec, wholes, windows, adds, boxes)
        for cut in _subsets(np.flatnonzero((rests < wholes).any(axis=0)).tolist()):
            rows = np.flatnonzero((rests[:, cut] < wholes[:, cut]).all(axis=1))
            parts = wholes[rows]
            parts[:, cut] = rests[rows][:, cut]
            last = self._step(spec, parts, windows[rows], adds[rows], boxes[rows])
            cycles[rows] = np.maximum(cycles[rows], last)
        return cycles

    def _step(self, spec: OperatorSpec, boxes: Ints, windows: Ints, adds: Bools, paces: Ints) -> Ints:
        """Return the cycles of steps over these boxes exactly, that begin at multiples of `paces`; see `step`."""
        n, n_axes = boxes.shape
        # Along axes that an operand has not, its window does not count.
        seen = np.where(_has_axes(spec), windows, 1)
        # A zero would be an empty box.
        table = np.concatenate(
            [adds[:, None] + 1, boxes, paces, seen.reshape(n, len(spec.rotatable) * n_axes)], axis=1
        )

        def cycles_of_row(row: AxisSizes) -> int | None:
            parts = [row[first : first + n_axes] for first in range(1, len(row), n_axes)]
            box, pace, *windows = parts
            task = step(spec, box, tuple(windows), initial=row[0] == 1, pace=pace)
            tasks = at_places(spec, lying(task, lie) if lie else task)
            offsets = step_offsets(spec, tuple(windows), pace)
            return _most(task_cycles(task, each) for task in tasks for each in offsets)

        lie = self._lie(n_nest_operands(spec), self.lies and self.lies.sub_task)
        cycles = _each_of(_kept("step", lie, *_computed(spec)), table, cycles_of_row)
        return self._known(cycles, lambda steps: steps.sub_task(spec, boxes))

    def fill(self, spec: OperatorSpec, n_slots: Ints) -> Ints:
        """Return the cycles in which a core fills so many accumulators, 0 where no codelet does."""
        neutral = constant_text(neutral_value(spec.combine, spec.acc_dtype))
        n_operands = n_nest_operands(spec)
        steps = self._lie(n_operands, self.lies and self.lies.sub_task)
        is_wide = n_operands - 1 in steps.interleaved
        lie = Lie(frozenset({0} if is_wide else ()), frozenset())
        kept = _kept("fill", spec.acc_dtype, neutral, lie)
        cycles = _each(kept, n_slots[:, None], lambda row: lying(fill(spec.acc_dtype, neutral, *row), lie))
        return np.maximum(cycles, 0)

    def reductions(self, spec: OperatorSpec, mode: ReduceMode, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles in which members combine windows of so many elements, launches included; 0 for one."""
        if spec.combine == "none":
            return np.zeros_like(n_members)
        cycles = self._reductions(spec, mode, n_members, n_slots)
        formula = all_reduce_formula if mode == "all" else reduce_scatter_formula
        return self._known(cycles, lambda steps: formula(self.chip, steps, spec, n_members, n_slots))

    def combined(self, spec: OperatorSpec, mode: ReduceMode, n_slots: int, cores: Ints) -> int | None:
        """Return what `reductions` does of groups of these cores, (groups, members); None if not known."""
        numbers = np.array([cores.shape[1]]), np.array([n_slots])
        cycles = int(self._reductions(spec, mode, *numbers, cores)[0])
        return None if cycles == UNKNOWN else cycles

    def _reductions(
        self, spec: OperatorSpec, mode: ReduceMode, n_members: Ints, n_slots: Ints, cores: Ints | None = None
    ) -> Ints:
        """Return what `reductions` does as far as it is known, among groups of the first cores or of `cores`."""
        dtype, combine = spec.acc_dtype, spec.combine
        lie, places = self._lie(2, self.lies and self.lies.combine), self.lies and self.lies.places

        def added(one: Round) -> int | None:
            nest, work = round_nest(dtype, combine, one)
            return slowest(nest, work, lie)

        def cycles_of_row(row: AxisSizes) -> int | None:
            apart, (n_members, n_slots) = bool(lie.apart), row
            numbers = self.chip, mode, dtype, n_members, n_slots
            return rounds_cycles(*numbers, added, is_apart=apart, places=places, cores=cores)

        who = b"" if cores is None else cores.tobytes()
        kept = _kept("reduction", self.chip, mode, dtype, combine, lie, places, who)
        return _each_of(kept, np.stack(np.broadcast_arrays(n_members, n_slots), axis=1), cycles_of_row)

    def epilogue(self, spec: OperatorSpec, n_slots: Ints, runs: Ints) -> Ints:
        """Return the cycles of an epilogue, a copy where there is none, on so many elements of a core.

        `runs` of them lie in a row that all operands walk evenly; chunks take as long here as windows.
        """
        table = np.stack([n_slots, np.maximum(np.minimum(runs, n_slots), 1)], axis=1)
        cycles = _each(_kept("epilogue", spec), table, lambda row: rows(spec, *row))
        return self._known(cycles, lambda steps: steps.epilogue(spec, n_slots, runs))

    def end(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        """Return the cycles in which accumulators become results, windows (n, axes) of the output.

        `n_members` (n,) cores share a window, each has a chunk, or all if negative (`t10.core.costs.WindowCosts`).
        """

        def cycles_of_row(row: AxisSizes) -> int | None:
            return _ending(self, spec, row, own_digest()).cycles

        cycles = _each_of(self._ends("end", spec), _by_members(spec, windows, n_members), cycles_of_row)
        n_slots, runs = slots_and_runs(spec, windows, n_members)
        return self._known(cycles, lambda steps: steps.epilogue(spec, n_slots, runs, n_members))

    def fused(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        """Return what reductions take less because `end` does their last additions."""

        def cycles_of_row(row: AxisSizes) -> int:
            return _ending(self, spec, row, own_digest()).saved

        rows = np.flatnonzero(abs(n_members) > 1)
        result = np.zeros_like(n_members)
        table = _by_members(spec, windows[rows], n_members[rows])
        result[rows] = _each_of(self._ends("fused", spec), table, cycles_of_row)
        return result

    def _ends(self, what: str, spec: OperatorSpec) -> Kept:
        """Return what is kept of an operator's ends."""
        lies = self.lies and (self.lies.combine, self.lies.end, self.lies.fused)
        return _kept(what, *_ended(spec), spec.combine, self.chip, lies)

    def end_apart(self, spec: OperatorSpec, row: AxisSizes) -> int | None:
        """Return the cycles of an end that does not add, all launches but one; `row` is members and windows."""
        n_members, windows, launch = row[0], row[1:], self.chip.launch_cycles
        lie = self._lie(len(spec.epilogue_inputs) + 2, self.lies and self.lies.end)
        if n_members > 1:
            cycles = sum_of_slowest(chunk_nests(spec, windows, n_members), lie, launch)
            return None if cycles is None else cycles - launch
        is_taken_over = n_members == 1 and not self.lies
        return task_cycles(end(spec, windows, made_of_accumulators(spec, lie) if is_taken_over else lie))

    def _lie(self, n_operands: int, given: Lie | None) -> Lie:
        """Return how operands of a step lie: as given, else as well as they can on the chip."""
        return given or Lie.best(n_operands, is_wide=self.chip.has_interleaved_data)

    def _known(self, cycles: Ints, otherwise: Callable[[Steps], Ints]) -> Ints:
        """Return what was counted; where no code was found, what closed forms give, at least their bound."""
        is_unknown = cycles == UNKNOWN
        if not is_unknown.any():
            return cycles
        launch = self.chip.launch_cycles
        bounds = [otherwise(LeastSteps(launch, is_whole=is_whole)) for is_whole in (False, True)]
        return np.where(
            is_unknown, np.maximum(otherwise(ClosedForms(self.chip)), np.maximum(*bounds)), cycles
        )


@dataclass(frozen=True, slots=True)
class _Ending:
    """Cycles of an end, all launches but one, None where not known, and what its reduction does not take any more."""

    cycles: int | None
    saved: int = 0


@lru_cache(maxsize=KEPT_ENDS)
def _ending(steps: CountedSteps, spec: OperatorSpec, row: AxisSizes, own: str) -> _Ending:
    """Return what an end takes in the way that takes less; `row` is members and windows."""
    del own
    chip, lies = steps.chip, steps.lies
    apart = steps.end_apart(spec, row)
    if abs(row[0]) < 2 or not may_fuse(spec):
        return _Ending(apart)
    best = apart if lies is None else replace(steps, lies=None).end_apart(spec, row)
    if best is None:
        return _Ending(apart)
    found = fused_end(chip, lies, spec, row[1:], row[0], best + chip.launch_cycles)
    return _Ending(apart) if found is None else _Ending(found.cycles - chip.launch_cycles, found.saved)


def part_cycles(
    chip: ChipSpec, lies: StepLies | None, spec: OperatorSpec, plan: OperatorPlan
) -> Mapping[AxisSizes, tuple[int, ...]] | None:
    """Return by loop positions the cycles of the parts of steps, launches included; None where one is not known.

    A part takes as long as its slowest core.
    """
    has_zeros = lies is None or lies.has_zeros
    lie = lies.sub_task if lies else Lie.best(n_nest_operands(spec), is_wide=chip.has_interleaved_data)
    try:
        with _lock:
            return _part_cycles(chip.launch_cycles, spec, plan, has_zeros, lie, own_digest())
    except UnsupportedOpError:
        return None


@lru_cache(maxsize=KEPT_NESTS)
def _part_cycles(
    launch_cycles: int, spec: OperatorSpec, plan: OperatorPlan, has_zeros: bool, lie: Lie, own: str
) -> Mapping[AxisSizes, tuple[int, ...]] | None:
    del own
    result: dict[AxisSizes, tuple[int, ...]] = {}
    for same, parts in different_steps(spec, plan, whole_axes(spec, plan, has_zeros=has_zeros)):
        cycles: list[int] = []
        for nest, work in parts:
            found = slowest(nest, work, lie)
            if found is None:
                return None
            cycles.append(launch_cycles + found)
        result |= dict.fromkeys(same, tuple(cycles))
    return result


def wrapped_end_cycles(
    chip: ChipSpec, lies: StepLies | None, spec: OperatorSpec, plan: OperatorPlan
) -> int | None:
    """Return the cycles of a plan's epilogue, launches included, that is cut where windows wrap; None if not known."""
    lie = lies.end if lies else Lie.best(len(spec.epilogue_inputs) + 2, is_wide=chip.has_interleaved_data)
    is_scattered = plan.reduce == "scatter"
    if lies is None and plan.reduce == "none":
        lie = made_of_accumulators(spec, lie)
    nests = epilogue_work(spec, plan, final_positions(plan), is_scattered=is_scattered)
    try:
        with _lock:
            return sum_of_slowest(nests, lie, chip.launch_cycles)
    except UnsupportedOpError:
        return None


def slots_and_runs(spec: OperatorSpec, windows: Ints, n_members: Ints) -> tuple[Ints, Ints]:
    """Return (n_slots, runs) by which epilogues over chunks of windows (n, axes) are priced without them."""
    n_slots = window_chunk_many(partition_elements(spec.output, windows), np.maximum(n_members, 1))
    return n_slots, np.minimum(windows[:, list(epilogue_run_axes(spec))].prod(axis=1), n_slots)


def _by_members(spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
    """Return members and windows of the output in rows; along other axes, windows do not count."""
    is_output = np.array([axis in spec.output.axes for axis in range(windows.shape[1])], np.bool_)
    return np.concatenate([n_members[:, None], np.where(is_output, windows, 1)], axis=1)


def _rests(spec: OperatorSpec, boxes: Ints, windows: Ints, *, has_zeros: bool) -> Ints:
    """Return the extents of the last boxes (n, axes), which end with the tensor where padding may not follow it.

    It may along parallel axes, unless indices are looked up, and along sums if there are zeros that change nothing, as
    there are where steps go on or the last part is no whole number of blocks (`t10.core.products.zero_padded_axes`).
    """
    extents, lengths = np.array(spec.extents), np.maximum(boxes, 1)
    cut = cut_axes(spec, has_zeros=has_zeros)
    is_cut = np.array([axis in cut for axis in range(len(extents))])
    zeros = cut_axes(spec, has_zeros=False) - cut
    if zeros:
        is_zero = np.array([axis in zeros for axis in range(len(extents))])
        is_one_step = ((windows == boxes[:, None]) | ~_has_axes(spec)).all(axis=1)
        is_cut = is_cut | (is_zero & is_one_step & end_with_block(spec, lengths))
    rests = extents % lengths
    return np.where(is_cut & (rests > 0), rests, boxes)


def _subsets(axes: list[int]) -> Iterator[list[int]]:
    """Yield all choices of at least one axis."""
    for n in range(1, len(axes) + 1):
        yield from map(list, combinations(axes, n))


@lru_cache(maxsize=KEPT_OPERATORS)
def _has_axes(spec: OperatorSpec) -> Bools:
    """Return which rotatable operands have which axes, shape (operands, axes)."""
    return np.array([[axis in o.axes for axis in range(len(spec.axes))] for o in spec.rotatable], np.bool_)


def _kept(*step: Hashable) -> Kept:
    """Return what was counted of a step, by box, with somebody's own families in front."""
    return kept_of(*step, own_digest())


@lru_cache(maxsize=KEPT_OPERATORS)
def _computed(spec: OperatorSpec) -> tuple[Hashable, ...]:
    """Return all that tasks of compute steps have of an operator: no shapes, nothing that follows.

    Of extents those count by whose places the body picks.
    """
    picked = tuple([spec.extents[axis] for axis in picking_axes(spec.body)])
    operands = tuple([(operand.dims, operand.dtype) for operand in spec.inputs])
    kinds = tuple([axis.kind for axis in spec.axes])
    first = spec.first and (spec.first.dims, spec.first.dtype)
    of_sums = spec.output.dims, spec.acc_dtype, spec.combine, first
    return kinds, operands, *of_sums, spec.body, spec.selectors, picked


@lru_cache(maxsize=KEPT_OPERATORS)
def _ended(spec: OperatorSpec) -> tuple[Hashable, ...]:
    """Return all that tasks of epilogues have of an operator: no extents, no shapes, nothing that comes before."""
    operands = tuple([(operand.dims, operand.dtype) for operand in (*spec.epilogue_inputs, spec.output)])
    return len(spec.axes), operands, spec.acc_dtype, spec.epilogue


def _each(kept: Kept, boxes: Ints, task_of: Callable[[AxisSizes], Task]) -> Ints:
    """Return the cycles of the tasks of boxes (n, axes), each counted once; 0 for empty ones."""
    return _each_of(kept, boxes, lambda box: task_cycles(task_of(box)))


def _each_of(kept: Kept, boxes: Ints, cycles: Callable[[AxisSizes], int | None]) -> Ints:
    """Return what `cycles` says of boxes (n, axes), asked once of each; 0 for empty ones."""
    rows: list[AxisSizes] = list(map(tuple, boxes.tolist()))
    found = [kept.of(row, lambda row=row: _counted(row, cycles)) for row in rows]
    return np.array(found, np.int64).reshape(len(rows))


def _most(cycles: Iterable[int | None]) -> int | None:
    """Return the most of some cycles, None where one is not known."""
    found = list(cycles)
    known = [each for each in found if each is not None]
    return max(known) if len(known) == len(found) else None


def _counted(box: AxisSizes, cycles: Callable[[AxisSizes], int | None]) -> int:
    if not all(box):
        return 0
    try:
        with _lock:
            found = cycles(box)
    except UnsupportedOpError:
        return UNKNOWN
    return UNKNOWN if found is None else found
