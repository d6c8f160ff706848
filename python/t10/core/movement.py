"""Who must send what to whom: element maps of layouts and the routes between them.

An *element map* has one row per core and one column per slot (flattened partition) and holds the row-major number
of the element in that slot, -1 where the slot holds none. Views are read through: their element numbers are
replaced by those of the values they rename.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.chunks import chunk_slots, window_chunk
from t10.core.dtypes import numpy_dtype
from t10.core.expression import Operand, OperatorSpec
from t10.core.graph import Graph, View
from t10.core.loads import Loads, MoveRates, Places
from t10.core.plan import OperatorPlan, final_positions
from t10.core.products import zero_padded_axes
from t10.core.scalar import parse_constant
from t10.core.schedule import ValueLayout

Elements = NDArray[np.int64]
NO_LOADS = Loads()


@dataclass(frozen=True, slots=True)
class ElementMap:
    """`elements` (cores, slots): element number or -1; `copies` (cores,): which complete copy a core belongs to."""

    elements: NDArray[np.int32]
    copies: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ViewElements:
    """A value read through its views.

    `ids` has the value's shape and numbers elements of `sources` laid end to end; `-1 - k` stands for
    `constants[k]` (a constant's spelling).
    """

    ids: Elements
    sources: tuple[str, ...]
    constants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a route moves: most elements any core receives and sends, and most separate fragments.

    `copied_elements` is the most slots any core fills by itself: copies of what it holds, constants and padding. An
    element that several cores take is sent once: the exchange multicasts (timing reference). `loads` are 0 where they
    were not asked for.
    """

    received_elements: int
    sent_elements: int
    fragments: int
    total_elements: int
    copied_elements: int
    loads: Loads = NO_LOADS


class MoveCosts(Protocol):
    """What every cost model says of an exchange phase of arbitrary pattern."""

    def exchange_cycles(self, max_bytes: int, fragments: int, *, neighbour: bool) -> int:
        """Return the cycles of one exchange phase in which no core sends or receives more than `max_bytes`.

        `fragments` is the most separate contiguous runs of any core; `neighbour` says that every core talks to a ring
        neighbour only. A phase that moves nothing takes no time.
        """
        ...

    def copy_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core copies or fills at most `n_bytes` of its own memory."""
        ...


@runtime_checkable
class LoadCosts(Protocol):
    """What a cost model says that looks closer: at which rates loads are counted, and what a phase with them takes."""

    @property
    def move_rates(self) -> MoveRates | None:
        """Return the rates, None for a model that does not look closer."""
        ...

    def move_cycles(self, loads: Loads, *, is_joined: bool = False) -> int:
        """Return the cycles of an exchange phase with these loads, and of the work inside cores around it.

        What `is_joined` to transfers that end just before is part of their phase, which began with them.
        """
        ...


class ArrivalCosts:
    """What relayouts and set-ups take by a cost model, whether it looks at loads or not."""

    __slots__ = ("_close", "_plain", "rates")

    def __init__(self, costs: MoveCosts) -> None:
        """Ask the model once whether it looks at loads; `rates` are those at which they are to be counted, if so."""
        rates = costs.move_rates if isinstance(costs, LoadCosts) else None
        self._plain = costs
        self._close = costs if isinstance(costs, LoadCosts) and rates is not None else None
        self.rates = rates

    def cycles(self, moved: Traffic, item_bytes: int, *, is_joined: bool = False) -> int:
        """Return the cycles of an arrival that moves elements of `item_bytes`, by itself or joined to others.

        Models that do not look at loads count a phase for every arrival.
        """
        if self._close is not None:
            return self._close.move_cycles(moved.loads, is_joined=is_joined)
        n_bytes = max(moved.received_elements, moved.sent_elements) * item_bytes
        cycles = self._plain.exchange_cycles(n_bytes, moved.fragments, neighbour=False)
        return cycles + self._plain.copy_cycles(moved.copied_elements * item_bytes)


def is_padded(spec: OperatorSpec, operand: Operand, plan: OperatorPlan) -> bool:
    """Return whether slots outside the tensor are read, so that padding must be in them.

    Windows slide over them, the loop goes on past a dim's end, or a product sums over parts of equal length.
    """
    if any(operand is one for one in spec.inputs) and operand.axes & zero_padded_axes(spec, plan):
        return True
    return any(
        not dim.is_simple or spec.axes[dim.terms[0].axis].extent > extent
        for dim, extent in zip(operand.dims, operand.shape, strict=True)
        if dim.terms
    )


def operand_of(spec: OperatorSpec, number: int) -> Operand:
    """Return operand `number` of a spec: inputs, then epilogue inputs, then the output."""
    return (*spec.operands, spec.output)[number]


def operand_elements(spec: OperatorSpec, plan: OperatorPlan, number: int) -> NDArray[np.int32]:
    """Return the element in every slot of an operand's partition, shape (cores, *partition); -1 outside.

    Inputs: as they lie before the first step. Epilogue inputs and the output: as the output lies after the last.
    """
    slot, starts = _lies(spec, plan, number)
    lengths = geometry.window_lengths(plan, slot)
    return geometry.flat_elements(operand_of(spec, number), lengths, plan, starts)


def operand_parts(spec: OperatorSpec, plan: OperatorPlan, number: int) -> tuple[Ints, ...]:
    """Return the same dim by dim, as `geometry.element_parts`."""
    slot, starts = _lies(spec, plan, number)
    lengths = geometry.window_lengths(plan, slot)
    return geometry.element_parts(operand_of(spec, number), lengths, plan, starts)


def _lies(spec: OperatorSpec, plan: OperatorPlan, number: int) -> tuple[int, Ints]:
    """Return the rotatable operand whose windows an operand follows, and where they start."""
    at_start = number < len(spec.inputs)
    slot = number if at_start else len(spec.inputs)
    positions = (0,) * len(plan.f_op) if at_start else final_positions(plan)
    return slot, geometry.window_starts(plan, slot, positions)


def layout_map(spec: OperatorSpec | None, layout: ValueLayout, n_elements: int) -> ElementMap:
    """Return the element map of a layout; `spec` is the operator of an `operand` layout, None for `linear`."""
    if layout.plan is None or spec is None:
        chunk = chunk_slots(n_elements, layout.n_cores)
        n_cores = -(-n_elements // chunk)
        ids = np.arange(n_cores * chunk, dtype=np.int32).reshape(n_cores, chunk)
        return ElementMap(np.where(ids < n_elements, ids, np.int32(-1)), np.zeros(n_cores, np.int64))
    plan = layout.plan
    elements = operand_elements(spec, plan, layout.operand).reshape(plan.n_cores, -1)
    slot = layout.operand if layout.operand < len(spec.inputs) else len(spec.inputs)
    ranks = geometry.replica_ranks(operand_of(spec, layout.operand), plan, slot)
    if layout.scatter == 1:
        return ElementMap(elements, ranks)
    return ElementMap(scattered(elements, ranks % layout.scatter, layout.scatter), ranks // layout.scatter)


def scattered(
    elements: NDArray[np.int32], chunk_numbers: NDArray[np.int64], scatter: int
) -> NDArray[np.int32]:
    """Return chunk `chunk_numbers[core]` of every core's slots, shape (cores, ceil(slots / scatter)); -1 pads."""
    n_cores, n_slots = elements.shape
    length = window_chunk(n_slots, scatter)
    whole = elements
    if n_slots < scatter * length:
        whole = np.full((n_cores, scatter * length), -1, np.int32)
        whole[:, :n_slots] = elements
    return whole.reshape(n_cores, scatter, length)[np.arange(n_cores), chunk_numbers]


def different_constants(constants: Sequence[str], dtype: str) -> tuple[tuple[str, ...], list[int]]:
    """Return constants of different bits in a type, in order, and the number of each of those given among them.

    What is filled alike is filled together, whether views or an operand's padding say so, and however it is spelled.
    """
    bits = [np.array(parse_constant(each)).astype(numpy_dtype(dtype)).tobytes() for each in constants]
    first = dict(zip(reversed(bits), reversed(constants), strict=True))
    order = {each: number for number, each in enumerate(dict.fromkeys(bits))}
    return tuple(first[each] for each in order), [order[each] for each in bits]


def constant_numbers(constants: Sequence[str], padding: str, dtype: str) -> tuple[int, ...]:
    """Return numbers of constants of a view, alike for equal ones; 0 is that of the padding, zero if not said."""
    _, (_, *numbers) = different_constants((padding or "0", *constants), dtype)
    return tuple(numbers)


def view_elements(graph: Graph, value: str) -> ViewElements:
    """Return the elements of a value read through all its views, down to inputs, weights and operator results."""
    ids, constants = view_ids(graph, value, np.int64)
    return ViewElements(ids, graph.sources_of(value), constants)


def view_ids(
    graph: Graph, value: str, dtype: type[np.int64] | type[np.int32]
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Return the numbers and the constants of `view_elements`; a narrow type, if it holds them, takes less memory."""
    views = {view.name: view for view in graph.views}
    sources = graph.sources_of(value)
    shapes = graph.shape_by_value
    first_by_source: dict[str, int] = {}
    n_before = 0
    for source in sources:
        first_by_source[source] = n_before
        n_before += prod(shapes[source])
    constants: dict[str, int] = {}

    def resolve(name: str) -> NDArray[Any]:
        view = views.get(name)
        if view is None:
            shape = shapes[name]
            first = first_by_source[name]
            return np.arange(first, first + prod(shape), dtype=dtype).reshape(shape)
        return _apply(view, [resolve(source) for source in view.sources], constants)

    return resolve(value), tuple(constants)


def _apply(view: View, sources: list[NDArray[Any]], constants: dict[str, int]) -> NDArray[Any]:
    """Return the element numbers of a view from those of its sources; new constants are entered in `constants`."""
    if view.kind == "reshape":
        return sources[0].reshape(view.shape)
    if view.kind == "transpose":
        return sources[0].transpose(view.permutation)
    if view.kind == "concat":
        return np.concatenate(sources, axis=view.axis)
    if view.kind == "slice":
        cut = zip(view.offsets, view.shape, view.strides, strict=True)
        return sources[0][tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in cut)]
    if view.kind == "broadcast":
        where: list[Any] = [1] * len(view.shape)
        for d, extent in zip(view.dims, sources[0].shape, strict=True):
            where[d] = extent
        return np.broadcast_to(sources[0].reshape(where), view.shape)
    number = constants.setdefault(view.value, len(constants))
    result = np.full(view.shape, -1 - number, sources[0].dtype)
    result[tuple(slice(low, low + n) for low, n in zip(view.low, sources[0].shape, strict=True))] = sources[0]
    return result


def home_tables(home: ElementMap, n_elements: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return (core, slot) of every element in every copy, each of shape (copies, elements); -1 if a copy lacks it."""
    n_copies = int(home.copies.max()) + 1
    core = np.full((n_copies, n_elements), -1, np.int32)
    slot = np.full((n_copies, n_elements), -1, np.int32)
    rows, columns = np.nonzero(home.elements >= 0)
    # Written backwards, so that of equal elements (halos) the first core's stays.
    rows, columns = rows[::-1], columns[::-1]
    elements = home.elements[rows, columns]
    core[home.copies[rows], elements] = rows
    slot[home.copies[rows], elements] = columns
    return core, slot


def copy_choice(home: ElementMap, n_cores: int) -> NDArray[np.int64]:
    """Return which copy each destination core reads: its own if it holds one, else copies in turn."""
    n_copies = int(home.copies.max()) + 1
    choice = np.arange(n_cores) % n_copies
    n_own = min(n_cores, len(home.copies))
    choice[:n_own] = home.copies[:n_own]
    return choice


@dataclass(frozen=True, slots=True)
class Pricing:
    """How elements become bytes: at which rates loads are counted, size of an element, whether slots are padded.

    `places` is where sources and target lie if they share memory elements; `padding` is what slots outside a tensor
    hold, as a spelling, and `constants` are the numbers of those that a view fills in (`constant_numbers`).
    """

    rates: MoveRates
    item_bytes: int
    is_padded: bool
    places: Places | None = None
    padding: str = ""
    constants: tuple[int, ...] = ()

    def filled(self, named: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
        """Return which constants slots take, -1 where none, as `fill_runs` takes them.

        `named` (cores, slots) is the element of each slot, -1 outside the tensor; `ids` is what it reads
        (`ViewElements`).
        """
        numbers = np.array((*self.constants, -1))
        inside = np.where(ids < 0, numbers[np.clip(-1 - ids, 0, len(self.constants))], -1)
        return np.where(named < 0, 0 if self.is_padded else -1, inside)


def take_runs(
    source: NDArray[Any], core: NDArray[Any], slot: NDArray[Any], takes: NDArray[np.bool_], first_core: int
) -> NDArray[np.int32]:
    """Return what cores from `first_core` on take, in runs: (n, 6) rows as `core.loads.phase_loads` takes them.

    All arguments have shape (cores, slots): number of the source, core and slot there, and which slots take anything.
    """
    joined = takes[:, 1:] & takes[:, :-1] & (core[:, 1:] == core[:, :-1])
    joined &= (slot[:, 1:] == slot[:, :-1] + 1) & (source[:, 1:] == source[:, :-1])
    here, at, lengths = _runs(takes, joined)
    columns = (source[here, at], core[here, at], slot[here, at], here + first_core, at, lengths)
    return np.stack(columns, axis=1).astype(np.int32)


def fill_runs(constants: NDArray[Any], first_core: int) -> NDArray[np.int32]:
    """Return what cores from `first_core` on fill, in runs: (n, 4) rows as `core.loads.phase_loads` takes them.

    `constants` (cores, slots) numbers what is filled in, -1 where nothing is.
    """
    fills = constants >= 0
    here, at, lengths = _runs(fills, fills[:, 1:] & (constants[:, 1:] == constants[:, :-1]))
    return np.stack((constants[here, at], here + first_core, at, lengths), axis=1).astype(np.int32)


def _runs(inside: NDArray[np.bool_], joined: NDArray[np.bool_]) -> tuple[Elements, Elements, Elements]:
    """Return row, column and length of the runs of slots `inside`; `joined` says which go on with the one before."""
    begins, ends = inside.copy(), inside.copy()
    begins[:, 1:] &= ~joined
    ends[:, :-1] &= ~joined
    rows, columns = np.nonzero(begins)
    return rows, columns, np.nonzero(ends)[1] - columns + 1
