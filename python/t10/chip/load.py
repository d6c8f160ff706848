"""Reading chip files: bundled ones by name, anybody's by path; a mistake is an `InputError` that names the field.

`ipu-mk2:shift_buffer_bytes=4096,sync_cycles=60` is that chip with other numbers: what-if without a file.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any

from t10.chip.off_chip import BANDWIDTH_KEY
from t10.chip.spec import ChipSpec
from t10.core import plugins
from t10.core.trust.schema import validated
from t10.core.trust.tree import parse_yaml, read_yaml
from t10.errors import InputError

SUFFIXES = (".yaml", ".yml", ".json")
BASE_KEY = "based_on"
LEVELS_KEY, CORES_KEY = "levels", "n_cores"
CHANGES_AFTER = ":"
DEFAULT_CHIP = "ipu-mk2"
HINT = "docs/chip-files.md lists every field"


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
    is_named = name in bundled_chips() or name in plugins.names(plugins.CHIPS, bundled_chips())
    if colon and (is_named or Path(name).suffix in SUFFIXES):
        return _changed(load_chip(name), changes, text)
    if text in bundled_chips():
        return validated(ChipSpec, _bundled(text), text, prefix="field ")
    added = plugins.names(plugins.CHIPS, bundled_chips())
    if text in added:
        text = str(plugins.file(plugins.CHIPS, text, bundled_chips()))
    path = Path(text)
    if path.suffix not in SUFFIXES and not path.exists():
        known = ", ".join((*bundled_chips(), *added))
        raise InputError(f"unknown chip '{text}' (expected one of {known}, or the path of a .yaml file)")
    source = f"chip file {text}"
    fields = _filled(read_yaml(path, what="chip file", hint=HINT), source)
    return validated(ChipSpec, fields, source, hint=HINT, prefix="field ")


def _changed(chip: ChipSpec, changes: str, text: str) -> ChipSpec:
    """Return a chip with `FIELD=NUMBER,...` changed; it is called as it was asked for."""
    fields = chip.model_dump()
    for change in changes.split(","):
        field, equals, value = change.partition("=")
        field = field.strip()
        if equals and field == BANDWIDTH_KEY:
            fields[field] = value.strip()
            continue
        if not equals or not isinstance(fields.get(field), (int, float)):
            numbers = [key for key, each in fields.items() if isinstance(each, (int, float))]
            near = get_close_matches(field, numbers, 1)
            meant = (
                f"(did you mean {near[0]}{equals}{value}?)"
                if near
                else f"with a field of {', '.join(numbers)}"
            )
            raise InputError(
                f"chip {text}: found '{change}', expected FIELD=NUMBER {meant}",
                hint=HINT,
            )
        fields[field] = value.strip()
    fields["name"] = f"{chip.name}{CHANGES_AFTER}{changes}"
    return validated(ChipSpec, fields, f"chip {text}", prefix="field ")


def _bundled(name: str) -> dict[str, Any]:
    text = (resources.files("t10.chip") / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    return _filled(parse_yaml(text, name), name)


def _filled(fields: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the fields of a file, those of the bundled chip it is based on filled in."""
    base = fields.pop(BASE_KEY, None)
    if base is None:
        return fields
    if not isinstance(base, str) or base not in bundled_chips():
        known = ", ".join(bundled_chips())
        raise InputError(
            f"{source}: field {BASE_KEY}: found {base!r:.60}, expected one of {known}", hint=HINT
        )
    filled = {**_bundled(base), **fields}
    if LEVELS_KEY in fields and CORES_KEY not in fields:
        # Levels say how many there are.
        del filled[CORES_KEY]
    return filled
