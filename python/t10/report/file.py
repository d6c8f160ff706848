"""Reading and writing report.json."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from t10.core.atomic import write_text
from t10.core.document.file import HINT, explain, read_json
from t10.core.document.text import json_text
from t10.errors import InputError
from t10.report import records


def write_report(path: Path | str, report: records.Report) -> None:
    """Write a report to a file, at once or not at all."""
    write_text(path, json_text(report.model_dump(mode="json")))


def read_report(path: Path | str) -> records.Report:
    """Return the report of a file; raises `InputError` with the JSON path of what is wrong."""
    loaded = read_json(path, records.FORMAT, records.VERSION)
    try:
        return records.Report.model_validate_json(json.dumps(loaded))
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error)}", hint=HINT) from None
