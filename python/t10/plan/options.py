"""`PlanOptions`: everything a user may choose about planning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from t10.core.expression import AxisSizes
from t10.errors import InputError

Reading = Literal["literal", "aware", "best"]

DEFAULT_BUDGET = 60_000
DEFAULT_FRONT = 48


@dataclass(frozen=True, slots=True)
class ForcedPartition:
    """A choice made by the user for one operator: its F_op, and the ft rows (inputs, then output) if not None."""

    operator: str
    f_op: AxisSizes
    ft: tuple[AxisSizes, ...] | None = None


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Search constraints and choices.

    `parallelism`: least part of the usable cores that must work; `padding`: least useful part of every padded axis
    (T10 §4.3.1); both are relaxed in steps of 0.1 for an operator that has no plan otherwise. `reading` of
    "the fastest plan that fits" in Algorithm 1: `literal` by execution only, `aware` with set-up, `best` tries both.
    `budget`: candidate plans evaluated per operator at most; `max_front`: Pareto plans kept per operator.
    """

    parallelism: float = 0.9
    padding: float = 0.9
    reading: Reading = "best"
    forced: tuple[ForcedPartition, ...] = ()
    budget: int = DEFAULT_BUDGET
    max_front: int = DEFAULT_FRONT

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        for name in ("parallelism", "padding"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(f"{name} is {value} (expected a ratio from 0 to 1)")
        if self.reading not in ("literal", "aware", "best"):
            raise InputError(f"reading is '{self.reading}' (expected literal, aware or best)")
        if self.budget < 1 or self.max_front < 1:
            raise InputError(f"budget {self.budget} and max_front {self.max_front} must be at least 1")

    def forced_for(self, operator: str) -> ForcedPartition | None:
        """Return the user's choice for an operator, None without one."""
        return next((f for f in self.forced if f.operator == operator), None)
