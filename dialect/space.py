"""The value of `#rtensor.space` to and from attributes, and its rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from t10.core.legal import Expression, PlanRows, breaches
from t10.core.space import PartitionSpace, UnrotatedSpace
from t10.dialect.attributes import int_tuple, is_int, refuse_unknown, required, spelled
from t10.dialect.ods import Invalid

ALIGNED = "aligned"
COUNTS = ("cores", "least_cores", "n_f_op", "at_most")
ROWS = ("f_op", "rp")
UNROTATED = "unrotated"
UNROTATED_KEYS = ("least_cores", "padding", "n_f_op")
KEYS = (*COUNTS, "padding", *ROWS, ALIGNED, UNROTATED)
"""Keys of `#rtensor.space`; `f_op`, `rp`, `aligned` and `unrotated` are optional."""


def space_fields(space: PartitionSpace) -> dict[str, Any]:
    """Return a space under the keys of `#rtensor.space`; `read_space` reads it back."""
    named = {field.name: getattr(space, field.name) for field in fields(space)}
    named[ALIGNED] = named.pop("is_aligned") or None
    if space.unrotated is not None:
        named[UNROTATED] = {key: getattr(space.unrotated, key) for key in UNROTATED_KEYS}
    return {key: value for key, value in named.items() if value is not None}


def read_space(fields: Mapping[str, Any]) -> PartitionSpace:
    """Return the space spelled by a decoded attribute; raises `Invalid` for a key missing, unknown or malformed."""
    refuse_unknown(fields, KEYS, "space")
    cores, least_cores, n_f_op, at_most = (_count(fields, key, "space") for key in COUNTS)
    padding = _ratio(fields, "space")
    aligned = fields.get(ALIGNED, False)
    if not isinstance(aligned, bool):
        raise Invalid(f"{ALIGNED} is {spelled(aligned)}, expected true or false")
    f_op, rp = (int_tuple(fields[key], key) if key in fields else None for key in ROWS)
    unrotated = _read_unrotated(fields[UNROTATED]) if UNROTATED in fields else None
    return PartitionSpace(cores, least_cores, padding, n_f_op, at_most, f_op, rp, aligned, unrotated)


def _read_unrotated(value: Any) -> UnrotatedSpace:
    """Return the constraints of plans without rotation."""
    if not isinstance(value, dict):
        raise Invalid(f"{UNROTATED} is {spelled(value)}, expected a dictionary")
    fields = cast("dict[str, Any]", value)
    refuse_unknown(fields, UNROTATED_KEYS, UNROTATED)
    least_cores, n_f_op = (_count(fields, key, UNROTATED) for key in ("least_cores", "n_f_op"))
    return UnrotatedSpace(least_cores, _ratio(fields, UNROTATED), n_f_op)


def _count(fields: Mapping[str, Any], key: str, what: str) -> int:
    value = required(fields, key, what)
    if not is_int(value) or value < 1:
        raise Invalid(f"{key} is {spelled(value)}, expected a number of at least 1")
    return value


def _ratio(fields: Mapping[str, Any], what: str) -> float:
    value = required(fields, "padding", what)
    if not isinstance(value, float) or not 0 <= value <= 1:
        raise Invalid(f"padding is {spelled(value)}, expected a ratio from 0.0 to 1.0")
    return value


def check_space(space: PartitionSpace, expression: Expression | None = None) -> None:
    """Raise `Invalid` with the first rule that a space breaks, by itself and against the op's `expression`."""
    if space.least_cores > space.cores:
        raise Invalid(f"least_cores = {space.least_cores} of cores = {space.cores}, expected at most these")
    least_unrotated = 1 if space.unrotated is None else space.unrotated.least_cores
    if least_unrotated > space.cores:
        raise Invalid(
            f"unrotated: least_cores = {least_unrotated} of cores = {space.cores}, expected at most these"
        )
    if space.unrotated is not None and space.f_op is not None:
        raise Invalid("unrotated with f_op: further F_op beside the only one")
    if space.rp is not None and space.f_op is None:
        raise Invalid("rp without f_op: a pace belongs to one F_op")
    if space.f_op is not None:
        breach = next(breaches(PlanRows(space.f_op), expression, space.cores), None)
        if breach is not None:
            raise Invalid(str(breach))
    n_axes = len(space.f_op or ())
    if space.rp is not None and len(space.rp) != n_axes:
        raise Invalid(f"rp has {len(space.rp)} entries, expected {n_axes}: one per axis")
