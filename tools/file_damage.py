"""Damaged files of every form that T10 reads, reproducible from dice: fields first, then text, then bytes."""

from __future__ import annotations

import io
import json
import random
import zipfile
from copy import deepcopy
from typing import Any, cast

from model_damage import EXTREMES, NAMES, damaged_bytes, damaged_words

Place = tuple[Any, Any]
DEEP = 3000
NUMBERS = (*EXTREMES, 2**53, 2**70, -(2**70), 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"))
TEXTS = (*NAMES, "\x1b[2J", "\u202e", "nan", "1e999", "../../x", "/etc/passwd", "f32", "builtin", "9" * 30)
SHAPES = (
    "(4, 8)",
    "(8, 4)",
    "()",
    "(0,)",
    "(-1,)",
    "(70368744177664,)",
    "(32, 0, 9)",
    "(4, 8",
    "(4.5,)",
    "(2**9,)",
)
DESCRS = ("'<f4'", "'<f8'", "'|O'", "'<U9'", "'|b1'", "[('a', '<f4')]", "'<f4", "'<c16'", "'|V4'", "'>f4'")
MEMBERS = ("x", "w", "../../x", "/etc/x", "in.x", "ref.z", "y", "", "x\x1b")


def damaged_fields(dice: random.Random, document: Any) -> Any:
    """Return JSON values with some of them others: of another type, out of range, gone, doubled or nested deep."""
    found: Any = json.loads(json.dumps(document))
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        places = list(_places(found))
        if not places:
            break
        holder, key = dice.choice(places)
        kind = dice.randrange(10)
        if kind == 0 and isinstance(holder, dict):
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[dice.choice(TEXTS)] = deepcopy(cast("Any", holder)[key])
        elif kind == 2:
            holder[key] = deepcopy(_other(dice, places))
        elif kind == 3 and isinstance(holder, list):
            values = cast("list[Any]", holder)
            values.extend(values[: dice.choice((1, 2, 9))])
        elif kind == 4:
            holder[key] = [holder[key]]
        else:
            holder[key] = _like(dice, holder[key])
    return found


def _places(value: Any) -> list[Place]:
    """Return (holder, key) of every value inside."""
    if not isinstance(value, (dict, list)):
        return []
    holder: Any = cast("Any", value)
    found: list[Place] = []
    for key in holder if isinstance(value, dict) else range(len(holder)):
        found += [(holder, key), *_places(holder[key])]
    return found


def _other(dice: random.Random, places: list[Place]) -> Any:
    holder, key = dice.choice(places)
    others: tuple[Any, ...] = (None, True, [], {}, "", dice.choice(NUMBERS), dice.choice(TEXTS), holder[key])
    return dice.choice(others)


def _like(dice: random.Random, value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return dice.choice((value + 1, value - 1, value * 2, dice.choice(NUMBERS)))
    if isinstance(value, float):
        return dice.choice((-value, value * 1e300, dice.choice(NUMBERS)))
    if isinstance(value, str):
        return dice.choice((value * 2, value[:-1], value.upper(), dice.choice(TEXTS)))
    if isinstance(value, list):
        values = cast("list[Any]", value)
        return dice.choice((values[:-1], values[::-1], values * 2))
    return dice.choice((None, 0, "", []))


def damaged_json(dice: random.Random, document: Any) -> bytes:
    """Return the text of damaged JSON, which is YAML too; perhaps damaged as text."""
    text = json.dumps(damaged_fields(dice, document), ensure_ascii=dice.random() < 0.5)
    data = text.encode("utf-8", "surrogatepass")
    kind = dice.randrange(12)
    if kind == 0:
        return damaged_bytes(dice, data)
    if kind == 1:
        at = dice.choice([i for i, byte in enumerate(data) if byte in b"[{"])
        return data[:at] + dice.choice((b"[", b'{"a":', b"[[", b"- ")) * DEEP + data[at:]
    if kind == 2:
        return data.replace(b":", b" :\r\n").replace(b",", b"\r\n,")
    if kind == 3:
        return data.replace(b"{", b'{"name": 1, "name": 2, ', 1)
    return data


def damaged_yaml(dice: random.Random, document: Any) -> bytes:
    """Return the text of damaged YAML."""
    kind = dice.randrange(8)
    if kind == 0:
        width, depth = dice.choice(((9, 9), (2, 60), (100, 4)))
        lines = [f"a0: &a0 [{','.join('x' * width)}]"]
        lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * width)}]" for i in range(1, depth)]
        return "\n".join([*lines, f"name: *a{depth - 1}", ""]).encode()
    if kind == 1:
        tag = dice.choice(
            ("!!binary", "!!set", "!!timestamp", "!!python/name:os.system", "!!omap", "!!float", "!!int")
        )
        return f"name: {tag} {dice.choice(TEXTS)!r}\n".encode("utf-8", "surrogatepass")
    if kind == 2:
        return dice.choice(
            (b"a: &a [*a]\n", b"<<: *x\n", b"? [a]\n: b\n", b"a: 1:2:3\n", b"---\n---\n", b"%YAML 9.9\n")
        )
    return damaged_json(dice, document)


def damaged_npy(dice: random.Random, shape: str = "(4, 8)") -> bytes:
    """Return the bytes of a .npy file that may say what it is not."""
    data = bytes(dice.choice((0, 4, 127, 128, 129, 4096)))
    shape = dice.choice((shape, *SHAPES))
    header = f"{{'descr': {dice.choice(DESCRS)}, 'fortran_order': {dice.choice((True, False, 3))}, 'shape': {shape}, }}"
    head = header.encode() + b"\n"
    version = dice.choice((b"\x01\0", b"\x01\0", b"\x02\0", b"\x03\0", b"\x09\0"))
    size = len(head) if dice.random() < 0.9 else dice.choice((0, 1, 65535))
    length = size.to_bytes(2 if version[0] == 1 else 4, "little")
    found = b"\x93NUMPY" + version + length + head + data
    return damaged_bytes(dice, found) if dice.random() < 0.3 else found


def damaged_npz(dice: random.Random, shapes: dict[str, str]) -> bytes:
    """Return the bytes of an .npz file whose members and their names may be anything."""
    made = io.BytesIO()
    compression = dice.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, shape in shapes.items():
            member = name if dice.random() < 0.8 else dice.choice(MEMBERS)
            archive.writestr(zipfile.ZipInfo(f"{member}.npy"), damaged_npy(dice, shape), compression)
    found = made.getvalue()
    return damaged_bytes(dice, found) if dice.random() < 0.4 else found


def damaged_source(dice: random.Random, text: bytes) -> bytes:
    """Return damaged text of a program: words, lines or bytes."""
    kind = dice.randrange(8)
    if kind == 0:
        return text.replace(b"\n", b"\r\n")
    if kind == 1:
        return (
            dice.choice((b"(", b"-", b"[", b".rept 1000000\n", b".if 1\n", b'{"', b"#if 1\n")) * DEEP + text
        )
    if kind == 2:
        lines = text.splitlines(keepends=True)
        dice.shuffle(lines)
        return b"".join(lines)
    return damaged_words(dice, text)
