"""Costs of rows and of pairs of states: first bounds, then exact where a choice relies on them.

Tables start with lower bounds counted on a few cores, because counting the exchange between every pair of layouts
takes too long. Entries that a choice relies on are counted exactly (`settle`). A choice whose entries are all exact
costs what its execution takes, and the bound of the others stays a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Literal

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.movement import operand_of
from t10.core.plan import OperatorPlan
from t10.core.schedule import PHASES, Arrival, Phase, ValueLayout
from t10.cost.operator import home_cycles, output_chunk
from t10.plan.assemble import (
    are_in_place,
    input_layouts,
    is_last_use,
    linear_layout,
    output_layout,
    owned_layouts,
    place_of,
    read_layouts,
)
from t10.plan.context import Context
from t10.plan.joint.edges import Begun, Edge, Part, Saved, begun_by
from t10.plan.joint.keys import lying_key, view_key
from t10.plan.joint.states import MOST_CELLS, MOST_DIMS, States
from t10.plan.memory.allocation import aligned_size
from t10.plan.memory.buffers import goes_into_its_slot, has_accumulator, result_request, working_requests
from t10.plan.memory.levels import LevelTable, level_table, operand_slots
from t10.plan.memory.liveness import unshaped
from t10.plan.movement.arrivals import ALL_PIECES, BOUND_PIECES, FINE_PIECES

Counted = Literal["rough", "fine", "loads", "exact"]
"""How much of what moves is counted: a part, a larger part, what all ports carry, or how they take turns, too."""
PIECES: dict[Counted, int] = {"rough": BOUND_PIECES, "fine": FINE_PIECES, "loads": ALL_PIECES}
COSTING_THREADS = 2


@dataclass(slots=True)
class RowCosts:
    """The idle levels of all states of one operator; `table.plan` numbers states. `step` is the first such operator.

    `phase_bytes` has a row per row of the table and a column per phase.
    """

    step: int
    table: LevelTable
    is_exact: Bools
    phase_bytes: Ints


class JointCosts:
    """All costs of a model whose operators are in given states."""

    def __init__(self, context: Context, states: tuple[States, ...], is_stopped: Callable[[], None]) -> None:
        """Bound everything; `is_stopped` is called now and then and may raise."""
        self.context = context
        self.states = states
        graph = context.graph
        n_cores = context.chip.n_cores
        self.maker_by_value = {spec.output.name: step for step, spec in enumerate(graph.operators)}
        self.readers = context.reader_by_input
        self.maker_by_value |= {value: reader.step for value, reader in self.readers.items()}
        self.maker_by_value |= {value: step for value, (step, _) in context.resting.items()}
        self.fixed = {w.name: linear_layout(w, n_cores) for w in graph.weights}
        self.fixed |= input_layouts(context)
        self.shapes = graph.shape_by_value
        self.results = {value for output in graph.outputs for value in graph.sources_of(output.value)}
        self._layouts: dict[tuple[str, int], ValueLayout] = {}
        self.rows = self._all_rows()
        self.edges = list(self._all_edges(is_stopped))
        self.begun = list(self._all_begun())
        self._begun_cycles: dict[object, Ints] = {}

    def layout(self, value: str, state: int) -> ValueLayout:
        """Return where a value lies under state number `state` of the operator that decides it."""
        key = (value, state)
        if key not in self._layouts:
            step = self.maker_by_value[value]
            plan, spec = self.states[step][state].plan, self.context.graph.operators[step]
            if spec.output.name == value:
                self._layouts[key] = output_layout(spec, plan)
            elif value in self.context.reader_by_input:
                self._layouts[key] = read_layouts(self.context, step, plan)[value]
            else:
                level = self.context.level_by_operator[spec.name]
                self._layouts[key] = owned_layouts(self.context, step, plan, level)[value]
        return self._layouts[key]

    def is_brought(self, step: int, number: int) -> bool:
        """Return whether what bringing an operand costs depends on its reader alone: a weight no other lays out."""
        operand = operand_of(self.context.graph.operators[step], number)
        value = unshaped(operand.name, self.context.reshapes)
        return operand.role == "weight" and self.maker_by_value.get(value, step) == step

    def _all_begun(self) -> Iterator[Begun]:
        """Yield what beginning exchange phases takes: one for all relayouts of an operator, one for every set-up."""
        relayouts: dict[int, list[Part]] = {}
        n_states = [len(states) for states in self.states]
        for part in self.edges:
            scope, edge = part
            if operand_of(self.context.graph.operators[scope[-1]], edge.number).role == "weight":
                yield begun_by([part], n_states)
            else:
                relayouts.setdefault(scope[-1], []).append(part)
        for parts in relayouts.values():
            yield begun_by(parts, n_states)

    def begun_cycles(self, begun: Begun) -> Ints:
        """Return the table of what beginning a phase takes, by the states of its scope."""
        if begun.key not in self._begun_cycles:
            self._begun_cycles[begun.key] = begun.cycles([len(self.states[each]) for each in begun.scope])
        return self._begun_cycles[begun.key]

    def settle(
        self, choices: Iterable[tuple[Sequence[int], Sequence[int]]], counted: Counted = "exact"
    ) -> bool:
        """Make the costs of choices exact: states and, of each operator's table, rows. Return whether any changed.

        Unless `counted` is exact, bring bounds closer only.
        """
        edges: dict[tuple[int, tuple[int, ...]], Edge] = {}
        rows: dict[tuple[int, int], RowCosts] = {}
        for states, levels in choices:
            edges |= {
                (id(edge), where): edge
                for scope, edge in self.edges
                if not edge.is_exact[where := tuple(states[step] for step in scope)]
            }
            rows |= {(id(p), row): p for p, row in zip(self.rows, levels, strict=True) if not p.is_exact[row]}

        def moved(key: tuple[int, tuple[int, ...]]) -> tuple[int, int]:
            return self._edge_cycles(edges[key], key[1], counted)

        def brought(key: tuple[int, int]) -> int:
            return self._setup(rows[key].step, rows[key].table, key[1], counted)

        with ThreadPoolExecutor(COSTING_THREADS) as pool:
            edge_cycles, setup_cycles = list(pool.map(moved, edges)), list(pool.map(brought, rows))
        is_changed = False
        is_exact = counted == "exact"
        for ((_, where), edge), (cycles, begins) in zip(edges.items(), edge_cycles, strict=True):
            if not is_exact:
                # A bound that is known may be closer than this one.
                cycles, begins = max(cycles, int(edge.cycles[where])), max(begins, int(edge.begins[where]))
            if begins != int(edge.begins[where]):
                edge.begins[where], is_changed = begins, True
                self._begun_cycles.clear()
            is_changed |= cycles != int(edge.cycles[where])
            edge.cycles[where], edge.is_exact[where] = cycles, is_exact
        for ((_, row), costs), extra in zip(rows.items(), setup_cycles, strict=True):
            cycles = int(costs.table.run_cycles[row]) + extra
            cycles = cycles if is_exact else max(cycles, int(costs.table.cycles[row]))
            is_changed |= cycles != int(costs.table.cycles[row])
            costs.table.cycles[row], costs.is_exact[row] = cycles, is_exact
        return is_changed

    def _all_rows(self) -> list[RowCosts]:
        known: dict[object, RowCosts] = {}
        result: list[RowCosts] = []
        context = self.context
        for step, (spec, states) in enumerate(zip(context.graph.operators, self.states, strict=True)):
            owned, pinned = context.owned[step], context.level_by_operator.get(spec.name)
            key = (id(states), owned, pinned)
            if key not in known:
                table = level_table(spec, states, owned, context.chip.n_cores, context.cost, pinned)
                setups = [self._setup(step, table, row, "rough") for row in range(len(table.plan))]
                table = replace(table, cycles=table.run_cycles + np.array(setups, np.int64))
                phases = self._phase_bytes(step, table)
                known[key] = RowCosts(step, table, np.zeros(len(table.plan), np.bool_), phases)
            result.append(known[key])
        return result

    def _phase_bytes(self, step: int, table: LevelTable) -> Ints:
        """Return the bytes an operator needs by row and phase, weights used where they rest left out."""
        context, spec = self.context, self.context.graph.operators[step]
        result = np.zeros((len(table.plan), len(PHASES)), np.int64)
        for row in range(len(table.plan)):
            plan, level = self.states[step][int(table.plan[row])].plan, int(table.level[row])
            layouts = {**self.fixed, **owned_layouts(context, step, plan, level)}
            arrivals = [
                Arrival(number, "relayout", f"operand:{number}")
                for number in range(len(spec.operands))
                if not self.is_brought(step, number) or place_of(context, step, number, plan, layouts) is None
            ]
            buffers = working_requests(spec, plan, arrivals, 0, context.chip)
            for request in (*buffers, result_request(spec, plan, 0, len(PHASES) - 1)):
                result[row, request.first : request.last + 1] += aligned_size(request.size_bytes)
        return result

    def _setup(self, step: int, table: LevelTable, row: int, counted: Counted) -> int:
        """Return the cycles in which an operator's weights are brought, or a lower bound of them."""
        context, spec = self.context, self.context.graph.operators[step]
        plan = self.states[step][int(table.plan[row])].plan
        owned = owned_layouts(context, step, plan, int(table.level[row]))
        total = 0
        for number in range(len(spec.operands)):
            if not self.is_brought(step, number):
                continue
            layouts = {**self.fixed, **owned}
            if place_of(context, step, number, plan, layouts) is None:
                total += sum(self._moved(step, number, int(table.plan[row]), layouts, counted))
        return total

    def _moved(
        self, step: int, number: int, state: int, layouts: dict[str, ValueLayout], counted: Counted
    ) -> tuple[int, int]:
        """Return the cycles that bringing an operand from its sources' layouts adds to an exchange phase.

        And what beginning one for it takes, or lower bounds of both.
        """
        spec, plan = self.context.graph.operators[step], self.states[step][state].plan
        if counted == "exact":
            return self.context.mover.exact(spec, plan, number, layouts)
        return self.context.mover.bound(spec, plan, number, layouts, PIECES[counted])

    def _all_edges(self, is_stopped: Callable[[], None]) -> Iterator[tuple[tuple[int, ...], Edge]]:
        """Yield (operators of the scope, edge) for every operand that is not a weight of the reader's own.

        Edges that differ are priced side by side: counting what moves leaves the interpreter to others.
        """
        found: list[tuple[int, tuple[int, ...], object]] = []
        first: dict[object, tuple[int, int, tuple[int, ...]]] = {}
        for step, spec in enumerate(self.context.graph.operators):
            for number in range(len(spec.operands)):
                if not self.is_brought(step, number):
                    makers, key = self._edge_key(step, number, spec)
                    found.append((step, makers, key))
                    first.setdefault(key, (step, number, makers))
        with ThreadPoolExecutor(COSTING_THREADS) as pool:
            futures = {key: pool.submit(self._edge, *situation) for key, situation in first.items()}
            try:
                for future in futures.values():
                    is_stopped()
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        for step, makers, key in found:
            edge = futures[key].result()
            yield (*(makers if edge.makers else ()), step), edge

    def _edge_key(self, step: int, number: int, spec: OperatorSpec) -> tuple[tuple[int, ...], object]:
        """Return the operators that lay out an operand's sources and a key of everything the edge depends on."""
        context = self.context
        name = operand_of(spec, number).name
        sources = context.graph.sources_of(name)
        makers = tuple(sorted({self.maker_by_value[s] for s in sources if s in self.maker_by_value} - {step}))
        value = unshaped(name, context.reshapes)
        shapes = self.shapes

        def source_key(source: str) -> object:
            maker = self.maker_by_value.get(source)
            if maker is None:
                return ("fixed", shapes[source])
            reader, (_, number) = self.readers.get(source), context.resting.get(source, (0, -1))
            decided = (number, None) if reader is None else (reader.number, reader.seen and reader.seen.dims)
            level = context.level_by_operator.get(context.graph.operators[maker].name)
            place = makers.index(maker) if maker != step else -1
            return place, decided, shapes[source], source in context.shared_weights and level

        key = (
            id(self.states[step]),
            number,
            tuple(id(self.states[maker]) for maker in makers),
            view_key(context.graph, name, source_key),
            is_last_use(context, step, value),
            self._ends(step, number),
            self._same_value(step, number),
            self._first_taken_over(step),
            self._first_left_over(step),
        )
        return makers, key

    def _edge(self, step: int, number: int, makers: tuple[int, ...]) -> Edge:
        """Return an edge with bounds; one without entries where there would be too many."""
        shape = tuple(len(self.states[maker]) for maker in (*makers, step))
        if prod(shape) > MOST_CELLS or len(shape) > MOST_DIMS:
            shape, makers = (shape[-1],), ()
            zeros, known = np.zeros(shape, np.int64), np.ones(shape, np.bool_)
            return Edge(step, number, makers, zeros, known, zeros)
        edge = Edge(
            step=step,
            number=number,
            makers=makers,
            cycles=np.zeros(shape, np.int64),
            is_exact=np.zeros(shape, np.bool_),
            begins=np.zeros(shape, np.int64),
        )
        # States that lie the same way, as far as this operand sees, are one class.
        classes = [
            np.unique(self._classes(position, edge), return_inverse=True) for position in range(len(shape))
        ]
        firsts = [first.tolist() for first, _ in classes]
        lying = self._in_place(edge, number, firsts)
        plans, layouts, pairs = self._situations(edge, number, firsts)
        moves = np.flatnonzero(~lying)
        cycles = np.zeros(lying.shape, np.int64)
        spec = self.context.graph.operators[step]
        begins = np.zeros(lying.shape, np.int64)
        bounds = self.context.mover.bounds(spec, plans, number, layouts, pairs[moves])
        cycles.flat[moves], begins.flat[moves] = bounds
        spread = np.ix_(*(of_state for _, of_state in classes))
        edge.cycles, edge.begins, in_place = cycles[spread], begins[spread], lying[spread]
        edge.is_exact = in_place.copy()
        edge.savings = tuple(self._savings(edge, in_place)) if in_place.any() else ()
        if in_place.any() and number == self._first_left_over(step):
            is_read = in_place.reshape(-1, shape[-1]).any(axis=0)
            more = np.zeros(shape[-1], np.int64)
            for state in np.flatnonzero(is_read).tolist():
                more[state] = self.context.mover.left_over_cycles(spec, self.states[step][state].plan)
            edge.cycles += in_place * more
        if in_place.any() and spec.operands[number].role == "weight":
            edge.cycles += in_place * self._sent_home(step, number)
        return edge

    def _sent_home(self, step: int, number: int) -> Ints:
        """Return the cycles in which a weight of others, used where it rests, is shifted home, by states."""
        spec, cost = self.context.graph.operators[step], self.context.cost
        if number >= len(spec.inputs):
            return np.zeros(len(self.states[step]), np.int64)
        own = tuple(n for n in self.context.owned[step] if n < len(spec.inputs))
        both = tuple(sorted((*own, number)))
        return np.array(
            [
                home_cycles(cost, spec, priced.plan, both) - home_cycles(cost, spec, priced.plan, own)
                for priced in self.states[step]
            ],
            np.int64,
        )

    def _first_left_over(self, step: int) -> int:
        """Return the first input that an operator made, -1 without any: what its padding costs is counted once."""
        context, spec = self.context, self.context.graph.operators[step]
        values = [unshaped(operand.name, context.reshapes) for operand in spec.inputs]
        return next((n for n, value in enumerate(values) if value in context.mover.spec_by_value), -1)

    def _savings(self, edge: Edge, in_place: Bools) -> Iterator[Saved]:
        """Yield what an operand in place saves: its copy, and the result where that takes over its buffer."""
        spec = self.context.graph.operators[edge.step]
        operand = operand_of(spec, edge.number)
        plans = [priced.plan for priced in self.states[edge.step]]
        size = size_bytes(operand.dtype)
        copies = np.array([aligned_size(operand_slots(spec, p, edge.number) * size) for p in plans], np.int64)
        last = _read_until(spec, edge.number)
        stands = self._stands_for_value(edge, in_place)
        for phase in PHASES[: PHASES.index(last) + 1]:
            saved = in_place if phase == "arrive" else in_place & ~stands[phase]
            if saved.any():
                yield Saved(phase, saved * copies)
        if not self._ends(edge.step, edge.number):
            return
        if _may_be_taken_over(spec, edge.number):
            taken = np.array([self._taken_bytes(spec, plan, edge.number) for plan in plans], np.int64)
            accumulates = np.array([has_accumulator(spec, plan) for plan in plans])
            here = ~accumulates if last == "nest" else accumulates
            yield Saved(last, in_place * taken * here, edge.number == self._first_taken_over(edge.step))

    def _first_taken_over(self, step: int) -> int:
        """Return the first operand whose buffer a result takes over where it lies in place, -1 without any."""
        context, spec = self.context, self.context.graph.operators[step]
        return next(
            (
                number
                for number, operand in enumerate(spec.operands)
                if _may_be_taken_over(spec, number)
                and is_last_use(context, step, unshaped(operand.name, context.reshapes))
            ),
            -1,
        )

    def _stands_for_value(self, edge: Edge, in_place: Bools) -> dict[Phase, Bools]:
        """Return per phase where an operand's copy counts for the value itself, by the states of the edge.

        A value counts until operands have arrived in its last step; what lies in place makes it live on until that was
        read. If several operands do, the first of them stands for it.
        """
        spec = self.context.graph.operators[edge.step]
        stands: dict[Phase, Bools] = {phase: np.zeros_like(in_place) for phase in PHASES}
        if not self._ends(edge.step, edge.number):
            return stands
        others = {
            number: self._is_in_place(edge, number) for number in self._same_value(edge.step, edge.number)
        }
        for phase in PHASES[1:]:
            stands[phase] = in_place.copy()
            for number, other in others.items():
                if PHASES.index(_read_until(spec, number)) >= PHASES.index(phase):
                    stands[phase] &= ~other
        return stands

    def _ends(self, step: int, number: int) -> bool:
        """Return whether an operand's value is not needed after its step."""
        context = self.context
        value = unshaped(operand_of(context.graph.operators[step], number).name, context.reshapes)
        is_weight = value in context.shared_weights
        return context.lives.last_by_value.get(value) == step and value not in self.results and not is_weight

    def _same_value(self, step: int, number: int) -> tuple[int, ...]:
        """Return the operands before one that read the same value."""
        spec, reshapes = self.context.graph.operators[step], self.context.reshapes
        value = unshaped(operand_of(spec, number).name, reshapes)
        return tuple(n for n in range(number) if unshaped(operand_of(spec, n).name, reshapes) == value)

    def _is_in_place(self, edge: Edge, number: int) -> Bools:
        """Return where another operand that reads the value of an edge lies in place."""
        return self._in_place(edge, number, [list(range(n)) for n in edge.cycles.shape])

    def _in_place(self, edge: Edge, number: int, states: Sequence[Sequence[int]]) -> Bools:
        """Return where operand `number` lies in place, by the given states of an edge's operators."""
        found = are_in_place(self.context, edge.step, number, *self._situations(edge, number, states))
        return found.reshape([len(each) for each in states])

    def _situations(
        self, edge: Edge, number: int, states: Sequence[Sequence[int]]
    ) -> tuple[list[OperatorPlan], list[dict[str, ValueLayout]], Ints]:
        """Return what an operand that reads an edge's value meets: plans, layouts of sources, and pairs of them (n, 2).

        There is one pair for each combination of the given states of the edge's operators, the reader's own last.
        """
        name = operand_of(self.context.graph.operators[edge.step], number).name
        # An operator may lay out an input that one of its operands reads through a view.
        decides = any(self.maker_by_value.get(s) == edge.step for s in self.context.graph.sources_of(name))
        own = states[-1] if decides else states[-1][:1]
        layouts = [self._source_layouts(edge, where) for where in product(*states[:-1], own)]
        plans = [self.states[edge.step][state].plan for state in states[-1]]
        numbers = np.arange(prod(map(len, states)))
        which = numbers if decides else numbers // len(plans)
        return plans, layouts, np.stack([numbers % len(plans), which], axis=1)

    def _taken_bytes(self, spec: OperatorSpec, plan: OperatorPlan, number: int) -> int:
        """Return the bytes of a result that can take over an operand's buffer, 0 where it cannot."""
        n_members, n_slots = output_chunk(spec, plan)
        size = aligned_size(n_slots * size_bytes(spec.output.dtype))
        own = aligned_size(operand_slots(spec, plan, number) * size_bytes(operand_of(spec, number).dtype))
        return size if n_members == 1 and own == size and goes_into_its_slot(spec, plan, number) else 0

    def _classes(self, position: int, edge: Edge) -> list[int]:
        """Return, per state of one operator of an edge's scope, the first state that lies the same way."""
        step = (*edge.makers, edge.step)[position]
        spec = self.context.graph.operators[step]
        read = operand_of(self.context.graph.operators[edge.step], edge.number).name
        values = [v for v in self.context.graph.sources_of(read) if self.maker_by_value.get(v) == step]
        first_by_key: dict[object, int] = {}
        result: list[int] = []
        for state, priced in enumerate(self.states[step]):
            key: list[object] = []
            if step == edge.step:
                key.append(lying_key(spec, priced.plan, edge.number))
            for value in values:
                layout = self.layout(value, state)
                is_linear = layout.plan is None
                key.append(layout.n_cores if is_linear else lying_key(spec, priced.plan, layout.operand))
                key.append(layout.scatter)
            result.append(first_by_key.setdefault(tuple(key), state))
        return result

    def _source_layouts(self, edge: Edge, where: tuple[int, ...]) -> dict[str, ValueLayout]:
        """Return the layouts of the sources of an edge's operand."""
        spec = self.context.graph.operators[edge.step]
        state_by_maker = dict(zip((*edge.makers, edge.step), where, strict=True))
        layouts: dict[str, ValueLayout] = {}
        for value in self.context.graph.sources_of(operand_of(spec, edge.number).name):
            maker = self.maker_by_value.get(value)
            layouts[value] = self.fixed[value] if maker is None else self.layout(value, state_by_maker[maker])
        return layouts

    def _edge_cycles(self, edge: Edge, where: tuple[int, ...], counted: Counted) -> tuple[int, int]:
        layouts = self._source_layouts(edge, where)
        return self._moved(edge.step, edge.number, where[-1], layouts, counted)


def _read_until(spec: OperatorSpec, number: int) -> Phase:
    """Return the last phase in which an operand is read."""
    return "nest" if number < len(spec.inputs) else "finish"


def _may_be_taken_over(spec: OperatorSpec, number: int) -> bool:
    """Return whether a result may take over the buffer of an operand under some plan."""
    operand = operand_of(spec, number)
    return (
        operand.role != "weight"
        and operand.dims == spec.output.dims
        and size_bytes(operand.dtype) == size_bytes(spec.output.dtype)
        and (number >= len(spec.inputs) or spec.combine == "none")
    )
