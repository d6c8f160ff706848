"""check.json: how far the outputs of a run were from a reference, beside what was run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import Field

from t10.artefact import Folder
from t10.artefact.manifest import digest_of
from t10.core.atomic import write_text
from t10.core.document.file import HINT
from t10.core.document.records import Record
from t10.core.document.text import json_text
from t10.core.trust.schema import read_record

FORMAT: Literal["t10-check"] = "t10-check"
VERSION: Literal[1] = 1
CHECK_FILE = "check.json"
REFERENCE = "ONNX Runtime"


class Compared(Protocol):
    """An output that was compared with a reference."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def error(self) -> float:
        """Return the largest error, as a part of the largest element."""
        ...

    @property
    def tolerance(self) -> float:
        """Return the largest error that counts as equal."""
        ...


class CheckRecord(Record):
    """The output that was furthest off, of a run of the files `executed`."""

    format: Literal["t10-check"]
    version: Annotated[Literal[1], Field(description="raised when a reader of the old form would go wrong")]
    reference: str
    executed: Annotated[dict[str, str], Field(description="SHA-256 by file of the folder")]
    output: str
    is_within: bool
    error: Annotated[str, Field(description="largest, as a part of its largest element")]
    tolerance: str

    @property
    def text(self) -> str:
        """Return what the comparison found as one sentence."""
        verdict = "Equal to" if self.is_within else "NOT equal to"
        return (
            f"{verdict} {self.reference} within a tolerance of {self.tolerance}: executed on simulated cores, "
            f"{self.output} differs by at most {self.error} of its largest element."
        )


def write_check(folder: Path, compared: Iterable[Compared], executed: Iterable[str]) -> str:
    """Write what a comparison found into a folder with the files `executed`; return it as a sentence, "" for none."""
    rows = [(each.error <= each.tolerance, each) for each in compared]
    if not rows:
        return ""
    is_within, worst = max(rows, key=lambda row: (not row[0], row[1].error))
    record = CheckRecord(
        format=FORMAT,
        version=VERSION,
        reference=REFERENCE,
        executed={name: digest_of(folder / name).sha256 for name in executed if (folder / name).exists()},
        output=worst.name,
        is_within=is_within,
        error=f"{worst.error:.1e}",
        tolerance=f"{worst.tolerance:.0e}",
    )
    write_text(folder / CHECK_FILE, json_text(record.model_dump(mode="json")))
    return record.text


def read_check(folder: Folder) -> str:
    """Return what a folder says of its outputs as a sentence; "" for nothing, and for files that changed since."""
    if not folder.has(CHECK_FILE):
        return ""
    record = read_record(CheckRecord, folder.checked(CHECK_FILE), FORMAT, VERSION, hint=HINT)
    files = folder.manifest.files
    is_same = all(name in files and files[name].sha256 == digest for name, digest in record.executed.items())
    return record.text if is_same else ""
