"""A model file without its weights: large raw data is cut out where it stands in the file, and mapped from there later.

Reading a file whole and parsing it holds every weight twice, and protocol buffers end at two gigabytes. Here the file
is walked as it lies on the disk, length by length. A tensor with much raw data is given to the parser as external data:

    raw_data = <90,177,536 bytes>      becomes     location = "model.onnx", offset = 134,242,816, length = 90,177,536

What is not as expected is left as it is: the parser then says what is wrong with it.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from t10.core.trust.files import MODEL_BYTES, read_bytes

MIN_FILE_BYTES = 1 << 24
"""Smaller files are read whole."""
MIN_TENSOR_BYTES = 1 << 16
"""Raw data of fewer bytes stays in the model."""

_GRAPH, _NODE, _INITIALIZER, _ATTRIBUTE, _TENSOR = 7, 1, 5, 5, 5
_DATA_TYPE, _RAW_DATA, _EXTERNAL, _LOCATION = 2, 9, 13, 14
"""Numbers of fields on the way to a tensor, and in it, as onnx.proto has them."""
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5

_WHOLE_BYTES = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16})
"""Element types of one byte or more."""

_INTO_INITIALIZER = (_GRAPH, _INITIALIZER)
_INTO_CONSTANT = (_GRAPH, _NODE, _ATTRIBUTE, _TENSOR)


class _Malformed(Exception):
    """The bytes are not fields of a message."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message: it begins at `start`, what it holds at `inner`, and ends before `end`."""

    number: int
    kind: int
    start: int
    inner: int
    end: int


def without_weights(file: Path) -> bytes:
    """Return the bytes of a model file with large raw data as external data of that file; small files unchanged."""
    if not file.is_file() or file.stat().st_size < MIN_FILE_BYTES:
        return read_bytes(file, MODEL_BYTES)
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return b"".join(_reduced(data, 0, len(data), (_INTO_INITIALIZER, _INTO_CONSTANT), file.name))
        except _Malformed:
            return data[:]


def _reduced(
    data: mmap.mmap, start: int, end: int, paths: tuple[tuple[int, ...], ...], location: str
) -> list[bytes]:
    """Return the parts of a message; `paths` are the fields that lead from it to tensors."""
    parts: list[bytes] = []
    kept = start
    for field in _fields(data, start, end):
        inner = tuple(path[1:] for path in paths if path[0] == field.number)
        if field.kind != _LENGTH or not inner or field.end - field.inner < MIN_TENSOR_BYTES:
            continue
        whole = () in inner
        made = (
            _tensor(data, field, location)
            if whole
            else _reduced(data, field.inner, field.end, inner, location)
        )
        content = b"".join(made)
        parts += [data[kept : field.start], _tag(field.number, _LENGTH), _varint(len(content)), content]
        kept = field.end
    return [*parts, data[kept:end]]


def _tensor(data: mmap.mmap, tensor: _Field, location: str) -> list[bytes]:
    """Return the parts of a tensor, its raw data told by its place in the file."""
    fields = list(_fields(data, tensor.inner, tensor.end))
    raw = [field for field in fields if field.number == _RAW_DATA and field.kind == _LENGTH]
    types = [field for field in fields if field.number == _DATA_TYPE and field.kind == _VARINT]
    has_whole_bytes = any(_read_varint(data, field.inner, field.end)[0] in _WHOLE_BYTES for field in types)
    if len(raw) != 1 or not has_whole_bytes or raw[0].end - raw[0].inner < MIN_TENSOR_BYTES:
        return [data[tensor.inner : tensor.end]]
    place = raw[0]
    entries = {"location": location, "offset": str(place.inner), "length": str(place.end - place.inner)}
    parts = [data[tensor.inner : place.start], data[place.end : tensor.end]]
    for key, value in entries.items():
        entry = _text(1, key) + _text(2, value)
        parts += [_tag(_EXTERNAL, _LENGTH), _varint(len(entry)), entry]
    return [*parts, _tag(_LOCATION, _VARINT), b"\x01"]


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[_Field]:
    """Yield the fields of a message that lies from `start` to `end`."""
    position = start
    while position < end:
        key, inner = _read_varint(data, position, end)
        kind = key & 7
        if kind == _LENGTH:
            size, inner = _read_varint(data, inner, end)
            following = inner + size
        elif kind == _VARINT:
            _, following = _read_varint(data, inner, end)
        elif kind in (_FIXED64, _FIXED32):
            following = inner + (8 if kind == _FIXED64 else 4)
        else:
            raise _Malformed
        if following > end:
            raise _Malformed
        yield _Field(key >> 3, kind, position, inner, following)
        position = following


def _read_varint(data: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, the least first, and where what follows begins."""
    value = shift = 0
    while position < end and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise _Malformed


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _tag(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _text(number: int, text: str) -> bytes:
    encoded = text.encode(errors="surrogateescape")
    return _tag(number, _LENGTH) + _varint(len(encoded)) + encoded
