"""A planned module taken back to operators without plans: what `annotate` wrote is removed."""

from __future__ import annotations

from typing import Any

from t10.dialect.groups import SEGMENTS, segment_sizes
from t10.dialect.mlir import ir
from t10.dialect.rtensor import CANDIDATES, FORCED, PLAN, SPACE, without_layout
from t10.errors import InputError
from t10.passes.bridge.annotate import BUFFERS, IDLE, IDLE_LEVEL, update_signature
from t10.passes.bridge.loops import is_expanded

MOVES = ("rtensor.relayout", "rtensor.setup")


def unplan(function: Any) -> None:
    """Remove plans, candidates, layouts, moves and buffers from a function.

    Raises `InputError` for an expanded operator: its loops follow from the plan it has.
    """
    block = function.regions[0].blocks[0]
    operations = [op.operation for op in block.operations]
    for op in operations:
        if op.name in MOVES:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
    for value in block.arguments:
        value.set_type(without_layout(value.type))
    for op in [each.operation for each in block.operations]:
        _unplan_operation(op)
    if "arg_attrs" in function.attributes:
        entries = [_without(entry, IDLE) for entry in function.attributes["arg_attrs"]]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
    if BUFFERS in function.attributes:
        del function.attributes[BUFFERS]
    update_signature(function)


def _unplan_operation(op: Any) -> None:
    for name in (PLAN, CANDIDATES, SPACE, FORCED, IDLE_LEVEL):
        if name in op.attributes:
            del op.attributes[name]
    for result in op.results:
        result.set_type(without_layout(result.type))
    if op.name != "rtensor.operator":
        return
    if is_expanded(op):
        raise InputError("is expanded to loops and cannot be planned anew", hint="start before --t10-expand")
    op.attributes[SEGMENTS] = segment_sizes([value.type for value in op.operands])


def _without(dictionary: Any, name: str) -> Any:
    return ir.DictAttr.get({entry.name: entry.attr for entry in dictionary if entry.name != name})
