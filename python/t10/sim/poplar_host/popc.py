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
    r"^class (?:\[\[([^\n]*?)\]\] )?([A-Za-z_]\w*) : public ([A-Za-z_][\w<>]*) \{\npublic:\n(.*?)^\};",
    re.MULTILINE | re.DOTALL,
)
BASES = {
    "Vertex": False,
    "MultiVertex": False,
    "SupervisorVertex": True,
    "SupervisorIf<T10_IN_ASSEMBLY>": True,
}
"""What a class derives from, and whether its code begins on the supervisor where it is assembly."""
FIELD = re.compile(
    r"^  (?:(?:Input|Output|InOut)<Vector<[^;\n]*>>|unsigned|int|float) ([A-Za-z_]\w*);", re.MULTILINE
)
CONSTRAINT = re.compile(r"elem\(\*(\w+)\) != elem\(\*(\w+)\)")
COMPUTE = re.compile(r"^  (?:(__attribute__\(\(target\(\"supervisor\"\)\)\)) )?bool compute\(", re.MULTILINE)
IN_ASSEMBLY = re.compile(r"^#if T10_IN_ASSEMBLY\n(.*?)^#else\n(.*?)^#endif\n", re.MULTILINE | re.DOTALL)
FLOATING = re.compile(r"\b(?:float|half|double)\b|\b\d+\.\d*|\b\d+[eE]\d+")
"""What needs the floating-point unit, in C++."""


@dataclass(frozen=True, slots=True)
class VertexClass:
    """A vertex class: its name with its namespace, its fields in order, and pairs of fields in different elements.

    `is_supervisor`: its assembly begins on the supervisor, which launches the workers.
    """

    name: str
    fields: tuple[str, ...]
    apart: tuple[tuple[str, str], ...] = ()
    is_supervisor: bool = False


def vertex_classes(text: str) -> tuple[VertexClass, ...]:
    """Return the vertex classes of codelets.cpp; raises `InputError` for a class that popc would refuse."""
    space = NAMESPACE.search(text)
    prefix = f"{space.group(1)}::" if space else ""
    found: list[VertexClass] = []
    for attributes, name, base, body in CLASS.findall(text):
        if base not in BASES:
            raise InputError(f"vertex class {name} derives from {base} (expected one of {', '.join(BASES)})")
        for number in (1, 2):
            _check_compute(name, base == "SupervisorVertex" or (BASES[base] and number == 1), body, number)
        fields = tuple(FIELD.findall(COMPUTE.split(body)[0]))
        found.append(VertexClass(prefix + name, fields, tuple(CONSTRAINT.findall(attributes)), BASES[base]))
    return tuple(found)


def _check_compute(name: str, is_supervisor: bool, body: str, branch: int) -> None:
    """Check the method that a class has where vertices run assembly (branch 1), or where they run C++ (2)."""
    text = IN_ASSEMBLY.sub(lambda match: match.group(branch), body)
    compute = COMPUTE.search(text)
    if compute is None:
        raise InputError(f"vertex class {name} has no method compute")
    if bool(compute.group(1)) != is_supervisor:
        where = "lacks" if is_supervisor else "is no supervisor's but has"
        raise InputError(f'vertex class {name}: compute {where} __attribute__((target("supervisor")))')
    if is_supervisor and (found := FLOATING.search(text, compute.end())):
        raise InputError(
            f"vertex class {name}: compute runs on the supervisor, which has no floating-point unit, but names "
            f"{found.group()}"
        )
    if is_supervisor and branch == 2:
        raise InputError(f"vertex class {name}: a host has no supervisor to run its C++ body")


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
        flag = str(one.is_supervisor).lower()
        lines.append(
            f"const bool added_{number} =\n"
            f'    poplar_host::add_type<{one.name}>("{one.name}", {{{fields}}}, {{{apart}}}, {flag});\n'
        )
    return "".join([*lines, "\n} // namespace\n"])
