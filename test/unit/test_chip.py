"""Chip files: what is bundled loads, and every mistake names its field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from t10.chip import ChipSpec, bundled_chips, load_chip
from t10.chip.energy import Energy
from t10.cli import main
from t10.core.tile import ALIGNMENT_BYTES
from t10.errors import InputError


def test_bundled_chips_all_load_under_their_own_name() -> None:
    assert set(bundled_chips()) >= {"ipu-mk2", "ipu-bow", "test-4", "test-16", "test-64"}
    for name in bundled_chips():
        assert load_chip(name).name == name


def test_a_chip_based_on_another_does_not_describe_that_one(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text("based_on: ipu-mk2\nname: small\nn_cores: 16\n")
    assert load_chip(str(path)).description == "based on ipu-mk2"
    assert load_chip(f"{path}:n_cores=8").description == "based on small"
    assert load_chip("ipu-mk2:n_cores=8").description == "based on ipu-mk2"
    path.write_text("based_on: ipu-mk2\nname: small\ndescription: half\n")
    assert load_chip(str(path)).description == "half"


def test_mk2_is_the_published_chip() -> None:
    chip = load_chip("ipu-mk2")
    assert (chip.n_cores, chip.sram_bytes, chip.exchange_bytes_per_cycle) == (1472, 624 * 1024, 4)
    rates = {(unit.in_dtype, unit.acc_dtype): unit.macs_per_cycle for unit in chip.matrix_units}
    assert rates == {("f16", "f16"): 64, ("f16", "f32"): 32, ("f32", "f32"): 16}


def test_test_chips_differ_from_mk2_in_cores_and_the_shift_buffer() -> None:
    big, small = load_chip("ipu-mk2").model_dump(), load_chip("test-16").model_dump()
    differs = {key for key in big if big[key] != small[key]}
    assert differs == {"name", "description", "n_cores", "shift_buffer_bytes"}


def test_a_users_file_may_be_based_on_a_bundled_chip(tmp_path: Path) -> None:
    path = tmp_path / "half.yaml"
    path.write_text("based_on: ipu-mk2\nname: half\nn_cores: 736\n")
    assert load_chip(path).n_cores == 736
    assert load_chip(path).clock_hz == load_chip("ipu-mk2").clock_hz


def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "chip.json"
    path.write_text(load_chip("test-4").model_dump_json())
    assert load_chip(str(path)) == load_chip("test-4")


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown chip 'mk3' \(expected one of .*ipu-mk2"):
        load_chip("mk3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("based_on: ipu-mk2\nn_core: 4\n", r"field n_core: unknown field, did you mean .n_cores.\?, found 4"),
        ('based_on: ipu-mk2\nname: "a\\nb"\n', r"line 2: field name: .*found 'a\\nb'"),
        ("based_on: ipu-mk2\nn_cores: many\n", r"line 2: field n_cores: expected a number, found 'many'"),
        ("based_on: ipu-mk2\nn_cores: 0\n", r"field n_cores: .*expected at least 1, found 0"),
        ("based_on: ipu-mk2\nreserved_bytes: 638976\n", r"is too little, expected at least 651344"),
        (
            "based_on: ipu-mk9\n",
            r"field based_on: found 'ipu-mk9', expected a bundled chip: did you mean ipu-mk2",
        ),
        ("name: x\n", r"field n_cores: expected a value, found none"),
        ("- 1\n", r"expected a mapping of fields, found list"),
        ("{: [", r"is not YAML"),
    ],
)
def test_mistakes_name_the_field_and_what_was_found(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_chip(path)
    assert "chip.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("sram_bytes", "512 KiB", 524_288),
        ("sram_bytes", "0.5MiB", 524_288),
        ("sram_bytes", "640 kB", 640_000),
        ("reserved_bytes", "16 KiB", 16_384),
        ("shift_buffer_bytes", "4KiB", 4096),
        ("clock_hz", "1.85 GHz", 1.85e9),
        ("clock_hz", "900 MHz", 9e8),
    ],
)
def test_numbers_may_have_units(tmp_path: Path, field: str, text: str, value: float) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: test-4\nname: x\n{field}: {text}\n")
    assert getattr(load_chip(path), field) == value
    assert getattr(load_chip(f"test-4:{field}={text}"), field) == value


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("clock_hz: 1.33", "expected cycles per second: did you mean 1.33 GHz"),
        ("clock_hz: 3 kHz", "line 3: .*did you mean 3 GHz.*, found '3 kHz'"),
        ("clock_hz: 1330", "did you mean 1330 MHz"),
        ("clock_hz: 1.33e12", "line 3: .*so fast, expected 100 GHz at most: did you mean 1.33 GHz.*, found"),
        ("clock_hz: 1.33e14", "expected 100 GHz at most: did you mean 133 MHz"),
        ("clock_hz: 500 GHz", "did you mean 500 MHz.*, found '500 GHz'"),
        ("hbm_bandwidth: 3 kB/s", "field hbm_bandwidth: .*did you mean 3 GB/s.*, found '3 kB/s'"),
        ("hbm_bandwidth: 2e17", "line 3: .*so fast, expected 1000 TB/s at most: did you mean 200 GB/s"),
        ("memory: {bytes_per_second: 5e15 B/s}", "line 3: .*did you mean 5 TB/s.*, found '5e15 B/s'"),
        (
            "levels: [{name: a, count: 2, topology: ring, link_bytes_per_second: 900 TB/s}]",
            "line 3: field .*so fast, expected 100 TB/s at most: did you mean 900 GB/s.*, found '900 TB/s'",
        ),
        ("sram_bytes: 624", "sram_bytes = 624 is too little, .*did you mean 624 KiB"),
        ("sram_bytes: 8KiB", r"sram_bytes = 8192 is too little, .*read ahead \(docs"),
        ("hbm_bandwidth: 1 TB", "unknown unit 'TB', .*did you mean TB/s"),
        ("hbm_bandwidth: 2 gbps", "unknown unit 'gbps', .*did you mean GB/s"),
        ("hbm_bandwidth: 2", "line 3: .*did you mean 2 GB/s or 2 TB/s"),
        ("hbm_bandwidth: 500", "did you mean 500 GB/s"),
        ("hbm_bandwidth: -2 TB/s", "line 3: .*expected more than 0, found -2000000000000"),
        ("memory: {bytes_per_second: 1 GB/s, chanels: 2}", "line 3: .*memory.chanels: .*mean 'channels'"),
        (
            "memory: {bytes_per_second: 1 GB/s, channels: true}",
            "line 3: field memory.channels: expected a number, found True",
        ),
        ("n_workers: true", "n_workers: expected a number, found True"),
        ("n_cores: 1:30", "line 3: field n_cores: expected a number, found '1:30'"),
        ("clock_hz: 1:30.5", "field clock_hz: .*found '1:30.5'"),
        (
            "hbm_bandwidth: 1 TB/s\nmemory: {bytes_per_second: 1 GB/s}",
            "hbm_bandwidth: found .* beside memory",
        ),
        ("sram_bytes: 624 kib", "unknown unit 'kib', .*did you mean KiB"),
        ("sram_bytes: 624 GHz", "unknown unit 'GHz', .*did you mean KiB"),
        ("sram_bytes: 2 TiB", r"unknown unit 'TiB', expected one of B, .*GiB, found '2 TiB'"),
        ("clock_hz: 2 THz", "unknown unit 'THz', expected one of Hz, .*GHz, found '2 THz'"),
        ("clock_hz: 1 KiB", "unknown unit 'KiB', .*did you mean GHz"),
        ("sram_bytes: 512.3 KiB", "fractional part"),
        ("sram_bytes: 9e300 GiB", "finite|less than"),
        (
            "levels:\n  - {name: core, count: 16}\n  - {name: chip, count: two, topology: line}",
            r"line 5: field levels\[1\].count: expected a number, found 'two'",
        ),
        (
            "levels:\n  - {name: core, count: 16}\n  - name: chip\n    cuont: 2",
            r"line 6: field levels\[1\].cuont: unknown field, did you mean 'count'",
        ),
    ],
)
def test_what_was_probably_meant_is_said(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: test-4\nname: x\n{line}\n")
    with pytest.raises(InputError, match=message):
        load_chip(path)


WRONG = ("abc", "-1", "1e30", ".nan", ".inf", "true", "[1]", "{a: 1}", "3 furlongs")
TEXT = {"name", "description", "in_dtype", "acc_dtype"}


def places_in(value: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every field in a chip file, outermost key first."""
    items: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        items = cast("dict[str | int, object]", value).items()
    elif isinstance(value, list):
        items = enumerate(cast("list[object]", value))
    for key, inner in items:
        yield (*place, key)
        yield from places_in(inner, (*place, key))


def every_field() -> dict[str, Any]:
    """Return a chip file that has every field."""
    chip = load_chip("test-mesh").model_dump(mode="json")
    chip["memory"] = {"channels": 2, "bytes_per_second": 1e9, "latency_cycles": 4}
    chip["energy"] = dict.fromkeys(Energy.model_fields, 1.5)
    chip["matrix_units"] = chip["matrix_units"][:1]
    return chip


@pytest.mark.parametrize("wrong", WRONG)
def test_every_error_names_file_line_and_field_and_what_was_found(wrong: str, tmp_path: Path) -> None:
    """Every field in turn has a value that it cannot have; its own line is named, since each stands on its own."""
    path, n_refused = tmp_path / "chip.yaml", 0
    for place in places_in(every_field()):
        fields: Any = every_field()
        holder = fields
        for step in place[:-1]:
            holder = holder[step]
        is_right = place[-1] in TEXT or (place[-1], wrong) in (("multicast", "true"), ("missing", "[1]"))
        if is_right or (isinstance(holder[place[-1]], dict) and wrong == "{a: 1}"):
            continue
        holder[place[-1]] = "WRONG"
        text = yaml.safe_dump(fields, sort_keys=False)
        path.write_text(text.replace("WRONG", wrong))
        line = 1 + text[: text.index("WRONG")].count("\n")
        with pytest.raises(InputError) as caught:
            load_chip(path)
        name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)[1:]
        message = str(caught.value)
        assert message.startswith(f"chip file {path}: line {line}: field {name}"), message
        assert re.search(r"expected|unknown (unit|field)", message), message
        assert ", found " in message, message
        n_refused += 1
    assert n_refused > 40


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("paired_bytes_per_cycle: 1e30", "line 3: .*expected a number of less than 1e.18, found '1e30'"),
        ("paired_bytes_per_cycle: 2.5", "line 3: .*expected a whole number.*found 2.5"),
        ("paired_bytes_per_cycle: 4", "line 3: .*expected 0 or more than exchange_bytes_per_cycle = 4"),
        ("sync_cycles: 90 cycles", "line 3: .*expected a number without a unit, found '90 cycles'"),
        ("sram_bytes: 624", "line 3: sram_bytes = 624 is too little"),
        ("reserved_bytes: 17", "line 3: reserved_bytes = 17, expected a multiple of 16"),
        ("element_bytes: 48", "line 3: element_bytes = 48 must be a power of two"),
        ("interleaved_base: 8", "line 3: interleaved_base = 0x8 must be whole memory elements"),
        (
            "levels:\n  - {name: core, count: 4, topology: mesh}",
            "line 4: .*expected one of link_bytes_per_cycle",
        ),
        ("levels: [{name: a, count: 2, topology: ring, link_bytes_per_second: 64}]", "did you mean 64 GB/s"),
        (
            "levels: [{name: a, count: 2, topology: ring, link_bytes_per_cycle: 1e-9}]",
            r"line 3: field levels\[0\].link_bytes_per_cycle: no link is so slow, .*found .*1e-0?9",
        ),
        ("levels: [{name: a, count: 3}]\nn_cores: 4", "line 4: n_cores = 4, but the counts of levels make 3"),
        (
            "levels:\n- {name: a, count: 2}\n- {name: a, count: 2, topology: ring, link_bytes_per_cycle: 1}",
            "line 3: levels: found the name a twice",
        ),
        ("levels:", "line 3: field levels: expected a list, found None"),
        ("hbm_bandwidth: fast", "line 3: field hbm_bandwidth: expected a number, perhaps with a unit"),
        ("name: true", "line 3: found 'name' twice|field name: expected text"),
    ],
)
def test_what_does_not_suit_is_named_with_its_line(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: test-4\n{'description' if line.startswith('name') else 'name'}: x\n{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        load_chip(path)
    assert str(caught.value).startswith(f"chip file {path}: line ")


def test_an_engine_has_one_rate_for_a_pair_of_known_types(tmp_path: Path) -> None:
    unit = "{in_dtype: f16, acc_dtype: KIND, in_block: 8, out_block: 8, row_cycles: 1, load_cycles: 1}"
    path = tmp_path / "chip.yaml"
    for kinds, message in (
        (("f16", "f16"), "found f16 -> f16 twice"),
        (("bf16",), "expected one of f16, .*'bf16'"),
    ):
        units = "".join(f"  - {unit.replace('KIND', kind)}\n" for kind in kinds)
        path.write_text(f"based_on: test-4\nname: x\nmatrix_units:\n{units}")
        with pytest.raises(InputError, match=f"line [34]: .*{message}"):
            load_chip(path)


def test_a_slow_engine_has_the_exact_rate_of_its_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unit = "{in_dtype: KIND, acc_dtype: f32, in_block: 8, out_block: 8, row_cycles: CYCLES, load_cycles: 0}"
    units = [unit.replace("KIND", k).replace("CYCLES", n) for k, n in (("f16", "33"), ("f32", "1000000"))]
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: test-4\nname: x\nmatrix_units: [{', '.join(units)}]\n")
    assert [each.macs_per_cycle for each in load_chip(path).matrix_units] == [64 / 33, 64e-6]
    assert main(["chips", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "1.94 MAC per cycle" in shown
    assert "6.4e-05 MAC per cycle" in shown


@pytest.mark.parametrize("base", ["ipu-mk2", "test-4"])
def test_an_empty_list_of_levels_is_none(base: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: {base}\nname: x\nlevels: []\n")
    assert load_chip(path).levels == ()
    assert load_chip(path).n_cores == load_chip(base).n_cores


def test_levels_may_replace_those_of_a_chip_that_has_some(tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text("based_on: test-2x4\nname: x\nlevels: [{name: core, count: 3}]\n")
    assert load_chip(path).n_cores == 3


def test_pairs_gain_nothing_where_the_exchange_is_as_fast() -> None:
    """What a bundled chip says of pairs is dropped, since another exchange was asked for."""
    assert load_chip("test-4:exchange_bytes_per_cycle=8").paired_bytes_per_cycle == 0
    assert load_chip("test-4:exchange_bytes_per_cycle=8,paired_bytes_per_cycle=9").pair_rate == 9


def test_numbers_and_execution_may_be_written_as_people_do(tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text("based_on: test-4\nname: x\nsync_cycles: 1e2\nclock_hz: 1e9\n")
    assert (load_chip(path).sync_cycles, load_chip(path).clock_hz) == (100, 1e9)
    assert load_chip("test-16:execution=overlapped").overlaps
    assert not load_chip("test-overlapped:execution=bulk-synchronous").overlaps


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read chip file"):
        load_chip(tmp_path / "none.yaml")


def test_a_chip_is_immutable_and_hashable() -> None:
    chip: ChipSpec = load_chip("test-4")
    assert hash(chip) == hash(load_chip("test-4"))
    with pytest.raises(ValueError, match="frozen"):
        setattr(chip, "n_cores", 5)  # noqa: B010 -- the point is that plain assignment would not type-check


def test_numbers_of_a_chip_are_changed_by_its_name() -> None:
    chip = load_chip("test-16:shift_buffer_bytes=4096,sync_cycles=60")
    assert (chip.shift_buffer_bytes, chip.sync_cycles, chip.n_cores) == (4096, 60, 16)
    assert chip.name == "test-16:shift_buffer_bytes=4096,sync_cycles=60"


def test_numbers_of_its_parts_are_changed_by_their_names() -> None:
    def levels(changes: str) -> list[tuple[int, float, float, int]]:
        chip = load_chip(f"pod16:{changes}")
        return [
            (e.count, e.link_bytes_per_cycle, e.link_bytes_per_second, e.latency_cycles) for e in chip.levels
        ]

    core, _, pair = levels("sync_cycles=60")
    assert levels("levels.chip.link_bytes_per_second=48 GB/s") == [core, (2, 0, 48e9, 170), pair]
    assert levels("levels.chip.link_bytes_per_cycle=3,levels.pair.latency_cycles=9") == [
        core,
        (2, 3, 0, 170),
        (8, 0, 64e9, 9),
    ]
    assert load_chip("pod16:levels.pair.count=4").n_cores == 1472 * 2 * 4
    assert load_chip("pod16:n_cores=11776,levels.pair.count=4").n_cores == 11776
    units = load_chip("ipu-mk2:matrix_units.f16-f32.load_cycles=7").matrix_units
    assert [unit.load_cycles == 7 for unit in units] == [
        (unit.in_dtype, unit.acc_dtype) == ("f16", "f32") for unit in units
    ]
    assert load_chip("ipu-mk2:floor_plan.rows=9").floor_plan.rows == 9


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pod16:levels.chp.count=4", r"did you mean levels\.chip\.count=4\?"),
        ("pod16:levels.core.latency_cycles=4", "found no field 'levels.core.latency_cycles', expected"),
        (
            "pod16:levels.chip.multicast=maybe",
            r"field levels\[1\].multicast: expected true or false, found .maybe.",
        ),
        ("pod16:levels.chip.link_bytes_per_second=96", "no link is so slow"),
        ("pod16:n_cores=5,levels.chip.count=4", "n_cores = 5, but the counts of levels make 47104"),
        ("test-16:nothing=1", r"a field of n_cores, .*, floor_plan\.tiles_per_row, .*, execution"),
        ("test-16:speed=9", "found no field 'speed', expected FIELD=VALUE"),
        ("test-16:n_core=3", r"found no field 'n_core', expected FIELD=VALUE \(did you mean n_cores=3\?\)"),
        ("test-16:sync_cycles", "found 'sync_cycles', expected FIELD=VALUE"),
        ("test-16:name=x", "found no field 'name', expected FIELD=VALUE"),
        ("test-16:sync_cycles=9,sync_cycles=8", "field sync_cycles is changed twice"),
        ("test-mesh:n_cores=8", r"the counts of levels make 16: change levels\.core\.count"),
        ("test-16:sync_cycles=many", "field sync_cycles: expected a number, found 'many'"),
        ("test-16:shift_buffer_bytes=12", "field shift_buffer_bytes"),
        (
            "test-16:execution=overlap",
            "field execution: .*'bulk-synchronous' or 'overlapped' .did you mean overlapped.., found 'overlap'",
        ),
        ("test-16:executon=overlapped", r"did you mean execution=overlapped\?"),
        (
            "test-16:paired_bytes_per_cycle=4",
            "expected 0 or more than exchange_bytes_per_cycle = 4: .*, found 4",
        ),
    ],
)
def test_a_wrong_change_of_a_chip_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_chip(name)


def test_memory_without_room_for_data_is_refused_alike_however_a_chip_is_made() -> None:
    """With exactly the least memory that the message names there is a chip, with a byte less there is none."""
    chip = load_chip("ipu-mk2")
    messages: list[str] = []

    def copied(size: int) -> ChipSpec:
        return chip.model_copy(update={"sram_bytes": size})

    def named(size: int) -> ChipSpec:
        return load_chip(f"ipu-mk2:sram_bytes={size}")

    for make in (copied, named):
        message = ""
        for size in (1, 8000, 32847):
            with pytest.raises(
                InputError, match=f"sram_bytes = {size} is too little, expected at least 32848"
            ) as caught:
                make(size)
            message = str(caught.value)
        messages.append(message.split(": ", 1)[1])
        assert make(32848).capacity_bytes == chip.shift_buffer_bytes + ALIGNMENT_BYTES
    assert messages[0] == messages[1]
    assert "reserved_bytes = 20480, shift_buffer_bytes = 12288, 16 for data and 64 that" in messages[0]
