"""The folder of a Poplar program: everything a person with the SDK needs to build and run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from t10.core.atomic import filled_folder
from t10.core.device import DeviceProgram
from t10.emit.poplar.codelets_text import assembly_text, codelets_text
from t10.emit.poplar.description import PROGRAM_FILE, description_text
from t10.emit.poplar.program_text import program_text
from t10.emit.poplar.project import cmake_text, readme_text
from t10.emit.poplar.tables import Tables
from t10.emit.poplar.weights import write_weights

RUNTIME = tuple(
    f"t10_{name}.hpp"
    for name in ("runtime", "builder", "main", "tables", "files", "slots", "npz", "reference")
)
RUNTIME_SOURCE = '// The fixed helpers of the program, compiled by themselves.\n#include "t10_main.hpp"\n'


def write_program(
    program: DeviceProgram,
    folder: Path | str,
    weights: Mapping[str, NDArray[Any]],
    check: Callable[[Path], object] | None = None,
) -> None:
    """Write a device program as a Poplar program into `folder`; other files there stay.

    Weights without values are left out: the built program then asks for them. Raises `InputError` where the folder
    cannot be written or a weight has another shape than the program expects, and what `check` raises about the files
    before they take their places.
    """
    tables = Tables()
    with filled_folder(folder) as into:
        offsets = write_weights(program.weights, weights, into)
        (into / "program.cpp").write_text(program_text(program, tables, offsets), encoding="utf-8")
        (into / PROGRAM_FILE).write_text(description_text(program, tables), encoding="utf-8")
        tables.write(into / "tables.bin")
        (into / "codelets.S").write_text(assembly_text(program.codelets), encoding="utf-8")
        (into / "codelets.cpp").write_text(codelets_text(program.codelets), encoding="utf-8")
        (into / "CMakeLists.txt").write_text(cmake_text(program), encoding="utf-8")
        (into / "README.md").write_text(readme_text(program), encoding="utf-8")
        (into / "t10_runtime.cpp").write_text(RUNTIME_SOURCE, encoding="utf-8")
        runtime = resources.files("t10.emit.poplar") / "runtime"
        for name in RUNTIME:
            (into / name).write_bytes((runtime / name).read_bytes())
        if check is not None:
            check(into)
