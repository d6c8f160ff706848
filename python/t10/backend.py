"""From a planned model to the chip: its device program, the folder a Poplar SDK builds, and runs below the plan level.

Engines: `plan` executes the plan core by core in numpy; `iss` executes the emitted assembly, instruction by
instruction; `poplar-host` compiles the emitted C++ program with g++ against a small host implementation of the Poplar
API and runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike, NDArray

from t10.cache_folder import default_cache_folder
from t10.core.device import DeviceProgram
from t10.isa.image import Image
from t10.unsigned import as_declared

if TYPE_CHECKING:
    from t10.driver import Executable, Progress
    from t10.sim.device import DeviceResult

Engine = Literal["plan", "iss", "poplar-host"]
ENGINES: tuple[Engine, ...] = ("plan", "iss", "poplar-host")
PROGRAM_FOLDER = "program"


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A device program and its codelets, assembled."""

    program: DeviceProgram
    image: Image


def lowered(executable: Executable) -> Lowered:
    """Return the device program of a compiled model.

    Raises `UnsupportedOpError` for what no codelet computes, naming the operator, and `InfeasiblePlanError` where the
    model was planned without regard to its program, which finds no room.
    """
    from t10.codelets.compile import using_families
    from t10.codelets.user import load_families
    from t10.emit.link import assembled, link
    from t10.passes.pipeline import device_program

    plan, chip = executable.plan, executable.chip
    if executable.made is not None:
        parts, program = executable.made
        if executable.measured:
            addresses = {buffer.name: buffer.address_bytes for buffer in plan.buffers}
            program = link(parts.measured(executable.measured), chip, addresses, plan.reserved_bytes)
    else:
        with using_families(load_families(executable.codelets)):
            program = device_program(plan, chip, executable.costs())
    return Lowered(program, assembled(program.codelets, executable.chip.tile_memory))


def write_program(executable: Executable, made: Lowered, folder: Path) -> None:
    """Write the folder that a Poplar SDK builds: program.cpp, codelets, tables, weights and how to build them."""
    from t10.emit.poplar.write import write_program as write

    write(made.program, folder, executable.weights)


def run_on_tiles(
    executable: Executable, inputs: Mapping[str, ArrayLike], *, progress: Progress | None = None
) -> DeviceResult:
    """Return what the emitted assembly computes, executed instruction by instruction, and the cycles of that.

    Raises `InputError` for inputs that do not fit, `SimTrap` where the chip would stop.
    """
    from t10.sim.device import run_device

    arrays = executable.planned_inputs(inputs)
    executable.check_weights()
    made = lowered(executable)

    def step(done: int, total: int, operator: str) -> None:
        del operator
        if progress:
            progress("run", done, total)

    result = run_device(made.program, executable.chip, made.image, executable.weights, arrays, progress=step)
    return replace(result, outputs=as_declared(result.outputs, executable.unsigned))


def run_on_host(
    executable: Executable, folder: Path, inputs: Mapping[str, ArrayLike]
) -> dict[str, NDArray[Any]]:
    """Return what the emitted C++ program of a compiled model's folder computes, built with g++ and run here.

    The program is written anew where the folder has none. Raises `InputError` where there is no compiler.
    """
    from t10.sim.poplar_host import run_poplar_host

    arrays = executable.planned_inputs(inputs)
    executable.check_weights()
    where = folder / PROGRAM_FOLDER
    if not (where / "program.cpp").exists():
        write_program(executable, lowered(executable), where)
    kept = default_cache_folder()
    outputs = run_poplar_host(where, arrays, build_folder=None if kept is None else kept / "poplar-host")
    return as_declared(outputs, executable.unsigned)
