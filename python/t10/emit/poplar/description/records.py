"""The form of program.json as validated records; its published JSON Schema is generated from them.

Fields are named as in `t10.core.device`, which says what they mean.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from t10.core.codelet import CodeletKind, FieldKind
from t10.core.device import MOST_TRIPS, CopyKind, VariableRole, VertexKind

PROGRAM_FILE = "program.json"
FORMAT: Literal["t10-program"] = "t10-program"
VERSION: Literal[1] = 1

Count = Annotated[int, Field(ge=1, lt=2**31)]
Size = Annotated[int, Field(ge=0, lt=2**31)]
Cycles = Annotated[int, Field(ge=0, lt=2**62)]
Number = Annotated[int, Field(ge=-(2**31), lt=2**32)]
TableNumber = Annotated[int, Field(ge=0, lt=2**31, description="number of a table in tables.bin")]
Trips = Annotated[int, Field(ge=1, le=MOST_TRIPS)]
Dtype = Literal["f16", "f32", "i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64", "index"]


class Record(BaseModel):
    """A JSON object: immutable, no unknown keys, no conversions between JSON types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StepsRecord(Record):
    """The numbers `first`, `first + step`, `first + 2 * step`, ..., one per tile."""

    first: Number
    step: Number


class TableRecord(Record):
    """The numbers of a table in tables.bin."""

    table: TableNumber


class TilesRecord(Record):
    """Tiles `first`, `first + step`, ..., `count` of them."""

    first: Size
    count: Count
    step: Count = 1


PerTileRecord = Number | StepsRecord | TableRecord | tuple[Number, ...]
"""A number that all tiles of a group share, or one per tile in the group's order."""


class ReferenceRecord(Record):
    """A word that points into a variable."""

    variable: str
    offset_bytes: PerTileRecord = 0


class MemoryRecord(Record):
    """Where the regions of every tile's memory begin, as addresses in this order."""

    base: Size
    code: Size
    state: Size
    scratch: Size
    stack: Size
    exchange: Size
    free: Size
    data: Size
    end: Size


class VariableRecord(Record):
    """Memory of tiles `0 .. n_tiles - 1`: `shape` elements of `dtype` at an address."""

    name: str
    role: VariableRole
    dtype: Dtype
    shape: tuple[Size, ...]
    n_tiles: Count
    address_bytes: Size


class PointedRecord(Record):
    """What a pointer points to: elements of a type (none for scratch memory), their alignment and memory."""

    dtype: Literal[Dtype, ""]
    align_bytes: Count
    is_interleaved: bool


class FieldRecord(Record):
    """One word of a vertex's state: a number, or a pointer `to` something."""

    name: str
    kind: FieldKind
    to: PointedRecord | None = None


class CodeletRecord(Record):
    """A codelet: its code is what codelets.S has at its entry symbol."""

    name: str
    kind: CodeletKind
    fields: tuple[FieldRecord, ...]


class GroupRecord(Record):
    """The same codelet on some tiles (ascending), one vertex each, with one word per field."""

    codelet: str
    tiles: TilesRecord | TableRecord | tuple[Size, ...]
    words: tuple[PerTileRecord | ReferenceRecord, ...]
    state_address_bytes: Size
    cycles: Cycles


class ComputeSetRecord(Record):
    """Vertices that run at once, at most one per tile."""

    name: str
    operator: str
    kind: VertexKind
    groups: tuple[GroupRecord, ...]
    cycles: Cycles


class FillsRecord(Record):
    """Constants that a pattern writes: where, which of the constants, and the constants."""

    table: TableNumber
    values: TableNumber
    constants: tuple[str, ...]


class PatternRecord(Record):
    """Who sends what to whom: rows of a table, and constants that are written."""

    key: str
    runs: TableNumber | None = None
    fills: FillsRecord | None = None


class CopyRecord(Record):
    """One exchange phase: a pattern applied to variables."""

    name: str
    operator: str
    kind: CopyKind
    sources: tuple[str, ...]
    target: str
    dtype: Dtype
    pattern: str
    cycles: Cycles


class ExecuteRecord(Record):
    """Run a compute set by name."""

    execute: str


class ExchangeRecord(Record):
    """Run a copy by name."""

    exchange: str


class RepeatRecord(Record):
    """Run `body` `repeat` times."""

    repeat: Trips
    body: tuple[StepRecord, ...]


_STEPS = ("execute", "exchange", "repeat")


def _kind_of_step(step: object) -> str:
    """Return which kind of step something is meant to be: an error is then about that kind."""
    known = cast("dict[str, Any]", step) if isinstance(step, dict) else dir(step)
    return next((kind for kind in _STEPS if kind in known), _STEPS[0])


StepRecord = Annotated[
    Annotated[ExecuteRecord, Tag("execute")]
    | Annotated[ExchangeRecord, Tag("exchange")]
    | Annotated[RepeatRecord, Tag("repeat")],
    Discriminator(_kind_of_step),
]


class OperatorRecord(Record):
    """The steps of one operator."""

    operator: str
    steps: tuple[StepRecord, ...]


class PieceRecord(Record):
    """Which elements of a host tensor lie in the slots of a variable, or are constant where there is none."""

    variable: str = ""
    slots: TableNumber
    fill: str = "0"


class HostTensorRecord(Record):
    """A tensor that crosses the host's link, and the variables it lies in."""

    name: str
    dtype: Dtype
    shape: tuple[Size, ...]
    pieces: tuple[PieceRecord, ...]


class ProgramDocument(Record):
    """A whole model for one chip."""

    format: Literal["t10-program"]
    version: Literal[1]
    name: str
    chip: str
    n_tiles: Count
    memory: MemoryRecord
    variables: tuple[VariableRecord, ...]
    codelets: tuple[CodeletRecord, ...]
    compute_sets: tuple[ComputeSetRecord, ...]
    patterns: tuple[PatternRecord, ...]
    copies: tuple[CopyRecord, ...]
    operators: tuple[OperatorRecord, ...]
    weights: tuple[HostTensorRecord, ...]
    inputs: tuple[HostTensorRecord, ...]
    outputs: tuple[HostTensorRecord, ...]


def program_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of program.json."""
    schema = ProgramDocument.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "program.json of T10",
        **schema,
    }
