"""The JSON Schema of chip files, for editors: what `load_chip` accepts, as far as a schema can say it."""

from __future__ import annotations

from typing import Any, cast

from t10.chip.load import BASE_KEY, CORES_KEY, LEVELS_KEY, bundled_chips
from t10.chip.off_chip import BANDWIDTH_KEY, MEMORY_KEY
from t10.chip.sources import NOTES_KEY, SOURCES_KEY
from t10.chip.spec import ChipSpec
from t10.chip.units import BYTES, HERTZ, PER_SECOND
from t10.core.dtypes import NUMPY_BY_DTYPE

NUMBER = r"[+-]?[0-9][0-9_]*(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?"
UNITS = {("_per_second",): PER_SECOND, ("_hz",): HERTZ, ("_bytes", "_base"): BYTES}
"""By how the name of a field ends: units that it takes."""
ABOUT_NUMBERS = ("title", "description", "default")
"""What a schema says of a field whatever form its value has."""

Node = dict[str, Any]


def chip_schema() -> Node:
    """Return the JSON Schema (draft 2020-12) of a chip file."""
    schema: Node = ChipSpec.model_json_schema()
    records = (schema, *cast("dict[str, Node]", schema["$defs"]).values())
    for record in records:
        fields = cast("dict[str, Node]", record["properties"])
        record["properties"] = {name: _field(name, node) for name, node in fields.items()}
    rate: Node = schema["$defs"]["OffChipMemory"]["properties"]["bytes_per_second"]
    schema["properties"] |= {
        BASE_KEY: {
            "description": "bundled chip that has what this file leaves out",
            "enum": list(bundled_chips()),
        },
        SOURCES_KEY: {
            "description": "where numbers come from, by field; beside comments",
            "type": "object",
            "additionalProperties": {"type": "string"},
        },
        NOTES_KEY: {
            "description": "lines about the chip, such as what [1] in its sources is; beside comments",
            "type": "array",
            "items": {"type": "string"},
        },
        BANDWIDTH_KEY: {**rate, "description": f"of all off-chip memory; short for {MEMORY_KEY}"},
    }
    required = [name for name in schema.pop("required") if name != CORES_KEY]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "chip file of T10",
        "anyOf": [
            {"required": [BASE_KEY]},
            {"required": required, "anyOf": [{"required": [CORES_KEY]}, {"required": [LEVELS_KEY]}]},
        ],
        "not": {"required": [MEMORY_KEY, BANDWIDTH_KEY]},
    }


def _field(name: str, node: Node) -> Node:
    """Return the schema of a field, which may be a text where it is a number."""
    if name.endswith("_dtype"):
        return {**node, "enum": list(NUMPY_BY_DTYPE)}
    if node.get("type") not in ("integer", "number"):
        return node
    about = {key: node[key] for key in ABOUT_NUMBERS if key in node}
    bounds = {key: value for key, value in node.items() if key not in about}
    return {**about, "anyOf": [bounds, {"type": "string", "pattern": _pattern(name)}]}


def _pattern(name: str) -> str:
    """Return what a text that is a number looks like; its unit follows from the name of the field."""
    units = next((units for endings, units in UNITS.items() if name.endswith(endings)), None)
    return f"^{NUMBER}(\\s*({'|'.join(units)}))?$" if units else f"^{NUMBER}$"
