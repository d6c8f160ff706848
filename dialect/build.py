"""Builders of `rtensor` attributes, types and operations; all need a current context, operations an insertion point.

op, block = build.operator((x, w, init), result_type, op_name="/mlp/MatMul", kind="contraction")
with ir.InsertionPoint(block):
    build.yield_(linalg_op.result)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t10.core.expression import OperatorKind
from t10.core.plan import CostedPlan
from t10.dialect.attributes import to_attr
from t10.dialect.groups import SEGMENTS, segment_sizes
from t10.dialect.layout import Layout
from t10.dialect.mlir import ir
from t10.dialect.plan import CandidatePlan
from t10.dialect.plan_attributes import plan_attr
from t10.dialect.rtensor import PLAN, LayoutAttr


def layout_attr(layout: Layout) -> Any:
    """Return `#rtensor.layout<...>`."""
    return LayoutAttr.get(to_attr(layout.fields()))


def with_layout(type_: Any, layout: Layout | None) -> Any:
    """Return a ranked tensor type with this layout as its encoding, or without one."""
    encoding = None if layout is None else layout_attr(layout)
    location = ir.Location.unknown(type_.context)
    return ir.RankedTensorType.get(type_.shape, type_.element_type, encoding, loc=location)


def set_plan(op: Any, costed: CostedPlan) -> None:
    """Make a plan the plan of an operator; raises `Invalid` for one that breaks a rule."""
    op.operation.attributes[PLAN] = plan_attr(CandidatePlan.of(costed))


def operator(
    inputs: Sequence[Any], result_type: Any, *, op_name: str, kind: OperatorKind, location: Any = None
) -> tuple[Any, Any]:
    """Return a new `rtensor.operator` and its empty block, whose arguments stand for `inputs`; end it with `yield_`.

    Raises `UnsupportedOpError` if the types of `inputs` change too often (see `groups.segment_sizes`).
    """
    types = [value.type for value in inputs]
    attributes = {"op_name": to_attr(op_name), "kind": to_attr(kind), SEGMENTS: segment_sizes(types)}
    return _with_region("rtensor.operator", inputs, result_type, attributes, types, location)


def nest(
    inputs: Sequence[Any],
    *,
    axes: Sequence[int],
    steps: Sequence[int],
    rp: Sequence[int],
    location: Any = None,
) -> tuple[Any, Any]:
    """Return a new `rtensor.nest` and its empty block; its result has the type of the last of `inputs`.

    Arguments of the block: one position per axis, then what stands for `inputs`.
    """
    types = [value.type for value in inputs]
    rows = {"axes": tuple(axes), "steps": tuple(steps), "rp": tuple(rp)}
    attributes = {key: to_attr(row) for key, row in rows.items()} | {SEGMENTS: segment_sizes(types)}
    arguments = [ir.IndexType.get()] * len(rows["axes"]) + types
    return _with_region("rtensor.nest", inputs, types[-1], attributes, arguments, location)


def yield_(value: Any) -> Any:
    """Return a new `rtensor.yield`: the end of an operator or of a nest."""
    return _simple("rtensor.yield", [value], [], {})


def setup(weight: Any, active: Layout, *, bytes_: int, cycles: int) -> Any:
    """Return the value of a weight in its active layout; `bytes_` is the most any core receives."""
    return _moved("rtensor.setup", weight, active, {"bytes": bytes_, "cycles": cycles})


def relayout(value: Any, target: Layout, *, bytes_: int, cycles: int) -> Any:
    """Return a value in the layout its consumer needs; `bytes_` is the most any core receives."""
    return _moved("rtensor.relayout", value, target, {"bytes": bytes_, "cycles": cycles})


def reduce(
    partial: Any, target: Layout, *, kind: str, mode: str, cores: int, bytes_: int, cycles: int
) -> Any:
    """Return the combined value of partial results that lie on `cores` cores."""
    fields = {"kind": kind, "mode": mode, "cores": cores, "bytes": bytes_, "cycles": cycles}
    return _moved("rtensor.reduce", partial, target, fields)


def shift(value: Any, *, axis: int, pace: int, direction: str = "forward") -> Any:
    """Return a tensor after every core handed `pace` elements of dim `axis` to its neighbour."""
    fields = {"axis": axis, "pace": pace, "direction": direction}
    return _simple("rtensor.shift", [value], [value.type], fields).result


def _moved(name: str, value: Any, target: Layout, fields: dict[str, Any]) -> Any:
    """Return the result of an operation that changes a layout only."""
    return _simple(name, [value], [with_layout(value.type, target)], fields).result


def _simple(name: str, operands: list[Any], results: list[Any], fields: dict[str, Any]) -> Any:
    """Return a new operation without regions."""
    attributes = {key: to_attr(value) for key, value in fields.items()}
    return ir.Operation.create(
        name, results=results, operands=operands, attributes=attributes, loc=_location(None)
    )


def _with_region(
    name: str,
    inputs: Sequence[Any],
    result_type: Any,
    attributes: dict[str, Any],
    arguments: list[Any],
    location: Any,
) -> tuple[Any, Any]:
    """Return a new operation with one region and its block."""
    where = _location(location)
    op = ir.Operation.create(
        name, results=[result_type], operands=list(inputs), attributes=attributes, regions=1, loc=where
    )
    block = op.regions[0].blocks.append(*arguments, arg_locs=[where] * len(arguments))
    return op, block


def _location(location: Any) -> Any:
    """Return a location: the one given, the current one, or unknown."""
    return location or ir.Location.current or ir.Location.unknown()
