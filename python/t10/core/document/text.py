"""JSON laid out for reading: what fits a line stands on one line, everything else one item per line."""

from __future__ import annotations

import json
from typing import Any, cast

LINE_CHARACTERS = 140
INDENT = " "


def json_text(value: Any) -> str:
    """Return the JSON text of a value of plain types, with a final newline; equal values give equal text."""
    return _text(value, 0) + "\n"


def _text(value: Any, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(line) + depth <= LINE_CHARACTERS or not isinstance(value, (dict, list, tuple)):
        return line
    inner = INDENT * (depth + 1)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        items = [f"{json.dumps(key, ensure_ascii=False)}: {_text(item, depth + 1)}" for key, item in pairs]
        opening, closing = "{", "}"
    else:
        items = [_text(item, depth + 1) for item in cast("list[Any]", value)]
        opening, closing = "[", "]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(items) + f"\n{INDENT * depth}{closing}"
