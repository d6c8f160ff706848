"""Which plans of an operator a whole model may be fastest with: an estimate for every plan without rotation.

A front ranks an operator's plans alone, with a fetch before them. In a model, operands may lie where they are needed,
or be read by many. So plans are ranked by their *marginal*: the least cycles of a whole model that contains them. It is
the least sum, over the plans of all other operators, of

* what every operator takes alone, counted where it was counted, else bounded;
* what moving takes: a core must receive the elements that it needs more of than a core of the producer holds; where
  several cores need an element, all but one receive it. Something moves in any case where the producer runs on another
  number of cores, or leaves its result in chunks. The runs of such a phase are those of an operand's windows.

Pairs are looked at along a forest of the dataflow graph, on which the least sum is found exactly (message passing);
of other edges only what their reader takes from any producer counts. Bytes of memory are left out: they only forbid.
Marginals choose states; what is proved about a choice does not rest on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import AffineDim, Operand, OperatorSpec
from t10.core.geometry import chunk_slots_many, partition_elements
from t10.core.loads import Loads
from t10.core.movement import ArrivalCosts, Traffic, operand_of
from t10.core.plan import CostedPlan, OperatorPlan
from t10.cost import CostModel
from t10.cost.model import least_costs
from t10.plan.assemble import Context, input_layouts, linear_layout, read_layouts
from t10.plan.joint.keys import view_key
from t10.plan.joint.view_pairs import Piece, most_received, pieces_of
from t10.plan.memory.levels import spread_cores
from t10.plan.memory.liveness import unshaped
from t10.plan.movement.fetch import contiguous_runs
from t10.plan.options import PlanOptions
from t10.plan.search.alignment import align_pace
from t10.plan.search.evaluate import evaluate
from t10.plan.search.listed import costed, limits_bytes
from t10.plan.search.pareto import Front
from t10.plan.search.placement import place
from t10.plan.search.space import candidate_partitions

NEVER = np.iinfo(np.int64).max // 4
COUNTED_TOGETHER = 8
"""Candidates that are counted at a time."""
MOST_CLASSES = 256
"""Classes of candidates of either operator whose pairs are looked at."""
MOST_VIEWED = 128
"""Candidates of either operator whose pairs are looked at through views."""
LEADING_BITS = (12, 6, 4, 3, 2, 1)
MANY = 1 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """What the candidates of an operator need of an operand that another operator makes, one entry each.

    Elements that the busiest core needs, and that cores take on average wherever an element is once; on how many cores
    at least and at most something is needed.
    """

    wanted: Ints
    mean: Ints
    least_cores: Ints
    most_cores: Ints
    runs: Ints
    item_bytes: int
    n_elements: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """How an operand is read through views: the boxes of its sources where others lay out some of them."""

    kind: str
    key: object
    pieces: tuple[Piece, ...]


@dataclass(slots=True)
class Candidates:
    """All plans without rotation of operators that are equal and read alike, one entry each.

    `cycles` are those of an operator alone, with what weights and inputs take at least; counted where `is_counted`.
    What is read through views and lies the same way in any case is counted with them (`moved`).
    Results are cut in a grid where `is_grid`. They lie on `least_cores` at least and `cores` at most, up to `stored`
    elements on each.
    """

    spec: OperatorSpec
    rows: Ints
    is_whole: Bools
    is_grid: Bools
    cycles: Ints
    fixed_cycles: Ints
    is_counted: Bools
    cores: Ints
    least_cores: Ints
    stored: Ints
    readings: dict[int, Reading] = field(default_factory=dict[int, Reading])
    moved: Callable[[Ints], Ints] | None = None
    number_by_plan: dict[tuple[tuple[int, ...], bool], int] = field(init=False)

    def __post_init__(self) -> None:
        """Index the plans."""
        rows: list[list[int]] = self.rows.tolist()
        self.number_by_plan = {
            (tuple(row), bool(self.is_whole[number])): number for number, row in enumerate(rows)
        }

    def number_of(self, plan: OperatorPlan) -> int | None:
        """Return the candidate that differs from a plan in the order of cores only, None where it rotates."""
        if max(plan.steps) > 1:
            return None
        return self.number_by_plan.get((plan.f_op, plan.reduce == "all"))

    def plan(self, number: int) -> OperatorPlan | None:
        """Return a candidate as a plan, None where its cores cannot be numbered."""
        f_op = tuple(self.rows[number].tolist())
        ft = tuple((1,) * len(f_op) for _ in self.spec.rotatable)
        plan = place(self.spec, f_op, ft, align_pace(self.spec, f_op, ft))
        return replace(plan, reduce="all") if plan is not None and self.is_whole[number] else plan

    def count(self, cost: CostModel, numbers: Ints) -> None:
        """Count the cycles of some candidates."""
        new = numbers[~self.is_counted[numbers]]
        if not len(new):
            return
        found = evaluate(
            self.spec, cost, self.rows[new], _no_rotation(self.spec, len(new)), self.is_whole[new]
        )
        self.cycles[new] = found.cycles - found.relayout + self.fixed_cycles[new]
        if self.moved is not None:
            self.cycles[new] += self.moved(new)
        self.is_counted[new] = True


class Marginals:
    """The marginals of all candidates of a model."""

    def __init__(self, context: Context, fronts: Sequence[Front], options: PlanOptions) -> None:
        """List and bound the candidates; operators that are pinned have none, and bound nothing."""
        self.context = context
        n_cores = context.chip.n_cores
        self._fixed = {weight.name: linear_layout(weight, n_cores) for weight in context.graph.weights}
        self._fixed |= input_layouts(context)
        self._shapes = context.graph.shape_by_value
        self._laid_out = {
            value: context.graph.operators[step].operands[number].shape
            for value, (step, number) in context.reader_by_input.items()
        }
        step_by_value = {spec.output.name: step for step, spec in enumerate(context.graph.operators)}
        self.by_step: list[Candidates | None] = []
        known: dict[object, Candidates] = {}
        bounded: dict[int, _Bounded] = {}
        makers: list[dict[int, int]] = []
        seen: list[dict[int, _Seen]] = []
        self._maker_by_value = step_by_value | {
            value: step for value, (step, _) in context.reader_by_input.items()
        }
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
            views = self._seen(step, sources)
            sources = [views[number].kind if number in views else each for number, each in enumerate(sources)]
            key = id(front), context.owned[step], tuple(sources), tuple(view.key for view in views.values())
            if id(front) not in bounded:
                bounded[id(front)] = _bounded(context, spec, options)
            if key not in known:
                known[key] = _candidates(context, spec, bounded[id(front)], sources, context.owned[step])
                known[key].moved = self._moved_into(step, views)
            # One of which nothing fits is chosen among the plans of its front.
            self.by_step.append(known[key] if len(known[key].rows) else None)
            makers.append(made)
            seen.append(views)
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

    def ranked(self, step: int, plans: Sequence[OperatorPlan], most: int) -> Ints:
        """Return which of some plans have the least marginals, at most so many, whatever their order of cores."""
        found, values = self.by_step[step], self.of(step)
        numbers = [None if found is None else found.number_of(plan) for plan in plans]
        marginals = [NEVER if number is None else int(values[number]) for number in numbers]
        return np.argsort(np.array(marginals, np.int64), kind="stable")[:most]

    def best(self, step: int, most: int, *, of_each_size: bool) -> list[CostedPlan]:
        """Return at most so many plans of least marginals, counted, and the best of each size of a grid if asked for.

        Sizes are powers of two of cores, rounded up: what moves is estimated, and fewer cores receive fewer runs. If
        other operators read an input as this one lays it out, those cut along a single axis count besides.
        """
        found = self.by_step[step]
        if found is None:
            return []
        kinds = np.frexp(found.cores - 0.5)[1]
        if step in self._deciding and found.spec.axes:
            along = np.where((found.rows > 1).sum(axis=1) == 1, found.rows.argmax(axis=1) + 1, 0)
            kinds = kinds * (found.rows.shape[1] + 1) + along
        while True:
            order = np.argsort(self.of(step), kind="stable")
            chosen = order[:most]
            if of_each_size:
                chosen = np.union1d(chosen, order[np.unique(kinds[order], return_index=True)[1]])
            new = chosen[~found.is_counted[chosen]][:COUNTED_TOGETHER]
            if not len(new):
                return self.plans(step, chosen)
            found.count(self.context.cost, new)

    def plans(self, step: int, numbers: Ints) -> list[CostedPlan]:
        """Return candidates as plans with their costs, without what moves before them."""
        found = self.by_step[step]
        assert found is not None
        spec, ones = found.spec, _no_rotation(found.spec, len(numbers))
        priced = evaluate(spec, self.context.cost, found.rows[numbers], ones, found.is_whole[numbers])
        result: list[CostedPlan] = []
        for row, number in enumerate(numbers.tolist()):
            plan = found.plan(number)
            if plan is not None:
                result.append(alone(costed(plan, priced, row)))
        return result

    def _seen(self, step: int, sources: Sequence[str]) -> dict[int, _Seen]:
        """Return how operands are read through views, where that can be said of boxes of their sources."""
        context = self.context
        spec, found = context.graph.operators[step], dict[int, _Seen]()
        for number, operand in enumerate(spec.operands):
            direct = unshaped(operand.name, context.reshapes)
            if sources[number] == "fixed" and direct in self._fixed and number not in context.owned[step]:
                found[number] = _Seen("even", self._view_key(step, operand.name), ())
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
            decided = context.reader_by_input.get(source)
            return maker == step, maker is None, decided and decided[1], shapes[source]

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
                plan = found.plan(number)
                if plan is None:
                    continue
                layouts = self._fixed | read_layouts(context, step, plan)
                cycles[row] = sum(context.mover.bound(spec, plan, each, layouts) for each in numbers)
            return cycles

        return moved

    def _forest(self, makers: Sequence[dict[int, int]], seen: Sequence[dict[int, _Seen]]) -> None:
        """Choose the edges of which pairs are looked at, those of most bytes first."""
        self._neighbours: list[list[tuple[int, Ints, Ints, Ints]]] = [[] for _ in self.by_step]
        self._extra: list[Ints | int] = [0 for _ in self.by_step]
        root = list(range(len(self.by_step)))
        tables: dict[object, tuple[Ints, Ints, Ints]] = {}
        values = {spec.output.name: len(spec.operands) for spec in self.context.graph.operators}
        values |= {value: number for value, (_, number) in self.context.reader_by_input.items()}

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
                    _viewed_pairs(self.context, producer, reader, (values[source], number), pieces)
                    if pieces
                    else _pairs(self.context, producer, reader, reading)
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
                size = size_bytes(candidates.spec.operands[number].dtype)
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


def _deciding(context: Context) -> frozenset[int]:
    """Return the operators that lay out inputs which others read too."""
    graph = context.graph
    readers = [
        (step, source)
        for step, spec in enumerate(graph.operators)
        for operand in spec.operands
        for source in graph.sources_of(operand.name)
    ]
    return frozenset(
        decides
        for value, (decides, _) in context.reader_by_input.items()
        if any(source == value and step != decides for step, source in readers)
    )


def alone(priced: CostedPlan) -> CostedPlan:
    """Return a plan with the price of running without what moves before it."""
    return replace(priced, cycles=replace(priced.cycles, relayout=0))


def _no_rotation(spec: OperatorSpec, n: int) -> Ints:
    return np.ones((n, len(spec.rotatable), len(spec.axes)), np.int64)


@dataclass(frozen=True, slots=True)
class _Bounded:
    """The plans without rotation of an operator that may fit: bounds of cycles without what moves before them."""

    rows: Ints
    is_whole: Bools
    cycles: Ints


def _bounded(context: Context, spec: OperatorSpec, options: PlanOptions) -> _Bounded:
    """Return the plans without rotation of an operator, those whose sums are whole on all their cores last."""
    chip = context.chip
    rows = candidate_partitions(spec, chip.n_cores, options)
    members = rows[:, list(spec.reduction_axes)].prod(axis=1)
    gathers = (members > 1) & ((members - 1) * size_bytes(spec.acc_dtype) <= chip.shift_buffer_bytes)
    is_whole = np.repeat([False, True], [len(rows), int(gathers.sum())])
    rows = np.concatenate([rows, rows[gathers]])
    least = evaluate(spec, least_costs(context.cost), rows, _no_rotation(spec, len(rows)), is_whole)
    fits = least.active_bytes <= limits_bytes(chip)[0]
    return _Bounded(rows[fits], is_whole[fits], (least.cycles - least.relayout)[fits])


def _candidates(
    context: Context, spec: OperatorSpec, bounded: _Bounded, sources: Sequence[str], owned: tuple[int, ...]
) -> Candidates:
    """Return the candidates of an operator whose operands are made by others, fixed, or seen through views."""
    rows, is_whole = bounded.rows, bounded.is_whole
    cores, members = rows.prod(axis=1), rows[:, list(spec.reduction_axes)].prod(axis=1)
    windows = partition_elements(spec.output, -(-np.array(spec.extents) // rows))
    fixed, least = (np.zeros(len(rows), np.int64) for _ in range(2))
    readings: dict[int, Reading] = {}
    for number, (operand, source) in enumerate(zip(spec.operands, sources, strict=True)):
        if number in owned:
            continue
        reading = _reading(spec, operand, rows)
        if source in ("made", "of others"):
            readings[number] = reading
        elif source == "even":
            here = -(
                -reading.n_elements // spread_cores(reading.n_elements, operand.dtype, context.chip.n_cores)
            )
            least += _cycles(
                context, np.maximum(reading.wanted - here, 0), reading.item_bytes, np.ones_like(cores)
            )
        elif source != "of its own":
            n_received = reading.wanted if source == "viewed" else reading.mean
            fixed += _cycles(context, n_received, reading.item_bytes, reading.runs)
    return Candidates(
        spec=spec,
        rows=rows,
        is_whole=is_whole,
        is_grid=is_whole | (members == 1) | leaves_grid(spec, rows),
        cycles=bounded.cycles + fixed + least,
        fixed_cycles=fixed,
        is_counted=np.zeros(len(rows), np.bool_),
        cores=cores,
        least_cores=cores // members,
        stored=np.where(is_whole, windows, chunk_slots_many(windows, members)),
        readings=readings,
    )


def leaves_grid(spec: OperatorSpec, rows: Ints) -> Bools:
    """Return which F_op leave chunks that are slices of the first long dim of a part (see `producer_layouts`)."""
    members = rows[:, list(spec.reduction_axes)].prod(axis=1)
    lengths = -(-np.array(spec.extents) // rows)
    is_slice, is_found = (np.zeros(len(rows), np.bool_) for _ in range(2))
    for axis in (dim.axes[0] for dim in spec.output.dims if dim.terms):
        here = ~is_found & (lengths[:, axis] > 1)
        is_slice |= here & (lengths[:, axis] % members == 0)
        is_found |= here
    return is_slice


def _reading(spec: OperatorSpec, operand: Operand, rows: Ints) -> Reading:
    """Return what an operand needs by candidates; only elements of the value count, no padding."""
    lengths = -(-np.array(spec.extents) // rows)
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
            counts = [_n_positions(dim, size, lengths[row], starts[row]) for row in first.tolist()]
            wanted *= np.array(counts, np.int64)[which.reshape(-1)]
            n_read *= _n_positions(dim, size, np.array(spec.extents), np.zeros(len(spec.axes), np.int64))
    cores = rows.prod(axis=1)
    named = [axis for dim in operand.dims for axis in dim.axes]
    is_plain = len(named) == len(set(named))
    is_even = all(
        dim.is_simple and spec.extents[dim.axes[0]] <= size
        for dim, size in zip(operand.dims, operand.shape, strict=True)
        if dim.terms
    )
    sharers = cores // rows[:, sorted(operand.axes)].prod(axis=1)
    return Reading(
        wanted=wanted,
        mean=-(-n_read * (sharers - 1) // cores) if is_plain else np.zeros_like(cores),
        least_cores=cores if is_even else np.ones_like(cores),
        most_cores=cores if is_plain and n_read == prod(operand.shape) else np.full_like(cores, NEVER),
        runs=contiguous_runs(operand, lengths),
        item_bytes=size_bytes(operand.dtype),
        n_elements=prod(operand.shape),
    )


def _n_positions(dim: AffineDim, size: int, lengths: Ints, starts: Ints) -> int:
    """Return how many positions of a dim of a tensor windows read that begin at `starts`."""
    positions = {dim.offset}
    for term in dim.terms:
        first, n = int(starts[term.axis]), int(lengths[term.axis])
        steps = range(term.coefficient * first, term.coefficient * (first + n), term.coefficient)
        positions = {position + step for position in positions for step in steps}
    return sum(0 <= position < size for position in positions)


def _pairs(
    context: Context, producer: Candidates, reader: Candidates, reading: Reading
) -> tuple[Ints, Ints, Ints]:
    """Return which candidates of both are alike, and the least cycles between these (producer's, reader's)."""
    made, of_producer = _classes(
        (
            producer.cores,
            producer.stored,
            producer.is_whole.astype(np.int64),
            producer.is_grid.astype(np.int64),
        ),
        (producer.least_cores,),
    )
    read, of_reader = _classes(
        (reading.most_cores,), (reading.least_cores, reading.wanted, reading.mean, reading.runs)
    )
    cores, stored, is_whole, is_grid, least_cores = made[:, :, None]
    needed_most, needed_least, wanted, mean, runs = read[:, None, :]
    # Sums that are whole on all their cores are there several times.
    moves = (needed_least > cores) | ((needed_most < least_cores) & (is_whole == 0)) | (is_grid == 0)
    received = np.maximum(np.maximum(wanted - stored, np.where(is_whole, 0, mean)), moves)
    return of_producer, of_reader, _cycles(context, received, reading.item_bytes, runs)


def _viewed_pairs(
    context: Context,
    producer: Candidates,
    reader: Candidates,
    numbers: tuple[int, int],
    pieces: Sequence[Piece],
) -> tuple[Ints, Ints, Ints]:
    """Return what `_pairs` does for boxes of operand (or result) `numbers[0]` read as operand `numbers[1]`.

    Those that take least alone are looked at; with all others, a reader receives what it needs.
    """
    made, made_rows = operand_of(producer.spec, numbers[0]), _fastest_alone(producer)
    read, read_rows = operand_of(reader.spec, numbers[1]), _fastest_alone(reader)
    reading, rows = reader.readings[numbers[1]], producer.rows[made_rows]
    stored = producer.stored[made_rows]
    if numbers[0] < len(producer.spec.operands):
        # Replicas share the parts of an input.
        replicas = rows.prod(axis=1) // rows[:, sorted(made.axes)].prod(axis=1)
        stored = -(-partition_elements(made, -(-np.array(producer.spec.extents) // rows)) // replicas)
    most = most_received(
        pieces, (producer.spec, made, rows, stored), (reader.spec, read, reader.rows[read_rows])
    )
    cycles = _cycles(context, most, reading.item_bytes, reading.runs[read_rows])
    whole = _cycles(context, reading.wanted, reading.item_bytes, reading.runs)
    of_producer = np.full(len(producer.rows), len(made_rows))
    of_producer[made_rows] = np.arange(len(made_rows))
    # Those that were not looked at are classes by what they need.
    values, of_reader = np.unique(whole, return_inverse=True)
    of_reader = of_reader.reshape(-1) + len(read_rows)
    of_reader[read_rows] = np.arange(len(read_rows))
    table = np.empty((len(made_rows) + 1, len(read_rows) + len(values)), np.int64)
    table[:, : len(read_rows)] = whole[read_rows]
    table[:, len(read_rows) :] = values
    table[:-1, : len(read_rows)] = cycles
    return of_producer, of_reader, table


def _fastest_alone(candidates: Candidates) -> Ints:
    """Return the candidates of which pairs are looked at through views."""
    return np.sort(np.argsort(candidates.cycles, kind="stable")[:MOST_VIEWED])


def _classes(at_most: Sequence[Ints], at_least: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return numbers of classes (numbers, classes), and of which class each candidate is.

    Where there are too many, numbers keep fewer leading bits: those at most are rounded up, those at least down.
    """
    columns = [*((each, 1) for each in at_most), *((each, 0) for each in at_least)]
    classes = of_candidate = np.zeros(0, np.int64)
    for bits in LEADING_BITS:
        classes = np.stack([_rounded(numbers, bits, up) for numbers, up in columns])
        code = np.zeros(classes.shape[1], np.int64)
        for row in classes:
            values, which = np.unique(row, return_inverse=True)
            code = np.unique(code * len(values) + which, return_inverse=True)[1]
        first, of_candidate = np.unique(code, return_index=True, return_inverse=True)[1:]
        classes = classes[:, first]
        if len(first) <= MOST_CLASSES:
            break
    return classes, of_candidate


def _rounded(numbers: Ints, bits: int, up: int) -> Ints:
    """Return numbers with so many leading bits, rounded up or down."""
    unit = np.int64(1) << np.maximum(np.frexp(numbers.astype(np.float64))[1] - bits, 0)
    return (numbers + up * (unit - 1)) // unit * unit


def _cycles(context: Context, received: Ints, item_bytes: int, runs: Ints) -> Ints:
    """Return about what exchange phases take in which some core receives so many elements in so many runs."""
    one, many = (_phase_cycles(context, n, item_bytes) for n in (1, 1 + MANY))
    further = np.maximum(received - 1, 0) * (many - one) // MANY
    runs_cycles = (runs - 1) * context.chip.fragment_cycles
    return np.where(received > 0, one + further + runs_cycles, 0)


def _phase_cycles(context: Context, received: int, item_bytes: int) -> int:
    """Return the cycles of a phase in which a core receives so many elements, with a short copy on either side."""
    chip = context.chip
    words = -(-received * item_bytes // chip.exchange_bytes_per_cycle)
    loads = Loads(port_cycles=words + chip.fragment_cycles, gather_cycles=1, settle_cycles=1)
    return ArrivalCosts(context.cost).cycles(Traffic(received, 0, 1, received, 0, loads), item_bytes)
