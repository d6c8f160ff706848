"""Reading and writing plan.json: validated, checked against itself, never half written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from t10.core.atomic import write_text
from t10.core.document import records
from t10.core.document.decode import decode
from t10.core.document.encode import encode
from t10.core.document.text import json_text
from t10.core.schedule import ModulePlan
from t10.core.trust.files import decoding
from t10.core.trust.schema import read_record
from t10.errors import InputError, T10Error

HINT = "make it again with `t10 compile`"


def write_document(path: Path | str, module: ModulePlan) -> None:
    """Write a planned model to a file, at once or not at all."""
    write_text(path, json_text(_plain(encode(module))))


def read_document(path: Path | str) -> ModulePlan:
    """Return the planned model of a file.

    Raises `InputError` with the JSON path of what is wrong: no such file, not JSON, another format or version, keys
    that are missing, unknown or of a wrong type, rows that do not exist, and derived fields (fs, rings, ...) that do
    not follow from the plans, as happens when the file is edited by hand.
    """
    document = read_record(records.PlanDocument, path, records.FORMAT, records.VERSION, hint=HINT)
    try:
        with decoding(path, hint=HINT):
            module = decode(document)
            again = _plain(encode(module))
    except InputError as error:
        raise InputError(f"{path}: {error.message}", hint=HINT, operator=error.operator) from None
    except T10Error as error:
        raise InputError(f"{path}: the plan contradicts itself: {error}", hint=HINT) from None
    found = _plain(document)
    again["generator"] = found["generator"]
    difference = _first_difference(found, again, "")
    if difference:
        raise InputError(f"{path}: {difference}", hint=f"it does not follow from the plan; {HINT}")
    return module


def _plain(document: records.PlanDocument) -> dict[str, Any]:
    """Return a document as plain JSON values, defaults left out."""
    return document.model_dump(mode="json", exclude_defaults=True)


def _first_difference(found: Any, expected: Any, where: str) -> str:
    """Return the first place where two JSON values differ, as a sentence; empty when they are equal."""
    if found == expected:
        return ""
    if isinstance(found, dict) and isinstance(expected, dict):
        left, right = cast("dict[str, Any]", found), cast("dict[str, Any]", expected)
        for key in (*left, *(key for key in right if key not in left)):
            difference = _first_difference(left.get(key), right.get(key), f"{where}.{key}".lstrip("."))
            if difference:
                return difference
    if isinstance(found, list) and isinstance(expected, list):
        first, second = cast("list[Any]", found), cast("list[Any]", expected)
        if len(first) != len(second):
            return f"{where}: found {len(first)} items, expected {len(second)}"
        for i, (one, other) in enumerate(zip(first, second, strict=True)):
            difference = _first_difference(one, other, f"{where}[{i}]")
            if difference:
                return difference
    return f"{where}: found {found!r:.80}, expected {expected!r:.80}"
