"""Runs the C++ references of compiled tasks on the host and compares what they did with what the tasks mean.

All of a test are compiled at once: a compiler's start costs more than one of them.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import t10.sim.poplar_host
from support.codelet_runs import BASE, POISON, Prepared, checked, prepare
from t10.core.codelet import POINTERS, Codelet, Compiled
from t10.core.task import Task
from t10.core.tile import N_WORKERS

TYPES = {
    "f16": "half", "f32": "float", "i1": "bool", "i8": "signed char", "i16": "short", "i32": "int", "i64": "long long",
    "index": "long long", "ui8": "unsigned char", "ui16": "unsigned short", "ui32": "unsigned",
    "ui64": "unsigned long long", "": "char", "u32": "unsigned",
}  # fmt: skip
NUMBERS = {"u32": "unsigned", "i32": "int", "f32": "float"}
HEADER = """
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <poplar/HalfFloat.hpp>
using namespace poplar;
template <typename To, typename From> To *view(From *p) {
  return reinterpret_cast<To *>(const_cast<std::remove_const_t<From> *>(p));
}
"""
RTOL_F16, ATOL_F16 = 2e-3, 2e-3
RTOL_F32, ATOL_F32 = 2e-5, 2e-5


def check_cpp_references(cases: Sequence[tuple[Task, Compiled]], folder: Path, seed: int = 0) -> None:
    """Compile and run tasks as C++; raise `AssertionError` where an output is wrong or anything else changed."""
    codelets = {compiled.codelet.name: compiled.codelet for _, compiled in cases}
    library = _library(list(codelets.values()), folder)
    for task, compiled in cases:
        prepared = prepare(task, compiled, np.full(0xE8000 - BASE, POISON, np.uint8), seed=seed)
        _run(library, compiled.codelet, prepared)
        is_half = "f16" in {operand.dtype for operand in task.operands}
        rtol, atol = (RTOL_F16, ATOL_F16) if is_half else (RTOL_F32, ATOL_F32)
        checked(task, compiled, prepared, 0).check(rtol=rtol, atol=atol)


def _library(codelets: list[Codelet], folder: Path) -> ctypes.CDLL:
    source = folder / "references.cpp"
    source.write_text(HEADER + "".join(_function(codelet) for codelet in codelets))
    include = Path(t10.sim.poplar_host.__file__).parent / "include"
    target = folder / "references.so"
    command = ["g++", "-std=c++17", "-O0", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(target))


def _function(codelet: Codelet) -> str:
    """Return a function that runs the C++ for one worker with the state's words; addresses become host pointers."""
    fields: list[str] = []
    for i, field in enumerate(codelet.fields):
        if field.kind in POINTERS:
            constant = "const " if field.kind == "in" else ""
            kind = f"{constant}{TYPES[field.dtype]} *"
            fields.append(f"{kind}{field.name} = ({kind})(memory + (state[{i}] - {BASE}u));")
        else:
            kind = NUMBERS[field.kind]
            fields.append(f"{kind} {field.name}; std::memcpy(&{field.name}, &state[{i}], 4);")
    return (
        f'extern "C" bool run_{codelet.name}(char *memory, const unsigned *state, unsigned worker) {{\n'
        + "\n".join(fields)
        + f"\n{codelet.cpp_reference}\n}}\n"
    )


def _run(library: ctypes.CDLL, codelet: Codelet, prepared: Prepared) -> None:
    function = getattr(library, f"run_{codelet.name}")
    function.restype = ctypes.c_bool
    memory = prepared.memory.ctypes.data_as(ctypes.c_char_p)
    state = np.frombuffer(prepared.state, np.uint32).ctypes.data_as(ctypes.c_void_p)
    for worker in range(N_WORKERS if codelet.kind == "multi" else 1):
        assert function(memory, state, ctypes.c_uint(worker))
