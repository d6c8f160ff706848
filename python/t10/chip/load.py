"""Reading chip files: bundled ones by name, anybody's by path; a mistake is an `InputError` that names the field.

`ipu-mk2:shift_buffer_bytes=4096,sync_cycles=60` is that chip with other numbers: what-if without a file.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ValidationError

from t10.chip.spec import ChipSpec
from t10.errors import InputError

SUFFIXES = (".yaml", ".yml", ".json")
BASE_KEY = "based_on"
CHANGES_AFTER = ":"


def bundled_chips() -> tuple[str, ...]:
    """Return the names of the chips that come with the package, sorted."""
    folder = resources.files("t10.chip") / "data"
    return tuple(sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml")))


def load_chip(name_or_path: str | Path) -> ChipSpec:
    """Return a chip: a bundled one by its name, or one from a YAML or JSON file, perhaps with other numbers.

    Raises `InputError` for an unknown name, an unreadable file, or a field that is missing, unknown or wrong.
    """
    text = str(name_or_path)
    name, colon, changes = text.partition(CHANGES_AFTER)
    if colon and (name in bundled_chips() or Path(name).suffix in SUFFIXES):
        return _changed(load_chip(name), changes, text)
    if text in bundled_chips():
        return _parse(_bundled_text(text), text)
    path = Path(text)
    if path.suffix not in SUFFIXES and not path.exists():
        known = ", ".join(bundled_chips())
        raise InputError(f"unknown chip '{text}' (expected one of {known}, or the path of a .yaml file)")
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read chip file {text}: {error}") from error
    return _parse(content, text)


def _changed(chip: ChipSpec, changes: str, text: str) -> ChipSpec:
    """Return a chip with `FIELD=NUMBER,...` changed; it is called as it was asked for."""
    fields = chip.model_dump()
    for change in changes.split(","):
        field, equals, value = change.partition("=")
        field = field.strip()
        if not equals or not isinstance(fields.get(field), (int, float)):
            numbers = ", ".join(key for key, each in fields.items() if isinstance(each, (int, float)))
            raise InputError(
                f"chip {text}: found '{change}', expected FIELD=NUMBER with a field of {numbers}",
                hint="docs/chip-files.md lists every field",
            )
        fields[field] = value.strip()
    fields["name"] = f"{chip.name}{CHANGES_AFTER}{changes}"
    try:
        return ChipSpec.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"chip {text}: {_explain(error)}") from None


def _bundled_text(name: str) -> str:
    return (resources.files("t10.chip") / "data" / f"{name}.yaml").read_text(encoding="utf-8")


def _parse(content: str, source: str) -> ChipSpec:
    """Return the chip that a file's text describes."""
    fields = _mapping(content, source)
    try:
        return ChipSpec.model_validate(fields)
    except ValidationError as error:
        raise InputError(
            f"chip file {source}: {_explain(error)}", hint="docs/chip-files.md lists every field"
        ) from None


def _mapping(content: str, source: str) -> dict[str, Any]:
    """Return the fields of a file, those of the bundled chip it is based on filled in."""
    try:
        loaded: object = yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise InputError(f"chip file {source} is not YAML: {error}") from None
    if not isinstance(loaded, dict):
        raise InputError(f"chip file {source}: expected a mapping of fields, found {type(loaded).__name__}")
    fields = {str(key): value for key, value in cast("dict[object, Any]", loaded).items()}
    base = fields.pop(BASE_KEY, None)
    if base is None:
        return fields
    if base not in bundled_chips():
        known = ", ".join(bundled_chips())
        raise InputError(f"chip file {source}: field {BASE_KEY}: found {base!r}, expected one of {known}")
    return {**_mapping(_bundled_text(str(base)), str(base)), **fields}


def _explain(error: ValidationError) -> str:
    """Return one sentence per wrong field: its name, what was expected, what was found; fields together name theirs."""
    parts: list[str] = []
    for problem in error.errors():
        where = ".".join(str(step) for step in problem["loc"])
        found = "" if problem["type"] == "missing" or not problem["loc"] else f", found {problem['input']!r}"
        message = problem["msg"].removeprefix("Value error, ")
        field = f"field {where}: " if where else ""
        parts.append(f"{field}{message[:1].lower()}{message[1:]}{found}")
    return "; ".join(parts)
