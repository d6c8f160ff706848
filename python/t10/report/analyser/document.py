"""A page in one file: data, styles and code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from typing import Any

from t10.errors import printable

LIBRARY = ("language.js", "uPlot.iife.min.js")
SHARED = ("model.js", "dom.js", "table.js")
STYLES = ("uPlot.min.css", "page.css")


def document(title: str, note: str, body: str, data: Mapping[str, Any], scripts: Iterable[str]) -> str:
    """Return a page of a body, the data that it shows and the scripts that draw it."""
    styles = "".join(_asset(name) for name in STYLES)
    code = "".join(f"<script>\n{_asset(name)}</script>\n" for name in scripts)
    return printable(
        f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{styles}</style></head>
<body>
<h1>{escape(title)}</h1>
{note_html(note)}
<noscript><p>The drawings and tables of this page need JavaScript; report.json has the same numbers.</p></noscript>
{body}
<script type="application/json" id="data">{_embedded(data)}</script>
{code}</body>
</html>
"""
    )


def note_html(text: str) -> str:
    """Return a remark, nothing for an empty one."""
    return f'<p class="note">{escape(text)}</p>' if text else ""


def _embedded(data: Mapping[str, Any]) -> str:
    """Return data as JSON that no name in it can end: HTML only looks for `</` and `<!`."""
    return (
        json.dumps(data, separators=(",", ":"), allow_nan=False)
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
    )


def _asset(name: str) -> str:
    text = files("t10.report.analyser").joinpath("assets", name).read_text(encoding="utf-8")
    return text if text.endswith("\n") else f"{text}\n"


def facts_html(facts: Iterable[tuple[str, str]]) -> str:
    """Return names and values side by side."""
    cells = "".join(f"<div>{escape(name)}<b>{escape(value)}</b></div>" for name, value in facts)
    return f'<div class="facts">{cells}</div>'
