"""The file that `t10 compare -o` writes: its ending says which form it has."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from t10.errors import InputError

CSV, HTML = ".csv", ".html"


def form_of(path: Path | None, *forms: str) -> str:
    """Return the form of a file by its ending, "" for no file; raises `InputError` for one that is not written."""
    if path is None:
        return ""
    form = path.suffix.lower()
    if form not in forms:
        raise InputError(f"-o {path}: found the ending '{form}', expected {' or '.join(forms)}")
    return form


def csv_of(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
