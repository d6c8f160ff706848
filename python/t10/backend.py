"""From a planned model to the chip: its device program, the folder a Poplar SDK builds, and runs below the plan level.

Engines: `plan` executes the plan core by core in numpy; `iss` executes the emitted assembly, instruction by
instruction; `poplar-host` compiles the emitted C++ program with g++ against a small host implementation of the Poplar
API and runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike, NDArray

from t10.cache_folder import default_cache_folder
from t10.chip import ChipSpec
from t10.core.device import DeviceProgram
from t10.core.trust.files import DOCUMENT_BYTES, read_text
from t10.driver import checked_inputs
from t10.errors import InputError, VerifyError
from t10.isa.image import Image

if TYPE_CHECKING:
    from t10.artefact import Folder
    from t10.driver import Executable, Progress
    from t10.emit.link import Parts
    from t10.sim.device import DeviceResult
    from t10.sim.poplar_host import PoplarHostResult

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
    from t10.codelets.image import assembled
    from t10.emit.link import linked

    with users_codelets(executable):
        program = linked(executable.parts or lowered_parts(executable), executable.plan, executable.chip)
    return Lowered(program, assembled(program.codelets, executable.chip.tile_memory))


def lowered_parts(executable: Executable) -> Parts:
    """Return the parts of the program of a model that was planned by itself, or is of a folder; raises as `lowered`."""
    from t10.passes.pipeline import device_parts

    with users_codelets(executable):
        return device_parts(executable.plan, executable.chip, executable.costs())


def users_codelets(executable: Executable) -> AbstractContextManager[None]:
    """Put the users' codelets of a model in front of all others while inside: code is made as late as it is linked."""
    from t10.codelets.compile import using_families
    from t10.codelets.user import load_families

    return using_families(load_families(executable.codelets))


def write_program(executable: Executable, made: Lowered, folder: Path) -> None:
    """Write the folder that a Poplar SDK builds: program.cpp, codelets, tables, weights and how to build them."""
    from t10.emit.poplar.write import write_program as write

    write(made.program, folder, executable.weights)


def has_program(folder: Folder) -> bool:
    """Return whether a compiled model's folder holds a program; raises `InputError` where it is not T10's."""
    from t10.emit.poplar.description import PROGRAM_FILE

    return folder.has(f"{PROGRAM_FOLDER}/{PROGRAM_FILE}")


def program_of(folder: Folder, *, has_engines: bool = True) -> Path:
    """Return the folder of the program in a compiled model's folder; raises `InputError` where there is none.

    `has_engines` says whether the command could run the plan instead.
    """
    if not has_program(folder):
        raise InputError(
            f"{folder.path} holds no program (no {PROGRAM_FOLDER}/), only a plan",
            hint="compile the model again without --no-program"
            + (", or run the plan: --engine plan" if has_engines else ""),
        )
    return folder.path / PROGRAM_FOLDER


def shipped(program: Path, chip: ChipSpec) -> Lowered:
    """Return the device program that lies in a folder: program.json, with codelets.S assembled.

    Raises `InputError` with file and place for what is missing or wrong there.
    """
    from t10.codelets.image import stack_bytes
    from t10.emit.poplar.codelets_text import SIMULATOR
    from t10.emit.poplar.description import PROGRAM_FILE, read_program
    from t10.isa.assembler import assemble

    made, tile, code = read_program(program, chip), chip.tile_memory, program / "codelets.S"
    text = read_text(code, DOCUMENT_BYTES, hint="compile the model again")
    memory = made.memory
    image = assemble(text, base_address=memory.code, memory=tile, source=str(code), defines={SIMULATOR: ""})
    missing = [codelet.entry for codelet in made.codelets if codelet.entry not in image.symbols]
    if missing:
        raise InputError(f"{code} does not define {missing[0]}, which {PROGRAM_FILE} runs")
    room = min(memory.state, tile.interleaved_base) - memory.code
    if image.size_bytes > room:
        raise InputError(
            f"{code} takes {image.size_bytes:,} bytes, {PROGRAM_FILE} has {room:,} for code",
            hint="longer code needs another memory map: compile again with `--codelets`",
        )
    codelets = tuple(replace(c, stack_bytes=image.stack_bytes.get(c.entry, 0)) for c in made.codelets)
    stack, room = stack_bytes(codelets), memory.exchange - memory.stack
    if stack > room:
        raise InputError(f"{code} needs {stack:,} bytes of stacks, {PROGRAM_FILE} has {room:,}")
    return Lowered(replace(made, codelets=codelets), image)


def run_on_tiles(
    executable: Executable,
    inputs: Mapping[str, ArrayLike],
    program: Path | None = None,
    *,
    progress: Progress | None = None,
) -> DeviceResult:
    """Return what the assembly of a model computes, executed instruction by instruction, and the cycles of that.

    What runs are the files in the folder `program` (`program_of`); without one the model is lowered here. Raises
    `InputError` for inputs or files that do not fit, `SimTrap` where the chip would stop.
    """
    from t10.emit.poplar.weights import read_weights
    from t10.sim.device import run_device

    arrays = checked_inputs(executable.inputs, inputs)
    executable.check_weights()

    def step(done: int, total: int, operator: str) -> None:
        del operator
        if progress:
            progress("run", done, total)

    if program is None:
        made, weights = lowered(executable), executable.weights
        result = run_device(made.program, executable.chip, made.image, weights, arrays, progress=step)
    else:
        made = shipped(program, executable.chip)
        weights = read_weights(made.program.weights, program)
        _check_signature(executable, made.program, program)
        try:
            result = run_device(made.program, executable.chip, made.image, weights, arrays, progress=step)
        except VerifyError as error:
            raise InputError(
                f"{program}: {error.message}", operator=error.operator, details=error.details
            ) from None
    return result


def _check_signature(executable: Executable, program: DeviceProgram, folder: Path) -> None:
    """Raise `InputError` unless a program takes and gives what the model does."""
    inputs, outputs = executable.plan.graph.signature
    for what, tensors, values in (("input", program.inputs, inputs), ("output", program.outputs, outputs)):
        found = {each.name: (each.dtype, each.shape) for each in tensors}
        expected = {each.name: (each.dtype, each.shape) for each in values}
        # An input that nothing reads is not sent.
        needed = (*found, *(expected if what == "output" else ()))
        wrong = next((name for name in needed if found.get(name) != expected.get(name)), None)
        if wrong is not None:
            raise InputError(
                f"{folder}: {what} '{wrong}': found {_typed(found.get(wrong))}, the model has "
                f"{_typed(expected.get(wrong))}"
            )


def _typed(signature: tuple[str, tuple[int, ...]] | None) -> str:
    return "none" if signature is None else f"{signature[0]} of shape {signature[1]}"


def run_on_host(
    executable: Executable, program: Path, inputs: Mapping[str, ArrayLike]
) -> dict[str, NDArray[Any]]:
    """Return the outputs of `ran_on_host`."""
    return dict(ran_on_host(executable, program, inputs).outputs)


def ran_on_host(executable: Executable, program: Path, inputs: Mapping[str, ArrayLike]) -> PoplarHostResult:
    """Return what the C++ in the folder `program` (`program_of`) computes, built with g++ and run here.

    Raises `InputError` where the folder has no program, its weights are not what is written, it does not compile, or
    there is no compiler.
    """
    from t10.emit.poplar.weights import check_weights
    from t10.sim.poplar_host import run_program

    arrays = checked_inputs(executable.inputs, inputs)
    executable.check_weights()
    check_weights(program)
    kept = default_cache_folder()
    return run_program(program, arrays, build_folder=None if kept is None else kept / "poplar-host")
