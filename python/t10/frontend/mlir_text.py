"""The text of an MLIR file, checked before MLIR's bindings see it: bytes that are no UTF-8 end the process in them."""

from __future__ import annotations

import re
from typing import Any

from t10.dialect.mlir import ir, walk
from t10.errors import InputError

BYTECODE = b"ML\xefR"
"""What MLIR bytecode begins with."""

_NO_FILE = "-"
"""The file that MLIR names in the locations of what it parses from memory."""
_ESCAPE_BEYOND_ASCII = re.compile(r"\\[89A-Fa-f][0-9A-Fa-f]")
_STRING = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|.)")


def mlir_text(data: bytes, source: str) -> str:
    """Return the text of a file, empty if it is bytecode; raises `InputError` if it or a string in it is not UTF-8."""
    if data.startswith(BYTECODE):
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{source}:{line}: this is not UTF-8 text (byte {data[error.start]:#04x})"
        ) from error
    if _ESCAPE_BEYOND_ASCII.search(text):
        _check_strings(text, source)
    return text


def parse_module(data: bytes | str, source: str) -> Any:
    """Return the module of MLIR text or bytecode, whose locations name `source`, in the current context.

    Operations need no `module` around them. Raises `InputError` for what cannot be parsed.
    """
    try:
        module = ir.Module.parse(data)
    except ir.MLIRError as error:
        text = str(error).replace(f'"{_NO_FILE}":', f'"{source}":')
        raise InputError(f"{source} cannot be parsed: {text}") from error
    for op in walk(module):
        operation = op.operation
        location = operation.location
        if isinstance(location, ir.FileLineColLoc) and location.filename == _NO_FILE:
            operation.location = ir.Location.file(source, location.start_line, location.start_col)
    return module


def _check_strings(text: str, source: str) -> None:
    """Raise `InputError` for the first string whose escapes of bytes do not make UTF-8."""
    for match in _STRING.finditer(text):
        if _ESCAPE_BEYOND_ASCII.search(match.group()) is None:
            continue
        try:
            _ESCAPE.sub(_unescaped, match.group().encode()).decode()
        except UnicodeDecodeError as error:
            line = text.count("\n", 0, match.start()) + 1
            raise InputError(f"{source}:{line}: the string {match.group()[:60]} is not UTF-8 text") from error


def _unescaped(escape: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escape[1].decode()) if escape[1] else escape[0]
