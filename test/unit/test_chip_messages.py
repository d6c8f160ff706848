"""What a chip file is refused for: what nobody builds, with what was probably meant, by line and field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from t10.chip import load_chip
from t10.errors import InputError


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("clock_hz: 1.33 MHz", r"no chip is so slow, .*did you mean 1\.33 GHz\?, found '1\.33 MHz'"),
        ("clock_hz: 1.33", r"no chip is so slow, .*did you mean 1\.33 GHz\?, found 1\.33"),
        ("clock_hz: 1.33e12", r"no chip is so fast, .*did you mean 1\.33 GHz\?"),
        (
            "sram_bytes: 624 MiB",
            r"no memory of a core is so large, .*256 MiB at most: did you mean 624 KiB\?",
        ),
        ("sram_bytes: 300 GiB", r"no memory of a core is so large, .*256 MiB at most"),
        (
            "exchange_bytes_per_cycle: 4000000",
            "at most 1048576 bytes per cycle, not per second, found 4000000",
        ),
        ("copy_bytes_per_cycle: 1e9", "at most 1048576 bytes per cycle, not per second"),
        ("paired_bytes_per_cycle: 1e7", "at most 1048576 bytes per cycle, not per second"),
        (
            "levels: [{name: a, count: 2, topology: ring, link_bytes_per_cycle: 4000000}]",
            "no link is so fast, expected at most 1048576 bytes per cycle, not per second",
        ),
        ("n_cores: 020", r"field n_cores: a leading zero .* did you mean 20\?, found '020'"),
        ("sync_cycles: -007", r"did you mean -7\?"),
        ("memory: {bytes_per_second: 3}", r"did you mean 3 GB/s or 3 TB/s\?, found 3"),
        ("memory: {bytes_per_second: 3 B/s}", r"did you mean 3 GB/s\?"),
        ("hbm_bandwidth: 460", r"did you mean 460 GB/s or 460 MB/s\?"),
    ],
)
def test_what_nobody_builds_is_refused_with_what_was_meant(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: test-4\nname: x\n{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        load_chip(path)
    assert str(caught.value).startswith(f"chip file {path}: line 3: field ")


def test_numbers_that_all_readers_of_yaml_read_alike_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text("based_on: test-4\nname: x\nsync_cycles: 0x10\nn_cores: 1_0\nlaunch_cycles: 0\n")
    chip = load_chip(path)
    assert (chip.sync_cycles, chip.n_cores, chip.launch_cycles) == (16, 10, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hbm_bandwith: 3 TB/s",
            "line 3: field hbm_bandwith: unknown field, did you mean 'hbm_bandwidth'?, found",
        ),
        (
            "base_on: ipu-mk2",
            "line 3: field base_on: unknown field, did you mean 'based_on'?, found 'ipu-mk2'",
        ),
        ("topology: mesh", "line 3: field topology: unknown field, expected it in levels, found 'mesh'"),
        (
            "row_cycles: 3",
            "line 3: field row_cycles: unknown field, expected it in matrix_units or floor_plan",
        ),
        (
            "memory: {bytes_per_second: 1 GB/s, execution: overlapped}",
            "line 3: field memory.execution: unknown field, expected it in the file itself",
        ),
        (
            "memory:\n  bytes_per_second: 3 GB/s\nhbm_bandwidth: 1 TB/s",
            "line 5: field hbm_bandwidth: found '1 TB/s'",
        ),
        (
            "execution: overlaped",
            "expected 'bulk-synchronous' or 'overlapped' (did you mean overlapped?), found",
        ),
        ("n_cores: 200000", "line 3: field n_cores: expected at most 131072, found 200000"),
        ("n_cores: 0", "line 3: field n_cores: expected at least 1, found 0"),
        ("exchange_bytes_per_cycle: 0", "expected at least 0.0009765625, found 0"),
        (
            "levels: [" + ", ".join(f"{{name: a{n}, count: 1}}" for n in range(9)) + "]",
            "line 3: field levels: expected at most 8 items, found 9 (docs",
        ),
        ("levels: [{count: 4}]", "line 3: field levels[0].name: expected a value, found none"),
        (
            "levels: [{name: '', count: 4}]",
            "field levels[0].name: expected text of 1 or more characters, found ''",
        ),
        ("memory: 3", "line 3: field memory: expected a mapping of fields, found 3"),
    ],
)
def test_messages_are_in_words_of_the_file(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: test-4\nname: x\n{text}\n")
    with pytest.raises(InputError) as caught:
        load_chip(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"chip file {path}: line ")


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (
            "own-file.yaml",
            "line 2: field based_on: found 'own-file.yaml', expected a bundled chip: one of c600",
        ),
        (
            "ipu-mk3",
            "line 2: field based_on: found 'ipu-mk3', expected a bundled chip: did you mean ipu-mk2?",
        ),
        ("[ipu-mk2]", "line 2: field based_on: found ['ipu-mk2'], expected a bundled chip"),
    ],
)
def test_a_base_that_is_no_bundled_chip_is_refused_with_its_line(
    base: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"name: x\nbased_on: {base}\n")
    with pytest.raises(InputError, match=re.escape(message)):
        load_chip(path)
