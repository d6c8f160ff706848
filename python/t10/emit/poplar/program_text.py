"""program.cpp: memory, operators in order, host tensors, and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import prod

from t10.core.device import DeviceProgram, HostPiece, HostTensor, Variable
from t10.core.dtypes import numpy_dtype
from t10.core.floating_point import FLOATING_POINT, FloatingPointMode
from t10.emit.poplar.names import Names, comment, quoted
from t10.emit.poplar.operator_text import Context, operator_text, shared_call, shared_function, shared_text
from t10.emit.poplar.slots import Slots, slots_by_variable, slots_of
from t10.emit.poplar.tables import Tables, table
from t10.emit.poplar.types import constant_bits, poplar_type

ROW_ALIGNMENT_BYTES = 16
"""Rows begin at multiples of it for Poplar; T10 may have placed them off it and counted on that in offsets."""

USING = """\
#include "t10_runtime.hpp"

namespace {

using namespace poplar;
using namespace poplar::program;
using namespace t10;

"""


def program_text(program: DeviceProgram, tables: Tables, weight_offsets: Mapping[str, int]) -> str:
    """Return program.cpp; what does not fit a line goes into `tables`.

    `weight_offsets` says where weights begin in weights.bin, in bytes; a weight that is missing there has no values.
    """
    members, functions = Names(), Names()
    context = Context.of(program, tables, members)
    parts = [_title(program), USING, _memory(program.variables, members)]
    calls: list[str] = []
    shared = {operator.operator: shared_function(context, operator) for operator in program.operators}
    equal: dict[str, list[str]] = {}
    for name, each in shared.items():
        equal.setdefault(each.key, []).append(name)
    for operator in program.operators:
        name, own = operator.operator, shared[operator.operator]
        operators = equal[own.key]
        function = functions.identifier(operators[0])
        if len(operators) == 1:
            parts.append(f"\n{operator_text(context, operator, function)}")
            calls.append(f"  model.add({function}(b, m));\n")
            continue
        if name == operators[0]:
            parts.append(f"\n{shared_text(own, tuple(operators), function)}")
        calls.append(shared_call(context, own, name, function))
    parts.append(f"\n{_host_tensors(program, tables, members, weight_offsets)}")
    parts.append(f"\n{_floating_point(FLOATING_POINT)}")
    parts.append(
        "\nSequence build(Builder &b) {\n  const Memory m = add_memory(b);\n  add_host_tensors(b, m);\n"
        f"  Sequence model;\n{''.join(calls)}  return model;\n}}\n\n}} // namespace\n\n"
        f"int main(int argc, char **argv) {{ return t10::main(argc, argv, {{{quoted(program.name)}, "
        f"{program.n_tiles}, floating_point, build}}); }}\n"
    )
    return "".join(parts)


def _title(program: DeviceProgram) -> str:
    lines = comment(f"{program.name} for chip {program.chip}, {program.n_tiles} tiles; written by T10.")
    lines += comment(program.graph_comment) if program.graph_comment else ""
    return lines + comment(
        "Row t of every variable lies on tile t. Long lists stand in tables.bin. README.md says how to build."
    )


def _floating_point(mode: FloatingPointMode) -> str:
    flags = ", ".join(f"/*{field.name}*/ {str(getattr(mode, field.name)).lower()}" for field in fields(mode))
    what = "The floating-point mode that all code of the program is written for."
    return f"{comment(what)}const FloatingPointBehaviour floating_point({flags});\n"


def _memory(variables: tuple[Variable, ...], members: Names) -> str:
    """Return the struct of all variables and the function that adds them to the graph."""
    declarations, additions = ["struct Memory {\n"], ["\nMemory add_memory(Builder &b) {\n  Memory m;\n"]
    for variable in variables:
        name = members.identifier(variable.name)
        of_type = poplar_type(variable.dtype)
        shape = "x".join(map(str, (*variable.shape, variable.dtype)))
        text = f"{variable.role} {shape}" + (f": {variable.comment}" if variable.comment else "")
        declarations.append(f"{comment(text, '  ')}  Tensor {name};\n")
        elements = prod(variable.shape) * of_type.parts
        arguments = f"{quoted(variable.name)}, {of_type.poplar}, {variable.n_tiles}, {elements}"
        before = variable.address_bytes % ROW_ALIGNMENT_BYTES * of_type.parts // of_type.size_bytes
        arguments += f", {before}" if before else ""
        additions.append(f"  m.{name} = b.variable({arguments});\n")
    return "".join([*declarations, "};\n", *additions, "  return m;\n}\n"])


def _host_tensors(
    program: DeviceProgram, tables: Tables, members: Names, weight_offsets: Mapping[str, int]
) -> str:
    """Return the function that says where the tensors of the host lie."""
    lines = ["void add_host_tensors(Builder &b, const Memory &m) {\n"]
    of_role = (("weight", program.weights), ("input", program.inputs), ("output", program.outputs))
    slots = slots_by_variable(program)
    for role, tensors in of_role:
        for tensor in tensors:
            offset = weight_offsets.get(tensor.name)
            shown = "absent" if offset is None else str(offset)
            pieces = [_piece(piece, tensor, role, tables, slots, members) for piece in tensor.pieces]
            lines.append(_host_tensor(tensor, role, shown, ",\n       ".join(pieces)))
    return "".join([*lines, "}\n"])


def _host_tensor(tensor: HostTensor, role: str, offset: str, pieces: str) -> str:
    shape = ", ".join(map(str, tensor.shape))
    kind = quoted(numpy_dtype(tensor.dtype).newbyteorder("<").str)
    return (
        f"  b.host_tensor({{HostTensor::{role}, {quoted(tensor.name)}, {kind}, {{{shape}}}, {offset},\n"
        f"      {{{pieces}}}}});\n"
    )


def _piece(
    piece: HostPiece, tensor: HostTensor, role: str, tables: Tables, slots: Slots, members: Names
) -> str:
    number = table(slots_of(piece, tables, slots, is_output=role == "output"))
    fill = constant_bits(piece.fill, tensor.dtype)
    # An output's piece without a variable is constant.
    variable = f"m.{members.identifier(piece.variable)}" if piece.variable else "Tensor()"
    return f"{{{variable}, {number}, {fill:#x}}}"
