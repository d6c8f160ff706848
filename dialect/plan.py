"""The value of `#rtensor.plan`: a compute-shift plan of an operator as far as it is decided, and its rules.

```
#rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]], lengths = [1, 1, 6], loop_order = [2],
               rp = [0, 0, 2], steps = [1, 1, 3], reduce = "none"}>
```

is a plan of `C[m, n] += A[m, k] * B[k, n]` on 2 * 3 cores: along k, A is cut 3x and B 2x in time, and both rotate by 2
elements in 3 steps. Rows are per axis in the order of the root's iterators; `ft` has one row per operand that rotates
(inputs, then output). A pass may leave keys out that are not decided yet; what is there must be consistent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, cast, get_args

from t10.core.expression import AxisSizes
from t10.core.legal import Expression, PlanRows, breaches
from t10.core.plan import CostedPlan, Cycles, OperatorPlan, PhaseTerm, Reduce
from t10.dialect.attributes import int_tuple, is_int, refuse_unknown, required, spelled
from t10.dialect.ods import Invalid

AXIS_ROWS = ("f_op", "lengths", "rp", "steps")
ORDERS = ("loop_order", "core_order")
BYTES_KEYS = ("weight_bytes", "active_bytes")
CYCLE_KEYS = tuple(field.name for field in fields(Cycles))
REDUCE_KINDS = get_args(Reduce)
LEVEL = "idle_level"


@dataclass(frozen=True, slots=True)
class CandidatePlan(PlanRows):
    """A plan as far as passes have decided it; None is what is still open. Fields are those of `CostedPlan`.

    `--t10-partition` decides `f_op` and `ft`, `--t10-align-pace` all that makes it an `OperatorPlan`, `--t10-pareto`
    the cycles and the bytes per core.
    """

    cycles: Cycles | None = None
    weight_bytes: int | None = None
    active_bytes: int | None = None

    @classmethod
    def of(cls, plan: OperatorPlan | CostedPlan) -> CandidatePlan:
        """Return a whole plan as a candidate, with its costs if it has some."""
        placed = plan.plan if isinstance(plan, CostedPlan) else plan
        decided = {field.name: getattr(placed, field.name) for field in fields(placed)}
        if isinstance(plan, CostedPlan):
            decided |= {key: getattr(plan, key) for key in ("cycles", *BYTES_KEYS)}
        return cls(**decided)

    @property
    def is_placed(self) -> bool:
        """Return whether the plan is whole, its costs aside."""
        return self.phases is not None

    @property
    def is_costed(self) -> bool:
        """Return whether the plan has its costs."""
        return self.cycles is not None and self.active_bytes is not None

    def partition(self) -> tuple[AxisSizes, tuple[AxisSizes, ...]]:
        """Return F_op and ft; raises `Invalid` where ft is open."""
        return self.f_op, self._decided("ft")

    def placed(self) -> OperatorPlan:
        """Return the whole plan; raises `Invalid` naming the first key that is open."""
        decided = {
            field.name: self._decided(field.name) for field in fields(OperatorPlan) if field.name != "reduce"
        }
        return OperatorPlan(**decided, reduce=self.reduce or "none")

    def costed(self) -> CostedPlan:
        """Return the whole plan with its costs; raises `Invalid` naming the first key that is open."""
        costs = {key: self._decided(key) for key in ("cycles", *BYTES_KEYS)}
        return CostedPlan(self.placed(), **costs)

    def _decided(self, key: str) -> Any:
        value = getattr(self, key)
        if value is None:
            found = ", ".join(field.name for field in fields(self) if getattr(self, field.name) is not None)
            raise Invalid(f"plan has no '{key}' (found {found})")
        return value


KEYS = tuple(field.name for field in fields(CandidatePlan))
"""Keys of `#rtensor.plan`; only `f_op` must be there."""


@dataclass(frozen=True, slots=True)
class ForcedPlan:
    """The value of `rtensor.forced`: the keys of a plan that a user chose, and how its weights rest (see `pins`)."""

    plan: CandidatePlan
    idle_level: int | None = None


def plan_fields(plan: CandidatePlan) -> dict[str, Any]:
    """Return what is decided of a plan under the keys of `#rtensor.plan`; `read_plan` reads it back."""
    decided = {key: getattr(plan, key) for key in KEYS if getattr(plan, key) is not None}
    if plan.phases is not None:
        decided["phases"] = tuple(tuple(_flat_term(term) for term in terms) for terms in plan.phases)
    if plan.cycles is not None:
        # Only a chip with off-chip memory knows what it is to wait.
        decided["cycles"] = {
            key: number for key, number in asdict(plan.cycles).items() if number or key != "wait"
        }
    return decided


def forced_fields(forced: ForcedPlan) -> dict[str, Any]:
    """Return a user's choice under the keys of `rtensor.forced`; `read_forced` reads it back."""
    level = {} if forced.idle_level is None else {LEVEL: forced.idle_level}
    return plan_fields(forced.plan) | level


def read_plan(fields: Mapping[str, Any], what: str = "plan") -> CandidatePlan:
    """Return the plan spelled by a decoded attribute; raises `Invalid` for a key that is unknown or malformed."""
    refuse_unknown(fields, KEYS, what)
    required(fields, "f_op", what)
    decided: dict[str, Any] = dict(fields)
    for key in (*AXIS_ROWS, *ORDERS):
        if key in fields:
            int_tuple(fields[key], key)
    if "ft" in fields:
        decided["ft"] = _rows(fields["ft"], "ft")
    if "phases" in fields:
        decided["phases"] = _phases(fields["phases"])
    if "reduce" in fields and fields["reduce"] not in REDUCE_KINDS:
        raise Invalid(f'reduce = "{fields["reduce"]}", expected one of {", ".join(REDUCE_KINDS)}')
    if "cycles" in fields:
        decided["cycles"] = _cycles(fields["cycles"])
    for key in BYTES_KEYS:
        if key in fields:
            _check_count(fields[key], key)
    return CandidatePlan(**decided)


def read_forced(fields: Mapping[str, Any]) -> ForcedPlan:
    """Return the choice spelled by a decoded `rtensor.forced`; raises `Invalid` as `read_plan` does."""
    level = fields.get(LEVEL)
    if level is not None and not (is_int(level) and level >= 0):
        raise Invalid(f"{LEVEL} is {spelled(level)}, expected a number of at least 0")
    plan = read_plan({key: value for key, value in fields.items() if key != LEVEL}, "it")
    return ForcedPlan(plan, level)


def check_plan(plan: CandidatePlan, expression: Expression | None = None) -> None:
    """Raise `Invalid` with the first rule of `t10.core.legal` that a plan breaks, by itself and on its operator."""
    breach = next(breaches(plan, expression), None)
    if breach is not None:
        raise Invalid(str(breach))


def _cycles(value: Any) -> Cycles:
    """Return decoded cycles."""
    if not isinstance(value, dict):
        raise Invalid(f"cycles is {spelled(value)}, expected a dictionary of {', '.join(CYCLE_KEYS)}")
    cycles = cast("dict[str, Any]", value)
    refuse_unknown(cycles, CYCLE_KEYS, "cycles")
    for key, number in cycles.items():
        _check_count(number, f"cycles.{key}")
    return Cycles(**cycles)


def _check_count(value: Any, name: str) -> None:
    if not is_int(value) or value < 0:
        raise Invalid(f"{name} = {spelled(value)}, expected a number that is not negative")


def _phases(value: Any) -> tuple[tuple[PhaseTerm, ...], ...]:
    """Return decoded phases: per axis an array of terms."""
    if not isinstance(value, tuple):
        raise Invalid(f"phases is {spelled(value)}, expected an array of terms per axis")
    return tuple(
        tuple(_term(row) for row in _rows(terms, f"phases[{axis}]"))
        for axis, terms in enumerate(cast("Sequence[Any]", value))
    )


def _rows(value: Any, name: str) -> tuple[AxisSizes, ...]:
    """Return a decoded array of integer arrays."""
    if not isinstance(value, tuple):
        raise Invalid(f"{name} is {spelled(value)}, expected an array of arrays of integers")
    return tuple(int_tuple(row, f"{name}[{i}]") for i, row in enumerate(cast("Sequence[Any]", value)))


def _flat_term(term: PhaseTerm) -> AxisSizes:
    """Return the spelling of a phase term: [stride, divisor, modulus, sharer axes ...]."""
    modulus = -term.modulus if term.is_folded else term.modulus
    return (term.stride, term.divisor, modulus, *term.sharer_axes)


def _term(row: AxisSizes) -> PhaseTerm:
    """Return the phase term spelled by a row."""
    if len(row) < 3:
        raise Invalid(f"phase term {list(row)}, expected [stride, divisor, modulus, sharer axes ...]")
    return PhaseTerm(row[3:], divisor=row[1], modulus=abs(row[2]), stride=row[0], is_folded=row[2] < 0)
