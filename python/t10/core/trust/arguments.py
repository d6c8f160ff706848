"""What callers of the Python interface give, looked at before it is used: a mistake is one clear error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from t10.errors import InputError


def check_mapping(what: str, given: Any, example: str) -> None:
    """Raise `InputError` unless something is a mapping from names."""
    is_mapping = isinstance(given, Mapping)
    if not (is_mapping and all(isinstance(name, str) for name in cast("Mapping[Any, Any]", given))):
        raise InputError(f"{what}: found {_shown(given)}, expected a mapping from names, as {example}")


def check_given(shapes: Any, constants: Any, bounds: Any) -> None:
    """Raise `InputError` for one that is not by name, and for shapes that are none; None is nothing."""
    if constants is not None:
        check_mapping("constants", constants, "{'k': 3}")
    if bounds is not None:
        check_mapping("bounds", bounds, "{'nms': 50}")
    if shapes is not None:
        _check_extents(shapes)


def _check_extents(shapes: Any) -> None:
    """Raise `InputError` unless shapes are extents, or lists of them, by name."""
    check_mapping("shapes", shapes, "{'x': (1, 128)}")
    extents: Any
    for name, extents in shapes.items():
        listed = list(cast("Sequence[Any]", extents)) if isinstance(extents, (list, tuple)) else [extents]
        if not all(isinstance(each, (int, np.integer)) and not isinstance(each, bool) for each in listed):
            found = f"{_shown(extents)} for {name}"
            raise InputError(f"shapes: found {found}, expected a number or a tuple of numbers")


def check_type(what: str, given: Any, kind: type) -> None:
    """Raise `InputError` unless something is of a type."""
    if not isinstance(given, kind):
        raise InputError(f"{what}: found {_shown(given)}, expected {kind.__module__}.{kind.__qualname__}")


def paths_of(given: str | Path | Sequence[str | Path]) -> tuple[str | Path, ...]:
    """Return paths; one alone counts as a list of one."""
    return (given,) if isinstance(given, (str, Path)) else tuple(given)


def array_of(what: str, given: Any) -> np.ndarray[Any, Any]:
    """Return an array; raises `InputError` for lists that are none, as of rows of different lengths."""
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InputError(f"{what} is no array: {str(error)[:200]}") from None


def _shown(given: Any) -> str:
    return f"{given!r:.60} of type {type(given).__name__}"
