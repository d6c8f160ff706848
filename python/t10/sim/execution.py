"""What a program runs on, and what is true of an operator between two of its statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from t10.core.costs import Costs
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.reduction import Groups
from t10.core.schedule import Arrival, Home, Phase, ScheduledOperator
from t10.errors import SimTrap
from t10.sim.lifetimes import Lifetimes
from t10.sim.memory import CoreMemory
from t10.sim.partition import Partition
from t10.sim.product import Factors, factors_of
from t10.sim.relayout import Mover
from t10.sim.result import PhaseKind, Timeline
from t10.sim.traps import trap

StepDone = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Machine:
    """What operators run on: memories, data movement, the clock and what things cost."""

    memory: CoreMemory
    mover: Mover
    timeline: Timeline
    cost: Costs
    lifetimes: Lifetimes


@dataclass
class Execution:
    """Operator `number` of the model between two statements of its program.

    `operands` have arrived, by number; `accumulator` exists from the nest on. `positions` are those of the windows of
    every rotatable operand, per axis; axes along which an operand does not rotate stay 0. `owners` are the groups
    whose members own one chunk each after a reduce-scatter.
    """

    machine: Machine
    spec: OperatorSpec
    scheduled: ScheduledOperator
    number: int
    step_done: StepDone
    operands: dict[int, Partition] = field(default_factory=dict[int, Partition])
    accumulator: Partition | None = None
    others: dict[int, Partition] = field(default_factory=dict[int, Partition])
    """Of inputs that rotate, where the chip computes and transfers at once: the window that no step reads now."""
    in_second: set[int] = field(default_factory=set[int])
    """The inputs whose windows lie in the buffer of second windows now."""
    step_cycles: int = 0
    """Of the sub-task that was executed last."""
    positions: list[AxisSizes] = field(init=False)
    owners: Groups | None = None
    phase: Phase = "arrive"
    has_relaid: bool = False
    """Whether something arrived from other cores by a relayout: further ones are part of its exchange phase."""
    is_filled: bool = False
    touched: set[AxisSizes] = field(default_factory=set[AxisSizes])
    """Positions along the parallel axes at which sub-tasks were executed."""
    is_finished: bool = False
    n_sub_tasks: int = 0

    def __post_init__(self) -> None:
        """Let all windows stand where the program begins."""
        self.positions = [(0,) * len(self.spec.axes) for _ in self.spec.rotatable]

    def charge(self, kind: PhaseKind, cycles: int, total_bytes: int = 0, most_bytes: int = 0) -> None:
        """Record a phase of the statement that is executed."""
        if cycles or kind != "compute":
            self.machine.timeline.add(self.spec.name, kind, cycles, total_bytes, most_bytes)

    @property
    def plan(self) -> OperatorPlan:
        """Return the plan under which the operator runs."""
        return self.scheduled.active.plan

    @property
    def is_between_steps(self) -> bool:
        """Return whether some sub-tasks were executed and others follow."""
        return 0 < self.n_sub_tasks < self.plan.n_sub_tasks

    @property
    def last_sub_task(self) -> int:
        """Return the number of the sub-task that began last, counted from 0."""
        return max(self.n_sub_tasks - 1, 0)

    @property
    def output_slot(self) -> int:
        """Return the number of the output among the rotatable operands."""
        return len(self.spec.inputs)

    @property
    def result(self) -> Home:
        """Return where the operator's result will lie."""
        return Home(self.scheduled.output_layout, f"value:{self.spec.output.name}")

    @property
    def accumulator_buffer(self) -> str:
        """Return the buffer of the accumulators: their own, or the result's where they have none."""
        own = f"accumulator:{self.spec.name}"
        has_own = own in self.machine.lifetimes.names or self.spec.acc_dtype != self.spec.output.dtype
        return own if has_own else self.result.buffer

    @cached_property
    def factors(self) -> Factors | None:
        """Return how the body is computed as a product of matrices, None where it is not."""
        return factors_of(self.spec)

    @cached_property
    def arrivals(self) -> dict[int, Arrival]:
        """Return how operands arrive, by number."""
        return {arrival.operand: arrival for arrival in self.scheduled.arrivals}

    def rotatable(self, number: int) -> Partition:
        """Return the partition of a rotatable operand."""
        partition = self.accumulator if number == self.output_slot else self.operands.get(number)
        if partition is None:
            raise self.trap(f"operand {number} is not there")
        return partition

    def check_positions(self, number: int, positions: AxisSizes, what: str) -> None:
        """Raise a trap unless the windows of a rotatable operand stand at `positions` along the axes it rotates on."""
        for axis, t in enumerate(self.plan.ft[number]):
            if t > 1 and self.positions[number][axis] != positions[axis]:
                raise self.trap(
                    f"{self.spec.rotatable[number].name}: {what} expects its windows at position "
                    f"{positions[axis]} of axis {axis}, they stand at {self.positions[number][axis]}"
                )

    def trap(self, cause: str) -> SimTrap:
        """Return the trap of a cause at the present sub-task."""
        return trap(cause, operator=self.spec.name, step=self.last_sub_task)
