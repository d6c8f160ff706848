"""Reading chip files: bundled ones by name, anybody's by path; a mistake is an `InputError` that names the field.

`ipu-mk2:shift_buffer_bytes=4096,sync_cycles=60` is that chip with other numbers: what-if without a file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, cast

from t10.chip.numbers import LEVELS_KEY, listed, meant_field, numbers_of, put, words_of
from t10.chip.off_chip import BANDWIDTH_KEY, MEMORY_KEY, check_one_way
from t10.chip.sources import NOTES_KEY, SOURCES_KEY, Sources, sources_in
from t10.chip.spec import BASE_KEY, ChipSpec
from t10.core import plugins
from t10.core.trust.files import read_text
from t10.core.trust.schema import line_text, validated
from t10.core.trust.tree import YAML_BYTES, Place, parse_yaml, read_yaml, yaml_lines
from t10.errors import InputError

SUFFIXES = (".yaml", ".yml", ".json")
CORES_KEY = "n_cores"
PAIRS_KEY = "paired_bytes_per_cycle"
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
    whole = str(name_or_path)
    text, changes = _parted(whole)
    if text != whole:
        return _changed(load_chip(text), changes, whole)
    if text in bundled_chips():
        return _checked(_bundled(text), (), text, {})
    added = plugins.names(plugins.CHIPS, bundled_chips())
    if text in added:
        text = str(plugins.file(plugins.CHIPS, text, bundled_chips()))
    path = Path(text)
    if path.suffix not in SUFFIXES and not path.exists():
        known = ", ".join((*bundled_chips(), *added))
        raise InputError(f"unknown chip '{text}' (expected one of {known}, or the path of a .yaml file)")
    source = f"chip file {text}"
    own = read_yaml(path, what="chip file", hint=HINT)
    lines = yaml_lines(read_text(path, YAML_BYTES))
    check_one_way(own, f"{source}: {line_text((BANDWIDTH_KEY,), lines)}")
    if (BANDWIDTH_KEY,) in lines:
        lines[MEMORY_KEY, "bytes_per_second"] = lines[BANDWIDTH_KEY,]
    return _checked(_filled(own, source, lines), own, source, lines)


def _parted(text: str) -> tuple[str, str]:
    """Return the name or path of a chip, and the changes behind it, "" where there are none."""
    name, _, changes = text.partition(CHANGES_AFTER)
    is_named = name in bundled_chips() or name in plugins.names(plugins.CHIPS, bundled_chips())
    return (name, changes) if is_named or Path(name).suffix in SUFFIXES else (text, "")


def sources_of(name_or_path: str | Path) -> Sources:
    """Return where the numbers of a chip come from that `load_chip` takes."""
    whole = str(name_or_path)
    text, changes = _parted(whole)
    if changes:
        own = [each.partition("=")[0].strip() for each in changes.split(",")]
        return _of_pairs(sources_of(text).changed(dict.fromkeys(own)), own, whole, text)
    added = plugins.names(plugins.CHIPS, bundled_chips())
    if text in bundled_chips():
        written = _bundled_text(text)
    else:
        path = plugins.file(plugins.CHIPS, text, bundled_chips()) if text in added else Path(text)
        written = read_text(path, YAML_BYTES)
    fields = parse_yaml(written, text)
    found = sources_in(written, fields.get(SOURCES_KEY), fields.get(NOTES_KEY, ()))
    if fields.get(LEVELS_KEY) and CORES_KEY not in fields:
        fields[CORES_KEY] = None
        found = replace(found, by_field=(*found.by_field, (CORES_KEY, "counts of levels")))
    if BASE_KEY not in fields:
        return found
    base = fields[BASE_KEY]
    return _of_pairs(found.on(sources_of(base), fields), fields, text, base)


def _of_pairs(sources: Sources, own: Collection[str], chip: str, base: str) -> Sources:
    """Return the sources of a chip that differs from its base in its `own` fields: pairs may gain nothing then."""
    if PAIRS_KEY in own or load_chip(chip).paired_bytes_per_cycle == load_chip(base).paired_bytes_per_cycle:
        return sources
    return sources.changed({PAIRS_KEY: None})


def _checked(
    fields: Mapping[str, Any], own: Collection[str], source: str, lines: Mapping[Place, int]
) -> ChipSpec:
    """Return the chip of these fields, of which its file or name gives its `own`; the others are a bundled chip's.

    Raises `InputError`, also for a rate of pairs that would never be used; one of a bundled chip then becomes 0.
    """
    hint = HINT if lines else None
    try:
        chip = validated(ChipSpec, fields, source, hint=hint, prefix="field ", lines=lines)
    except InputError as error:
        if BANDWIDTH_KEY not in own:
            raise
        text = str(error.message).replace(f"field {MEMORY_KEY}.bytes_per_second:", f"field {BANDWIDTH_KEY}:")
        raise InputError(text, hint=hint) from None
    rate, least = chip.paired_bytes_per_cycle, chip.exchange_bytes_per_cycle
    if not 0 < rate <= least:
        return chip
    if PAIRS_KEY not in own:
        return chip.model_copy(update={PAIRS_KEY: 0})
    raise InputError(
        f"{source}: {line_text((PAIRS_KEY,), lines)}field {PAIRS_KEY}: expected 0 or more than "
        f"exchange_bytes_per_cycle = {least}: pairs that take no more than others gain nothing, found {rate}",
        hint=hint,
    )


def _changed(chip: ChipSpec, changes: str, text: str) -> ChipSpec:
    """Return a chip with `FIELD=VALUE,...` changed; it is called as it was asked for."""
    fields, known = chip.model_dump(), (*numbers_of(chip), *words_of(chip))
    own: set[str] = set()
    for change in changes.split(","):
        field, equals, value = change.partition("=")
        field = field.strip()
        if field in own:
            raise InputError(f"chip {text}: field {field} is changed twice (expected once)", hint=HINT)
        own.add(field)
        if not equals or field not in known:
            raise InputError(f"chip {text}: {_wrong(change, known)}", hint=HINT)
        put(fields, field, value.strip())
    if CORES_KEY not in own and any(field.startswith(f"{LEVELS_KEY}.") for field in own):
        # Levels say how many there are.
        del fields[CORES_KEY]
    fields["name"] = f"{chip.name}{CHANGES_AFTER}{changes}"
    fields["description"] = f"based on {chip.name}"
    return _checked(fields, own, f"chip {text}", {})


def _wrong(change: str, known: Sequence[str]) -> str:
    """Return what is wrong with a change that has no value, or a field that no chip has."""
    field, equals, value = change.partition("=")
    near = meant_field(field.strip(), known)
    meant = f"(did you mean {near}{equals}{value}?)" if near else f"with a field of {listed(known)}"
    if equals and field.strip():
        return f"found no field '{field.strip()}', expected FIELD=VALUE {meant}"
    return f"found '{change}', expected FIELD=VALUE {meant}"


def _check_sources(stated: object, source: str) -> None:
    """Raise `InputError` unless sources are texts, each under the name of a field."""
    if isinstance(stated, dict):
        known = cast("dict[object, object]", stated)
        fields = {*ChipSpec.model_fields, BANDWIDTH_KEY}
        wrong = {
            field: each
            for field, each in known.items()
            if str(field).partition("[")[0] not in fields or not isinstance(each, str)
        }
        if not wrong:
            return
        stated = wrong
    raise InputError(
        f"{source}field {SOURCES_KEY}: expected texts under the names of fields, found {stated!r:.60}",
        hint=HINT,
    )


def _check_notes(stated: object, source: str) -> None:
    """Raise `InputError` unless notes are a list of lines."""
    if not isinstance(stated, list) or not all(
        isinstance(each, str) for each in cast("list[object]", stated)
    ):
        raise InputError(
            f"{source}field {NOTES_KEY}: expected a list of texts, found {stated!r:.60}", hint=HINT
        )


def _bundled(name: str) -> dict[str, Any]:
    return _filled(parse_yaml(_bundled_text(name), name), name, {})


def _bundled_text(name: str) -> str:
    return (resources.files("t10.chip") / "data" / f"{name}.yaml").read_text(encoding="utf-8")


def _filled(fields: dict[str, Any], source: str, lines: Mapping[Place, int]) -> dict[str, Any]:
    """Return the fields of a file, those of the bundled chip it is based on filled in."""
    _check_sources(fields.pop(SOURCES_KEY, {}), f"{source}: {line_text((SOURCES_KEY,), lines)}")
    _check_notes(fields.pop(NOTES_KEY, []), f"{source}: {line_text((NOTES_KEY,), lines)}")
    base = fields.pop(BASE_KEY, None)
    if base is None:
        return fields
    if not isinstance(base, str) or base not in bundled_chips():
        near = get_close_matches(str(base), bundled_chips(), n=1)
        known = f"did you mean {near[0]}?" if near else f"one of {', '.join(bundled_chips())}"
        raise InputError(
            f"{source}: {line_text((BASE_KEY,), lines)}field {BASE_KEY}: found {base!r:.60}, expected a bundled chip: "
            f"{known}",
            hint=HINT,
        )
    filled = {**_bundled(base), "description": f"based on {base}", **fields}
    if fields.get(LEVELS_KEY, []) != [] and CORES_KEY not in fields:
        # Levels say how many there are.
        filled.pop(CORES_KEY, None)
    return filled
