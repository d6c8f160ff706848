"""A whole model's plan: per operator its active plan and weight layouts, what moves before it, where bytes lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from t10.core.graph import Graph
from t10.core.plan import CostedPlan, OperatorPlan
from t10.core.program import Statement
from t10.errors import T10Error

LayoutKind = Literal["linear", "operand"]
ArrivalKind = Literal["relayout", "setup", "in_place"]
Phase = Literal["arrive", "nest", "finish"]
"""What an operator step does, in this order: operands are copied to their cores; the loop nest runs and partial results
are combined; the epilogue makes the result, or copies it out of the accumulator."""

PHASES: tuple[Phase, ...] = ("arrive", "nest", "finish")


def moment(step: int, phase: Phase) -> int:
    """Return the number of a phase of an operator step, counted from the first phase of step 0."""
    return step * len(PHASES) + PHASES.index(phase)


@dataclass(frozen=True, slots=True)
class ValueLayout:
    """Where the elements of a value lie, the same way on every core.

    `linear`: element e of `value` in slot `e % chunk` of core `e // chunk`, chunk = `chunk_slots(elements, n_cores)`.
    `operand`: as operand number `operand` of `operator` lies under `plan` (numbered as in `OperatorSpec.operands`;
    `len(operands)` is the output, at the end of the loop nest), cut further over its replicas: the flattened
    partition is divided in `scatter` chunks of `window_chunk(n, scatter)` and the core of replica rank k keeps
    chunk `k % scatter`. An operand that reads `value` through views is taken as it reads `value` itself
    (`core.laid_out`).
    """

    kind: LayoutKind
    value: str
    n_cores: int
    dtype: str
    operator: str = ""
    operand: int = 0
    plan: OperatorPlan | None = None
    scatter: int = 1

    def __post_init__(self) -> None:
        """Refuse an operand layout without its plan."""
        if (self.kind == "operand") != (self.plan is not None and bool(self.operator)):
            raise T10Error(
                f"layout of {self.value}: kind {self.kind} needs a plan if and only if it is 'operand'"
            )
        if self.scatter < 1:
            raise T10Error(f"layout of {self.value}: scatter must be at least 1, found {self.scatter}")


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes of every core: `size_bytes` at `address_bytes`, for some phases of some operator steps.

    They live from phase `first_phase` of step `first` to the end of phase `last_phase` of step `last`. Names:
    `idle:<weight>`, `input:<value>`, `operand:<operator>:<number>`, `accumulator:<operator>`, `value:<name>` (an
    operator's result), `shift` (the shift buffer), `second:<operator>` (second windows, see `t10.core.overlap`). An
    operator without accumulator buffer accumulates in its result; then no cores hold partial results, and both have one
    element type.

    Two buffers share bytes only if their lifetimes are disjoint, with one exception. A result *takes over* the buffer
    of an operand that lies in place: it begins in the phase in which the operand's buffer ends, at its address and of
    its size. All that is read of that buffer in this phase are operands whose slot i goes into slot i of the result.
    """

    name: str
    address_bytes: int
    size_bytes: int
    first: int
    last: int
    first_phase: Phase = "arrive"
    last_phase: Phase = "finish"

    @property
    def first_moment(self) -> int:
        """Return when the buffer begins to live, see `moment`."""
        return moment(self.first, self.first_phase)

    @property
    def last_moment(self) -> int:
        """Return the last moment the buffer lives, see `moment`."""
        return moment(self.last, self.last_phase)


@dataclass(frozen=True, slots=True)
class Home:
    """Where a value lies while operators run: its layout, and the buffer (or variable of that name) that holds it."""

    layout: ValueLayout
    buffer: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """How operand number `operand` gets to its cores before the operator runs, and what that moves.

    `in_place`: it already lies there, in buffer `buffer`. `relayout` (activations) and `setup` (weights): copied
    from the layouts of the values it reads into `buffer`. `received_bytes`/`sent_bytes`: most of any core. Relayouts of
    an operator share one exchange phase, every set-up is one of its own; `cycles` are what each adds.
    """

    operand: int
    kind: ArrivalKind
    buffer: str
    received_bytes: int = 0
    sent_bytes: int = 0
    fragments: int = 0
    cycles: int = 0

    @property
    def is_resident(self) -> bool:
        """Return whether the operand is a weight that is used in the buffer in which it rests."""
        return self.kind == "in_place" and self.buffer.startswith("idle:")


def is_joined(kind: ArrivalKind, before: Iterable[Arrival]) -> bool:
    """Return whether an arrival of an operator is part of an exchange phase that one before it began."""
    return kind == "relayout" and any(each.kind == kind and each.received_bytes for each in before)


@dataclass(frozen=True, slots=True)
class Fetch:
    """The weights of `operator` are brought from off-chip memory; the buffers in which they rest live from `first` on.

    That is an operator step. Fetches are made one after the other in the order of a plan, none before its step `first`
    begins. The operator waits for its own. Its weights are gone once it has run; those of operators without a fetch
    rest as long as the program.
    """

    operator: str
    first: int


@dataclass(frozen=True, slots=True)
class ScheduledOperator:
    """One operator of the program: `body` runs, under plan `active`, on operands that arrive as `arrivals` say.

    `pareto` is its time x memory front, fastest last, where it is known; `active` runs one of them. Prices on it are
    the search's: without bank conflicts, and with activations fetched from anywhere.
    """

    name: str
    active: CostedPlan
    arrivals: tuple[Arrival, ...]
    output_layout: ValueLayout
    body: tuple[Statement, ...]
    pareto: tuple[CostedPlan, ...] = ()


@dataclass(frozen=True, slots=True)
class Optimality:
    """How good a whole model's plan is known to be; modelled cycles of the whole model.

    `method` says who chose the plans of operators: all together with a bound (`exact`), with what is fetched from
    off-chip memory and when (`fetched`), Algorithm 1 (`greedy`), or the user, who left no choice (`pinned`).
    `cycles` of the plan; `bound_cycles`: no choice among the plans, idle levels and layouts considered takes fewer (0
    where no bound was computed). `literal_cycles` and `aware_cycles` are those of Algorithm 1, by execution alone and
    with set-up; 0 where its choice does not fit the memory among which this plan was chosen, or was not tried. They
    compare with `priced_cycles` of the plan: all three are costs before placement, without bank conflicts. `n_choices`
    of the whole model were placed, with less memory each, until one fitted beside its program with few bank conflicts.
    `n_states` are the plans and layouts, of all operators together, that the bound ranges over.
    """

    method: Literal["exact", "fetched", "greedy", "pinned"]
    cycles: int
    bound_cycles: int = 0
    literal_cycles: int = 0
    aware_cycles: int = 0
    n_choices: int = 1
    n_states: int = 0
    priced_cycles: int = 0

    @property
    def gap(self) -> float | None:
        """Return the part of the cycles that a better plan could save at most, None without a bound."""
        return None if self.bound_cycles == 0 else 1 - self.bound_cycles / max(self.cycles, 1)


@dataclass(frozen=True, slots=True)
class ModulePlan:
    """A model, planned: operators in execution order; `weight_layouts` (idle) and `input_layouts` by value.

    `peak_bytes` are the most bytes of a core that are in use at any moment, with the `reserved_bytes` at the bottom
    that its program has; `capacity_bytes` is all of its memory. `fetches` are in the order in which they are made.
    """

    chip: str
    graph: Graph
    operators: tuple[ScheduledOperator, ...]
    weight_layouts: tuple[ValueLayout, ...]
    input_layouts: tuple[ValueLayout, ...]
    buffers: tuple[Buffer, ...]
    peak_bytes: int
    capacity_bytes: int
    reserved_bytes: int = 0
    optimality: Optimality | None = None
    fetches: tuple[Fetch, ...] = ()

    @property
    def end_bytes(self) -> int:
        """Return the end of the highest buffer."""
        return max((b.address_bytes + b.size_bytes for b in self.buffers), default=self.reserved_bytes)


@dataclass(frozen=True, slots=True)
class Wish:
    """Two buffers that are accessed at once, or one that is read 16 bytes at a time, by name.

    Granted where the two lie in different memory elements, the one in the interleaved region. `weight` says how much
    slower the program is otherwise, in about cycles.
    """

    names: tuple[str, ...]
    weight: int


def most_bytes(buffers: Iterable[Buffer], reserved_bytes: int) -> int:
    """Return the most bytes of a core that buffers use at any moment, `reserved_bytes` at the bottom included."""
    return reserved_bytes + max(bytes_in_use(buffers).values(), default=0)


def bytes_in_use(buffers: Iterable[Buffer]) -> dict[int, int]:
    """Return the bytes of a core that buffers use, by moment; no moment in which one lives is left out.

    What one buffer takes over from another in the moment in which that ends counts once.
    """
    change: dict[int, int] = {}
    ending: set[tuple[int, int, int]] = set()
    for buffer in sorted(buffers, key=lambda b: (b.first_moment, b.last_moment)):
        where = (buffer.address_bytes, buffer.size_bytes)
        is_taken = (*where, buffer.first_moment) in ending
        first = buffer.first_moment + is_taken
        change[first] = change.get(first, 0) + buffer.size_bytes
        change[buffer.last_moment + 1] = change.get(buffer.last_moment + 1, 0) - buffer.size_bytes
        ending.add((*where, buffer.last_moment))
    moments = range(min(change, default=0), max(change, default=0))
    return dict(zip(moments, accumulate(change.get(now, 0) for now in moments), strict=True))
