"""From a planned model to the chip: its device program, the folder a Poplar SDK builds, and runs below the plan level.

Engines: `plan` executes the plan core by core in numpy; `iss` executes the emitted assembly, instruction by
instruction; `poplar-host` compiles the emitted C++ program with g++ against a small host implementation of the Poplar
API and runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike, NDArray

from t10.cache_folder import default_cache_folder
from t10.chip import ChipSpec
from t10.core.device import DeviceProgram
from t10.errors import InfeasiblePlanError
from t10.isa.image import Image
from t10.unsigned import as_declared

if TYPE_CHECKING:
    from t10.driver import Executable, Progress
    from t10.sim.device import DeviceResult

Engine = Literal["plan", "iss", "poplar-host"]
ENGINES: tuple[Engine, ...] = ("plan", "iss", "poplar-host")
PROGRAM_FOLDER = "program"
RESERVE_STEP_BYTES = 1024
MOST_TRIES = 6


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A device program and its codelets, assembled."""

    program: DeviceProgram
    image: Image


def lowered(executable: Executable) -> Lowered:
    """Return the device program of a compiled model.

    Raises `UnsupportedOpError` for what no codelet computes, naming the operator.
    """
    from t10.codelets.compile import using_families
    from t10.codelets.user import load_families
    from t10.emit.link import assembled
    from t10.passes.pipeline import device_program

    with using_families(load_families(executable.codelets)):
        program = device_program(executable.plan, executable.chip, executable.costs())
    return Lowered(program, assembled(program.codelets, executable.chip.tile_memory))


def compile_with_room(
    compile_for: Callable[[ChipSpec], Executable], chip: ChipSpec
) -> tuple[Executable, Lowered]:
    """Return what `compile_for` makes for a chip, and its device program.

    Where code, vertex state, stacks and exchanges need more than the chip reserves, the data moves up, if it leaves
    room; else the model is planned again with as much reserved as they need. Another plan needs other exchanges: where
    one is told too little and one has no room for its data, reserves between them are tried.

    Raises `InfeasiblePlanError` where no plan is found that fits beside its program, and `InputError` for a chip that
    no code can be emitted for.
    """
    from t10.emit.target import check_target

    check_target(chip)
    executable = compile_for(chip)
    made = lowered(executable)
    low, high = chip.reserved_bytes, chip.sram_bytes - chip.shift_buffer_bytes
    refused: InfeasiblePlanError | None = None
    for _ in range(MOST_TRIES):
        needed, kept = made.program.memory.program_bytes, executable.chip.reserved_bytes
        if needed <= kept:
            return executable, made
        moved = _moved(executable, chip, _rounded(needed))
        if moved is not None:
            executable, made = moved, lowered(moved)
            continue
        # What is planned again often needs more again, by as much as before.
        room = _rounded(needed if kept == chip.reserved_bytes else 2 * needed - kept)
        low = max(low, kept)
        if room >= high:
            room = _rounded((low + high) // 2)
        if not low < room < high:
            break
        try:
            executable = compile_for(_reserving(chip, room))
        except InfeasiblePlanError as error:
            refused, high = error, room
            continue
        made = lowered(executable)
    needed = made.program.memory.program_bytes
    if needed <= executable.chip.reserved_bytes:
        return executable, made
    if refused is not None:
        raise _without_room(refused, needed, high)
    raise InfeasiblePlanError(
        f"its program needs {needed:,} bytes of every core and was planned beside {executable.chip.reserved_bytes:,}",
        hint="`--no-program` plans without; a smaller batch, or a chip with more memory, leaves more room",
    )


def _rounded(n_bytes: int) -> int:
    return -(-n_bytes // RESERVE_STEP_BYTES) * RESERVE_STEP_BYTES


def _reserving(chip: ChipSpec, reserved_bytes: int) -> ChipSpec:
    return ChipSpec.model_validate({**chip.model_dump(), "reserved_bytes": reserved_bytes})


def _moved(executable: Executable, chip: ChipSpec, reserved_bytes: int) -> Executable | None:
    """Return the same program with its data behind `reserved_bytes`, None where that does not fit."""
    from t10.passes.pipeline import replaced_module

    up_bytes = reserved_bytes - executable.chip.reserved_bytes
    if executable.plan.peak_bytes + up_bytes > chip.sram_bytes:
        return None
    room = _reserving(chip, reserved_bytes)
    module = replaced_module(executable.module, room)
    moved = replace(executable, chip=room, module=module)
    return moved.of_module("the module")


def _without_room(error: InfeasiblePlanError, needed: int, reserved_bytes: int) -> InfeasiblePlanError:
    """Return why a model does not fit when `reserved_bytes` per core are kept, for programs that need `needed`."""
    return InfeasiblePlanError(
        f"{error.message} (with {reserved_bytes:,} bytes per core kept for its program; with less kept, its program "
        f"needs {needed:,}: `--no-program` plans without)",
        operator=error.operator, location=error.location, hint=error.hint, details=error.details,
    )  # fmt: skip


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
    from t10.emit.link import check_fits
    from t10.sim.device import run_device

    arrays = executable.planned_inputs(inputs)
    executable.check_weights()
    made = lowered(executable)
    check_fits(made.program, executable.chip.tile_memory)

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
