"""The value of `#rtensor.space` to and from attributes, and its rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from t10.core.legal import Expression, PlanRows, breaches
from t10.core.space import PartitionSpace
from t10.dialect.attributes import int_tuple, is_int, refuse_unknown, required, spelled
from t10.dialect.ods import Invalid

ALIGNED = "aligned"
COUNTS = ("cores", "least_cores", "n_f_op", "at_most")
ROWS = ("f_op", "rp")
KEYS = (*COUNTS, "padding", *ROWS, ALIGNED)
"""Keys of `#rtensor.space`; `f_op`, `rp` and `aligned` are optional."""


def space_fields(space: PartitionSpace) -> dict[str, Any]:
    """Return a space under the keys of `#rtensor.space`; `read_space` reads it back."""
    named = {field.name: getattr(space, field.name) for field in fields(space)}
    named[ALIGNED] = named.pop("is_aligned") or None
    return {key: value for key, value in named.items() if value is not None}


def read_space(fields: Mapping[str, Any]) -> PartitionSpace:
    """Return the space spelled by a decoded attribute; raises `Invalid` for a key missing, unknown or malformed."""
    refuse_unknown(fields, KEYS, "space")
    for key in COUNTS:
        value = required(fields, key, "space")
        if not is_int(value) or value < 1:
            raise Invalid(f"{key} is {spelled(value)}, expected a number of at least 1")
    padding = required(fields, "padding", "space")
    if not isinstance(padding, float) or not 0 <= padding <= 1:
        raise Invalid(f"padding is {spelled(padding)}, expected a ratio from 0.0 to 1.0")
    aligned = fields.get(ALIGNED, False)
    if not isinstance(aligned, bool):
        raise Invalid(f"{ALIGNED} is {spelled(aligned)}, expected true or false")
    f_op, rp = (int_tuple(fields[key], key) if key in fields else None for key in ROWS)
    cores, least_cores, n_f_op, at_most = (fields[key] for key in COUNTS)
    return PartitionSpace(cores, least_cores, padding, n_f_op, at_most, f_op, rp, aligned)


def check_space(space: PartitionSpace, expression: Expression | None = None) -> None:
    """Raise `Invalid` with the first rule that a space breaks, by itself and against the op's `expression`."""
    if space.least_cores > space.cores:
        raise Invalid(f"least_cores = {space.least_cores} of cores = {space.cores}, expected at most these")
    if space.rp is not None and space.f_op is None:
        raise Invalid("rp without f_op: a pace belongs to one F_op")
    if space.f_op is not None:
        breach = next(breaches(PlanRows(space.f_op), expression, space.cores), None)
        if breach is not None:
            raise Invalid(str(breach))
    n_axes = len(space.f_op or ())
    if space.rp is not None and len(space.rp) != n_axes:
        raise Invalid(f"rp has {len(space.rp)} entries, expected {n_axes}: one per axis")
