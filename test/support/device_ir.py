"""Device programs written as IR, printed, parsed and read again, and compared field by field."""

from __future__ import annotations

from typing import Any

from t10.core.device import DeviceProgram, HostTensor, Pattern
from t10.dialect.mlir import ir, new_context
from t10.passes.device.read import find_graph, read_graph
from t10.passes.device.write import write_graph

PLAIN_FIELDS = ("name", "chip", "n_tiles", "memory", "variables", "codelets", "compute_sets", "operators")


def through_ir(program: DeviceProgram) -> DeviceProgram:
    """Return what is read from the text of the `ipu.graph` that a program is written as."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            write_graph(program)
        parsed = ir.Module.parse(str(module))
        return read_graph(find_graph(parsed))


def plain(program: DeviceProgram) -> dict[str, Any]:
    """Return a program's fields, copies in the order of their names, arrays as bytes."""
    fields: dict[str, Any] = {name: getattr(program, name) for name in PLAIN_FIELDS}
    fields["copies"] = sorted(program.copies, key=lambda copy: copy.name)
    fields["patterns"] = tuple(map(_pattern, program.patterns))
    for name in ("weights", "inputs", "outputs"):
        fields[name] = tuple(map(_tensor, getattr(program, name)))
    return fields


def _pattern(each: Pattern) -> tuple[Any, ...]:
    return (each.key, each.runs.tobytes(), each.fills.tobytes(), each.fill_values.tobytes(), each.constants)


def _tensor(each: HostTensor) -> tuple[Any, ...]:
    pieces = tuple((p.variable, p.elements.tobytes(), p.elements.shape, p.fill) for p in each.pieces)
    return (each.name, each.dtype, each.shape, pieces)
