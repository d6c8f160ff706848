"""Attributes of a function's arguments, read and written as dictionaries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from t10.dialect.mlir import ir

Entry = dict[str, Any]

TYPES = frozenset({"f16", "f32"})
"""Types of elements that the host appends zeros to."""


def argument_entries(function: Any) -> list[Entry]:
    """Return the attributes of every argument by name."""
    if "arg_attrs" not in function.attributes:
        return [{} for _ in function.regions[0].blocks[0].arguments]
    return [
        {each.name: each.attr for each in ir.DictAttr(entry)}
        for entry in ir.ArrayAttr(function.attributes["arg_attrs"])
    ]


def set_argument_entries(function: Any, entries: Sequence[Entry]) -> None:
    """Give every argument its attributes."""
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in entries])


def set_shape(argument: Any, shape: Sequence[int]) -> None:
    """Give an argument another shape."""
    argument.set_type(ir.RankedTensorType.get(list(shape), ir.RankedTensorType(argument.type).element_type))


def drop_arguments(function: Any, numbers: Collection[int]) -> None:
    """Remove arguments that nothing reads."""
    if not numbers:
        return
    block = function.regions[0].blocks[0]
    entries = argument_entries(function)
    for number in sorted(numbers, reverse=True):
        block.erase_argument(number)
        del entries[number]
    set_argument_entries(function, entries)
