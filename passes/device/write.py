"""A device program written as one `ipu.graph`."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from t10.core.codelet import Codelet
from t10.core.device import (
    ComputeSet,
    Copy,
    DeviceProgram,
    Exchange,
    Execute,
    HostTensor,
    PerTile,
    Reference,
    Repeat,
    Step,
)
from t10.dialect import ipu, ipu_parts
from t10.dialect.attributes import to_attr
from t10.dialect.mlir import ir

IS_CPP = "is_cpp"
"""Attribute of a codelet whose C++ is what runs on an IPU too."""

MEMORY_FIELDS = ("code", "state", "scratch", "stack", "exchange", "free", "data")


def write_graph(program: DeviceProgram) -> Any:
    """Return the program as an `ipu.graph` where the insertion point is; addresses count from the memory's begin."""
    memory = program.memory
    op, block = ipu.graph(
        program.name, chip=program.chip, tiles=program.n_tiles, memory_bytes=memory.end - memory.base
    )
    op.attributes["memory_base"] = to_attr(memory.base)
    op.attributes["regions"] = to_attr({name: getattr(memory, name) - memory.base for name in MEMORY_FIELDS})
    with ir.InsertionPoint(block):
        handles = _variables(program)
        for codelet in program.codelets:
            _codelet(codelet)
        for compute_set in program.compute_sets:
            _compute_set(compute_set, handles, memory.base)
        for pattern in program.patterns:
            ipu_parts.pattern(
                pattern.key,
                runs=pattern.runs,
                fills=pattern.fills,
                fill_values=pattern.fill_values,
                constants=pattern.constants,
            )
        _host_tensors(program, handles)
        _, sequence = ipu.sequence()
    copies = {copy.name: copy for copy in program.copies}
    for operator in program.operators:
        with ir.InsertionPoint(sequence):
            inner_op, inner = ipu.sequence()
            inner_op.attributes["op_name"] = to_attr(operator.operator)
        _steps(operator.steps, copies, handles, inner)
    return op


def _variables(program: DeviceProgram) -> dict[str, Any]:
    """Write every variable and return its handle by name."""
    handles: dict[str, Any] = {}
    for variable in program.variables:
        handle = ipu.alloc(
            variable.name,
            element=ir.Type.parse(variable.dtype),
            shape=variable.shape,
            address=variable.address_bytes - program.memory.base,
            mapping=((0, variable.n_tiles - 1),),
            role=variable.role,
        )
        _comment(handle.owner, variable.comment)
        handles[variable.name] = handle
    return handles


def _comment(op: Any, text: str) -> None:
    if text:
        op.attributes["comment"] = to_attr(text)


def _codelet(codelet: Codelet) -> None:
    fields = [
        {
            "name": field.name,
            "kind": field.kind,
            "dtype": field.dtype,
            "align": field.align_bytes,
            "interleaved": field.is_interleaved,
        }
        for field in codelet.fields
    ]
    op = ipu_parts.codelet(
        codelet.name,
        fields,
        kind=codelet.kind,
        assembly=codelet.assembly,
        cpp_reference=codelet.cpp_reference,
        summary=codelet.summary,
        stack_bytes=codelet.stack_bytes,
        apart=codelet.apart,
    )
    if codelet.is_cpp:
        op.attributes[IS_CPP] = ir.UnitAttr.get()


def _compute_set(compute_set: ComputeSet, handles: dict[str, Any], base: int) -> None:
    op, inside = ipu.compute_set(compute_set.name)
    op.attributes["op_name"] = to_attr(compute_set.operator)
    op.attributes["kind"] = to_attr(compute_set.kind)
    op.attributes["cycles"] = to_attr(compute_set.cycles)
    _comment(op, compute_set.comment)
    with ir.InsertionPoint(inside):
        for group in compute_set.groups:
            named = list(dict.fromkeys(w.variable for w in group.words if isinstance(w, Reference)))
            words = [
                {"operand": named.index(w.variable), "offset": _per_tile(w.offset_bytes)}
                if isinstance(w, Reference)
                else _per_tile(w)
                for w in group.words
            ]
            ipu.vertex(
                [handles[name] for name in named],
                codelet=group.codelet,
                op_name=compute_set.operator,
                mapping=ipu.ranges(group.tiles),
                words=words,
                state=group.state_address_bytes - base,
                cycles=group.cycles,
            )


def _per_tile(value: PerTile) -> Any:
    """Return a number, or the attribute of one per tile."""
    return value if isinstance(value, int) else ir.DenseI64ArrayAttr.get(list(value))


def _host_tensors(program: DeviceProgram, handles: dict[str, Any]) -> None:
    """Write tensors that cross the host's link; pieces with equal elements share a table."""
    by_content: dict[tuple[tuple[int, ...], bytes], str] = {}
    by_array: dict[int, str] = {}

    def table_of(elements: np.ndarray[Any, Any]) -> str:
        if id(elements) not in by_array:
            content = (elements.shape, hashlib.blake2b(elements.tobytes(), digest_size=16).digest())
            if content not in by_content:
                by_content[content] = f"table{len(by_content)}"
                ipu_parts.table(by_content[content], elements)
            by_array[id(elements)] = by_content[content]
        return by_array[id(elements)]

    groups = (("weight", program.weights), ("input", program.inputs), ("output", program.outputs))
    for direction, tensors in groups:
        for tensor in tensors:
            _host(tensor, direction, handles, table_of)


def _host(tensor: HostTensor, direction: str, handles: dict[str, Any], table_of: Any) -> None:
    named = list(dict.fromkeys(piece.variable for piece in tensor.pieces if piece.variable))
    pieces = [
        {
            "operand": named.index(piece.variable) if piece.variable else -1,
            "table": table_of(piece.elements),
            "fill": piece.fill,
        }
        for piece in tensor.pieces
    ]
    ipu_parts.host(
        [handles[name] for name in named],
        name=tensor.name,
        direction=direction,
        element=ir.Type.parse(tensor.dtype),
        shape=tensor.shape,
        pieces=pieces,
    )


def _steps(steps: tuple[Step, ...], copies: dict[str, Copy], handles: dict[str, Any], block: Any) -> None:
    """Write program steps into a block; the first use of a copy gives it its place."""
    for step in steps:
        with ir.InsertionPoint(block):
            if isinstance(step, Execute):
                ipu.execute(step.compute_set)
            elif isinstance(step, Exchange):
                _copy(copies[step.copy], handles)
            else:
                _repeat(step, copies, handles)


def _repeat(step: Repeat, copies: dict[str, Copy], handles: dict[str, Any]) -> None:
    _, body = ipu.repeat(step.count)
    _steps(step.body, copies, handles, body)


def _copy(copy: Copy, handles: dict[str, Any]) -> None:
    op = ipu.copy(
        copy.name,
        [handles[name] for name in copy.sources],
        handles[copy.target],
        kind=copy.kind,
        op_name=copy.operator,
        pattern=copy.pattern,
        bytes_=copy.received_bytes,
        cycles=copy.cycles,
    )
    _comment(op, copy.comment)
