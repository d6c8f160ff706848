"""Reading and writing report.json."""

from __future__ import annotations

from pathlib import Path

from t10.core.atomic import write_text
from t10.core.document.file import HINT
from t10.core.document.text import json_text
from t10.core.trust.schema import read_record
from t10.report import records


def write_report(path: Path | str, report: records.Report) -> None:
    """Write a report to a file, at once or not at all."""
    write_text(path, json_text(report.model_dump(mode="json")))


def read_report(path: Path | str) -> records.Report:
    """Return the report of a file; raises `InputError` with the JSON path of what is wrong."""
    return read_record(records.Report, path, records.FORMAT, records.VERSION, hint=HINT)
