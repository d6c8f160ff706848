"""Estimates which plans without rotation of an operator a whole model is fastest with.

The *marginal* of a plan is an estimate of the least cycles of a whole model that contains it: the least sum, over the
plans of all other operators, of

* what every operator takes alone, counted or bounded;
* what moving takes: a core receives the elements that it needs more of than a core of the producer holds; of several
  cores that need an element, all but one receive it. Something moves in any case if the producer runs on another number
  of cores, or leaves its result in chunks. The runs of such a phase are those of an operand's windows.

The sum is exact on a forest of the dataflow graph (message passing). For other edges only the least cost of their
reader counts. Memory is left out. Marginals choose states; proofs do not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.plan import CostedPlan, OperatorPlan
from t10.core.view_boxes import Piece, pieces_of
from t10.plan.assemble import input_layouts, linear_layout, read_layouts
from t10.plan.context import Context
from t10.plan.fronts.operator_fronts import is_portable
from t10.plan.fronts.parallel_map import Work, make_all
from t10.plan.joint.candidates import (
    NEVER,
    Candidates,
    Listed,
    candidates_of,
    counted_best,
    no_rotation,
)
from t10.plan.joint.keys import view_key
from t10.plan.joint.pairs import moved_directly, moved_through_views
from t10.plan.memory.liveness import unshaped
from t10.plan.options import PlanOptions
from t10.plan.search.evaluate import evaluate
from t10.plan.search.listed import costed
from t10.plan.search.pareto import Front


@dataclass(frozen=True, slots=True)
class _Seen:
    """How an operand is read through views: the boxes of its sources where others lay out some of them.

    `kind`: its sources lie as "of others", "even", "in windows" of this operand, else "of its own" operator.
    """

    kind: str
    key: object
    pieces: tuple[Piece, ...]


class Marginals:
    """The marginals of all candidates of a model."""

    def __init__(
        self,
        context: Context,
        fronts: Sequence[Front],
        options: PlanOptions,
        listed: Mapping[int, Listed],
        *,
        through_views: bool,
    ) -> None:
        """Bound the candidates, `listed` by id of front; operators that are pinned have none, and bound nothing.

        Unless ranked `through_views`, what is read through views or laid out for another operator counts as received.
        """
        self.context = context
        n_cores = context.chip.n_cores
        self._fixed = {weight.name: linear_layout(weight, n_cores) for weight in context.graph.weights}
        self._fixed |= {each.name: linear_layout(each, n_cores) for each in context.graph.inputs}
        self._fixed |= input_layouts(context)
        self._shapes = context.graph.shape_by_value
        self._readers = _plain_readers(context)
        self._laid_out = {
            value: context.graph.operators[step].operands[number].shape
            for value, (step, number) in self._readers.items()
        }
        step_by_value = {spec.output.name: step for step, spec in enumerate(context.graph.operators)}
        self.by_step: list[Candidates | None] = []
        known: dict[object, Candidates] = {}
        makers: list[dict[int, int]] = []
        seen: list[dict[int, _Seen]] = []
        self._maker_by_value = step_by_value | {value: step for value, (step, _) in self._readers.items()}
        for step, (spec, front) in enumerate(zip(context.graph.operators, fronts, strict=True)):
            if options.forced_for(spec.name) is not None:
                self.by_step.append(None)
                makers.append({})
                seen.append({})
                continue
            made: dict[int, int] = {}
            sources: list[str] = []
            for number, operand in enumerate(spec.operands):
                value = unshaped(operand.name, context.reshapes)
                if value in step_by_value:
                    made[number] = step_by_value[value]
                is_single = context.graph.sources_of(operand.name) == (value,)
                sources.append("made" if number in made else "fixed" if is_single else "viewed")
            views = self._seen(step, sources) if through_views else {}
            sources = [views[number].kind if number in views else each for number, each in enumerate(sources)]
            key = id(front), context.owned[step], tuple(sources), tuple(view.key for view in views.values())
            if key not in known:
                known[key] = candidates_of(context, listed[id(front)], sources, context.owned[step])
                known[key].moved = self._moved_into(step, views)
            # One of which nothing fits is chosen among the plans of its front.
            self.by_step.append(known[key] if len(known[key].listed.rows) else None)
            makers.append(made)
            seen.append(views)
        self.sees_views = any(seen)
        self._deciding = _deciding(context)
        self._forest(makers, seen)
        self.values: list[Ints] = []
        self.refresh()

    def refresh(self) -> None:
        """Find the marginals anew from what has been counted meanwhile."""
        least: dict[int, Ints] = {}
        for step, values in enumerate(self._passed()):
            found = self.by_step[step]
            if found is not None:
                known = least.get(id(found))
                least[id(found)] = values if known is None else np.minimum(known, values)
        self.values = [np.zeros(0, np.int64) if found is None else least[id(found)] for found in self.by_step]
        self._alone = [np.zeros(0, np.int64) if c is None else c.cycles.copy() for c in self.by_step]

    def of(self, step: int) -> Ints:
        """Return the marginals of an operator's candidates, those of equal operators' included."""
        found = self.by_step[step]
        return self.values[step] if found is None else self.values[step] + found.cycles - self._alone[step]

    def ranked(self, step: int, plans: Sequence[OperatorPlan]) -> list[OperatorPlan]:
        """Return plans, those of the least marginals first, whatever their order of cores."""
        found, values = self.by_step[step], self.of(step)
        numbers = [None if found is None else found.listed.number_of(plan) for plan in plans]
        marginals = [NEVER if number is None else int(values[number]) for number in numbers]
        order = np.argsort(np.array(marginals, np.int64), kind="stable")
        return [plans[each] for each in order.tolist()]

    def best(self, step: int, most: int, *, of_each_size: bool) -> list[CostedPlan]:
        """Return at most so many plans of least marginals, counted, and the best of each size of a grid if asked for.

        Sizes are powers of two of cores, rounded up, and what passes no link is of a size of its own: what moves is
        estimated, and fewer cores receive fewer runs. If
        other operators read an input as this one lays it out, those cut along a single axis count besides.
        """
        found = self.by_step[step]
        if found is None:
            return []
        values, kinds = self.of(step) - found.cycles, self._kinds(step) if of_each_size else None
        return self.plans(step, found.least(self.context.cost, values, most, kinds))

    def count_best(self, most: int, *, of_each_size: bool) -> None:
        """Count what `best` counts of every operator, side by side, but for what moves through views."""
        cost = self.context.cost
        calls: dict[tuple[int, bool], tuple[Candidates, Ints, Ints | None]] = {}
        for step, found in enumerate(self.by_step):
            if found is not None:
                values, kinds = self.of(step) - found.cycles, self._kinds(step) if of_each_size else None
                calls.setdefault((id(found), step in self._deciding), (found, values, kinds))
        work = Work(
            counted_best,
            [(cost, found.portable(), values, most, kinds) for found, values, kinds in calls.values()],
            [float(len(values)) for _, values, _ in calls.values()],
            is_portable(cost),
        )
        candidates = [found for found, *_ in calls.values()]
        make_all(work, lambda number, counted: candidates[number].learn(*counted))

    def _kinds(self, step: int) -> Ints:
        """Return what kind of size each candidate has; those of inputs others read too also have that of a cut."""
        found = self.by_step[step]
        assert found is not None
        kinds: Ints = np.frexp(found.cores - 0.5)[1]
        rows, links = found.listed.rows, found.listed.links
        if links is not None:
            kinds = 2 * kinds + (found.cores <= links.least_cores)
        if step in self._deciding and found.listed.spec.axes:
            along = np.where((rows > 1).sum(axis=1) == 1, rows.argmax(axis=1) + 1, 0)
            kinds = kinds * (rows.shape[1] + 1) + along
        return kinds

    def plans(self, step: int, numbers: Ints) -> list[CostedPlan]:
        """Return candidates as plans with their costs, without what moves before them."""
        found = self.by_step[step]
        assert found is not None
        listed, ones = found.listed, no_rotation(found.listed.spec, len(numbers))
        priced = evaluate(
            listed.spec, self.context.cost, listed.rows[numbers], ones, listed.is_whole[numbers]
        )
        result: list[CostedPlan] = []
        for row, number in enumerate(numbers.tolist()):
            plan = listed.plan(number)
            if plan is not None:
                result.append(alone(costed(plan, priced, row)))
        return result

    def _seen(self, step: int, sources: Sequence[str]) -> dict[int, _Seen]:
        """Return how operands are read through views, where that can be said of boxes of their sources."""
        context = self.context
        spec, found = context.graph.operators[step], dict[int, _Seen]()
        for number, operand in enumerate(spec.operands):
            direct = unshaped(operand.name, context.reshapes)
            is_brought = direct in self._fixed and direct not in self._readers
            if sources[number] == "fixed" and is_brought and number not in context.owned[step]:
                reader = context.reader_by_input.get(direct)
                kind = "even"
                if reader is not None and reader.step == step:
                    is_read_so = reader.number == number and reader.seen is not None
                    kind = "in windows" if is_read_so else "of its own"
                found[number] = _Seen(kind, self._view_key(step, operand.name), ())
            if sources[number] != "viewed":
                continue
            pieces = pieces_of(context.graph, operand.name, self._laid_out)
            makers = [
                maker
                for source in context.graph.sources_of(operand.name)
                if (maker := self._maker_by_value.get(source, step)) != step
            ]
            if not makers:
                found[number] = _Seen("of its own", self._view_key(step, operand.name), ())
            elif pieces is not None and any(m > step or self.by_step[m] is not None for m in makers):
                found[number] = _Seen("of others", self._view_key(step, operand.name), pieces)
        return found

    def _view_key(self, step: int, value: str) -> object:
        context, shapes = self.context, self._shapes

        def source_key(source: str) -> object:
            maker = self._maker_by_value.get(source)
            reader = context.reader_by_input.get(source)
            decided = reader and (reader.step == step, reader.number, reader.seen and reader.seen.dims)
            return maker == step, maker is None, decided, shapes[source]

        return view_key(context.graph, value, source_key)

    def _moved_into(self, step: int, views: Mapping[int, _Seen]) -> Callable[[Ints], Ints] | None:
        """Return what counts, by candidates, the least cycles of bringing what no other operator lays out."""
        numbers = [number for number, view in views.items() if view.kind != "of others"]
        if not numbers:
            return None

        def moved(rows: Ints) -> Ints:
            context, spec = self.context, self.context.graph.operators[step]
            found = self.by_step[step]
            assert found is not None
            cycles = np.zeros(len(rows), np.int64)
            for row, number in enumerate(rows.tolist()):
                plan = found.listed.plan(number)
                if plan is None:
                    continue
                layouts = self._fixed | read_layouts(context, step, plan, is_compared=False)
                cycles[row] = sum(sum(context.mover.bound(spec, plan, each, layouts)) for each in numbers)
            return cycles

        return moved

    def _forest(self, makers: Sequence[dict[int, int]], seen: Sequence[dict[int, _Seen]]) -> None:
        """Choose the edges of which pairs are looked at, those of most bytes first."""
        self._neighbours: list[list[tuple[int, Ints, Ints, Ints]]] = [[] for _ in self.by_step]
        self._extra: list[Ints | int] = [0 for _ in self.by_step]
        root = list(range(len(self.by_step)))
        tables: dict[object, tuple[Ints, Ints, Ints]] = {}
        values = {spec.output.name: len(spec.operands) for spec in self.context.graph.operators}
        values |= {value: number for value, (_, number) in self._readers.items()}

        def root_of(step: int) -> int:
            while root[step] != step:
                root[step] = root[root[step]]
                step = root[step]
            return step

        for _, maker, step, number, source in sorted(self._edges(makers, seen)):
            producer, reader = self.by_step[maker], self.by_step[step]
            assert producer is not None
            assert reader is not None
            view = seen[step].get(number)
            pieces = tuple(piece for piece in view.pieces if piece.source == source) if view else ()
            shape = tuple(replace(piece, source="") for piece in pieces)
            key = id(producer), id(reader), number, shape, values.get(source)
            if key not in tables:
                reading = reader.readings[number]
                tables[key] = (
                    moved_through_views(self.context, producer, reader, (values[source], number), pieces)
                    if pieces
                    else moved_directly(self.context, producer, reader, reading)
                )
            of_producer, of_reader, table = tables[key]
            if root_of(maker) == root_of(step):
                self._extra[step] = self._extra[step] + table.min(axis=0)[of_reader]
                continue
            root[root_of(maker)] = root_of(step)
            self._neighbours[maker].append((step, of_producer, of_reader, table))
            self._neighbours[step].append((maker, of_reader, of_producer, table.T))

    def _edges(
        self, makers: Sequence[dict[int, int]], seen: Sequence[dict[int, _Seen]]
    ) -> Iterator[tuple[int, int, int, int, str]]:
        """Yield (-bytes, maker, reader, operand, source that is read through views or none) of every pair."""
        for step, candidates in enumerate(self.by_step):
            for number, maker in makers[step].items():
                if (
                    candidates is not None
                    and number in candidates.readings
                    and self.by_step[maker] is not None
                ):
                    reading = candidates.readings[number]
                    yield -reading.n_elements * reading.item_bytes, maker, step, number, ""
            for number, view in seen[step].items():
                if candidates is None or number not in candidates.readings:
                    continue
                size = size_bytes(candidates.listed.spec.operands[number].dtype)
                for source in dict.fromkeys(piece.source for piece in view.pieces):
                    maker = self._maker_by_value.get(source, step)
                    if maker != step and self.by_step[maker] is not None:
                        yield -prod(self._shapes[source]) * size, maker, step, number, source

    def _passed(self) -> list[Ints]:
        """Return the least sum of the whole forest by every operator's candidates."""
        order: list[tuple[int, int]] = []
        is_seen = [False] * len(self.by_step)
        for start in range(len(self.by_step)):
            waiting = [] if is_seen[start] else [(start, -1)]
            while waiting:
                step, parent = waiting.pop()
                is_seen[step] = True
                order.append((step, parent))
                waiting += [(near, step) for near, *_ in self._neighbours[step] if near != parent]
        own = [
            np.zeros(1, np.int64) if found is None else found.cycles + self._extra[step]
            for step, found in enumerate(self.by_step)
        ]
        total = [each.copy() for each in own]
        up: dict[int, Ints] = {}
        least = 0
        for step, parent in reversed(order):
            if parent < 0:
                least += int(total[step].min())
                continue
            up[step] = self._message(step, parent, total[step])
            total[parent] = total[parent] + up[step]
        for step, parent in order:
            if parent < 0:
                total[step] = total[step] + (least - int(total[step].min()))
                continue
            # What the parent knows from everybody else.
            total[step] = total[step] + self._message(parent, step, total[parent] - up[step])
        return total

    def _message(self, sender: int, receiver: int, values: Ints) -> Ints:
        """Return the least sum on the sender's side by candidates of the receiver."""
        _, of_sender, of_receiver, table = next(
            each for each in self._neighbours[sender] if each[0] == receiver
        )
        least = np.full(table.shape[0], NEVER, np.int64)
        np.minimum.at(least, of_sender, values)
        found: Ints = (least[:, None] + table).min(axis=0)[of_receiver]
        return found


def _plain_readers(context: Context) -> dict[str, tuple[int, int]]:
    """Return which operand decides where an input lies that it reads directly: those are estimated pair by pair."""
    readers = context.reader_by_input.items()
    return {value: (reader.step, reader.number) for value, reader in readers if reader.is_plain}


def _deciding(context: Context) -> frozenset[int]:
    """Return the operators that lay out inputs which others read too."""
    graph = context.graph
    readers = [
        (step, source)
        for step, spec in enumerate(graph.operators)
        for operand in spec.operands
        for source in graph.sources_of(operand.name)
    ]
    deciders = [(value, reader.step) for value, reader in context.reader_by_input.items()]
    return frozenset(
        decides
        for value, decides in deciders
        if any(source == value and step != decides for step, source in readers)
    )


def alone(priced: CostedPlan) -> CostedPlan:
    """Return a plan with the price of running without what moves before it."""
    return replace(priced, cycles=replace(priced.cycles, relayout=0))
