"""Vertex classes for the Poplar SDK and the file of their assembly."""

from __future__ import annotations

import textwrap

from t10.core.codelet import POINTERS, Codelet, Field, by_name
from t10.core.tile import N_WORKERS
from t10.emit.poplar.names import comment
from t10.emit.poplar.types import SCRATCH, poplar_type

WORDS = {"u32": "unsigned", "i32": "int", "f32": "float"}
WORD_BYTES = 4
EDGES = {"in": "Input", "out": "InOut", "inout": "InOut", "scratch": "Output"}

SIMULATOR = "T10_SIMULATOR"
"""Macro that is defined where our simulator runs codelets.S."""

CPP_HEADER = """\
// Vertex classes of the program: on an IPU their code is codelets.S, elsewhere their C++ bodies compute the same.
//
// Every field is one 32-bit word, in the order of declaration: the assembly reads them from there. What a vertex writes
// is declared InOut, because a vertex may write part of a variable and Poplar must keep the rest; scratch memory is
// Output: its contents end with the compute set. Words called ..._unused keep the place of an input that lies where the
// output does.
#include "t10_reference.hpp"

#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

#if defined(__IPU__) && !defined(T10_NO_ASSEMBLY)
#define T10_IN_ASSEMBLY true
#else
#define T10_IN_ASSEMBLY false
#endif

using namespace poplar;

namespace t10 {

// Supervisors have no floating-point unit: workers run the C++ body of a vertex whose assembly begins on one.
template <bool in_assembly> using SupervisorIf = std::conditional_t<in_assembly, SupervisorVertex, MultiVertex>;
"""
SUPERVISOR = (
    '  __attribute__((target("supervisor"))) bool compute() { return true; } // the code is in codelets.S\n'
)
SHARED = f"    for (unsigned part = worker; part < {N_WORKERS}; part += numWorkers())\n"
NARROW = f"""\
    // Storing less than a word stores the word around it: one worker does all shares.
    for (unsigned part = 0; worker == 0 && part < {N_WORKERS}; ++part)
"""
ALONE = """\
    // Workers cannot wait for each other between the parts of the work: one does all.
    for (unsigned part = worker; part < 1; ++part)
"""
ASSEMBLY_HEADER = """\
// Codelets of the program, one section each; codelets.cpp declares their vertex classes and fields.
#include "poplar/TileConstants.hpp"
#include "poplar/StackSizeDefs.hpp"
"""


def assembly_text(codelets: tuple[Codelet, ...]) -> str:
    """Return codelets.S; raises `T10Error` where two codelets of one name differ.

    What stands in for a codelet in C++ is for the simulator only: the macro `SIMULATOR` chooses it.
    """
    return ASSEMBLY_HEADER + "".join(f"\n{_section(codelet)}" for codelet in distinct(codelets))


def _section(codelet: Codelet) -> str:
    text = f"{comment(f'{codelet.name}: {codelet.summary}')}{codelet.assembly.strip()}\n"
    return f"#ifdef {SIMULATOR}\n{text}#endif\n" if codelet.is_cpp else text


def codelets_text(codelets: tuple[Codelet, ...]) -> str:
    """Return codelets.cpp."""
    return (
        CPP_HEADER + "".join(f"\n{_vertex_class(c)}" for c in distinct(codelets)) + "\n} // namespace t10\n"
    )


def distinct(codelets: tuple[Codelet, ...]) -> tuple[Codelet, ...]:
    """Return the codelets once each, by name; raises `T10Error` where two of one name differ."""
    found = by_name(codelets)
    return tuple(found[name] for name in sorted(found))


def _vertex_class(codelet: Codelet) -> str:
    apart = ", ".join(f'"elem(*{a}) != elem(*{b})"' for a, b in codelet.apart)
    constraint = f"[[poplar::constraint({apart})]] " if apart else ""
    base = "MultiVertex" if codelet.kind == "multi" else "SupervisorIf<T10_IN_ASSEMBLY>"
    fields = "".join(f"  {_declaration(field)}\n" for field in codelet.fields)
    compute = _compute(codelet)
    if codelet.kind == "supervisor":
        compute = f"#if T10_IN_ASSEMBLY\n{SUPERVISOR}#else\n{compute}#endif\n"
    return (
        f"{comment(f'{codelet.name}: {codelet.summary}')}"
        f"class {constraint}{codelet.name} : public {base} {{\npublic:\n"
        f"  static const bool isExternalCodelet = {'false' if codelet.is_cpp else 'T10_IN_ASSEMBLY'};\n{fields}\n"
        f"{compute}}};\n"
    )


def _compute(codelet: Codelet) -> str:
    """Return the method that workers run: a C++ reference is written for `N_WORKERS` shares of the work."""
    names = [field.name for field in codelet.fields if field.kind in POINTERS]
    views = "".join(f"    {_view(field)}\n" for field in codelet.fields if field.kind in POINTERS)
    unused = "".join(f"      (void){name};\n" for name in ("worker", *names))
    body = textwrap.indent(textwrap.dedent(codelet.cpp_reference).strip(), "      ")
    tail = "" if body.rsplit("\n", 1)[-1].strip().startswith("return ") else "      return true;\n"
    loop = SHARED
    if codelet.kind == "supervisor":
        loop = ALONE
    elif _has_narrow_stores(codelet):
        loop = NARROW
    return (
        f"  bool compute(unsigned worker) {{\n{views}"
        f"    const auto one_share = [&](unsigned worker) -> bool {{\n{unused}{body}\n{tail}    }};\n"
        f"{loop}      one_share(part);\n    return true;\n  }}\n"
    )


def _has_narrow_stores(codelet: Codelet) -> bool:
    """Return whether T10's own C++ reference stores elements narrower than a word; users divide their own code."""
    written = [field for field in codelet.fields if field.kind in ("out", "inout", "scratch")]
    return not codelet.is_cpp and any(
        field.kind == "scratch" or poplar_type(field.dtype).size_bytes < WORD_BYTES for field in written
    )


def _declaration(field: Field) -> str:
    """Return the declaration of a field."""
    if field.kind not in POINTERS:
        return f"{WORDS[field.kind]} {field.name};"
    of_type = SCRATCH if field.kind == "scratch" else poplar_type(field.dtype)
    align = max(field.align_bytes, of_type.size_bytes // of_type.parts)
    interleaved = ", true" if field.is_interleaved else ""
    return f"{EDGES[field.kind]}<Vector<{of_type.field}, VectorLayout::ONE_PTR, {align}{interleaved}>> {field.name};"


def _view(field: Field) -> str:
    """Return the statement that gives a C++ body its pointer, under the field's own name."""
    of_type = SCRATCH if field.kind == "scratch" else poplar_type(field.dtype)
    constant = "const " if field.kind == "in" else ""
    return f"{constant}{of_type.body} *{field.name} = view<{constant}{of_type.body}>(&this->{field.name}[0]);"
