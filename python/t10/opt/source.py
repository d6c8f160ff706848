"""The input: read, cut into pieces, brought to a form that MLIR reads, and parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t10.core.guard import parsing, reading
from t10.core.trust.files import MODEL_BYTES, read_bytes
from t10.dialect.mlir import ir
from t10.errors import InputError

_BYTECODE_MAGIC = b"ML\xefR"
_ONNX_OPERATION = re.compile(r'(?<![\w$.#!@%^-])"?onnx\.[A-Z]\w*')


@dataclass(frozen=True, slots=True)
class InputPart:
    """One piece of input: its text (or bytecode), and the file it is all of, if it is.

    Pieces after the first start with empty lines, so that line numbers are those of the whole file.
    """

    data: str | bytes
    path: str | None = None

    @property
    def text(self) -> str | None:
        """Return the text, or None for bytecode."""
        return self.data if isinstance(self.data, str) else None

    @property
    def is_onnx(self) -> bool:
        """Return whether the text holds operations of onnx-mlir's onnx dialect."""
        return (
            self.text is not None and "onnx." in self.text and _ONNX_OPERATION.search(self.text) is not None
        )


def read(path: str) -> str | bytes:
    """Return the text or the bytecode in a file (`-` is standard input); raises `InputError` if it cannot be read."""
    data = read_bytes(path, MODEL_BYTES)
    if data.startswith(_BYTECODE_MAGIC):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{display_name(path)} is neither MLIR text (UTF-8) nor bytecode: byte {error.start} is "
            f"0x{data[error.start]:02x}",
            hint="an .onnx file goes to `t10 compile`",
        ) from None


def display_name(path: str) -> str:
    """Return the name that diagnostics show for a path."""
    return "<stdin>" if path == "-" else path


def pieces(data: str | bytes, path: str, marker: str | None) -> list[InputPart]:
    """Return the pieces of the input, cut at lines that start with `marker`; one piece without a marker."""
    whole = InputPart(data, None if path == "-" else path)
    if marker is None or isinstance(data, bytes):
        return [whole]
    found: list[InputPart] = []
    n_lines = 0
    for part in re.split(rf"^{re.escape(marker)}.*\n?", data, flags=re.MULTILINE):
        found.append(InputPart("\n" * n_lines + part))
        n_lines += part.count("\n") + 1
    return [whole] if len(found) == 1 else found


def parse(piece: InputPart) -> Any:
    """Return the module of a piece in the current context; raises `MLIRError` or, for onnx text, `T10Error`.

    Only a whole file keeps its name in locations: MLIR calls every other buffer `-`.
    """
    with reading(display_name(piece.path or "-")):
        return _parsed(piece)


def _parsed(piece: InputPart) -> Any:
    """Return the module of a piece."""
    if piece.is_onnx:
        from t10.frontend.onnx_text import normalize

        ir.Context.current.allow_unregistered_dialects = True
        return ir.Module.parse(normalize(piece.text or ""))
    if "krnl." in (piece.text or ""):
        from t10.frontend.onnx_text import refuse_krnl

        refuse_krnl(piece.text or "", display_name(piece.path or "-"))
    with parsing(piece.data):
        if piece.path is not None and Path(piece.path).is_file():
            return ir.Module.parseFile(piece.path)
        return ir.Module.parse(piece.data)
