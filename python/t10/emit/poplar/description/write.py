"""A device program as the text of program.json; `records` says what it holds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from t10.core.codelet import POINTERS, Codelet, Field
from t10.core.device import (
    ComputeSet,
    Copy,
    DeviceProgram,
    Exchange,
    Execute,
    HostTensor,
    Pattern,
    Reference,
    Step,
    Variable,
)
from t10.emit.poplar.codelets_text import distinct
from t10.emit.poplar.description.records import FORMAT, VERSION
from t10.emit.poplar.slots import Slots, slots_by_variable, slots_of
from t10.emit.poplar.tables import Tables


def description_text(program: DeviceProgram, tables: Tables) -> str:
    """Return program.json, a record a line; what does not fit a line goes into `tables`, as it does for program.cpp."""
    head = {"format": FORMAT, "version": VERSION, "name": program.name, "chip": program.chip,
            "n_tiles": program.n_tiles, "memory": asdict(program.memory)}  # fmt: skip
    slots = slots_by_variable(program)
    lists: dict[str, Iterable[dict[str, Any]]] = {
        "variables": map(_variable, program.variables),
        "codelets": map(_codelet, distinct(program.codelets)),
        "compute_sets": (_compute_set(each, tables) for each in program.compute_sets),
        "patterns": (_pattern(each, tables) for each in program.patterns),
        "copies": map(_copy, program.copies),
        "operators": (
            {"operator": each.operator, "steps": list(map(_step, each.steps))} for each in program.operators
        ),
        "weights": (_host(each, tables, slots) for each in program.weights),
        "inputs": (_host(each, tables, slots) for each in program.inputs),
        "outputs": (_host(each, tables, slots, is_output=True) for each in program.outputs),
    }
    parts = [f" {_json(key)}: {_json(value)}" for key, value in head.items()]
    parts += [f" {_json(key)}: [{_lines(rows)}]" for key, rows in lists.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(rows: Iterable[dict[str, Any]]) -> str:
    """Return records as items of a JSON list, one per line."""
    return ",".join(f"\n  {_json(row)}" for row in rows)


def _variable(variable: Variable) -> dict[str, Any]:
    kept = ("name", "role", "dtype", "shape", "n_tiles", "address_bytes")
    return {name: getattr(variable, name) for name in kept}


def _codelet(codelet: Codelet) -> dict[str, Any]:
    fields = [
        {"name": each.name, "kind": each.kind, "to": _pointed(each)} if each.kind in POINTERS
        else {"name": each.name, "kind": each.kind}
        for each in codelet.fields
    ]  # fmt: skip
    return {"name": codelet.name, "kind": codelet.kind, "fields": fields}


def _pointed(field: Field) -> dict[str, Any]:
    return {"dtype": field.dtype, "align_bytes": field.align_bytes, "is_interleaved": field.is_interleaved}


def _compute_set(compute_set: ComputeSet, tables: Tables) -> dict[str, Any]:
    groups = [
        {
            "codelet": group.codelet,
            "tiles": tables.compact_tiles(group.tiles),
            "words": [
                {"variable": word.variable, "offset_bytes": tables.compact(word.offset_bytes)}
                if isinstance(word, Reference)
                else tables.compact(word)
                for word in group.words
            ],
            "state_address_bytes": group.state_address_bytes,
            "cycles": group.cycles,
        }
        for group in compute_set.groups
    ]
    return {"name": compute_set.name, "operator": compute_set.operator, "kind": compute_set.kind,
            "groups": groups, "cycles": compute_set.cycles}  # fmt: skip


def _pattern(pattern: Pattern, tables: Tables) -> dict[str, Any]:
    row: dict[str, Any] = {"key": pattern.key}
    if len(pattern.runs):
        row["runs"] = tables.shared(pattern.runs)
    if len(pattern.fills):
        row["fills"] = {
            "table": tables.shared(pattern.fills),
            "values": tables.shared(pattern.fill_values),
            "constants": pattern.constants,
        }
    return row


def _copy(copy: Copy) -> dict[str, Any]:
    kept = ("name", "operator", "kind", "sources", "target", "dtype", "pattern", "cycles")
    return {name: getattr(copy, name) for name in kept}


def _step(step: Step) -> dict[str, Any]:
    if isinstance(step, Execute):
        return {"execute": step.compute_set}
    if isinstance(step, Exchange):
        return {"exchange": step.copy}
    return {"repeat": step.count, "body": list(map(_step, step.body))}


def _host(tensor: HostTensor, tables: Tables, slots: Slots, *, is_output: bool = False) -> dict[str, Any]:
    pieces = [
        {
            "variable": piece.variable,
            "slots": slots_of(piece, tables, slots, is_output=is_output),
            "fill": piece.fill,
        }
        for piece in tensor.pieces
    ]
    return {"name": tensor.name, "dtype": tensor.dtype, "shape": tensor.shape, "pieces": pieces}
