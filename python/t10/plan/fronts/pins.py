"""Files with plans of operators that a user wants: a plan.json that was written before, or a short file of pins.

```json
{"format": "t10-pins", "version": 1,
 "operators": [{"name": "product", "f_op": {"m": 2, "n": 3}, "ft": {"a": {"k": 3}, "b": {"k": 2}}, "rp": {"k": 2}}]}
```

Axes and tensors may be given by name (those left out are 1) or as rows of numbers in their order. What is left out is
searched. A plan.json pins every operator it holds, placement and idle layouts included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from t10.core.document import read_document
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan
from t10.core.trust.schema import MOST, read_record
from t10.core.trust.tree import read_json
from t10.errors import InputError
from t10.plan.fronts.pinned import check_names, idle_levels
from t10.plan.options import ForcedPartition

FORMAT: Literal["t10-pins"] = "t10-pins"
VERSION: Literal[1] = 1
PLAN_FORMAT = "t10-plan"

Factor = Annotated[int, Field(ge=1, le=MOST, strict=True)]
Pace = Annotated[int, Field(ge=0, le=MOST, strict=True)]


class PinRecord(BaseModel):
    """What is fixed of one operator."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, description="the operator, as in plan.json and reports")]
    f_op: Annotated[
        tuple[Factor, ...] | dict[str, Factor], Field(description="parts per axis: all in order, or by name")
    ]
    ft: Annotated[
        tuple[tuple[Factor, ...] | dict[str, Factor], ...] | dict[str, dict[str, Factor]] | None,
        Field(description="temporal factors per input, then output: rows, or by tensor and axis"),
    ] = None
    rp: Annotated[
        tuple[Pace, ...] | dict[str, Pace] | None,
        Field(description="elements per shift and axis: only checked, it follows from the factors"),
    ] = None
    idle_level: Annotated[
        int | None,
        Field(
            ge=0,
            le=MOST,
            description="its weights at rest: 0 spread over all cores, j divided over j replicas",
        ),
    ] = None


class PinsDocument(BaseModel):
    """Plans that a user wants for some operators of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["t10-pins"]
    version: Literal[1]
    operators: tuple[PinRecord, ...]


@dataclass(frozen=True, slots=True)
class Pins:
    """The contents of a file: pins to be read for a model, or a whole plan."""

    path: str
    records: tuple[PinRecord, ...] = ()
    whole: ModulePlan | None = None

    def forced(self, graph: Graph) -> tuple[ForcedPartition, ...]:
        """Return what is fixed of the operators of a model.

        Raises `InputError` for an operator, axis or tensor that the model does not have, and for one pinned twice.
        """
        if self.whole is not None:
            return _of_plan(self.whole, graph, self.path)
        check_names((record.name for record in self.records), graph)
        specs = {spec.name: spec for spec in graph.operators}
        found: dict[str, ForcedPartition] = {}
        for record in self.records:
            if record.name in found:
                raise InputError(f"{self.path} pins it twice", operator=record.name)
            found[record.name] = _of_record(record, specs[record.name])
        return tuple(found.values())


def read_pins(path: Path | str) -> Pins:
    """Return the pins of a file; raises `InputError` with the JSON path of what is wrong."""
    if read_json(path).get("format") == PLAN_FORMAT:
        return Pins(str(path), whole=read_document(path))
    document = read_record(PinsDocument, path, FORMAT, VERSION)
    return Pins(str(path), records=document.operators)


def pins_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file of pins."""
    schema = PinsDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "pins of T10"}


def _of_plan(whole: ModulePlan, graph: Graph, path: str) -> tuple[ForcedPartition, ...]:
    """Return every operator's plan of a planned model, for a model with operators of the same names and loops."""
    check_names((spec.name for spec in whole.graph.operators), graph)
    specs = {spec.name: spec for spec in graph.operators}
    levels = idle_levels(whole)
    found: list[ForcedPartition] = []
    for theirs, planned in zip(whole.graph.operators, whole.operators, strict=True):
        spec, plan = specs[theirs.name], planned.active.plan
        if _loops(spec) != _loops(theirs):
            raise InputError(
                f"{path} plans it over {_loops(theirs)}, here it runs over {_loops(spec)}",
                operator=spec.name,
                location=spec.location or None,
                hint="compile the model anew, or pin f_op and ft in a file of pins",
            )
        found.append(ForcedPartition(spec.name, plan.f_op, plan.ft, plan.rp, plan, levels[spec.name]))
    return tuple(found)


def _loops(spec: OperatorSpec) -> str:
    axes = ", ".join(f"{axis.name} < {axis.extent}" for axis in spec.axes)
    tensors = "; ".join(f"{'x'.join(map(str, each.shape))} {each.dtype}" for each in spec.rotatable)
    return f"{axes} ({tensors})"


def _of_record(record: PinRecord, spec: OperatorSpec) -> ForcedPartition:
    return ForcedPartition(
        operator=spec.name,
        f_op=_row(spec, record.f_op, "f_op", 1),
        ft=None if record.ft is None else _rows(spec, record.ft),
        rp=None if record.rp is None else _row(spec, record.rp, "rp", 0),
        idle_level=record.idle_level,
    )


def _row(spec: OperatorSpec, given: Sequence[int] | Mapping[str, int], what: str, default: int) -> AxisSizes:
    """Return one number per axis of what is given in order or by name."""
    names = [axis.name for axis in spec.axes]
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            raise _unknown(
                spec, f"{what} has {len(given)} numbers for {len(names)} axes", names, "one for each of"
            )
        return tuple(given)
    for name in given:
        if name not in names:
            raise _unknown(spec, f"{what} names axis '{name}'", names)
    return tuple(given.get(name, default) for name in names)


def _rows(
    spec: OperatorSpec, given: Sequence[Sequence[int] | Mapping[str, int]] | Mapping[str, Mapping[str, int]]
) -> tuple[AxisSizes, ...]:
    """Return one row per input, then of the output, of what is given in order or by tensor."""
    names = [operand.name for operand in spec.rotatable]
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            raise _unknown(
                spec, f"ft has {len(given)} rows for {len(names)} tensors", names, "one for each of"
            )
        return tuple(_row(spec, row, "ft", 1) for row in given)
    for name in given:
        if name not in names:
            raise _unknown(spec, f"ft names tensor '{name}'", names)
    return tuple(_row(spec, given.get(name, {}), f"ft of {name}", 1) for name in names)


def _unknown(spec: OperatorSpec, found: str, names: list[str], wanted: str = "one of") -> InputError:
    return InputError(
        f"{found} (expected {wanted} {', '.join(names)})", operator=spec.name, location=spec.location or None
    )
