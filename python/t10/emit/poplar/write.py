"""The folder of a Poplar program: everything a person with the SDK needs to build and run it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.atomic import filled_folder
from t10.core.device import DeviceProgram, HostTensor
from t10.core.dtypes import numpy_dtype
from t10.emit.poplar.codelets_text import assembly_text, codelets_text
from t10.emit.poplar.program_text import program_text
from t10.emit.poplar.project import cmake_text, readme_text
from t10.emit.poplar.tables import Tables
from t10.errors import InputError

WEIGHTS_ALIGNMENT = 64
RUNTIME = tuple(
    f"t10_{name}.hpp"
    for name in ("runtime", "builder", "main", "tables", "files", "slots", "npz", "reference")
)
RUNTIME_SOURCE = '// The fixed helpers of the program, compiled by themselves.\n#include "t10_main.hpp"\n'


def write_program(program: DeviceProgram, folder: Path | str, weights: Mapping[str, NDArray[Any]]) -> None:
    """Write a device program as a Poplar program into `folder`; other files there stay.

    Weights without values are left out: the built program then asks for them. Raises `InputError` where the folder
    cannot be written or a weight has another shape than the program expects.
    """
    tables = Tables()
    with filled_folder(folder) as into:
        offsets = _write_weights(program.weights, weights, into)
        (into / "program.cpp").write_text(program_text(program, tables, offsets), encoding="utf-8")
        tables.write(into / "tables.bin")
        (into / "codelets.S").write_text(assembly_text(program.codelets), encoding="utf-8")
        (into / "codelets.cpp").write_text(codelets_text(program.codelets), encoding="utf-8")
        (into / "CMakeLists.txt").write_text(cmake_text(program), encoding="utf-8")
        (into / "README.md").write_text(readme_text(program), encoding="utf-8")
        (into / "t10_runtime.cpp").write_text(RUNTIME_SOURCE, encoding="utf-8")
        runtime = resources.files("t10.emit.poplar") / "runtime"
        for name in RUNTIME:
            (into / name).write_bytes((runtime / name).read_bytes())


def _write_weights(
    tensors: tuple[HostTensor, ...], weights: Mapping[str, NDArray[Any]], folder: Path
) -> dict[str, int]:
    """Write weights.bin, every weight in row-major order, and its index weights.json; return where each begins."""
    offsets: dict[str, int] = {}
    index: list[dict[str, Any]] = []
    with (folder / "weights.bin").open("wb") as file:
        for tensor in tensors:
            values = weights.get(tensor.name)
            if values is None or tensor.name in offsets:
                continue
            if values.shape != tensor.shape:
                raise InputError(
                    f"weight {tensor.name} has shape {values.shape} (expected {tensor.shape}, as in the program)"
                )
            file.write(b"\0" * (-file.tell() % WEIGHTS_ALIGNMENT))
            offsets[tensor.name] = file.tell()
            of_type = numpy_dtype(tensor.dtype).newbyteorder("<")
            index.append(
                {
                    "name": tensor.name,
                    "dtype": tensor.dtype,
                    "shape": list(tensor.shape),
                    "offset": file.tell(),
                }
            )
            file.write(np.ascontiguousarray(values, of_type).reshape(-1).view(np.uint8).data)
    lines = ",\n  ".join(json.dumps(entry) for entry in index)
    (folder / "weights.json").write_text(f"[\n  {lines}\n]\n" if index else "[]\n", encoding="utf-8")
    return offsets
