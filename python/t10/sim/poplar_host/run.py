"""Run an emitted program on this machine: inputs in, outputs out."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from t10.arrays import read_arrays, write_arrays
from t10.core.tile import IPU_MEMORY, TileMemory
from t10.errors import InputError, SimTrap
from t10.sim.poplar_host.build import VertexCode, build

BAD_FILE = 2
"""Exit code of an emitted program whose files do not hold what they should."""
CYCLES = re.compile(r"^cycles: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PoplarHostResult:
    """Outputs by name, and the sum over compute sets of the longest vertex's cycles.

    Those are estimates where C++ bodies ran, and what the code took where that ran; exchanges take none here.
    """

    outputs: Mapping[str, NDArray[Any]]
    cycles: int


def run_poplar_host(
    folder: Path | str,
    inputs: Mapping[str, NDArray[Any]],
    *,
    vertices: VertexCode = "cpp",
    build_folder: Path | str | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the outputs by name of the program in `folder`; see `run_program`."""
    return dict(run_program(folder, inputs, vertices=vertices, build_folder=build_folder).outputs)


def run_program(
    folder: Path | str,
    inputs: Mapping[str, NDArray[Any]],
    *,
    weights: Mapping[str, NDArray[Any]] | None = None,
    vertices: VertexCode = "cpp",
    build_folder: Path | str | None = None,
    memory: TileMemory = IPU_MEMORY,
) -> PoplarHostResult:
    """Return what the program in `folder` computes from inputs.

    Vertices run their C++ bodies, or with `vertices="assembly"` codelets.S on the instruction-set simulator, on tiles
    with `memory`. The program is compiled with g++, in `build_folder` where given: then what did not change is not
    compiled again. `weights` take the place of those in weights.bin. Raises `InputError` where the program cannot be
    built or its files are damaged, and `SimTrap` where it stops: it names the rule of Poplar's that was broken.
    """
    with _folder(build_folder) as into, tempfile.TemporaryDirectory() as scratch:
        executable = build(folder, into, vertices, memory)
        files = Path(scratch)
        write_arrays(files / "inputs.npz", inputs, as_named=True)
        command = [str(executable), "--model", "--cycles", "--folder", str(Path(folder).resolve())]
        command += ["--inputs", str(files / "inputs.npz"), "--outputs", str(files / "outputs.npz")]
        if weights:
            write_arrays(files / "weights.npz", weights, as_named=True)
            command += ["--weights", str(files / "weights.npz")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            text = done.stderr.strip() or f"the program ended with signal {-done.returncode}"
            said = text.splitlines()[-1]
            raise InputError(f"{folder}: {said}") if done.returncode == BAD_FILE else SimTrap(said)
        cycles = CYCLES.search(done.stdout)
        return PoplarHostResult(read_arrays(files / "outputs.npz"), int(cycles.group(1)) if cycles else 0)


@contextlib.contextmanager
def _folder(wanted: Path | str | None) -> Generator[Path]:
    """Yield the folder to build in: the one that was asked for, else one that goes away."""
    if wanted is not None:
        yield Path(wanted)
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)
