"""What popc does with codelets.cpp, for a host: find vertex classes and their fields, and write their registry.

Poplar's compiler reads the classes with a C++ front end; emitted files have one class after the other and one field a
line, so a few patterns are enough here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from t10.errors import InputError

NAMESPACE = re.compile(r"^namespace ([A-Za-z_]\w*) \{", re.MULTILINE)
CLASS = re.compile(
    r"^class (?:\[\[([^\n]*?)\]\] )?([A-Za-z_]\w*) : public (?:MultiVertex|SupervisorVertex|Vertex) \{\n"
    r"public:\n(.*?)^\};",
    re.MULTILINE | re.DOTALL,
)
FIELD = re.compile(
    r"^  (?:(?:Input|Output|InOut)<Vector<[^;\n]*>>|unsigned|int|float) ([A-Za-z_]\w*);", re.MULTILINE
)
CONSTRAINT = re.compile(r"elem\(\*(\w+)\) != elem\(\*(\w+)\)")
COMPUTE = re.compile(r"^  bool compute\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class VertexClass:
    """A vertex class: its name with its namespace, its fields in order, and pairs of fields in different elements."""

    name: str
    fields: tuple[str, ...]
    apart: tuple[tuple[str, str], ...] = ()


def vertex_classes(text: str) -> tuple[VertexClass, ...]:
    """Return the vertex classes of codelets.cpp; raises `InputError` where a class has no `compute`."""
    space = NAMESPACE.search(text)
    prefix = f"{space.group(1)}::" if space else ""
    found: list[VertexClass] = []
    for match in CLASS.finditer(text):
        attributes, name, body = match.groups()
        compute = COMPUTE.search(body)
        if compute is None:
            raise InputError(f"vertex class {name} has no method compute")
        fields = tuple(FIELD.findall(body[: compute.start()]))
        found.append(VertexClass(prefix + name, fields, tuple(CONSTRAINT.findall(attributes or ""))))
    return tuple(found)


def registry_text(codelets: str, include: str = "codelets.cpp") -> str:
    """Return the C++ file that makes the vertex classes of `codelets`, found in file `include`, known to a host."""
    lines = [
        "// Written for a host: the vertex classes of a program, by name.\n",
        '#include "registry.hpp"\n\n',
        f'#include "{include}"\n\nnamespace {{\n\n',
    ]
    for number, one in enumerate(vertex_classes(codelets)):
        fields = ", ".join(f'poplar_host::field("{name}", &{one.name}::{name})' for name in one.fields)
        apart = ", ".join(f'{{"{first}", "{second}"}}' for first, second in one.apart)
        lines.append(
            f"const bool added_{number} =\n"
            f'    poplar_host::add_type<{one.name}>("{one.name}", {{{fields}}}, {{{apart}}});\n'
        )
    return "".join([*lines, "\n} // namespace\n"])
