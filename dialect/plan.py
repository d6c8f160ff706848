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
from math import prod
from typing import Any, cast, get_args

from t10.core.expression import AxisSizes
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
class Expression:
    """What a plan is checked against: extent of every axis, and the axes each rotatable operand uses (output last)."""

    extents: AxisSizes
    uses: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class CandidatePlan:
    """A plan as far as passes have decided it; None is what is still open. Fields are those of `OperatorPlan`.

    `--t10-partition` decides `f_op` and `ft`, `--t10-align-pace` all that makes it an `OperatorPlan`, `--t10-pareto`
    the cycles and the bytes per core of `CostedPlan`.
    """

    f_op: AxisSizes
    ft: tuple[AxisSizes, ...] | None = None
    lengths: AxisSizes | None = None
    rp: AxisSizes | None = None
    steps: AxisSizes | None = None
    loop_order: AxisSizes | None = None
    core_order: AxisSizes | None = None
    phases: tuple[tuple[PhaseTerm, ...], ...] | None = None
    reduce: Reduce | None = None
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
        decided["cycles"] = asdict(plan.cycles)
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
    """Raise `Invalid` with the first rule that a plan breaks, by itself and against the op's `expression`.

    Source: compute-shift model §2 to §4. This checks the attribute's form; that the placement computes the right
    numbers is the business of `t10.plan.verify`.
    """
    _check_axis_rows(plan, expression)
    ft = plan.ft or ()
    _check_ft(ft, plan.f_op, expression)
    _check_lengths(plan, expression)
    _check_pace(plan, ft)
    _check_orders(plan, ft)


def _check_axis_rows(plan: CandidatePlan, expression: Expression | None) -> None:
    """Check the lengths of all rows and the signs of their numbers."""
    n_axes = len(plan.f_op)
    if expression is not None and len(expression.extents) != n_axes:
        raise Invalid(f"f_op has {n_axes} factors for an operator of {len(expression.extents)} axes")
    for key in AXIS_ROWS:
        row = cast("AxisSizes | None", getattr(plan, key))
        if row is None:
            continue
        if len(row) != n_axes:
            raise Invalid(f"{key} has {len(row)} entries, expected {n_axes}: one per axis, as f_op")
        least = 0 if key == "rp" else 1
        for axis, value in enumerate(row):
            if value < least:
                raise Invalid(f"{key}[{axis}] = {value}, expected at least {least}")
    if expression is None or plan.lengths is not None:
        # Parts of given lengths may hold nothing but padding: an operator that follows the chunks of a padded sum.
        return
    for axis, (extent, parts) in enumerate(zip(expression.extents, plan.f_op, strict=True)):
        if parts > extent:
            raise Invalid(f"f_op[{axis}] = {parts} cuts extent {extent} into more parts than it has elements")


def _check_ft(ft: tuple[tuple[int, ...], ...], f_op: tuple[int, ...], expression: Expression | None) -> None:
    """Check every operand's temporal factors against the axes it uses and the cores that share it."""
    if expression is not None and ft and len(ft) != len(expression.uses):
        raise Invalid(
            f"ft has {len(ft)} rows, expected {len(expression.uses)}: one per input, then the output"
        )
    for i, row in enumerate(ft):
        if len(row) != len(f_op):
            raise Invalid(f"ft[{i}] has {len(row)} entries, expected {len(f_op)}: one per axis, as f_op")
        if any(factor < 1 for factor in row):
            raise Invalid(f"ft[{i}] = {list(row)} holds a factor below 1")
        if expression is None:
            continue
        for axis, factor in enumerate(row):
            if factor > 1 and axis not in expression.uses[i]:
                raise Invalid(
                    f"ft[{i}][{axis}] = {factor}, but operand {i} is not indexed by axis {axis}, expected 1"
                )
        sharers = prod(parts for axis, parts in enumerate(f_op) if axis not in expression.uses[i])
        if sharers % prod(row):
            raise Invalid(
                f"prod(ft[{i}]) = {prod(row)} does not divide the {sharers} cores that share operand {i}"
            )


def _check_lengths(plan: CandidatePlan, expression: Expression | None) -> None:
    """Check that f_op parts of `lengths` elements cover every axis."""
    if expression is None or plan.lengths is None:
        return
    for axis, (extent, parts, length) in enumerate(
        zip(expression.extents, plan.f_op, plan.lengths, strict=True)
    ):
        if parts * length < extent:
            raise Invalid(
                f"f_op[{axis}] = {parts} parts of lengths[{axis}] = {length} do not cover extent {extent}"
            )


def _check_pace(plan: CandidatePlan, ft: tuple[AxisSizes, ...]) -> None:
    """Check rp and steps: one pace per axis, the smallest partition, in max(ft) steps (compute-shift model §3)."""
    for axis in range(len(plan.f_op)):
        most = max((row[axis] for row in ft), default=1)
        rp = None if plan.rp is None else plan.rp[axis]
        steps = most if plan.steps is None else plan.steps[axis]
        if ft and steps != most:
            raise Invalid(f"steps[{axis}] = {steps}, expected {most}: the largest ft on axis {axis}")
        if plan.lengths is None:
            continue
        length = plan.lengths[axis]
        for i, row in enumerate(ft):
            if length % row[axis]:
                raise Invalid(f"ft[{i}][{axis}] = {row[axis]} does not divide lengths[{axis}] = {length}")
        if rp is None:
            continue
        if rp > length // most:
            raise Invalid(
                f"rp[{axis}] = {rp} is larger than the smallest partition of {length // most} elements"
            )
        if most > 1 and rp * steps != length:
            raise Invalid(f"rp[{axis}] = {rp} in {steps} steps does not cover lengths[{axis}] = {length}")
        if most == 1 and rp not in (0, length):
            raise Invalid(f"rp[{axis}] = {rp}, but no operand rotates along axis {axis}, expected 0")


def _check_orders(plan: CandidatePlan, ft: tuple[AxisSizes, ...]) -> None:
    """Check loop_order (every rotating axis once), core_order (every axis once) and the number of phases."""
    n_axes = len(plan.f_op)
    if plan.loop_order is not None:
        order = plan.loop_order
        rotating = {axis for axis in range(n_axes) if any(row[axis] > 1 for row in ft)}
        if len(set(order)) != len(order) or not rotating <= set(order) <= set(range(n_axes)):
            raise Invalid(
                f"loop_order = {list(order)}, expected every rotating axis once, here {sorted(rotating)}"
            )
    if plan.core_order is not None and sorted(plan.core_order) != list(range(n_axes)):
        raise Invalid(f"core_order = {list(plan.core_order)}, expected a permutation of the {n_axes} axes")
    if plan.phases is not None and len(plan.phases) != n_axes:
        raise Invalid(f"phases has {len(plan.phases)} entries, expected {n_axes}: one per axis, as f_op")
    for axis, terms in enumerate(plan.phases or ()):
        for term in terms:
            if min(term.divisor, term.modulus) < 1 or not set(term.sharer_axes) <= set(range(n_axes)):
                raise Invalid(
                    f"phases[{axis}] holds {list(_flat_term(term))}, expected a divisor and modulus of at least 1 "
                    f"and axes below {n_axes}"
                )


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
    return (term.stride, term.divisor, term.modulus, *term.sharer_axes)


def _term(row: AxisSizes) -> PhaseTerm:
    """Return the phase term spelled by a row."""
    if len(row) < 3:
        raise Invalid(f"phase term {list(row)}, expected [stride, divisor, modulus, sharer axes ...]")
    return PhaseTerm(sharer_axes=row[3:], divisor=row[1], modulus=row[2], stride=row[0])
