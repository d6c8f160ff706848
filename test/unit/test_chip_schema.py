"""`docs/chip.schema.json`: editors accept what `load_chip` accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
import yaml

from t10.chip import bundled_chips, load_chip
from t10.chip.schema import chip_schema
from t10.errors import InputError

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCHEMA = json.loads((DOCS / "chip.schema.json").read_text(encoding="utf-8"))
VALIDATOR: Any = jsonschema.Draft202012Validator(SCHEMA)
TEXTS = ("1 KiB", "1 GHz", "1 GB/s", "1e3", "1_000", "many", "2 furlongs")


def examples() -> list[str]:
    """Return the chip files in the documentation."""
    page = (DOCS / "chip-files.md").read_text(encoding="utf-8")
    return [text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "based_on" in text]


def test_the_schema_is_one_and_is_up_to_date() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert chip_schema() == SCHEMA


@pytest.mark.parametrize("name", bundled_chips())
def test_every_bundled_file_is_valid(name: str) -> None:
    text = (resources.files("t10.chip") / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    assert not list(VALIDATOR.iter_errors(yaml.safe_load(text)))
    assert not list(VALIDATOR.iter_errors(load_chip(name).model_dump(mode="json")))


def test_examples_are_valid() -> None:
    assert len(examples()) >= 4
    for text in examples():
        assert not list(VALIDATOR.iter_errors(yaml.safe_load(text))), text


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("{based_on: ipu-mk2, name: x, sram_bytes: 512 KiB, clock_hz: 1.5 GHz, hbm_bandwidth: 2 TB/s}", True),
        ("{based_on: ipu-mk2, name: x, n_core: 4}", False),
        ("{based_on: ipu-mk2, name: x, memory: {bytes_per_second: 1 GB/s, chanels: 2}}", False),
        ("{based_on: ipu-mk2, name: x, hbm_bandwidth: 1 GB/s, memory: {bytes_per_second: 1 GB/s}}", False),
        ("{based_on: ipu-mk2, name: x, execution: overlaped}", False),
        ("{based_on: ipu-mk2, name: x, n_cores: true}", False),
        ("{based_on: ipu-mk9, name: x}", False),
        ("{name: x, n_cores: 4}", False),
        ("{based_on: ipu-mk2, name: x, sram_bytes: 512 kib}", False),
    ],
)
def test_the_schema_and_the_loader_agree(text: str, is_valid: bool, tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(text)
    assert VALIDATOR.is_valid(yaml.safe_load(text)) == is_valid
    if is_valid:
        load_chip(path)
    else:
        with pytest.raises(InputError):
            load_chip(path)


def numbers(
    chip: dict[str, Any] | list[Any], place: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every number of a chip."""
    items: Iterable[tuple[str | int, Any]] = chip.items() if isinstance(chip, dict) else enumerate(chip)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from numbers(cast("dict[str, Any] | list[Any]", value), (*place, key))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield (*place, key)


@pytest.mark.parametrize("text", TEXTS)
def test_every_number_is_read_with_the_units_that_the_schema_takes(text: str, tmp_path: Path) -> None:
    chip = load_chip("wormhole-n150").model_dump(mode="json")
    chip["energy"] = {"mac_pj": 1, "static_watts": 2}
    found = {True: 0, False: 0}
    for place in numbers(chip):
        changed = json.loads(json.dumps(chip))
        holder = changed
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = text
        path = tmp_path / "chip.json"
        path.write_text(json.dumps(changed))
        message = ""
        try:
            load_chip(path)
        except InputError as error:
            message = str(error)
        # What is too little, or does not suit other fields, is no matter of its form.
        is_read = re.search(r"expected a number|unknown unit", message) is None
        assert VALIDATOR.is_valid(changed) == is_read, (place, message)
        found[is_read] += 1
    assert found[text in ("1e3", "1_000")] > 20
