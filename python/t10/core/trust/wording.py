"""What is wrong with a value of a file, in words of a file: errors of pydantic by their kind."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

WHOLE, NUMBER, TEXT, MAPPING = "a whole number", "a number", "text", "a mapping of fields"
EXPECTED = {
    "missing": "a value, found none",
    "int_from_float": f"{WHOLE}, got one with a fractional part",
    "int_type": WHOLE,
    "int_parsing": WHOLE,
    "int_parsing_size": f"{WHOLE} of fewer digits",
    "float_type": NUMBER,
    "float_parsing": NUMBER,
    "finite_number": "a finite number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "too_short": "at least {min_length} items, found {actual_length}",
    "too_long": "at most {max_length} items, found {actual_length}",
    "string_type": TEXT,
    "string_too_short": "text of {min_length} or more characters",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "text that matches {pattern}",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": MAPPING,
    "model_type": MAPPING,
    "literal_error": "{expected}",
}
"""What is expected, by the kind of an error and with what it says besides."""
MOST_PARTS = 2
"""Parts that have a field of a name at most where it says something that they have it."""
TOP = "the file itself"
"""How the part is called that holds all others."""
SAYS_WHAT_WAS_FOUND = ("missing", "too_short", "too_long")


def worded(problem: ErrorDetails, record: type[BaseModel] | None) -> str:
    """Return what is wrong; a field that the `record` does not have is named with what was probably meant."""
    kind = problem["type"]
    if kind == "extra_forbidden":
        return "unknown field" + ("" if record is None else meant(record, problem))
    if kind not in EXPECTED:
        return problem["msg"].removeprefix("Value error, ")
    context = problem.get("ctx", {})
    whole = {key: int(each) for key, each in context.items() if isinstance(each, float) and each.is_integer()}
    expected = f"expected {EXPECTED[kind].format(**{**context, **whole})}"
    words = str(context.get("expected", "")).split("'")[1::2]
    near = get_close_matches(str(problem["input"]), words, n=1)
    return expected + "".join(f" (did you mean {word}?)" for word in near)


def meant(record: type[BaseModel], problem: ErrorDetails) -> str:
    """Return the field that was probably meant by one that a record does not have, "" where nothing is near.

    It is another of the same part, or the same of another part: `topology` beside `levels` belongs into them.
    """
    *place, name = problem["loc"]
    here = _record_at(record, place)
    if here is None:
        return ""
    others = [part for part, names in _parts(record) if name in names and part != _outermost(place)]
    if 0 < len(others) <= MOST_PARTS:
        return f", expected it in {' or '.join(others)}"
    near = get_close_matches(str(name), _names(here), n=1)
    return "".join(f", did you mean '{each}'?" for each in near)


def _outermost(place: list[int | str]) -> str:
    return str(place[0]) if place else TOP


def _parts(record: type[BaseModel]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a record and those in it, by name, with the names of their fields."""
    yield TOP, _names(record)
    for name, field in record.model_fields.items():
        inner = _record_in(field.annotation)
        if inner is not None:
            yield name, _names(inner)


def _names(record: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of a record's fields, and those that a file may have beside them (`OTHER_KEYS`)."""
    return (*record.model_fields, *getattr(record, "OTHER_KEYS", ()))


def _record_at(record: type[BaseModel], place: list[int | str]) -> type[BaseModel] | None:
    """Return the record that lies at a place inside another, None where there is none."""
    inner: type[BaseModel] | None = record
    for step in place:
        if isinstance(step, str):
            field = inner.model_fields.get(step) if inner is not None else None
            inner = None if field is None else _record_in(field.annotation)
    return inner


def _record_in(annotation: Any) -> type[BaseModel] | None:
    """Return the record that a type is, or one of several, or a list of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_record_in, get_args(annotation))), None)
