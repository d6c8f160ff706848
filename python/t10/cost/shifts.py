"""What shifts take on an IPU's exchange: round by round, as programs make them (`t10.core.shift_rounds`).

Where all that a core takes comes from one other, or no two of its transfers take equally long, no port waits for
another, and one core of every kind stands for all. Elsewhere transfers are scheduled: those of one group of connected
rings of every kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import inf, lcm, prod

import numpy as np
from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core import geometry
from t10.core.arrays import Ints, different_rows
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.loads import Loads, Places, core_loads, phase_loads
from t10.core.operator_body import rotating_operands
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.core.shift_rounds import (
    EVEN_BYTES,
    Passage,
    alike_indices,
    first_indices,
    replaced_slots,
    rotating_dtype,
    shift_bytes,
    shift_rounds,
)
from t10.cost.crossing import with_crossing
from t10.cost.exchange import exchange_rates, phase_cycles

KEPT_SHIFTS = KEPT_PHASES = 1 << 14
KEPT_SOURCES = 64
KEPT_TAKEN = 256
MOST_PARTS = 1 << 17
PARTS_PER_CORE = 64
"""Parts that transfers are cut into while they are scheduled, at most, and of one core."""
NO_FILLS = np.zeros((0, 4), np.int32)


def nest_shifts(
    spec: OperatorSpec, plan: OperatorPlan, *, is_apart: bool = True
) -> Iterator[tuple[int, Shift]]:
    """Yield the different shifts of a plan's loops, and how often each is made.

    Where the shift buffer shares no memory elements with what rotates (`is_apart`), shifts are alike whose slots are
    whole words of eight bytes apart.
    """
    rotating = rotating_operands(plan)
    n_sweeps = 1
    for axis in plan.loop_order:
        n_steps, operands = plan.steps[axis], rotating[axis]
        period = min(shift_period(spec, plan, axis, operands, is_apart=is_apart), n_steps)
        there, back = -(-n_sweeps // 2), n_sweeps // 2
        for position in range(min(period, n_steps - 1)):
            n = len(range(position, n_steps - 1, period))
            yield there * n, _shift(plan, axis, operands, position, position + 1)
        for position in range(1, min(period + 1, n_steps)):
            n = len(range(position, n_steps, period))
            if back:
                yield back * n, _shift(plan, axis, operands, position, position - 1)
        n_sweeps *= n_steps


def _shift(plan: OperatorPlan, axis: int, operands: tuple[int, ...], position: int, stop: int) -> Shift:
    positions = [0] * len(plan.steps)
    positions[axis] = position
    return Shift(operands, axis, tuple(positions), stop)


def shift_period(
    spec: OperatorSpec, plan: OperatorPlan, axis: int, operands: tuple[int, ...], *, is_apart: bool
) -> int:
    """Return after how many positions shifts along an axis are alike again."""
    period, pace = 1, plan.rp[axis]
    is_whole = begins_whole(plan, axis)
    for number in operands:
        operand, lengths = spec.rotatable[number], geometry.window_lengths(plan, number)
        if axis not in operand.simple_axes or lengths[axis] == pace:
            continue
        extents = geometry.partition_shape(operand, lengths)
        strides = (prod(extents[d + 1 :]) for d, dim in enumerate(operand.dims) if axis in dim.axes)
        step_bytes = pace * sum(strides) * size_bytes(rotating_dtype(spec, number))
        is_even = lengths[axis] % pace == 0 and step_bytes % EVEN_BYTES == 0
        if not (is_apart and is_whole and is_even):
            period = lcm(period, lcm(lengths[axis], pace) // pace)
    return period


def begins_whole(plan: OperatorPlan, axis: int) -> bool:
    """Return whether the windows of all cores begin at whole paces along an axis."""
    pace, terms = plan.rp[axis], plan.phases[axis]
    if plan.lengths[axis] % pace == 0 and all(term.stride % pace == 0 for term in terms):
        return True
    return not (geometry.phases(plan)[:, axis] % pace).any()


def nest_cycles(
    chip: ChipSpec,
    spec: OperatorSpec,
    plan: OperatorPlan,
    places: Places | None = None,
    least: Callable[[int], int] | None = None,
    most: float = inf,
) -> int:
    """Return the cycles of all shifts of a plan's loops; see `round_cycles`.

    Or a lower bound above `most`, where `least` says the least that a shift of so many bytes takes.
    """
    shifts = list(nest_shifts(spec, plan, is_apart=places is None))
    # All shifts along an axis move the same bytes.
    by_axis = {statement.axis: statement for _, statement in shifts}
    bound_by_axis = {
        axis: least(shift_bytes(spec, plan, each)) if least else 0 for axis, each in by_axis.items()
    }
    bounds = [bound_by_axis[statement.axis] for _, statement in shifts]
    total = sum(n * bound for (n, _), bound in zip(shifts, bounds, strict=True))
    for (n, statement), bound in zip(shifts, bounds, strict=True):
        if total > most:
            break
        total += n * (sum(round_cycles(chip, spec, plan, statement, places)) - bound)
    return total


@lru_cache(maxsize=KEPT_SHIFTS)
def round_cycles(
    chip: ChipSpec, spec: OperatorSpec, plan: OperatorPlan, statement: Shift, places: Places | None = None
) -> tuple[int, ...]:
    """Return the cycles of a shift by round.

    `places` says where the shift buffer and all rotatable operands lie, where what rotates shares memory elements with
    the buffer.
    """
    return tuple(
        sum(_passage_cycles(chip, spec, plan, statement, passage, places) for passage in passages)
        for passages in shift_rounds(spec, plan, statement, chip.shift_buffer_bytes)
    )


def _passage_cycles(
    chip: ChipSpec,
    spec: OperatorSpec,
    plan: OperatorPlan,
    statement: Shift,
    passage: Passage,
    places: Places | None,
) -> int:
    """Return the cycles of an exchange into the shift buffer, and of copying all that it brought to its place."""
    item_bytes = size_bytes(passage.dtype)
    taken = _Taken(spec, plan, statement, passage, is_apart=places is None)
    if places is not None:
        sources = tuple([places.sources[part.number] for part in passage.parts])
        places = Places(places.element_bytes, places.interleaved_offset, places.target, sources)
    loads = None if places else _alike_loads(taken, chip)
    if loads is None:
        loads = phase_loads(
            taken.moves_of(taken.different_cores()),
            NO_FILLS,
            plan.n_cores,
            item_bytes,
            exchange_rates(chip),
            places,
        )
    loads = with_crossing(chip, spec, plan, statement, passage, loads)
    total = phase_cycles(chip, loads, is_neighbour=True)
    return total + _copy_cycles(taken, chip)


class _Taken:
    """What every core takes in one exchange of a shift: parts from indices `first` (cores, parts) on.

    Equal are those of which all is equal but the cores that are of a kind.
    """

    def __init__(
        self, spec: OperatorSpec, plan: OperatorPlan, statement: Shift, passage: Passage, *, is_apart: bool
    ) -> None:
        self.spec, self.plan, self.statement, self.passage = spec, plan, statement, passage
        self.item_bytes = size_bytes(passage.dtype)
        first = [first_indices(spec, plan, part.number, statement) for part in passage.parts]
        if is_apart:
            first = [
                alike_indices(spec, plan, part.number, statement.axis, each)
                for part, each in zip(passage.parts, first, strict=True)
            ]
        self.first = np.stack(first, axis=1)
        key: Ints = np.zeros(plan.n_cores, np.int64)
        for column in self.first.T:
            key = key * (int(column.max()) + 1) + column
        self.kinds = self.first[np.unique(key, return_index=True)[1]]
        self.runs: dict[tuple[int, int], tuple[Ints, Ints]] = {}

        self.key = spec, plan, statement.axis, statement.direction, passage, self.kinds.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Taken) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def sources(self) -> tuple[Ints, ...]:
        """Return by part from which core each core takes it."""
        axis, direction = self.statement.axis, self.statement.direction
        return tuple(
            _sources(self.spec, self.plan, part.number, axis, direction) for part in self.passage.parts
        )

    def alike(self, chip: ChipSpec) -> Loads | None:
        """Return the loads of all cores, from those of one of each kind; None where ports may wait for others."""
        n = len(self.passage.parts)
        sources = list(self.sources) if n > 1 else []
        if all((each == sources[0]).all() for each in sources[1:]):
            own = 2 * np.arange(len(self.kinds))
            moves = _sorted([each for part in range(n) for each in self._each(part, own + 1, own)])
            return _kept_loads(moves.tobytes(), 2 * len(self.kinds), self.item_bytes, chip)
        if any((one == other).any() for one, other in combinations(sources, 2)):
            return None
        # One core takes from as many others as there are operands, and sends to as many.
        n_each = 2 * n + 1
        own = n_each * np.arange(len(self.kinds))
        rows: list[Ints] = []
        for part in range(n):
            rows += self._each(part, own + 1 + part, own)
            rows += self._each(part, own, own + 1 + n + part)
        moves = _sorted(rows)
        table = core_loads(moves, NO_FILLS, n_each * len(self.kinds), self.item_bytes, exchange_rates(chip))
        table = table.reshape(len(self.kinds), n_each, 4)
        cycles = table[:, 1 : n + 1, 1]
        if (cycles != cycles[0]).any() or len(set(cycles[0].tolist())) < n:
            return None
        rates = exchange_rates(chip)
        gathered, settled = (rates.launched(int(table[:, 0, column].max())) for column in (0, 3))
        return Loads(int(cycles[0].sum()), gathered, settled)

    def different_cores(self) -> Ints:
        """Return the cores of one group of connected rings of every kind: others differ in their first core only."""
        n_cores = self.plan.n_cores
        everyone: Ints = np.arange(n_cores, dtype=np.int64)
        if n_cores * PARTS_PER_CORE > MOST_PARTS:
            return everyone
        label = _connected(self.sources)
        begins, sizes = np.unique(label, return_counts=True)
        if (sizes != sizes[0]).any():
            return everyone
        members = np.argsort(label, kind="stable").reshape(len(begins), -1)
        kinds = [(each - begins[:, None])[:, :] for each in (members, *(s[members] for s in self.sources))]
        kinds += [first[members] for first in self.first.T]
        chosen = different_rows(np.concatenate(kinds, axis=1))
        # Distances between cores are counted round the last of them.
        last = int(np.flatnonzero(begins == label[-1])[0])
        return np.sort(members[sorted({last, *chosen.tolist()})].reshape(-1))

    def moves_of(self, cores: Ints) -> NDArray[np.int32]:
        """Return what some cores take, rows as `t10.core.loads.phase_loads` has them."""
        rows: list[Ints] = []
        for part, source in enumerate(self.sources):
            firsts = self.first[cores, part]
            for first in np.unique(firsts).tolist():
                targets = cores[firsts == first]
                rows.append(self._rows(part, first, source[targets], targets))
        return _sorted(rows)

    def copies(self) -> Iterator[tuple[NDArray[np.int32], int]]:
        """Yield by operand what cores of every kind copy out of the buffer, and how many cores those are."""
        for part in range(len(self.passage.parts)):
            kinds = np.unique(self.kinds[:, part]).tolist()
            rows: list[Ints] = []
            for core, first in enumerate(kinds):
                here: Ints = np.array([core])
                rows.append(self._rows(part, first, here, here)[:, [0, 1, 4, 3, 2, 5]])
            yield np.concatenate(rows).astype(np.int32), len(kinds)

    def _rows(self, part: int, first: int, sources: Ints, targets: Ints) -> Ints:
        """Return the moves of a part between pairs of cores."""
        starts, lengths = self._runs(part, first)
        begin = self.passage.begin + sum(each.n_elements for each in self.passage.parts[:part])
        here = begin + np.cumsum(lengths) - lengths
        moves = np.empty((len(targets), len(starts), 6), np.int64)
        for column, each in enumerate((part, sources[:, None], starts, targets[:, None], here, lengths)):
            moves[:, :, column] = each
        return moves.reshape(-1, 6)

    def _each(self, part: int, sources: Ints, targets: Ints) -> Iterator[Ints]:
        """Yield the moves of a part between as many pairs of cores as there are kinds."""
        firsts = self.kinds[:, part]
        for first in np.unique(firsts).tolist():
            yield self._rows(part, first, sources[firsts == first], targets[firsts == first])

    def _runs(self, part: int, first: int) -> tuple[Ints, Ints]:
        """Return where runs of the slots of a part begin, and their lengths."""
        if (part, first) not in self.runs:
            each = self.passage.parts[part]
            row = np.array([first], np.int64)
            slots = replaced_slots(self.spec, self.plan, each.number, self.statement.axis, row)[0]
            slots = slots[each.first : each.last]
            begins = np.flatnonzero(np.diff(slots, prepend=slots[0] - 2) != 1)
            self.runs[part, first] = slots[begins], np.diff(begins, append=len(slots))
        return self.runs[part, first]


@lru_cache(maxsize=KEPT_TAKEN)
def _alike_loads(taken: _Taken, chip: ChipSpec) -> Loads | None:
    return taken.alike(chip)


@lru_cache(maxsize=KEPT_TAKEN)
def _copy_cycles(taken: _Taken, chip: ChipSpec) -> int:
    """Return the cycles of copying all that came to its place."""
    return sum(
        phase_cycles(chip, _kept_loads(moves.tobytes(), n_cores, taken.item_bytes, chip))
        for moves, n_cores in taken.copies()
    )


def _sorted(rows: Sequence[Ints]) -> NDArray[np.int32]:
    """Return moves by core here, then slot."""
    moves = np.concatenate(rows)
    return moves[np.lexsort((moves[:, 4], moves[:, 3]))].astype(np.int32)


def _connected(sources: Sequence[Ints]) -> Ints:
    """Return by core the first of those that it is connected with."""
    label: Ints = np.arange(len(sources[0]), dtype=np.int64)
    while True:
        before = label
        for each in sources:
            label = np.minimum(label, label[each])
            other = label.copy()
            other[each] = np.minimum(label[each], label)
            label = other[other]
        if (label == before).all():
            return label


@lru_cache(maxsize=KEPT_SOURCES)
def _sources(spec: OperatorSpec, plan: OperatorPlan, number: int, axis: int, direction: int) -> Ints:
    return geometry.shift_sources(spec, plan, number, axis, direction)


@lru_cache(maxsize=KEPT_PHASES)
def _kept_loads(moves: bytes, n_cores: int, item_bytes: int, chip: ChipSpec) -> Loads:
    rows = np.frombuffer(moves, np.int32).reshape(-1, 6)
    return phase_loads(rows, NO_FILLS, n_cores, item_bytes, exchange_rates(chip))
