"""Python values to MLIR attributes and back: integers, strings, and (nested) sequences and dictionaries of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from t10.dialect.mlir import ir
from t10.dialect.ods import Invalid

T = TypeVar("T")
Decoded = object
"""What `to_python` makes of an attribute: an int, float, string, tuple or dictionary of these, else the attribute."""


def to_attr(value: Any) -> Any:
    """Return the attribute of a Python value; needs a current context.

    An int becomes i64, a float f64, a sequence an array, a mapping a dictionary; attributes pass through.
    """
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get(ir.F64Type.get(), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return ir.DictAttr.get({key: to_attr(item) for key, item in items.items()})
    if isinstance(value, Sequence):
        return ir.ArrayAttr.get([to_attr(element) for element in cast("Sequence[Any]", value)])
    raise TypeError(f"no attribute for a {type(value).__name__}")


def to_python(attr: Any) -> Any:
    """Return the Python value of an attribute made of integers, floats, strings, arrays (tuples) and dictionaries.

    Any other attribute is returned as it is, so that the caller's check can print it.
    """
    attr = attr.maybe_downcast()
    if isinstance(attr, ir.ArrayAttr):
        return tuple(to_python(element) for element in attr)
    if isinstance(attr, ir.DictAttr):
        return {named.name: to_python(named.attr) for named in attr}
    if isinstance(attr, (ir.IntegerAttr, ir.BoolAttr, ir.StringAttr, ir.FloatAttr)):
        return attr.value
    return attr


def spelled(value: Decoded) -> str:
    """Return a decoded attribute as IR writes it, for messages."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(spelled, cast('tuple[Decoded, ...]', value)))}]"
    if isinstance(value, dict):
        items = cast("dict[str, Decoded]", value).items()
        return f"{{{', '.join(f'{key} = {spelled(item)}' for key, item in items)}}}"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_int(value: object) -> bool:
    """Return whether a decoded attribute is an integer (a bool is not)."""
    return isinstance(value, int) and not isinstance(value, bool)


def entries_of(value: Decoded) -> tuple[Decoded, ...] | None:
    """Return the elements of a decoded attribute, None if it is no array."""
    return cast("tuple[Decoded, ...]", value) if isinstance(value, tuple) else None


def int_tuple(value: Decoded, name: str) -> tuple[int, ...]:
    """Return a decoded attribute that must be an array of integers; raises `Invalid` naming it otherwise."""
    elements = entries_of(value)
    if elements is None:
        raise Invalid(f"{name} is {spelled(value)}, expected an array of integers such as [2, 1]")
    for element in elements:
        if not is_int(element):
            raise Invalid(f"{name} holds {spelled(element)}, expected integers only")
    return cast("tuple[int, ...]", elements)


def required(fields: Any, key: str, what: str) -> Any:
    """Return `fields[key]` of a decoded dictionary; raises `Invalid` that lists what was found."""
    if not isinstance(fields, Mapping):
        raise Invalid(f"{what} is {spelled(fields)}, expected a dictionary")
    items = cast("Mapping[str, Any]", fields)
    if key not in items:
        found = ", ".join(sorted(items)) or "nothing"
        raise Invalid(f"{what} has no '{key}' (found {found})")
    return items[key]


def required_int(fields: Any, key: str, what: str) -> int:
    """Return the integer `fields[key]` of a decoded dictionary; raises `Invalid` where it is none."""
    value = required(fields, key, what)
    if not is_int(value):
        raise Invalid(f"{what} has {key} = {spelled(value)}, expected an integer")
    return value


def refuse_unknown(fields: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    """Raise `Invalid` for the first key that is not `known`."""
    for key in fields:
        if key not in known:
            raise Invalid(f"{what} has an unknown key '{key}' (expected {', '.join(known)})")


class Decoder(Generic[T]):
    """A function from an attribute, or a type, to its value that decodes equal ones once.

    Values are kept by the hash of the attribute, which the bindings compute from its address: an attribute lives as
    long as its context, and holding on to it would keep the context alive.
    """

    def __init__(self, decode: Callable[[Any], T]) -> None:
        """Keep what decodes; it raises `Invalid` for what it cannot read."""
        self._decode = decode
        self._kept: WeakKeyDictionary[Any, dict[int, T]] = WeakKeyDictionary()

    def __call__(self, attr: Any) -> T:
        """Return the value of an attribute."""
        kept = self._kept.setdefault(attr.context, {})
        key = hash(attr)
        if key not in kept:
            kept[key] = self._decode(attr)
        return kept[key]
