"""What is read is not trusted: every file is read within budgets, and what is wrong with it is one clear error."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from math import prod
from pathlib import Path

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from t10.arrays import read_arrays, write_arrays
from t10.chip import load_chip
from t10.chip.spec import ChipSpec
from t10.codelets.user import load_families
from t10.core.document import read_document
from t10.core.trust import arrays, files, tree
from t10.core.trust.arrays import array_name, member_name, read_array
from t10.core.trust.files import read_bytes, read_text
from t10.core.trust.tree import parse_yaml, read_json, read_yaml
from t10.errors import InputError
from t10.plan.fronts.pins import read_pins

CODELETS = Path(__file__).resolve().parents[2] / "examples" / "codelets"


def npy(shape: str, data: bytes = b"", descr: str = "'<f4'") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


# --- JSON and YAML ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 200_000, "nested too deep"),
        ('{"format": "t10-plan", "x": ' + "[" * 5000 + "]" * 5000 + "}", "nested too deep"),
        ('{"format": NaN}', "found NaN, expected a number"),
        ('{"format": -Infinity}', "found -Infinity"),
        ('{"format": 1, "format": 2}', "found 'format' twice"),
        ('{"format": ' + "9" * 5000 + "}", "not JSON"),
        ('{"format": "\\ud800"}', "format: found"),
        ("", "not JSON"),
        ("null", "found a JSON NoneType, expected an object"),
    ],
)
@pytest.mark.parametrize("read", [read_document, read_pins])
def test_json_is_refused_at_every_door(
    read: Callable[[Path], object], text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x.json")


def test_json_that_is_cut_off_or_holds_too_many_values_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": [1, 2, 3')
    with pytest.raises(InputError, match="not JSON"):
        read_json(path)
    path.write_text('{"a": [1, 2, 3]}')
    assert read_json(path) == {"a": [1, 2, 3]}
    monkeypatch.setattr(tree, "JSON_MEMBERS", 3)
    with pytest.raises(InputError, match="found 4 values, expected at most 3"):
        read_json(path)


def yaml_bomb() -> str:
    """Return 300 bytes of YAML that stand for 9 ** 9 values."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    return "\n".join([*lines, "name: *a8", ""])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (yaml_bomb(), "more than 50,000 values"),
        ("[" * 5000, "nested deeper than 32"),
        ("\n".join(" " * i + "a:" for i in range(500)), "nested deeper than 32"),
        ("a: &a [*a]", "a value holds itself"),
        ("a: 1\na: 2\n", "found 'a' twice, expected it once"),
        ("a: " + "9" * 5000, "a number of 5,000 characters"),
        ("a: " + "1:" * 50_000 + "1", "a number of 100,001 characters"),
        ("a: 2001-99-99", "is not YAML"),
        ("? [1, 2]\n: 3", "is not YAML"),
        ("a: !!python/object/apply:os.system [true]", "is not YAML"),
        ("a: \x1b", "is not YAML"),
        ("a: 1\n---\nb: 2\n", "is not YAML"),
        ("", "expected a mapping of fields, found NoneType"),
    ],
)
def test_yaml_is_refused_before_it_is_made(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_chip(path)


def test_yaml_may_repeat_a_value() -> None:
    found = parse_yaml("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}\n", "x")
    assert found == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("sram_bytes: 99999999999999999999", "field sram_bytes: .*256 MiB at most"),
        ("clock_hz: .nan", "field clock_hz: .*finite"),
        ("clock_hz: .inf", "field clock_hz: .*finite"),
        ("clock_hz: 1e999", "field clock_hz"),
        ("floor_plan: {row_cycles: .inf}", r"field floor_plan\.row_cycles"),
        ("matrix_units: 3", "field matrix_units"),
        ("name: [x]", "field name"),
        ("based_on: [x]", "field based_on"),
    ],
)
def test_every_field_of_a_chip_is_bounded(field: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    base = "" if field.startswith("based_on") else "based_on: test-4\n"
    path.write_text(f"{base}{field}\n")
    with pytest.raises(InputError, match=message):
        load_chip(path)


def test_a_message_shows_a_part_of_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text("based_on: test-4\nn_cores: [" + ", ".join(["1234567"] * 9000) + "]\n")
    with pytest.raises(InputError, match="field n_cores") as caught:
        load_chip(path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("f_op", "message"),
    [
        ('{"m": 0, "n": 3}', "operators[0].f_op.m: expected at least 1, found 0"),
        ("[2, 0]", "operators[0].f_op[1]: expected at least 1, found 0"),
    ],
)
def test_of_values_in_several_forms_the_nearest_is_named(f_op: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "pins.json"
    path.write_text(f'{{"format": "t10-pins", "version": 1, "operators": [{{"name": "y", "f_op": {f_op}}}]}}')
    with pytest.raises(InputError) as caught:
        read_pins(path)
    assert str(caught.value).splitlines()[0] == f"{path}: {message}"


def test_pins_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "pins.json"
    path.write_text(
        '{"format": "t10-pins", "version": 1, "operators": [{"name": "a", "f_op": {"m": 1}, "idle_level": '
        f"{2**70}}}]}}"
    )
    with pytest.raises(InputError, match=r"operators\[0\].idle_level: expected at most"):
        read_pins(path)


@pytest.mark.parametrize(
    "formula", ["(" * 400 + "1" + ")" * 99, "-" * 499 + "1", "1" + "+1" * 249, "9" * 501, "1 <<"]
)
@pytest.mark.parametrize("field", ["where", "scratch_bytes", "body"])
def test_expressions_of_declarations_are_bounded(field: str, formula: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    for named in ("vector_add_float.S", "codelets.yaml"):
        (tmp_path / named).write_bytes((CODELETS / named).read_bytes())
    document = yaml.safe_load((CODELETS / "codelets.yaml").read_text(encoding="utf-8"))
    document["codelets"] = [each for each in document["codelets"] if each["name"] == "VectorAddFloat"]
    document["codelets"][0][field] = [formula] if field == "where" else formula
    path.write_text(yaml.safe_dump(document, width=1000), encoding="utf-8")
    with contextlib.suppress(InputError):
        assert [family.name for family in load_families([path])]


# --- bytes and text --------------------------------------------------------------------------------------------------


def test_files_are_read_within_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(InputError, match=r"x: found more than 4 bytes, expected at most that"):
        read_bytes(path, 4)
    monkeypatch.setattr(files, "ENDLESS_BYTES", 1000)
    with pytest.raises(InputError, match=r"/dev/zero: found more than 1,000 bytes"):
        read_bytes("/dev/zero", 1 << 40)
    for name in (tmp_path, tmp_path / "none", "a\0b"):
        with pytest.raises(InputError, match="cannot read"):
            read_bytes(name, 10)


def test_pipes_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody writes; somebody does after a while, more than a pipe holds; a command, as `<(...)` and standard input."""
    monkeypatch.setattr(files, "WRITER_SECONDS", 0.2)
    pipe, read = (
        tmp_path / "pipe",
        "from t10.core.trust.files import *; print(len(read_bytes({!r}, 1 << 20)))",
    )
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=r"cannot read .*pipe: it is a pipe that nobody writes to"):
        read_bytes(pipe, 10)
    monkeypatch.setattr(files, "WRITER_SECONDS", 60)
    with subprocess.Popen(["bash", "-c", "sleep 0.3; (sleep 0.2; head -c 300000 /dev/zero) > $0", pipe]):
        assert read_bytes(pipe, 1 << 20) == bytes(300000)
    with (
        subprocess.Popen(["bash", "-c", "head -c 300000 /dev/zero > $0", pipe]),
        pytest.raises(InputError, match="found more than 9 bytes"),
    ):
        read_bytes(pipe, 9)
    for name, end in (
        ("/dev/stdin", ""),
        ("-", ""),
        ("/dev/fd/9", "9< <(sleep 0.3; head -c 70000 /dev/zero)"),
    ):
        command = f"(sleep 0.2; head -c 70000 /dev/zero) | $0 -c '{read.format(name).replace(chr(39), chr(34))}' {end}"
        found = subprocess.run(
            ["bash", "-c", command, sys.executable], capture_output=True, text=True, check=True
        )
        assert found.stdout == "70000\n"


def test_text_is_utf8_and_its_lines_end_alike(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a\r\nb\rc\n")
    assert read_text(path, 100) == "a\nb\nc\n"
    path.write_bytes(b"a\nb\xff")
    with pytest.raises(InputError, match="line 2: found byte 0xff, expected UTF-8"):
        read_text(path, 100)


def test_crlf_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"based_on: test-4\r\nname: y\r\n")
    assert read_yaml(path) == {"based_on": "test-4", "name": "y"}


# --- arrays ----------------------------------------------------------------------------------------------------------


def test_a_header_that_states_more_than_there_is_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", {"x.npy": npy("(70368744177664,)")})
    with pytest.raises(InputError, match="array x: found 0 bytes, expected 281,474,976,710,656"):
        read_arrays(path)
    single = tmp_path / "x.npy"
    single.write_bytes(npy("(70368744177664,)"))
    with pytest.raises(InputError, match="found 0 bytes, expected 281,474,976,710,656"):
        read_array(single)


def test_an_array_of_another_shape_is_not_unpacked(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", {"x.npy": npy("(75000000,)", b"\0" * 300_000_000)})
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"array x has shape \(75000000,\), expected \(4,\)"):
            read_arrays(path, {"x": (4,)}.get)
        assert read_arrays(path, names=()) == {}
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_arrays_whose_shapes_nobody_knows_have_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "x.npz", {"x.npy": npy("(1000,)", b"\0" * 4000)})
    assert read_arrays(path)["x"].shape == (1000,)
    monkeypatch.setattr(arrays, "UNPACKED_BYTES", 4000)
    with pytest.raises(InputError, match="array x: found 4,128 bytes, expected no more"):
        read_arrays(path)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (npy("(-1,)"), "bytes, expected"),
        (npy("(2,)", b"\0" * 7), "found 7 bytes, expected 8"),
        (npy("(2,)", b"\0" * 9), "found 9 bytes, expected 8"),
        (npy("()", b"\0" * 8, "'|O'"), "expected numbers"),
        (npy("(1,)", b"\0" * 8, "'<U2'"), "expected numbers"),
        (npy("(1,)", b"", "[('a', '<f4', (99999999,))]"), "expected numbers"),
        (npy("(" + "9" * 5000 + ",)"), "is not an .npz archive"),
        (b"\x93NUMPY\x03\x00" + b"\xff" * 20, "version"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", "is not an .npz archive"),
        (b"", "is not an .npz archive"),
        (b"garbage, no header", "is not an .npz archive"),
    ],
)
def test_members_that_are_no_arrays_are_refused(member: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_arrays(archive(tmp_path / "x.npz", {"x.npy": member}))


def test_archives_that_are_damaged_are_refused(tmp_path: Path) -> None:
    whole = archive(tmp_path / "x.npz", {"x.npy": npy("(64,)", bytes(range(256)))}).read_bytes()
    path = tmp_path / "y.npz"
    for position in range(0, len(whole), 3):
        path.write_bytes(whole[:position])
        with pytest.raises(InputError):
            read_arrays(path)
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        with contextlib.suppress(InputError):
            assert all(array.shape == (64,) for array in read_arrays(path).values())
    twice = tmp_path / "twice.npz"
    with zipfile.ZipFile(twice, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            file.writestr("x.npy", npy("(0,)"))
    with pytest.raises(InputError, match="array x: found twice"):
        read_arrays(twice)
    with pytest.raises(InputError, match="found compression 12, expected none or deflate"):
        read_arrays(archive(tmp_path / "z.npz", {"x.npy": npy("(0,)")}, zipfile.ZIP_BZIP2))


NAMES = (
    "../../x",
    "/etc/x",
    "a/../b",
    "..",
    "a\\..\\b",
    "x\x1b[31m",
    "c\x00d",
    "50%2E",
    "%",
    "a..b",
    "a/b.c",
    "é",
    "",
)


def test_what_is_written_never_leads_out_of_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    given = {name: np.arange(i) for i, name in enumerate(NAMES)}
    write_arrays(path, given)
    with zipfile.ZipFile(path) as file:
        members = file.namelist()
    for member in members:
        assert not member.startswith("/")
        assert ".." not in member.replace("\\", "/").split("/")
        assert member.isprintable()
    found = read_arrays(path)
    assert list(found) == list(given)
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)
    assert [array_name(member_name(name)) for name in NAMES] == list(NAMES)
    assert [member_name(name) for name in ("fc.w", "layer/1/w")] == ["fc.w.npy", "layer/1/w.npy"]


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3), (2, 3, 4)])
def test_arrays_read_back_equal(is_transposed: bool, shape: tuple[int, ...], tmp_path: Path) -> None:
    straight = np.arange(prod(shape), dtype=np.float16).reshape(shape)
    array = np.asfortranarray(straight) if is_transposed else straight
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", x=array)
        found = read_arrays(tmp_path / "x.npz")["x"]
        np.testing.assert_array_equal(found, array)
        assert (found.dtype, found.flags.writeable) == (array.dtype, True)
    np.save(tmp_path / "x.npy", array)
    np.testing.assert_array_equal(read_array(tmp_path / "x.npy"), array)


@pytest.mark.parametrize("value", [7, "x", None, True, [], [1], {}, {"levels": 7}, {"levels": [7]}])
def test_a_record_of_a_chip_may_be_anything(value: object) -> None:
    """As in the manifest of an output folder, where nothing has looked at it before."""
    with pytest.raises(ValidationError):
        ChipSpec.model_validate(value)
