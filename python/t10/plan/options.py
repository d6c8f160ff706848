"""`PlanOptions`: everything a user may choose about planning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from t10.core.expression import AxisSizes
from t10.core.plan import OperatorPlan
from t10.errors import InputError

Reading = Literal["literal", "aware", "best"]
Method = Literal["exact", "greedy"]
Progress = Callable[[str, int, int], None]
"""Called with a stage's name, steps done and steps in all."""

DEFAULT_FRONT = 256
DEFAULT_GAP = 0.001


@dataclass(frozen=True, slots=True)
class ForcedPartition:
    """A choice made by the user for one operator; what is None is searched.

    `ft` has one row per rotatable operand (inputs, then output); `rp` follows from both and is checked; `plan` is all
    of it, placement included; `idle_level` says how its weights rest: spread over all cores (0), or divided over so
    many replicas (1: as they are used).
    """

    operator: str
    f_op: AxisSizes
    ft: tuple[AxisSizes, ...] | None = None
    rp: AxisSizes | None = None
    plan: OperatorPlan | None = None
    idle_level: int | None = None


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Search constraints and choices.

    `parallelism`: least part of the usable cores that must work; `padding`: least useful part of every padded axis
    (T10 §4.3.1); both are relaxed in steps of 0.1 for an operator that has no plan otherwise, looser for plans
    without rotation (see `unrotated_space`), and `exhaustive` does without them. `max_front`: Pareto plans kept per
    operator.

    `reconcile`: `exact` chooses plans, idle levels and layouts of all operators together and proves how far from the
    optimum it may be; `greedy` is the paper's Algorithm 1. `reading` of "the fastest plan that fits" in Algorithm 1:
    `literal` by execution only, `aware` with set-up, `best` tries both. The exact method stops at a proved `gap`
    (0.001 = 0.1 %), or with the best it has after an amount of work that is the same on every machine; with
    `time_limit_seconds` also after so long, which plan that is then depends on the machine.

    `as_published` plans as T10's authors did, beside our own plans: of the tensors that rotate along an axis, each
    one's parts divide the next one's; Algorithm 1 chooses, and no operator follows the layout that its operands have.
    """

    parallelism: float = 0.9
    padding: float = 0.9
    reading: Reading = "best"
    forced: tuple[ForcedPartition, ...] = ()
    max_front: int = DEFAULT_FRONT
    exhaustive: bool = False
    reconcile: Method = "exact"
    gap: float = DEFAULT_GAP
    time_limit_seconds: float | None = None
    as_published: bool = False

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        for name in ("parallelism", "padding"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(f"{name} is {value} (expected a ratio from 0 to 1)")
        if self.reading not in ("literal", "aware", "best"):
            raise InputError(f"reading is '{self.reading}' (expected literal, aware or best)")
        if self.max_front < 1:
            raise InputError(f"max_front is {self.max_front} (expected at least 1)")
        if self.reconcile not in ("exact", "greedy"):
            raise InputError(f"reconcile is '{self.reconcile}' (expected exact or greedy)")
        if not 0 <= self.gap <= 1:
            raise InputError(f"gap is {self.gap} (expected a ratio from 0 to 1)")
        if self.time_limit_seconds is not None and not self.time_limit_seconds > 0:
            raise InputError(f"the time limit is {self.time_limit_seconds} s (expected more than 0 s)")

    def forced_for(self, operator: str) -> ForcedPartition | None:
        """Return the user's choice for an operator, None without one."""
        return next((f for f in self.forced if f.operator == operator), None)
