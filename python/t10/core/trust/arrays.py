"""Arrays of .npz and .npy files: what the headers state is looked at before anything is unpacked or allocated.

A compressed archive can hold a thousand times its bytes, and a header can state any shape. So the reader is told which
arrays are expected and of which shapes; without that, an array holds no more than the file has, or a budget.
"""

from __future__ import annotations

import os
import re
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Container
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from t10.errors import InputError

Arrays = dict[str, NDArray[Any]]
Shape = tuple[int, ...]
ShapeOf = Callable[[str], Shape | None]
"""The shape that an array of a name must have; None: any."""

SUFFIX = ".npy"
MEMBERS = 100_000
UNPACKED_BYTES = 1 << 30
"""All compressed arrays of an archive whose shapes nobody knows."""
MOST_DEFLATED = 1032
"""Bytes that one byte of the deflate form can stand for."""
CHUNK_BYTES = 1 << 24
NUMBERS = "biufc"
"""Kinds of numpy types: booleans, integers, floats and complex numbers."""
_HAZARD = re.compile(r"(?:^|(?<=/))\.\.?(?=/|$)|^/|[\x00-\x1f\x7f\\]|%(?=[0-9A-F]{2})")
"""What leads out of the folder that an archive is unpacked in, or is no name of a file."""
_CODE = re.compile(r"%(2E|2F|5C|25|7F|[01][0-9A-F])")
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_MALFORMED = (
    ValueError,
    EOFError,
    RuntimeError,  # a password
    KeyError,
    OverflowError,
    SyntaxError,
    tokenize.TokenError,
    TypeError,
    zlib.error,
    zipfile.BadZipFile,
)


def read_arrays(
    path: Path | str, shape_of: ShapeOf | None = None, names: Container[str] | None = None
) -> Arrays:
    """Return the arrays of an .npz file by name; raises `InputError` when it cannot be read as one.

    `shape_of` a name is the shape that is expected, and raises `InputError` where none of this name is: nothing is
    unpacked before. Only arrays of `names` are read, all by default.
    """
    try:
        with _opened(path) as file, zipfile.ZipFile(file) as archive:
            return _unpacked(archive, str(path), shape_of or _any_shape, names)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except _MALFORMED as error:
        if _is_array(path):
            raise InputError(f"{path} holds one array without a name (expected an .npz archive)") from None
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is not an .npz archive of arrays: {reason}") from None


def array_names(path: Path | str) -> tuple[str, ...]:
    """Return the names of the arrays in an .npz file that was opened before."""
    with _opened(path) as file, zipfile.ZipFile(file) as archive:
        return tuple(array_name(member.filename) for member in archive.infolist()[:MEMBERS])


def read_array(path: Path | str) -> NDArray[Any]:
    """Return the array of a .npy file; raises `InputError` when it cannot be read as one."""
    try:
        with _opened(path) as file:
            return _array(file, os.fstat(file.fileno()).st_size, str(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except _MALFORMED as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"cannot read {path} as a .npy file: {reason}") from None


def member_name(array: str) -> str:
    """Return the name of the member that holds an array: what leads out of a folder is coded as in URLs, `%2E`."""
    coded = _HAZARD.sub(lambda found: "".join(f"%{ord(each):02X}" for each in found[0]), array)
    return coded + SUFFIX


def array_name(member: str) -> str:
    """Return the name of the array that a member holds."""
    return _CODE.sub(lambda found: chr(int(found[1], 16)), member.removesuffix(SUFFIX))


def _any_shape(name: str) -> None:
    """Return that any shape is expected."""


def _unpacked(archive: zipfile.ZipFile, path: str, shape_of: ShapeOf, names: Container[str] | None) -> Arrays:
    members = archive.infolist()
    if len(members) > MEMBERS:
        raise InputError(f"{path}: found {len(members):,} arrays, expected at most {MEMBERS:,}")
    found: Arrays = {}
    room, n_bytes = UNPACKED_BYTES, Path(path).stat().st_size
    for member in members:
        name = array_name(member.filename)
        if names is not None and name not in names:
            continue
        where = f"{path}: array {name}"
        if name in found:
            raise InputError(f"{where}: found twice, expected once")
        expected = shape_of(name)
        is_stored = member.compress_type == zipfile.ZIP_STORED
        if not is_stored and member.compress_type != zipfile.ZIP_DEFLATED:
            raise InputError(f"{where}: found compression {member.compress_type}, expected none or deflate")
        room -= 0 if expected is not None or is_stored else member.file_size
        if room < 0 or member.file_size > n_bytes * (1 if is_stored else MOST_DEFLATED):
            raise InputError(
                f"{where}: found {member.file_size:,} bytes, expected no more than the file can hold"
            )
        with archive.open(member) as file:
            found[name] = _array(file, member.file_size, where, expected)
    return found


def _opened(path: Path | str) -> IO[bytes]:
    """Return a plain file, open: there is no end to find, where the list of an archive stands, in a device."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"cannot read {path}: found a folder or a device, expected a file")
    return open(path, "rb")


def _is_array(path: Path | str) -> bool:
    """Return whether a file is a .npy file."""
    with open(path, "rb") as file:
        return file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX


def _array(file: IO[bytes], n_bytes: int, where: str, expected: Shape | None = None) -> NDArray[Any]:
    """Return the array in a file of `n_bytes`, read only if its header agrees with them and with what is expected."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version} of the .npy form")
    shape, is_fortran, dtype = _HEADERS[version](file)
    if dtype.kind not in NUMBERS:
        raise InputError(f"{where}: found elements of type {dtype}, expected numbers")
    if expected is not None and shape != expected:
        raise InputError(f"{where} has shape {_shown(shape)}, expected {_shown(expected)}")
    stated = prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or file.tell() + stated != n_bytes:
        raise InputError(
            f"{where}: found {max(n_bytes - file.tell(), 0):,} bytes, expected {stated:,} for shape {_shown(shape)}"
        )
    array = _filled(file, stated, where).view(dtype)
    return array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)


def _filled(file: IO[bytes], n_bytes: int, where: str) -> NDArray[np.uint8]:
    data = np.empty(n_bytes, np.uint8)
    for start in range(0, n_bytes, CHUNK_BYTES):
        piece = file.read(min(CHUNK_BYTES, n_bytes - start))
        if len(piece) != min(CHUNK_BYTES, n_bytes - start):
            raise InputError(
                f"{where}: found {start + len(piece):,} bytes, expected {n_bytes:,}: it is cut off"
            )
        data[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
    return data


def _shown(shape: Shape) -> str:
    text = str(shape)
    return text if len(text) < 100 else f"{text[:100]}..."
