"""The plans of an operator without rotation, one entry each: what they take alone, and what they need of operands.

Bounds at first, or nearly (`_received_cycles`); what is asked for is counted. Where an operand comes from says what of
it moves in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from threading import Event

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Bools, Ints
from t10.core.costs import links_of
from t10.core.dtypes import size_bytes
from t10.core.expression import AffineDim, Operand, OperatorSpec
from t10.core.geometry import partition_elements, window_chunk_many
from t10.core.links import Links
from t10.core.loads import Loads
from t10.core.movement import ArrivalCosts, Traffic
from t10.core.part_lengths import whole_lengths
from t10.core.plan import OperatorPlan
from t10.cost import CostModel
from t10.cost.model import least_costs
from t10.plan.assemble import LEAST_USED
from t10.plan.context import Context
from t10.plan.fronts.operator_fronts import is_portable
from t10.plan.fronts.parallel_map import Work, make_all
from t10.plan.memory.levels import spread_cores
from t10.plan.movement.fetch import contiguous_runs
from t10.plan.options import PlanOptions
from t10.plan.search.evaluate import evaluate, placed_plan
from t10.plan.search.listed import limits_bytes
from t10.plan.search.pareto import Front
from t10.plan.search.placement import fastest_axes
from t10.plan.search.space import candidate_partitions
from t10.plan.search.unrotated import no_rotation

COUNTED_TOGETHER = 8
"""Candidates that are counted at a time."""
NEVER = np.iinfo(np.int64).max // 4
MANY = 1 << 20
MOSTLY = 8
"""Windows overlap nearly whole that are apart by this part of their length or less."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the candidates of an operator need of an operand that another operator makes, one entry each.

    Elements that the busiest core needs, and that cores take on average wherever an element is once; on how many cores
    at least and at most something is needed; in how many runs of the tensor; how many times as fast pairs take it.
    `n_beside` operands of the operator, this one included, may share an exchange phase.
    """

    wanted: Ints
    mean: Ints
    least_cores: Ints
    most_cores: Ints
    runs: Ints
    together: Ints
    item_bytes: int
    n_elements: int
    n_beside: int


@dataclass(slots=True)
class Listed:
    """The plans without rotation of an operator that may fit, one entry each, those whose sums are whole last.

    `cycles` are those without what moves before them: bounds, counted where `is_counted`. Cores lie as `links` are
    least busy, as they are priced.
    """

    spec: OperatorSpec
    links: Links | None
    rows: Ints
    is_whole: Bools
    cycles: Ints
    is_counted: Bools
    number_by_plan: dict[tuple[tuple[int, ...], bool], int] = field(init=False)

    def __post_init__(self) -> None:
        """Index the plans."""
        rows: list[list[int]] = self.rows.tolist()
        self.number_by_plan = {
            (tuple(row), bool(self.is_whole[number])): number for number, row in enumerate(rows)
        }

    def number_of(self, plan: OperatorPlan) -> int | None:
        """Return the plan that differs from a plan in the order of cores only, None where it rotates."""
        if max(plan.steps) > 1:
            return None
        return self.number_by_plan.get((plan.f_op, plan.reduce == "all"))

    def plan(self, number: int) -> OperatorPlan | None:
        """Return a plan by its number, None where its cores cannot be numbered."""
        f_op = tuple(self.rows[number].tolist())
        ft = tuple((1,) * len(f_op) for _ in self.spec.rotatable)
        plan = placed_plan(self.spec, f_op, ft, self.links)
        return replace(plan, reduce="all") if plan is not None and self.is_whole[number] else plan

    def count(self, cost: CostModel, numbers: Ints) -> None:
        """Count the cycles of some plans."""
        new = numbers[~self.is_counted[numbers]]
        if len(new):
            found = evaluate(
                self.spec, cost, self.rows[new], no_rotation(self.spec, len(new)), self.is_whole[new]
            )
            self.cycles[new] = found.cycles - found.relayout
            self.is_counted[new] = True


@dataclass(slots=True)
class Candidates:
    """All plans without rotation of operators that are equal and read alike, one entry each, as they are listed.

    `cycles` are those of an operator alone, with what weights and inputs take at least; counted where `is_counted`.
    What is read through views and lies the same way in any case is counted with them (`moved`).
    Results are cut in a grid where `is_grid`. They lie on `least_cores` at least and `cores` at most, up to `stored`
    elements on each.
    """

    listed: Listed
    is_grid: Bools
    cycles: Ints
    fixed_cycles: Ints
    is_counted: Bools
    cores: Ints
    least_cores: Ints
    stored: Ints
    readings: dict[int, Reading] = field(default_factory=dict[int, Reading])
    moved: Callable[[Ints], Ints] | None = None

    def count(self, cost: CostModel, numbers: Ints) -> None:
        """Count the cycles of some candidates."""
        new = numbers[~self.is_counted[numbers]]
        if not len(new):
            return
        self.listed.count(cost, new)
        self.cycles[new] = self.listed.cycles[new] + self.fixed_cycles[new]
        if self.moved is not None:
            self.cycles[new] += self.moved(new)
        self.is_counted[new] = True

    def learn(self, numbers: Ints, cycles: Ints) -> None:
        """Take over what another process counted of plans as they are listed; what moves is not among it."""
        self.listed.cycles[numbers] = cycles
        self.listed.is_counted[numbers] = True
        if self.moved is None:
            self.cycles[numbers] = cycles + self.fixed_cycles[numbers]
            self.is_counted[numbers] = True

    def portable(self) -> Candidates:
        """Return a copy of the candidates without what only this process can count or ask for."""
        cycles, is_counted = self.cycles.copy(), self.is_counted.copy()
        return replace(self, cycles=cycles, is_counted=is_counted, readings={}, moved=None)

    def least(self, cost: CostModel, values: Ints, most: int, kinds: Ints | None) -> Ints:
        """Return at most so many candidates of least cycles and `values`, and the best of each kind; all counted."""
        while True:
            order = np.argsort(values + self.cycles, kind="stable")
            chosen = order[:most]
            if kinds is not None:
                chosen = np.union1d(chosen, order[np.unique(kinds[order], return_index=True)[1]])
            new = chosen[~self.is_counted[chosen]][:COUNTED_TOGETHER]
            if not len(new):
                return chosen
            self.count(cost, new)


def counted_best(
    cost: CostModel,
    candidates: Candidates,
    values: Ints,
    most: int,
    kinds: Ints | None,
    *,
    stop: Event | None = None,
) -> tuple[Ints, Ints]:
    """Count what `Candidates.least` counts; return which those are, and cycles for `Candidates.learn`."""
    del stop
    was_counted = candidates.is_counted.copy()
    candidates.least(cost, values, most, kinds)
    numbers = np.flatnonzero(candidates.is_counted & ~was_counted)
    return numbers, candidates.listed.cycles[numbers]


def listed_by_front(context: Context, fronts: Sequence[Front], options: PlanOptions) -> dict[int, Listed]:
    """Return the plans of every operator that is not pinned, bounded, by the id of its front."""
    specs = {
        id(front): spec
        for spec, front in zip(reversed(context.graph.operators), reversed(fronts), strict=True)
        if options.forced_for(spec.name) is None
    }
    found: dict[int, Listed] = {}
    calls = [(spec, context.chip, context.cost, options) for spec in specs.values()]
    work = Work(_listed, calls, [1.0] * len(calls), is_portable(context.cost))
    front_ids = list(specs)

    def done(number: int, listed: Listed) -> None:
        found[front_ids[number]] = listed

    make_all(work, done)
    return found


def _listed(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions, *, stop: Event | None = None
) -> Listed:
    """Return the plans without rotation of an operator, those whose sums are whole on all their cores last."""
    del stop
    rows = in_pairs(spec, chip, candidate_partitions(spec, chip.n_cores, options))
    members = rows[:, list(spec.reduction_axes)].prod(axis=1)
    gathers = (members > 1) & ((members - 1) * size_bytes(spec.acc_dtype) <= chip.shift_buffer_bytes)
    is_whole = np.repeat([False, True], [len(rows), int(gathers.sum())])
    rows = np.concatenate([rows, rows[gathers]])
    least = evaluate(spec, least_costs(cost), rows, no_rotation(spec, len(rows)), is_whole)
    fits = least.active_bytes <= limits_bytes(chip)[0]
    cycles = (least.cycles - least.relayout)[fits]
    return Listed(spec, links_of(cost), rows[fits], is_whole[fits], cycles, np.zeros(len(cycles), np.bool_))


def in_pairs(spec: OperatorSpec, chip: ChipSpec, rows: Ints) -> Ints:
    """Return F_op with one part more along the axis that numbers cores fastest, where that makes their number even.

    Where parts stay as long, that costs nothing but a core, and both cores of every pair take the same of an operand
    that does not have the axis.
    """
    if not chip.pair_rate or not len(rows) or spec.combine != "sum" or len(spec.inputs) < 2:
        return rows
    each, fastest = np.arange(len(rows)), fastest_axes(spec, rows, whole_lengths(spec, rows))
    even = rows.copy()
    even[each, fastest] += rows[each, fastest] % 2
    is_shared = np.array([any(axis not in o.axes for o in spec.inputs) for axis in range(len(spec.axes))])
    is_better = (
        (rows[each, fastest] > 1)
        & is_shared[fastest]
        & (even <= np.array(spec.extents)).all(axis=1)
        & (even.prod(axis=1) <= chip.n_cores)
        & (whole_lengths(spec, even) == whole_lengths(spec, rows)).all(axis=1)
    )
    return np.where(is_better[:, None], even, rows)


def candidates_of(
    context: Context, listed: Listed, sources: Sequence[str], owned: tuple[int, ...]
) -> Candidates:
    """Return the candidates of an operator whose operands are made by others, fixed, or seen through views."""
    spec, rows, is_whole = listed.spec, listed.rows, listed.is_whole
    cores, members = rows.prod(axis=1), rows[:, list(spec.reduction_axes)].prod(axis=1)
    windows = partition_elements(spec.output, whole_lengths(spec, rows))
    fixed, least = (np.zeros(len(rows), np.int64) for _ in range(2))
    readings: dict[int, Reading] = {}
    n_beside = len(spec.operands) - len(owned)
    for number, (operand, source) in enumerate(zip(spec.operands, sources, strict=True)):
        if number in owned:
            continue
        reading = _reading(context.chip, spec, operand, rows, n_beside)
        if source in ("made", "of others"):
            readings[number] = reading
        elif source == "even":
            here = -(
                -reading.n_elements // spread_cores(reading.n_elements, operand.dtype, context.chip.n_cores)
            )
            least += _received_cycles(context, reading, here)
        elif source == "in windows":
            least += _received_cycles(context, reading, _kept_elements(spec, operand, rows))
        elif source != "of its own":
            n_received = reading.wanted if source == "viewed" else reading.mean
            fixed += arrival_cycles(context, n_received // reading.together, reading, reading.runs)
    return Candidates(
        listed=listed,
        is_grid=is_whole | (members == 1) | leaves_grid(spec, rows),
        cycles=listed.cycles + fixed + least,
        fixed_cycles=fixed,
        is_counted=np.zeros(len(rows), np.bool_),
        cores=cores,
        least_cores=cores // members,
        stored=np.where(is_whole, windows, window_chunk_many(windows, members)),
        readings=readings,
    )


def _kept_elements(spec: OperatorSpec, operand: Operand, rows: Ints) -> Ints:
    """Return how many elements a core has at most of an input that lies as its reader's windows do, or evenly."""
    cores, parts = rows.prod(axis=1), rows[:, sorted(operand.axes)].prod(axis=1)
    chunks = window_chunk_many(partition_elements(operand, whole_lengths(spec, rows)), cores // parts)
    # Whole rows each may take fewer cores, and chunks have an even number of elements.
    evenly: Ints = np.ceil(prod(operand.shape) / (LEAST_USED * cores)).astype(np.int64) + 1
    return np.maximum(chunks, evenly)


def _received_cycles(context: Context, reading: Reading, kept: Ints | int) -> Ints:
    """Return about what receiving an operand takes at least where cores have so many elements of it, in one run.

    It may be a tenth more than is counted.
    """
    left = np.maximum(reading.wanted - kept, 0) // reading.together
    return arrival_cycles(context, left, reading, np.ones_like(left))


def leaves_grid(spec: OperatorSpec, rows: Ints) -> Bools:
    """Return which F_op leave chunks that are slices of the first long dim of a part (see `producer_layouts`)."""
    members = rows[:, list(spec.reduction_axes)].prod(axis=1)
    lengths = whole_lengths(spec, rows)
    is_slice, is_found = (np.zeros(len(rows), np.bool_) for _ in range(2))
    for axis in (dim.axes[0] for dim in spec.output.dims if dim.terms):
        here = ~is_found & (lengths[:, axis] > 1)
        is_slice |= here & (lengths[:, axis] % members == 0)
        is_found |= here
    return is_slice


def _reading(chip: ChipSpec, spec: OperatorSpec, operand: Operand, rows: Ints, n_beside: int) -> Reading:
    """Return what an operand needs by candidates; elements of the value only, without padding but with gaps."""
    lengths = whole_lengths(spec, rows)
    # Some core has the parts of these numbers; none of them is cut short where there are several.
    starts = (rows - 1) // 2 * lengths
    wanted, n_read = np.ones(len(rows), np.int64), 1
    for dim, size in zip(operand.dims, operand.shape, strict=True):
        if dim.is_simple:
            axis = dim.axes[0]
            wanted *= np.minimum(lengths[:, axis], size)
            n_read *= min(spec.extents[axis], size)
        elif dim.terms:
            axes = list(dim.axes)
            first, which = np.unique(rows[:, axes], axis=0, return_index=True, return_inverse=True)[1:]
            counts = [_n_held(dim, size, lengths[row], starts[row]) for row in first.tolist()]
            wanted *= np.array(counts, np.int64)[which.reshape(-1)]
            n_read *= _n_positions(dim, size, spec.extents)
    cores = rows.prod(axis=1)
    named = [axis for dim in operand.dims for axis in dim.axes]
    is_plain = len(named) == len(set(named))
    is_even = all(
        dim.is_simple and spec.extents[dim.axes[0]] <= size
        for dim, size in zip(operand.dims, operand.shape, strict=True)
        if dim.terms
    )
    runs = contiguous_runs(operand, lengths)
    sharers = cores // rows[:, sorted(operand.axes)].prod(axis=1)
    return Reading(
        wanted=wanted,
        mean=-(-n_read * (sharers - 1) // cores) if is_plain else np.zeros_like(cores),
        least_cores=cores if is_even else np.ones_like(cores),
        most_cores=cores if is_plain and n_read == prod(operand.shape) else np.full_like(cores, NEVER),
        runs=runs,
        together=_together(chip, spec, operand, rows, wanted // runs),
        item_bytes=size_bytes(operand.dtype),
        n_elements=prod(operand.shape),
        n_beside=n_beside,
    )


def _together(chip: ChipSpec, spec: OperatorSpec, operand: Operand, rows: Ints, run: Ints) -> Ints:
    """Return how many times as fast cores may receive an operand that they take in runs of so many elements.

    Both of a pair take the same where parts along the axis that numbers cores fastest are even in number, or nearly so
    where windows that are so far apart overlap.
    """
    n_bytes = run * size_bytes(operand.dtype)
    if not chip.pair_rate:
        return np.ones(len(rows), np.int64)
    lengths = whole_lengths(spec, rows)
    fastest = fastest_axes(spec, rows, lengths)
    is_same = ~np.isin(fastest, sorted(operand.axes))
    for dim in operand.dims:
        hull = 1 + sum(term.coefficient * (lengths[:, term.axis] - 1) for term in dim.terms)
        for term in dim.terms:
            step = term.coefficient * lengths[:, term.axis]
            is_same |= (fastest == term.axis) & (step * MOSTLY <= hull)
    is_shared = is_same & (rows[np.arange(len(rows)), fastest] % 2 == 0)
    return np.where(is_shared & (n_bytes % 8 == 0), int(chip.pair_rate // chip.exchange_bytes_per_cycle), 1)


def _n_positions(dim: AffineDim, size: int, extents: Sequence[int]) -> int:
    """Return how many positions of a dim of a tensor are read."""
    positions = {dim.offset}
    for term in dim.terms:
        steps = range(0, term.coefficient * extents[term.axis], term.coefficient)
        positions = {position + step for position in positions for step in steps}
    return sum(0 <= position < size for position in positions)


def _n_held(dim: AffineDim, size: int, lengths: Ints, starts: Ints) -> int:
    """Return how many positions of a dim of a tensor windows hold that begin at `starts`: those in gaps, too."""
    first = dim.offset + sum(term.coefficient * int(starts[term.axis]) for term in dim.terms)
    last = first + sum(term.coefficient * (int(lengths[term.axis]) - 1) for term in dim.terms)
    return max(min(last, size - 1) - max(first, 0) + 1, 0)


def arrival_cycles(context: Context, received: Ints, reading: Reading, runs: Ints) -> Ints:
    """Return about what it takes that some core receives so many elements of an operand in so many runs.

    What a phase begins with is shared out evenly among the operands that may arrive in it.
    """
    one, joined, many = (
        _phase_cycles(context, n, reading.item_bytes, is_joined=is_joined)
        for n, is_joined in ((1, False), (1, True), (1 + MANY, True))
    )
    further = np.maximum(received - 1, 0) * (many - joined) // MANY
    runs_cycles = (runs - 1) * context.chip.fragment_cycles
    begun = (one - joined) // reading.n_beside
    return np.where(received > 0, begun + joined + further + runs_cycles, 0)


def _phase_cycles(context: Context, received: int, item_bytes: int, *, is_joined: bool) -> int:
    """Return the cycles of a phase in which a core receives so many elements, with a short copy on either side."""
    chip = context.chip
    words = chip.port_cycles(received * item_bytes)
    inside = chip.copy_launch_cycles + 1
    loads = Loads(port_cycles=words + chip.fragment_cycles, gather_cycles=inside, settle_cycles=inside)
    traffic = Traffic(received, 0, 1, received, 0, loads)
    return ArrivalCosts(context.cost).cycles(traffic, item_bytes, is_joined=is_joined)
