"""Plans, idle levels, layouts and fetches of a model whose weights are in off-chip memory.

The joint choice (`t10.plan.joint`) gives the fastest plans for a share of a core's memory, without the weights of
other operators. Each choice is run with the fetches that suit it best (`run`); the fastest run is the plan. If
operators wait for off-chip memory, smaller plans are faster, because they leave memory to fetch ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from t10.chip import ChipSpec
from t10.core.graph import Graph
from t10.core.off_chip import OffChip
from t10.core.own_weights import own_weights
from t10.core.schedule import ModulePlan, Optimality
from t10.errors import InfeasiblePlanError
from t10.plan.assemble import assemble
from t10.plan.context import Context
from t10.plan.greedy.algorithm1 import base_bytes, tables_of
from t10.plan.joint.choose import JointChoice, JointPlanner, deadline_of
from t10.plan.memory.levels import LevelTable
from t10.plan.memory.room import Room
from t10.plan.options import PlanOptions, Progress
from t10.plan.prefetch.bound import Weight, bound_cycles
from t10.plan.prefetch.fetching import fetched_bytes, steps_of, with_run
from t10.plan.prefetch.run import Run, best_kept, run
from t10.plan.search.listed import room_hint
from t10.plan.search.pareto import Front

SHARES = 8
"""Of how many equal parts of a core's memory some are left to the weights of other operators."""
FINER = 3
"""How often shares between the best and its neighbours are tried."""
MOST_PLACED = 8
"""How often choices are placed, best first, while what the next one takes at its best is less than the best does."""
LOST_PART = 1 / 200
PARTS = (1.0, 7 / 8, 3 / 4)
"""What lies so badly that it takes longer, by more than `LOST_PART`, is fetched into these parts of the memory, too."""
FIT_ROUNDS = 8
ROOMY_PARTS = 2
"""Plans that keep all weights in less than this part of a core's memory have as many copies of them as pay."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Plans of all operators, assembled without fetches; what stays, and the run of their steps that takes least."""

    plan: ModulePlan
    kept: frozenset[int]
    run: Run


def must_fetch(context: Context, fronts: tuple[Front, ...]) -> bool:
    """Return whether weights must be fetched from off-chip memory: all of them, as thin as can be, do not fit."""
    if context.chip.off_chip is None:
        return False
    thin = sum(_thin(table) for table in tables_of(context, fronts))
    return base_bytes(context) + thin > context.chip.capacity_bytes


def kept_or_fetched(
    context: Context,
    fronts: tuple[Front, ...],
    kept: Callable[[], ModulePlan],
    fetched: Callable[[], ModulePlan],
    cycles: Callable[[ModulePlan], int] | None,
) -> ModulePlan:
    """Return the plan that keeps all weights on the chip, or the one that fetches some if that takes less `cycles`.

    Without `cycles` weights are only fetched if they do not fit. Raises `InfeasiblePlanError` where neither plan fits.
    """
    if must_fetch(context, fronts):
        return fetched()
    if cycles is None or context.chip.off_chip is None:
        return kept()
    try:
        plan = kept()
    except InfeasiblePlanError:
        return fetched()
    if ROOMY_PARTS * plan.peak_bytes <= context.chip.sram_bytes:
        return plan
    try:
        other = fetched()
    except InfeasiblePlanError:
        return plan
    if not other.fetches:
        return plan
    best = min(plan, other, key=cycles)
    # Choices that keep all weights and those that fetch some count together.
    known = [each.optimality for each in (plan, other) if each.optimality is not None]
    bound = min(each.bound_cycles for each in known)
    return replace(best, optimality=best.optimality and replace(best.optimality, bound_cycles=bound))


def _cycles(plan: ModulePlan) -> int:
    return sum(scheduled.active.cycles.total for scheduled in plan.operators)


def fetched_plan(
    context: Context,
    fronts: tuple[Front, ...],
    options: PlanOptions,
    room: Room,
    cycles: Callable[[ModulePlan], int],
    progress: Progress | None = None,
) -> ModulePlan:
    """Return the plan of a model that fetches weights while it runs, with a bound of every schedule.

    Choices are compared by the `cycles` that they take where their buffers lie. Raises `InfeasiblePlanError` where an
    operator does not fit by itself.
    """
    memory = context.chip.off_chip
    assert memory is not None

    def report(done: int, total: int) -> None:
        if progress:
            progress("reconcile", done, total)

    choice = FetchedChoice(
        context,
        JointPlanner(context, fronts, options, {}, report, deadline=deadline_of(options)),
        tables_of(context, fronts),
    )
    plan = _least_where_it_lies(choice.ranked(memory), context.chip, room, cycles)
    if plan is None:
        raise _does_not_fit(context.graph, context.chip)
    priced = _cycles(plan)
    known = Optimality("fetched", priced, min(choice.bound(memory), priced), n_states=choice.n_states)
    return replace(plan, optimality=known)


def _least_where_it_lies(
    ranked: Sequence[Chosen], chip: ChipSpec, room: Room, cycles: Callable[[ModulePlan], int]
) -> ModulePlan | None:
    """Return the plan, of the first choices that have places, that takes least there; None if none has any."""
    found: list[tuple[int, ModulePlan]] = []
    for chosen in ranked:
        for part in PARTS:
            if len(found) == MOST_PLACED or any(lying <= chosen.run.cycles for lying, _ in found):
                break
            try:
                plan = fetching(chosen.plan, chip, room, part)
            except InfeasiblePlanError:
                break
            lying = cycles(plan)
            found.append((lying, plan))
            if lying * (1 - LOST_PART) <= chosen.run.cycles:
                break
    return min(found, key=lambda each: each[0])[1] if found else None


def _does_not_fit(graph: Graph, chip: ChipSpec) -> InfeasiblePlanError:
    return InfeasiblePlanError(
        f"an operator and its weights need more than the {chip.sram_bytes:,} bytes per core of {chip.name}",
        hint=room_hint(graph.operators),
    )


@dataclass(slots=True)
class FetchedChoice:
    """The joint choices of a model for shares of memory that are left to weights of other operators.

    The model is run `repeats` times, one after the other, each with weights of its own: layers that are equal.
    """

    context: Context
    planner: JointPlanner
    tables: tuple[LevelTable, ...]
    repeats: int = 1
    _known: dict[int, tuple[JointChoice, ModulePlan] | None] = field(
        default_factory=dict[int, "tuple[JointChoice, ModulePlan] | None"]
    )

    def best(self, memory: OffChip) -> Chosen | None:
        """Return the choice whose run takes least, None if none fits."""
        return next(iter(self.ranked(memory)), None)

    def ranked(self, memory: OffChip) -> list[Chosen]:
        """Return choices whose runs take least first, one of those that take the same."""
        tried: dict[int, Chosen | None] = {}
        for part in range(SHARES):
            tried[part << FINER] = self._chosen(part << FINER, memory)
        for finer in reversed(range(FINER)):
            at = _best_of(tried)
            for part in (at - (1 << finer), at + (1 << finer)):
                if 0 <= part < SHARES << FINER and part not in tried:
                    tried[part] = self._chosen(part, memory)
        by_cycles: dict[int, Chosen] = {}
        for _, chosen in sorted(tried.items()):
            if chosen is not None:
                by_cycles.setdefault(chosen.run.cycles, chosen)
        return [chosen for _, chosen in sorted(by_cycles.items())]

    @property
    def n_states(self) -> int:
        """Return the number of plans and layouts of all operators that are chosen from."""
        return sum(map(len, self.planner.states))

    def ideal(self, memory: OffChip) -> int:
        """Return the cycles if every operator had all memory for itself and fetches were hidden behind them."""
        fastest = self._joint(0)
        run_cycles = 0 if fastest is None else fastest[0].cycles
        return max(run_cycles, sum(weight.load_cycles for weight in self._weights(memory))) * self.repeats

    def bound(self, memory: OffChip) -> int:
        """Return what no schedule undercuts."""
        fastest = self._joint(0)
        run_cycles = 0 if fastest is None else fastest[0].bound_cycles
        spare = self.context.chip.capacity_bytes - base_bytes(self.context)
        weights = self._weights(memory) * self.repeats
        return bound_cycles(run_cycles * self.repeats, weights, spare, memory.latency_cycles)

    def _weights(self, memory: OffChip) -> list[Weight]:
        own = own_weights(self.context.graph)
        return [
            Weight(
                _thin(table),
                int((table.idle_bytes + table.need_bytes).min()),
                memory.cycles(fetched_bytes(own[spec.name])),
            )
            for spec, table in zip(self.context.graph.operators, self.tables, strict=True)
            if spec.name in own
        ]

    def _joint(self, part: int) -> tuple[JointChoice, ModulePlan] | None:
        """Return the fastest choice, assembled, that leaves a part of the memory to weights of others."""
        if part not in self._known:
            whole = self.context.chip.capacity_bytes - base_bytes(self.context)
            # What the planner counts as at rest all the time is not there.
            spread = sum(map(_thin, self.tables))
            joint = self.planner.best(whole - whole * part // (SHARES << FINER) + spread)
            self._known[part] = (
                None if joint is None else (joint, assemble(self.context, joint.states, joint.choices, None))
            )
        return self._known[part]

    def _chosen(self, part: int, memory: OffChip) -> Chosen | None:
        """Return the fastest choice that leaves a part of the memory to weights of others, with its best run."""
        joint = self._joint(part)
        if joint is None:
            return None
        chip = self.context.chip
        steps = steps_of(joint[1], chip, memory) * self.repeats
        found = best_kept(steps, chip.capacity_bytes, memory.latency_cycles)
        return None if found is None else Chosen(joint[1], *found)


def _best_of(tried: dict[int, Chosen | None]) -> int:
    """Return the share whose run takes least; of equal ones the smallest."""
    return min(tried, key=lambda part: (1 << 62 if (c := tried[part]) is None else c.run.cycles, part))


def _thin(table: LevelTable) -> int:
    """Return the least bytes of a core in which the weights of an operator rest."""
    return int(table.idle_bytes.min())


def fetching(plan: ModulePlan, chip: ChipSpec, room: Room, part: float = 1.0) -> ModulePlan:
    """Return an assembled plan with the fetches that suit it best in a part of the memory, its buffers in their places.

    Fetches begin later where packing wastes space. Raises `InfeasiblePlanError` where there is no room.
    """
    memory = chip.off_chip
    assert memory is not None
    steps = steps_of(plan, chip, memory)
    room_bytes = int(chip.capacity_bytes * part)
    best = best_kept(steps, room_bytes, memory.latency_cycles)
    for _ in range(FIT_ROUNDS):
        found = None if best is None else run(steps, room_bytes, memory.latency_cycles, best[0])
        if found is None:
            break
        made = room(with_run(plan, found))
        if made.end_bytes <= chip.data_end_bytes:
            return made
        room_bytes -= made.end_bytes - chip.data_end_bytes
    raise _does_not_fit(plan.graph, chip)
