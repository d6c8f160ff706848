"""How to build and run an emitted program: CMakeLists.txt and README.md."""

from __future__ import annotations

from t10.core.device import DeviceProgram
from t10.errors import printable

CMAKE = """\
# Builds {name} with the Poplar SDK (3.x): first `source <sdk>/enable`, then
#   cmake -B build && cmake --build build && build/program --help
cmake_minimum_required(VERSION 3.16)
project(t10_program LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(FOLDER "${{CMAKE_CURRENT_SOURCE_DIR}}")

find_program(POPC popc)
if(NOT POPC)
  message(FATAL_ERROR "popc is not on the path: enable the Poplar SDK first")
endif()
# Assembly for IPUs, C++ bodies for IPUModel; codelets.gp holds both.
add_custom_command(
  OUTPUT "${{FOLDER}}/codelets.gp"
  COMMAND "${{POPC}}" -O3 --target ipu2 -o codelets_ipu.gp "${{FOLDER}}/codelets.cpp" "${{FOLDER}}/codelets.S"
  COMMAND "${{POPC}}" -O3 --target cpu -DT10_NO_ASSEMBLY -o codelets_cpu.gp "${{FOLDER}}/codelets.cpp"
  COMMAND "${{POPC}}" -o "${{FOLDER}}/codelets.gp" codelets_ipu.gp codelets_cpu.gp
  DEPENDS "${{FOLDER}}/codelets.cpp" "${{FOLDER}}/codelets.S" "${{FOLDER}}/t10_reference.hpp")
add_custom_target(codelets DEPENDS "${{FOLDER}}/codelets.gp")

add_executable(program program.cpp t10_runtime.cpp)
add_dependencies(program codelets)
target_compile_definitions(program PRIVATE T10_FOLDER="${{FOLDER}}")
target_link_libraries(program PRIVATE poplar)
"""

README = """\
# {name}

A model for chip `{chip}` ({n_tiles} tiles), written by T10 as a Poplar program.

| file | what it is |
|---|---|
| `program.cpp` | variables, vertices, exchanges and their order; a function per operator |
| `codelets.S` | the code of the vertices, for IPU Mk2 |
| `codelets.cpp` | their classes and fields, with C++ bodies that compute the same |
| `t10_runtime.cpp`, `t10_*.hpp` | fixed helpers: tables, vertices over tiles, exchanges, host tensors, command line |
| `program.json` | what `program.cpp` builds, for programs to read, with the addresses that T10 chose |
| `tables.bin` | numbers per tile, and who sends what to whom: of `program.cpp` and `program.json` |
| `weights.bin`, `weights.json` | the weights in row-major order, and where each begins |

## Build and run

With the Poplar SDK 3.x (`source <sdk>/enable` first):

```
cmake -B build && cmake --build build
build/program --ipu --inputs inputs.npz --outputs outputs.npz
```

`--model` runs the C++ bodies on `IPUModel` with {n_tiles} tiles instead of an IPU; `--compile-only` compiles for an IPU
and needs none; `--profile FOLDER` writes Poplar's reports; `--cycles` counts the cycles of a run. Without CMake:

```
popc -O3 --target ipu2 -o codelets.gp codelets.cpp codelets.S
g++ -std=c++17 -O1 program.cpp t10_runtime.cpp -o program -lpoplar
```

Inputs and outputs are archives made by `numpy.savez` (not compressed), arrays by name, in row-major order:

| tensor | role | type | shape |
|---|---|---|---|
{tensors}
Tensors keep the types of the table: 16-bit floats travel as they are. Weights in `weights.bin` can be replaced without
compiling again by `--weights FILE.npz`.

## What lies where

Every variable has a leading dimension of tiles: row t lies on tile t. The host rearranges the tensors it sends and
receives: *slot tables* say which element of a tensor lies in which slot of a variable (`t10_slots.hpp` explains their
form). 64-bit integers are pairs of 32-bit words on the tiles, the low word first; booleans are bytes.

Poplar places the variables itself, so addresses differ from those that T10 planned with; alignment and memory elements
follow from the vertices' fields. What a vertex writes is `InOut`, so that Poplar keeps the part of a variable that it
does not write; `WriteUndef` marks where a variable's life begins. No edge that a vertex writes overlaps another of its
edges: where it computes in place, one `InOut` field is both.

## What T10 expects of it

Cycles per vertex are given to Poplar with `setPerfEstimate`; they are what the instruction-set simulator of T10
measures or its cost model predicts. Exchanges are single `Copy` programs between distinct variables, so each takes one
phase; parts that stay on their tile become copies inside the tile. Every run begins with the floating-point mode that
the code is written for: no exceptions, no stochastic rounding, f16 overflow saturates.

`popc -O3 --target ipu2 -DT10_NO_ASSEMBLY -o codelets.gp codelets.cpp` builds the C++ bodies for an IPU instead of the
assembly, to tell an error of the code from one of the rest. Workers run all of them, slowly.
"""


def cmake_text(program: DeviceProgram) -> str:
    """Return CMakeLists.txt."""
    return CMAKE.format(name=program.name)


def readme_text(program: DeviceProgram) -> str:
    """Return README.md."""
    rows = "".join(
        f"| `{_cell(tensor.name)}` | {role} | {tensor.dtype} | {' x '.join(map(str, tensor.shape)) or 'one number'} |\n"
        for role, tensors in (("input", program.inputs), ("output", program.outputs))
        for tensor in tensors
    )
    return README.format(name=program.name, chip=program.chip, n_tiles=program.n_tiles, tensors=rows)


def _cell(name: str) -> str:
    """Return a name as code in a cell of a table: on one line, without what would end the code or the cell."""
    return printable(" ".join(name.split())).replace("`", "'").replace("|", "\\|")
