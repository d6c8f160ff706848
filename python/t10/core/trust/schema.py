"""From plain values to records: a schema for every field, its numbers bounded, and one form of what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails, to_json

from t10.core.trust.tree import Place, read_json
from t10.core.trust.wording import SAYS_WHAT_WAS_FOUND, worded
from t10.errors import InputError

MOST = (1 << 53) - 1
"""Largest integer of a file: every JSON reader keeps it exactly, and 64 bits hold sums of a thousand of them."""
MAX_SHOWN = 3
MAX_VALUE = 60
FIELDS = "fields"
"""Kind of an error, and in its context: the fields of a record that do not suit each other. Its message names them."""
Integer = Annotated[int, Field(ge=-MOST, le=MOST)]
Size = Annotated[int, Field(ge=0, le=MOST)]
Count = Annotated[int, Field(ge=1, le=MOST)]

Shape = TypeVar("Shape", bound=BaseModel)


def read_record(
    record: type[Shape], path: Path | str, format_name: str, version: int, *, hint: str | None = None
) -> Shape:
    """Return the record in a JSON file that says it has this format and version; raises `InputError` otherwise."""
    return validated(record, read_format(path, format_name, version, hint=hint), str(path), hint=hint)


def read_format(
    path: Path | str, format_name: str, version: int, *, hint: str | None = None
) -> dict[str, Any]:
    """Return the fields of a JSON file that says it has this format and version; raises `InputError` otherwise."""
    fields = read_json(path, hint=hint)
    for key, expected in (("format", format_name), ("version", version)):
        if fields.get(key) != expected:
            found = f"{fields.get(key)!r:.{MAX_VALUE}}"
            raise InputError(f"{path}: {key}: found {found}, expected {expected!r}", hint=hint)
    return fields


def validated(
    record: type[Shape], fields: Mapping[str, Any], source: str, *, hint: str | None = None, prefix: str = "",
    lines: Mapping[Place, int] | None = None,
) -> Shape:  # fmt: skip
    """Return the record of plain values; raises `InputError` with the path of every field that is wrong.

    What a strict record takes is what JSON can say: lists are tuples, and nothing else is converted. `prefix` stands
    before the path; `lines` are those of the file by path, where they are known.
    """
    try:
        if record.model_config.get("strict"):
            return record.model_validate_json(to_json(fields))
        return record.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"{source}: {explain(error, prefix, record, lines)}", hint=hint) from None
    except (ValueError, RecursionError) as error:  # what JSON cannot say, like a lone surrogate
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{source}: found what is no JSON: {reason}", hint=hint) from None


def explain(
    error: ValidationError,
    prefix: str = "",
    record: type[BaseModel] | None = None,
    lines: Mapping[Place, int] | None = None,
) -> str:
    """Return what is wrong with a value: line and path, what was expected, what was found; three places at most.

    A field that the `record` does not have is named with the one that was probably meant.
    """
    problems = _of_nearest_forms(error.errors(include_url=False))
    parts: list[str] = []
    for problem in problems[:MAX_SHOWN]:
        where = ""
        for step in problem["loc"]:
            where += f"[{step}]" if isinstance(step, int) else f".{step}"
        message = worded(problem, record)
        has_value = problem["type"] not in (*SAYS_WHAT_WAS_FOUND, FIELDS) and where
        found = f", found {problem['input']!r:.{MAX_VALUE}}" if has_value else ""
        places = _places(problem)
        place = line_text(next((each for each in places if each in (lines or {})), ()), lines or {})
        place += f"{prefix}{where.lstrip('.')}: " if where else ""
        parts.append(f"{place}{message[:1].lower()}{message[1:]}{found}")
    more = len(problems) - len(parts)
    return "; ".join(parts) + (f"; and {more} more" if more else "")


def _of_nearest_forms(problems: list[ErrorDetails]) -> list[ErrorDetails]:
    """Return the problems with a value that may have several forms only in those which it comes nearest to.

    Paths name a form by its type: `f_op.dict[str,int].m`. They are left without it.
    """

    def plain(problem: ErrorDetails) -> Place:
        return tuple(step for step in problem["loc"] if isinstance(step, int) or "[" not in step)

    def is_worse(problem: ErrorDetails) -> bool:
        at = plain(problem)
        return at != problem["loc"] and any(
            len(place) > len(at) and place[: len(at)] == at for place in map(plain, problems)
        )

    nearest = [problem for problem in problems if not is_worse(problem)]
    return [ErrorDetails({**problem, "loc": plain(problem)}) for problem in nearest]


def _places(problem: ErrorDetails) -> tuple[Place, ...]:
    """Return where an error may stand in a file: at its fields, or what holds them."""
    at: Place = problem["loc"]
    names: tuple[str, ...] = problem.get("ctx", {}).get(FIELDS, ()) if problem["type"] == FIELDS else ()
    return (*((*at, name) for name in names), *(at[:n] for n in range(len(at), 0, -1)))


def line_text(place: Place, lines: Mapping[Place, int]) -> str:
    """Return the line of a place as a message begins with it, nothing where it is not known."""
    return f"line {lines[place]}: " if place in lines else ""
