"""Where an operation comes from: file, line and column, and the name the source gave it."""

from __future__ import annotations

import re
from typing import Any

from t10.dialect.mlir import ir

_FILE_LINE_COLUMN = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def file_line_column(location: Any) -> tuple[str, int, int] | None:
    """Return file, line and column (both from 1) of a location, the innermost of a nested one; None if it has none."""
    location = location.maybe_downcast() if hasattr(location, "maybe_downcast") else location
    if isinstance(location, ir.FileLineColLoc):
        return location.filename, location.start_line, location.start_col
    match = _FILE_LINE_COLUMN.search(str(location))
    return None if match is None else (match[1], int(match[2]), int(match[3]))


def location_name(location: Any) -> str | None:
    """Return the name in a location (an ONNX node's), or None."""
    location = location.maybe_downcast() if hasattr(location, "maybe_downcast") else location
    if isinstance(location, ir.NameLoc):
        return location.name_str
    match = re.match(r'loc\((?:fused\[)?"((?:[^"\\]|\\.)*)"(?!:\d)', str(location))
    return None if match is None else match[1]


def location_text(location: Any) -> str:
    """Return a location as an error message states it: `file:line:column`, a name, or `unknown location`."""
    found = file_line_column(location)
    if found is not None:
        return ":".join(str(part) for part in found)
    return location_name(location) or "unknown location"


def source_text(op: Any) -> str:
    """Return where an operation comes from as `location_text` does, empty where that is unknown."""
    text = location_text(op.location)
    return "" if text == "unknown location" else text
