"""Fronts as entries of the plan cache: what they depend on as a key, and a form that cannot lie about costs.

An entry holds the partition (F_op and ft) of every plan of a front, and its cycles and bytes. When it is read, pace,
phases and costs are derived from the partitions as the search derives them; if they are not those of the entry, or
the plans are not a front, the entry is not used.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

from t10.chip import ChipSpec
from t10.core.costs import links_of
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import CostedPlan
from t10.cost import CostModel
from t10.cost.code_digest import COST_PARTS, digest_of
from t10.errors import T10Error
from t10.plan.memory.operator_bound import least_bytes
from t10.plan.options import PlanOptions
from t10.plan.search.listed import align, pareto_front, placed

FORMAT = "t10-front 1"
KIND = "front"

Row = tuple[AxisSizes, tuple[AxisSizes, ...], int, int]
"""F_op, ft, cycles and bytes of a plan."""


@lru_cache(maxsize=1)
def planner_fingerprint() -> str:
    """Return a digest of the files that fronts are made by, so that no front outlives the search that found it."""
    return digest_of((*COST_PARTS, "plan"))


def front_key(spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions) -> str | None:
    """Return the key of the front of an operator; None if it must not be kept.

    The key covers the operator, every number of the chip that plans go by, the cost model, the options and the planner.
    """
    model = cost.fingerprint()
    if model is None:
        return None
    known = {
        "format": FORMAT,
        "planner": planner_fingerprint(),
        "cost": model,
        "chip": chip.model_dump(mode="json", exclude={"name", "description", "energy"}),
        "options": asdict(options),
        "operator": asdict(spec),
    }
    return sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def encoded(front: tuple[CostedPlan, ...]) -> bytes:
    """Return the payload of a front's entry: JSON, one row per plan."""
    rows = [[c.plan.f_op, c.plan.ft, c.cycles.total, c.active_bytes] for c in front]
    return json.dumps({"format": FORMAT, "front": rows}, separators=(",", ":")).encode("ascii")


def decoded(
    payload: bytes, spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> tuple[CostedPlan, ...] | None:
    """Return the front of an entry, None if it is not one of this operator at these costs."""
    rows = _rows(payload)
    if not rows:
        return None
    partitions = tuple((f_op, ft) for f_op, ft, _, _ in rows)
    try:
        plans = placed(spec, align(spec, partitions), links_of(cost))
        front = pareto_front(spec, plans, cost, options)
    except (T10Error, ArithmeticError, ValueError, LookupError):
        return None
    found = [(c.plan.f_op, c.plan.ft, c.cycles.total, c.active_bytes) for c in front]
    room = chip.capacity_bytes - chip.shift_buffer_bytes
    needs = [
        c.active_bytes if c.active_bytes <= room else least_bytes(spec, c.plan, overlaps=chip.overlaps)
        for c in front
    ]
    fits = max(needs, default=0) <= room and all(c.plan.n_cores <= chip.n_cores for c in front)
    return front if fits and found == rows else None


def _rows(payload: bytes) -> list[Row]:
    """Return (F_op, ft, cycles, bytes) of every plan of an entry; none if it has another form."""
    try:
        loaded = cast("dict[str, Any]", json.loads(payload))
        if loaded["format"] != FORMAT:
            return []
        rows = cast("list[tuple[list[Any], list[list[Any]], Any, Any]]", loaded["front"])
        return [
            (
                tuple(_integer(f) for f in f_op),
                tuple(tuple(_integer(t) for t in row) for row in ft),
                _integer(cycles),
                _integer(n_bytes),
            )
            for f_op, ft, cycles, n_bytes in rows
        ]
    except (TypeError, ValueError, LookupError, RecursionError):
        return []


def _integer(value: object) -> int:
    """Return a value that is an integer; raises `TypeError` for any other."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 53:
        raise TypeError(f"found {value!r}, expected an integer from 0")
    return value
