"""manifest.json: what an output folder is, and the digest of every file of it.

The manifest holds its own digest too, `sha256`, which is that of its text without this field. So a change anywhere in
it is noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from t10.chip import ChipSpec
from t10.core.document.records import Record
from t10.core.document.text import json_text
from t10.core.trust.files import DOCUMENT_BYTES, read_bytes
from t10.core.trust.schema import Integer, Size, read_format, validated
from t10.errors import InputError
from t10.version import VERSION as T10_VERSION

FORMAT: Literal["t10-manifest"] = "t10-manifest"
VERSION: Literal[1] = 1
MANIFEST_FILE = "manifest.json"
SEAL = "sha256"

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
CodeKind = Literal["cost model", "codelets"]


class FileRecord(Record):
    """The contents of a file."""

    sha256: Digest
    bytes: Size


class CodeRecord(Record):
    """A user's file that the folder was made with: its code runs only when it is named again, with these digests."""

    kind: CodeKind
    name: Annotated[str, Field(description="as it was named when the folder was made")]
    files: Annotated[
        dict[str, FileRecord], Field(min_length=1, description="the file, and the files that it names")
    ]

    @property
    def sha256(self) -> str:
        """Return the digest of the file itself."""
        return next(iter(self.files.values())).sha256


class Description(Record):
    """What a folder was made from, and how: all that its other files do not say."""

    source: Annotated[str, Field(description="file name of the model")]
    chip: Annotated[ChipSpec, Field(description="the whole chip description")]
    cost_model: Annotated[str, Field(description="its name, as `--cost-model` takes it")]
    code: Annotated[tuple[CodeRecord, ...], Field(description="users' files that must be named again")]
    options: Annotated[dict[str, Any], Field(description="of the planner, and the type of partials")]
    measured: Annotated[
        dict[str, tuple[Integer, ...]],
        Field(description="cycles of every statement on the device simulator, by operator"),
    ]
    planner_seconds: Annotated[dict[str, float], Field(description="wall time by stage")]


class Manifest(Record):
    """What an output folder is and what is in it."""

    format: Literal["t10-manifest"]
    version: Annotated[Literal[1], Field(description="raised when a reader of the old form would go wrong")]
    generator: Annotated[str, Field(description="the version of T10 that wrote the folder")]
    about: Description
    files: Annotated[
        dict[str, FileRecord], Field(description="every file of the folder but this one, by its path in it")
    ]
    sha256: Annotated[Digest, Field(description="digest of this file's text without this field")]

    @field_validator("files")
    @classmethod
    def _inside(cls, files: dict[str, FileRecord]) -> dict[str, FileRecord]:
        for name in files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or str(path) != name or name in (".", MANIFEST_FILE):
                raise ValueError(f"{name!r} is no path of a file of the folder")
        return files


def manifest_text(about: Description, files: Mapping[str, FileRecord]) -> str:
    """Return the text of a manifest, its own digest included."""
    fields: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "generator": f"t10 {T10_VERSION}",
        "about": about.model_dump(mode="json"),
        "files": {name: files[name].model_dump(mode="json") for name in sorted(files)},
    }
    return _sealed(fields)


def read_manifest(folder: Path, *, check_seal: bool = True) -> Manifest:
    """Return the manifest of a folder; `check_seal` says whether one that was changed by hand is refused.

    Raises `InputError` where there is none, or none that is valid.
    """
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise InputError(
            f"{folder} has no {MANIFEST_FILE}, so that nothing says whether its files belong together",
            hint=f"compile again, or take the files as they are with `t10 manifest {folder} --chip CHIP`",
        )
    loaded = read_format(path, FORMAT, VERSION, hint=remake_hint(folder))
    manifest = validated(Manifest, loaded, str(path), hint=remake_hint(folder))
    if check_seal and read_bytes(path, DOCUMENT_BYTES) != _sealed(loaded).encode():
        raise InputError(f"{path} is not as T10 wrote it", hint=remake_hint(folder))
    return manifest


def remake_hint(folder: Path) -> str:
    """Return what to do about a file that was changed."""
    return f"compile again, or take the files as they are with `t10 manifest {folder}`"


def digest_of(path: Path) -> FileRecord:
    """Return the record of a file; raises `InputError` where it cannot be read."""
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            return FileRecord(sha256=sha256, bytes=file.tell())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def digest_of_bytes(data: bytes) -> FileRecord:
    """Return the record of a file that holds `data`."""
    return FileRecord(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))


def manifest_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of manifest.json."""
    schema = Manifest.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "manifest.json of T10",
    }


def _sealed(fields: Mapping[str, Any]) -> str:
    """Return the text of a manifest with these fields and the digest of them; empty where JSON cannot hold them."""
    without = {name: value for name, value in fields.items() if name != SEAL}
    try:
        return json_text({**without, SEAL: hashlib.sha256(json_text(without).encode()).hexdigest()})
    except ValueError:
        return ""
