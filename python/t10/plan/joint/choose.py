"""Plans, idle levels and layouts of a whole model, chosen together: states, costs, the best choice, and its proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.laid_out import LayoutOperators
from t10.core.plan import OperatorPlan
from t10.core.schedule import PHASES, Optimality, moment
from t10.cost.operator import output_chunk
from t10.plan.context import Context
from t10.plan.joint.costs import Counted, JointCosts
from t10.plan.joint.improve import neighbours
from t10.plan.joint.selection import Lifetime, Rows, Saving, Selection, Table
from t10.plan.joint.solve import FEW_OPERATORS, MOST_WORK, Solution, solve
from t10.plan.joint.states import DEEP, THINNED, THINNED_CORES, Breadth, States, breadth_of, states_of
from t10.plan.joint.thin import thinned
from t10.plan.memory.allocation import aligned_size
from t10.plan.memory.buffers import layout_slots
from t10.plan.memory.levels import Choice
from t10.plan.options import PlanOptions, Reading
from t10.plan.search.pareto import Front

MOST_ROUNDS = 300
NEAR, FAR = 0.001, 0.01
"""By what part of the cycles choices near the best are slower at most; where solving takes long, more are counted."""
LONG_WORK = 100_000_000
"""Work from which on a model is solved less often: about a third of a second."""
EARLY_GAP = 0.006
"""Gap to which a large model is solved as long as its choice relies on bounds: they change what is best anyway."""
CLOSING_WORK = 1_000_000_000
"""Work after which a bound is left as it is (`solve.MOST_WORK`): a second or two."""

Report = Callable[[int, int], None]
"""Called with steps done and steps in all; what it raises ends the work."""


@dataclass(frozen=True, slots=True)
class KnownChoice:
    """A choice to begin with that is none of the fronts': a plan and an idle level of every operator."""

    plans: tuple[OperatorPlan, ...]
    levels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JointChoice:
    """States and the choice among them, one per operator; modelled cycles of all, and what none can undercut.

    `greedy_cycles` are those of Algorithm 1's choices at the same costs, by reading; none where it has no choice that
    fits the same room.
    """

    states: tuple[States, ...]
    choices: tuple[Choice, ...]
    cycles: int
    bound_cycles: int
    greedy_cycles: Mapping[Reading, int]

    def known(self) -> KnownChoice:
        """Return the choice as one that others begin with."""
        chosen = zip(self.states, self.choices, strict=True)
        plans = tuple(states[choice.plan].plan for states, choice in chosen)
        return KnownChoice(plans, tuple(choice.level for choice in self.choices))

    def optimality(self, cycles: int) -> Optimality:
        """Return how good the choice is known to be; `cycles` are those of the assembled model."""
        return Optimality(
            method="exact",
            cycles=cycles,
            bound_cycles=self.bound_cycles,
            literal_cycles=self.greedy_cycles.get("literal", 0),
            aware_cycles=self.greedy_cycles.get("aware", 0),
            n_states=sum(map(len, self.states)),
            priced_cycles=cycles,
        )


def deadline_of(options: PlanOptions) -> float | None:
    """Return when a choice that begins now must end, by the monotonic clock; None without a limit."""
    limit = options.time_limit_seconds
    return None if limit is None else time.monotonic() + limit


def is_past(deadline: float | None) -> bool:
    """Return whether a deadline is over."""
    return deadline is not None and time.monotonic() > deadline


class JointPlanner:
    """The joint choice of one model; costs are kept, so that asking again with less memory is cheap."""

    def __init__(
        self,
        context: Context,
        fronts: Sequence[Front],
        options: PlanOptions,
        greedy: Mapping[Reading, Sequence[Choice] | None],
        report: Report = lambda done, total: None,
        breadth: Breadth | None = None,
        room_bytes: int | None = None,
        *,
        numbered: int = 0,
        known: Sequence[KnownChoice] = (),
        deadline: float | None = None,
    ) -> None:
        """Make and price the states, as many as `states_of` says; `greedy` are choices to start from, among them.

        Of each operator `numbered` have other parts in different groups of cores; plans of `known` choices are states
        too. Of deep models those stay with which choices take least in `room_bytes`. It ends at a `deadline` of the
        monotonic clock.
        """
        self.context, self.options, self.report, self.deadline = context, options, report, deadline
        self.work_left: int = MOST_WORK
        self.gap = options.gap if len(fronts) <= FEW_OPERATORS else max(options.gap, EARLY_GAP)
        kept: dict[Reading, list[OperatorPlan]] = {
            reading: [front[choice.plan].plan for front, choice in zip(fronts, choices, strict=True)]
            for reading, choices in greedy.items()
            if choices is not None
        }
        is_deep = breadth is None and breadth_of(context) is DEEP
        is_thinned = is_deep and room_bytes is not None and context.chip.n_cores <= THINNED_CORES
        first = THINNED if is_thinned else breadth
        if numbered:
            first = replace(first or breadth_of(context), numbered=numbered)
        plans_kept = [*kept.values(), *(choice.plans for choice in known)]
        self.states = states_of(context, fronts, options, plans_kept, first)
        self.pair_costs = JointCosts(context, self.states, lambda: report(0, MOST_ROUNDS))
        self._first: Selection | None = None
        if room_bytes is not None and is_thinned:
            starts = [self._rows_of(plans, _levels(greedy[reading])) for reading, plans in kept.items()]
            self.states = thinned(self.states, self.selection(room_bytes), starts)
            self.pair_costs = JointCosts(context, self.states, lambda: report(0, MOST_ROUNDS))
            self._first = None
        self.found: dict[int, Ints] = {}
        self.starts: dict[Reading, Ints] = {
            reading: self._rows_of(plans, _levels(greedy[reading])) for reading, plans in kept.items()
        }
        self.known: list[Ints] = [self._rows_of(choice.plans, choice.levels) for choice in known]

    def best(self, room_bytes: int) -> JointChoice | None:
        """Return the best choice for which a core has `room_bytes`, None if nothing fits."""
        starts = [*self.known, *self.starts.values()]
        for rows in starts:
            self._settle(self.selection(room_bytes), [rows])
        selection = self.selection(room_bytes)
        best: Solution | None = None
        near: list[Ints] = []
        bound_cycles = 0
        for number in range(MOST_ROUNDS):
            self.report(number, MOST_ROUNDS)
            found = solve(selection, self.gap, starts, self._is_over, self.work_left)
            if found is None:
                return None
            self.work_left -= found.work
            bound_cycles = max(bound_cycles, found.bound_cycles)
            starts = [found.rows, *starts[:3], *([] if best is None else [best.rows])]
            is_last = number == MOST_ROUNDS - 1 or self.work_left <= 0 or self._is_over()
            if not is_last and self._comes_closer(selection, found):
                selection = self.selection(room_bytes)
                near = [min([found.rows, *near], key=selection.cycles)]
                continue
            # The last one found may rely on what was hardly counted; another's bounds are closer.
            tried = [found.rows, *near] if is_last else [found.rows]
            is_exact = not self._settle(selection, tried)
            selection = self.selection(room_bytes)
            rows = min(tried, key=selection.cycles)
            cycles = selection.cycles(rows)
            if best is None or cycles < best.cycles:
                best = replace(found, rows=rows, cycles=cycles)
            is_solved = is_exact and self.gap == self.options.gap
            if is_exact:
                self.gap = self.options.gap
            if is_last or is_solved or bound_cycles >= best.cycles * (1 - self.options.gap):
                break
        if best is None:
            return None
        best = replace(best, bound_cycles=bound_cycles)
        self.found[room_bytes] = best.rows
        for rows in (*self.known, *self.starts.values()):
            # A choice within the gap may be worse than one of Algorithm 1's, whose costs are exact.
            cycles = selection.cycles(rows)
            if cycles < best.cycles and selection.fits(rows):
                best = replace(best, rows=rows, cycles=cycles)
        return self._joint(selection, best)

    def _comes_closer(self, selection: Selection, found: Solution) -> bool:
        """Bring closer what bounds what was found and, in small models, what is nearly as fast; return if any changed.

        All that ports carry is counted of what was found before its transfers are scheduled, which takes far longer.
        """
        if selection.n_operators <= FEW_OPERATORS:
            part = NEAR if found.work < LONG_WORK else FAR
            near = neighbours(selection, found.rows, int(found.cycles * part))
            if self._settle(selection, [found.rows, *near], "fine"):
                return True
        return self._settle(selection, [found.rows], "loads")

    def closer_bound(self, room_bytes: int, cycles: int) -> int:
        """Return what no choice undercuts in a room for which there was one, as close to `cycles` as the gap asks for.

        A choice without bank conflicts may take more than the best one, to which that room's gap was closed.
        """
        selection, rows = self.selection(room_bytes), self.found[room_bytes]
        gap = 1 - cycles * (1 - self.options.gap) / selection.cycles(rows)
        found = solve(selection, max(gap, 0.0), [rows], self._is_over, min(self.work_left, CLOSING_WORK))
        return 0 if found is None else found.bound_cycles

    def _settle(self, selection: Selection, choices: Sequence[Ints], counted: Counted = "exact") -> bool:
        """Make the costs of choices exact, or only their bounds finer; return whether any changed."""
        first = np.array([selection.rows_of(step).start for step in range(selection.n_operators)], np.int64)
        made = [(selection.states_of(rows).tolist(), (rows - first).tolist()) for rows in choices]
        return self.pair_costs.settle(made, counted)

    def selection(self, room_bytes: int) -> Selection:
        """Return the problem with the costs known by now."""
        known = self.pair_costs
        parts: dict[tuple[int, ...], list[Ints]] = {}
        for scope, edge in known.edges:
            parts.setdefault(scope, []).append(edge.cycles)
        for begun in known.begun:
            parts.setdefault(begun.scope, []).append(known.begun_cycles(begun))
        sums = _Sums()
        costs = tuple([sums.table(scope, each) for scope, each in parts.items()])
        cycles = np.concatenate([priced.table.cycles for priced in known.rows])
        if self._first is None:
            self._first = self._whole(cycles, costs, room_bytes)
        return self._first.costing(cycles, costs, room_bytes)

    def _whole(self, cycles: Ints, costs: tuple[Table, ...], room_bytes: int) -> Selection:
        """Return the problem with some costs; nothing else of it changes once states are made."""
        known = self.pair_costs
        n_states = tuple(map(len, self.states))
        first = np.concatenate([[0], np.cumsum(n_states)])
        tables = [priced.table for priced in known.rows]
        rows = Rows(
            state=np.concatenate([t.plan + first[step] for step, t in enumerate(tables)]),
            cycles=cycles,
            idle_bytes=np.concatenate([t.idle_bytes for t in tables]),
            need_bytes=np.concatenate([priced.phase_bytes for priced in known.rows]),
        )
        savings: list[Saving] = []
        sums = _Sums()
        for scope, edge in known.edges:
            for saved in edge.savings:
                table = sums.table(scope, [saved.n_bytes])
                savings.append(Saving(scope[-1], PHASES.index(saved.phase), table, saved.is_certain))
        return Selection(
            n_states=n_states,
            rows=rows,
            costs=costs,
            savings=tuple(savings),
            lifetimes=tuple(self._lifetimes()),
            room_bytes=room_bytes,
        )

    def _lifetimes(self) -> list[Lifetime]:
        """Return the values that outlive an operator, sized by the state that lays them out."""
        context = self.context
        last_by_value = context.lives.last_by_value
        makers = LayoutOperators(context.graph)
        found: list[Lifetime] = []
        known: dict[tuple[int, str], Ints] = {}
        for step, (spec, states) in enumerate(zip(context.graph.operators, self.states, strict=True)):
            last = self._last_moment(spec.output.name, step)
            if last > moment(step, "finish"):
                key = (id(states), spec.output.dtype)
                if key not in known:
                    size = size_bytes(spec.output.dtype)
                    sizes = [aligned_size(output_chunk(spec, s.plan)[1] * size) for s in states]
                    known[key] = np.array(sizes, np.int64)
                found.append(Lifetime(step, moment(step + 1, "arrive"), last, known[key]))
        for value in context.graph.inputs:
            if value.name not in last_by_value:
                continue
            step = self.pair_costs.maker_by_value.get(value.name)
            layouts = (
                [self.pair_costs.fixed[value.name]] * len(self.states[0])
                if step is None
                else [self.pair_costs.layout(value.name, number) for number in range(len(self.states[step]))]
            )
            slots = [layout_slots(makers, layout, prod(value.shape)) for layout in layouts]
            sizes = np.array([aligned_size(n * size_bytes(value.dtype)) for n in slots], np.int64)
            found.append(Lifetime(step or 0, 0, self._last_moment(value.name, 0), sizes))
        return found

    def _last_moment(self, value: str, made_at: int) -> int:
        """Return the last moment at which a value is alive wherever its readers' operands lie.

        One that is used in place in its last step replaces the copy it saves there (see `costs.Saved`).
        """
        context = self.context
        last = context.lives.last_by_value.get(value)
        if last is None:
            return moment(made_at, "finish")
        is_result = any(value in context.graph.sources_of(output.value) for output in context.graph.outputs)
        return moment(last, "finish" if is_result else "arrive")

    def _joint(self, selection: Selection, found: Solution) -> JointChoice:
        choices: list[Choice] = []
        for step, row in enumerate(found.rows.tolist()):
            table, number = self.pair_costs.rows[step].table, row - selection.rows_of(step).start
            choices.append(Choice(int(table.plan[number]), int(table.level[number])))
        cycles = selection.cycles(found.rows)
        greedy: dict[Reading, int] = {
            reading: selection.cycles(rows) for reading, rows in self.starts.items() if selection.fits(rows)
        }
        return JointChoice(self.states, tuple(choices), cycles, min(found.bound_cycles, cycles), greedy)

    def _rows_of(self, kept: Sequence[OperatorPlan], levels: Sequence[int]) -> Ints:
        """Return the rows of a choice."""
        first = 0
        rows: list[int] = []
        for states, priced, plan, level in zip(self.states, self.pair_costs.rows, kept, levels, strict=True):
            table = priced.table
            state = next(number for number, s in enumerate(states) if s.plan == plan)
            rows.append(first + int(np.nonzero((table.plan == state) & (table.level == level))[0][0]))
            first += len(table.plan)
        return np.array(rows, np.int64)

    def _is_over(self) -> bool:
        self.report(0, MOST_ROUNDS)
        return is_past(self.deadline)


def _levels(choices: Sequence[Choice] | None) -> list[int]:
    return [choice.level for choice in choices or ()]


@dataclass(frozen=True, slots=True)
class _Sums:
    """Tables that are sums of arrays; those of the same arrays, as of equal layers, have one array of values."""

    known: dict[tuple[object, ...], Ints] = field(default_factory=dict[tuple[object, ...], Ints])
    parts: list[Sequence[Ints]] = field(default_factory=list[Sequence[Ints]])
    """Kept, so that no other array gets the identity of one."""

    def table(self, scope: tuple[int, ...], parts: Sequence[Ints]) -> Table:
        """Return the table of a sum, with its operators in ascending order."""
        order = tuple(sorted(range(len(scope)), key=lambda i: scope[i]))
        key = (order, *map(id, parts))
        if key not in self.known:
            self.parts.append(parts)
            self.known[key] = np.ascontiguousarray(sum(parts[1:], parts[0]).transpose(order))
        return Table(tuple(scope[i] for i in order), self.known[key])
