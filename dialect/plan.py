"""The value of `#rtensor.plan`: one compute-shift plan of an operator, to and from attributes, and its rules.

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
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, cast, get_args

from t10.core.plan import CostedPlan, Cycles, OperatorPlan, PhaseTerm, Reduce
from t10.dialect.attributes import int_tuple, is_int, refuse_unknown, required
from t10.dialect.ods import Invalid

AXIS_ROWS = ("f_op", "lengths", "rp", "steps")
BYTES_KEYS = ("weight_bytes", "active_bytes", "idle_bytes", "bytes")
CYCLE_KEYS = ("compute", "shift", "reduce", "relayout", "setup")
REDUCE_KINDS = ("none", "scatter", "all")
KEYS = (
    *AXIS_ROWS,
    "ft",
    "loop_order",
    "core_order",
    "phases",
    "reduce",
    "cycles",
    *BYTES_KEYS,
    "extents",
    "uses",
)
"""Keys; only `f_op` must be there. `extents` and `uses` state the expression where it is not the operation's."""


@dataclass(frozen=True, slots=True)
class Expression:
    """What a plan is checked against: extent of every axis, and the axes each rotatable operand uses (output last)."""

    extents: tuple[int, ...]
    uses: tuple[frozenset[int], ...]


def plan_fields(costed: CostedPlan, expression: Expression | None = None) -> dict[str, Any]:
    """Return the fields of `#rtensor.plan` for a plan with its price; `read_plan` reads them back.

    With `expression` the attribute states its own axes, as it must where they are not those of the linalg op (a gather
    has an axis more).
    """
    plan = costed.plan
    fields: dict[str, Any] = {
        "f_op": plan.f_op,
        "lengths": plan.lengths,
        "ft": plan.ft,
        "rp": plan.rp,
        "steps": plan.steps,
        "loop_order": plan.loop_order,
        "core_order": plan.core_order,
        "phases": tuple(tuple(_flat_term(term) for term in terms) for terms in plan.phases),
        "reduce": plan.reduce,
        "cycles": asdict(costed.cycles),
        "weight_bytes": costed.weight_bytes,
        "active_bytes": costed.active_bytes,
    }
    if expression is not None:
        fields["extents"] = expression.extents
        fields["uses"] = tuple(tuple(sorted(axes)) for axes in expression.uses)
    return fields


def read_plan(fields: Mapping[str, Any]) -> CostedPlan:
    """Return the plan spelled by a decoded attribute; raises `Invalid` for a key that is missing or malformed."""
    rows = {
        key: int_tuple(required(fields, key, "plan"), key) for key in (*AXIS_ROWS, "loop_order", "core_order")
    }
    reduce = fields.get("reduce", "none")
    if reduce not in get_args(Reduce):
        raise Invalid(f'plan reduce is "{reduce}", expected one of {", ".join(get_args(Reduce))}')
    plan = OperatorPlan(
        **rows,
        ft=_rows(required(fields, "ft", "plan"), "ft"),
        phases=tuple(
            tuple(_term(int_tuple(term, f"phases[{axis}]")) for term in terms)
            for axis, terms in enumerate(required(fields, "phases", "plan"))
        ),
        reduce=cast("Reduce", reduce),
    )
    return CostedPlan(
        plan=plan,
        cycles=Cycles(**fields.get("cycles", {})),
        weight_bytes=fields.get("weight_bytes", 0),
        active_bytes=fields.get("active_bytes", 0),
    )


def check_plan(fields: Mapping[str, Any], expression: Expression | None = None) -> None:
    """Raise `Invalid` with the first rule that a decoded plan breaks, by itself and against the op's `expression`.

    Source: compute-shift model §2 to §4. This checks the attribute's form; that the placement computes the right
    numbers is the business of `t10.plan.verify`.
    """
    refuse_unknown(fields, KEYS, "plan")
    f_op = int_tuple(required(fields, "f_op", "plan"), "f_op")
    stated = _stated_expression(fields)
    target = stated if stated is not None else expression
    _check_axis_rows(fields, len(f_op), target)
    ft = _rows(fields["ft"], "ft") if "ft" in fields else ()
    _check_ft(ft, f_op, target)
    if "lengths" in fields:
        _check_lengths(fields, f_op, target)
    _check_pace(fields, ft)
    _check_orders(fields, f_op, ft)
    _check_price(fields)


def _stated_expression(fields: Mapping[str, Any]) -> Expression | None:
    """Return the expression that the plan itself states, if it does."""
    if "extents" not in fields and "uses" not in fields:
        return None
    extents = int_tuple(required(fields, "extents", "plan"), "extents")
    uses = _rows(required(fields, "uses", "plan"), "uses")
    return Expression(extents, tuple(frozenset(row) for row in uses))


def _check_axis_rows(fields: Mapping[str, Any], n_axes: int, expression: Expression | None) -> None:
    """Check the lengths of all rows and the signs of their numbers."""
    if expression is not None and len(expression.extents) != n_axes:
        raise Invalid(f"f_op has {n_axes} factors for an operator of {len(expression.extents)} axes")
    for key in AXIS_ROWS:
        if key not in fields:
            continue
        row = int_tuple(fields[key], key)
        if len(row) != n_axes:
            raise Invalid(f"{key} has {len(row)} entries, expected {n_axes}: one per axis, as f_op")
        least = 0 if key == "rp" else 1
        for axis, value in enumerate(row):
            if value < least:
                raise Invalid(f"{key}[{axis}] = {value}, expected at least {least}")
    if expression is None:
        return
    for axis, (extent, parts) in enumerate(zip(expression.extents, fields["f_op"], strict=True)):
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


def _check_lengths(fields: Mapping[str, Any], f_op: tuple[int, ...], expression: Expression | None) -> None:
    """Check that f_op parts of `lengths` elements cover every axis."""
    if expression is None:
        return
    for axis, (extent, parts, length) in enumerate(
        zip(expression.extents, f_op, fields["lengths"], strict=True)
    ):
        if parts * length < extent:
            raise Invalid(
                f"f_op[{axis}] = {parts} parts of lengths[{axis}] = {length} do not cover extent {extent}"
            )


def _check_pace(fields: Mapping[str, Any], ft: tuple[tuple[int, ...], ...]) -> None:
    """Check rp and steps: one pace per axis, the smallest partition, in max(ft) steps (compute-shift model §3)."""
    for axis in range(len(fields["f_op"])):
        most = max((row[axis] for row in ft), default=1)
        rp = fields["rp"][axis] if "rp" in fields else 0
        steps = fields["steps"][axis] if "steps" in fields else most
        if ft and steps != most:
            raise Invalid(f"steps[{axis}] = {steps}, expected {most}: the largest ft on axis {axis}")
        if "lengths" not in fields:
            continue
        length = fields["lengths"][axis]
        for i, row in enumerate(ft):
            if length % row[axis]:
                raise Invalid(f"ft[{i}][{axis}] = {row[axis]} does not divide lengths[{axis}] = {length}")
        if rp > length // most:
            raise Invalid(
                f"rp[{axis}] = {rp} is larger than the smallest partition of {length // most} elements"
            )
        if "rp" in fields and most > 1 and rp * steps != length:
            raise Invalid(f"rp[{axis}] = {rp} in {steps} steps does not cover lengths[{axis}] = {length}")
        if "rp" in fields and most == 1 and rp not in (0, length):
            raise Invalid(f"rp[{axis}] = {rp}, but no operand rotates along axis {axis}, expected 0")


def _check_orders(fields: Mapping[str, Any], f_op: tuple[int, ...], ft: tuple[tuple[int, ...], ...]) -> None:
    """Check loop_order (every rotating axis once), core_order (every axis once) and the phases."""
    if "loop_order" in fields:
        order = int_tuple(fields["loop_order"], "loop_order")
        rotating = {axis for axis in range(len(f_op)) if any(row[axis] > 1 for row in ft)}
        if len(set(order)) != len(order) or not rotating <= set(order) <= set(range(len(f_op))):
            raise Invalid(
                f"loop_order = {list(order)}, expected every rotating axis once, here {sorted(rotating)}"
            )
    if "core_order" in fields:
        order = int_tuple(fields["core_order"], "core_order")
        if sorted(order) != list(range(len(f_op))):
            raise Invalid(f"core_order = {list(order)}, expected a permutation of the {len(f_op)} axes")
    if "phases" not in fields:
        return
    if len(fields["phases"]) != len(f_op):
        raise Invalid(
            f"phases has {len(fields['phases'])} entries, expected {len(f_op)}: one per axis, as f_op"
        )
    for axis, terms in enumerate(fields["phases"]):
        for term in terms:
            _term(int_tuple(term, f"phases[{axis}]"))


def _check_price(fields: Mapping[str, Any]) -> None:
    """Check reduce, bytes and cycles."""
    if fields.get("reduce", "none") not in REDUCE_KINDS:
        raise Invalid(f'reduce = "{fields["reduce"]}", expected one of {", ".join(REDUCE_KINDS)}')
    cycles = fields.get("cycles", {})
    if not isinstance(cycles, dict):
        raise Invalid(f"cycles is {cycles}, expected a dictionary of {', '.join(CYCLE_KEYS)}")
    refuse_unknown(cast("dict[str, Any]", cycles), CYCLE_KEYS, "cycles")
    numbers = {f"cycles.{key}": value for key, value in cast("dict[str, Any]", cycles).items()}
    numbers |= {key: fields[key] for key in BYTES_KEYS if key in fields}
    for name, value in numbers.items():
        if not is_int(value) or value < 0:
            raise Invalid(f"{name} = {value}, expected a number that is not negative")


def _rows(value: Any, name: str) -> tuple[tuple[int, ...], ...]:
    """Return a decoded array of integer arrays."""
    if not isinstance(value, tuple):
        raise Invalid(f"{name} is {value}, expected one array of integers per operand")
    return tuple(int_tuple(row, f"{name}[{i}]") for i, row in enumerate(cast("Sequence[Any]", value)))


def _flat_term(term: PhaseTerm) -> tuple[int, ...]:
    """Return the spelling of a phase term: [stride, divisor, modulus, sharer axes ...]."""
    return (term.stride, term.divisor, term.modulus, *term.sharer_axes)


def _term(row: tuple[int, ...]) -> PhaseTerm:
    """Return the phase term spelled by a row."""
    if len(row) < 3:
        raise Invalid(f"phase term {list(row)}, expected [stride, divisor, modulus, sharer axes ...]")
    return PhaseTerm(sharer_axes=row[3:], divisor=row[1], modulus=row[2], stride=row[0])
