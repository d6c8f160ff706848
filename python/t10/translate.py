"""`t10-translate`: out of MLIR, as mlir-translate does: a module of the ipu dialect as text for the chip."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from t10.core.device import DeviceProgram
from t10.core.guard import ended_clearly, parsing, reading
from t10.core.streams import exit_code_of_output, hold_closed_streams, write_stdout
from t10.core.trust.files import MODEL_BYTES, decoding, read_bytes
from t10.errors import EXIT_INTERNAL, InputError, T10Error
from t10.version import VERSION

_HELP = """t10-translate: turn a module of the ipu dialect into text for the chip

usage: t10-translate --ipu-to-poplar|--ipu-to-asm|--ipu-to-codelets [FILE] [-o OUT] [--weights FILE.npz]

  --ipu-to-poplar    write program.cpp, a Poplar program in C++; with -o FOLDER the whole folder that the Poplar SDK
                     builds: program.cpp, codelets.S, codelets.cpp, tables, CMakeLists.txt, README.md
  --ipu-to-asm       write codelets.S, the assembly of all codelets
  --ipu-to-codelets  write codelets.cpp, their vertex classes and C++ references
  -o OUT             write there instead of to standard output
  --weights FILE     values of the weights, for --ipu-to-poplar -o FOLDER: what t10-opt --save-weights wrote
  --no-weights       write a program without them: it asks for their values when it runs
  --version          print the version and exit
  --help             print this text and exit

FILE is what t10-opt --t10-lower-ipu writes, text or bytecode (default or -: standard input). Weights have no values in
IR: a folder is written with those of --weights, or --no-weights says that it is to have none. OUT is replaced at once;
devices and FIFOs are written into.

Exit codes: 0 success   1 wrong command line   2 bad input   3 not supported   5 invalid IR   130 interrupted
"""
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class _Command:
    target: str
    source: str
    output: str
    weights: str = ""
    no_weights: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `t10-translate` on a command line (without the program's name) and return its exit code."""
    hold_closed_streams()
    words = sys.argv[1:] if arguments is None else list(arguments)
    command = _parsed(words)
    answer = _answer(words)
    if isinstance(command, str) and not answer:
        print(f"t10-translate: error: {command}; try 't10-translate --help'", file=sys.stderr)
        return 1
    try:
        with ended_clearly("t10-translate"):
            if answer or isinstance(command, str):
                write_stdout(answer.encode("utf-8"))
            else:
                _translate(command)
    except T10Error as error:
        print(f"t10-translate: error: {error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        code = exit_code_of_output(error, "t10-translate")
        if code is not None:
            return code
        print(f"t10-translate: internal error: {type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_INTERNAL
    return 0


def _answer(words: Sequence[str]) -> str:
    """Return the text for --help and --version, if asked for."""
    if "--help" in words or "-h" in words:
        return _HELP
    return f"t10-translate {VERSION}\n" if "--version" in words else ""


def _parsed(words: list[str]) -> _Command | str:
    """Return what is asked for, or what is wrong with it."""
    targets: list[str] = []
    files: list[str] = []
    values = {"-o": "", "--weights": ""}
    no_weights = False
    rest = iter(words)
    for word in rest:
        if word in _TARGETS:
            targets.append(word)
        elif word in values:
            values[word] = next(rest, "")
            if not values[word]:
                return f"{word} needs a path"
        elif word == "--no-weights":
            no_weights = True
        elif word.startswith("-") and word != "-":
            return f"unknown option {word}"
        else:
            files.append(word)
    if len(targets) != 1:
        return f"expected one of {', '.join(_TARGETS)}"
    if len(files) > 1:
        return f"expected one file, found {', '.join(files)}"
    if values["--weights"] and no_weights:
        return "--weights and --no-weights exclude each other"
    if (values["--weights"] or no_weights) and (
        targets[0] != "--ipu-to-poplar" or not _is_folder(values["-o"])
    ):
        return "--weights and --no-weights are for --ipu-to-poplar -o FOLDER"
    return _Command(targets[0], files[0] if files else "-", values["-o"], values["--weights"], no_weights)


def _translate(command: _Command) -> None:
    """Read the module and write what is asked for; nothing is written where that fails."""
    program = _program(command.source)
    if command.target == "--ipu-to-poplar" and _is_folder(command.output):
        from t10.emit.poplar.write import write_program

        write_program(program, command.output, _weights(program, command), partial(_check, program, command))
        return
    text = _TARGETS[command.target](program)
    if not command.output:
        write_stdout(text.encode("utf-8"))
        return
    from t10.core.atomic import write_text

    write_text(command.output, text)


def _check(program: DeviceProgram, command: _Command, folder: Path) -> None:
    """Read what was written as those do who run it: IR may say what cannot be run.

    Tiles and memory are taken as stated: a chip of somebody's file may have the name of one of ours. Of a chip that is
    not known by its name nothing is checked. Raises `InputError`.
    """
    from t10.chip import load_chip
    from t10.emit.poplar.description import read_program

    try:
        chip = load_chip(program.chip)
    except InputError:
        return
    memory = program.memory
    stated = {"n_cores": program.n_tiles, "memory_base": memory.base, "sram_bytes": memory.end - memory.base}
    try:
        read_program(folder, chip.model_copy(update={"levels": (), **stated}))
    except InputError as error:
        written, shown = str(folder) + os.sep, "-" if command.source == "-" else command.source
        raise InputError(f"{shown}: {str(error.message).replace(written, '')}", hint=error.hint) from None


def _weights(program: DeviceProgram, command: _Command) -> dict[str, Any]:
    """Return the values of the program's weights; raises `InputError` where some are missing and nobody says so."""
    if command.no_weights:
        return {}
    from t10.arrays import read_arrays
    from t10.core.dtypes import numpy_dtype

    shapes = {tensor.name: tensor.shape for tensor in program.weights}
    found = read_arrays(command.weights, shapes.get, shapes) if command.weights else {}
    missing = [name for name in shapes if name not in found]
    if missing:
        listed = ", ".join(missing[:_MOST_NAMED]) + (", ..." if len(missing) > _MOST_NAMED else "")
        raise InputError(
            f"{len(missing)} of {len(shapes)} weights of the program have no values: {listed}",
            hint="t10-opt --save-weights=FILE.npz writes them for --weights FILE.npz; --no-weights leaves them out",
        )
    for tensor in program.weights:
        if found[tensor.name].dtype != numpy_dtype(tensor.dtype):
            raise InputError(
                f"weight {tensor.name} is of type {found[tensor.name].dtype} (expected {tensor.dtype})"
            )
    return found


def _is_folder(output: str) -> bool:
    """Return whether a path names a folder to write: no .cpp file, and no device or FIFO that is there."""
    if not output or output.endswith(".cpp"):
        return False
    return not os.path.exists(output) or os.path.isdir(output) or os.path.isfile(output)


def _program(source: str) -> DeviceProgram:
    """Return the device program of a file of IR."""
    from t10.dialect.mlir import ir, new_context
    from t10.frontend.mlir_text import mlir_text
    from t10.passes.device.read import find_graph, read_graph

    shown = "standard input" if source == "-" else source
    data = read_bytes(source, MODEL_BYTES)
    text = mlir_text(data, shown)
    with new_context(), ir.Location.unknown():
        try:
            with reading(shown), parsing(data):
                module = ir.Module.parse(text or data)
        except ir.MLIRError as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{shown} is no valid module: {reason}") from None
        with decoding(shown):
            return read_graph(find_graph(module))


def _poplar(program: DeviceProgram) -> str:
    from t10.emit.poplar.program_text import program_text
    from t10.emit.poplar.tables import Tables

    return program_text(program, Tables(), {})


def _assembly(program: DeviceProgram) -> str:
    from t10.emit.poplar.codelets_text import assembly_text

    return assembly_text(program.codelets)


def _codelets(program: DeviceProgram) -> str:
    from t10.emit.poplar.codelets_text import codelets_text

    return codelets_text(program.codelets)


_TARGETS: dict[str, Callable[[DeviceProgram], str]] = {
    "--ipu-to-poplar": _poplar,
    "--ipu-to-asm": _assembly,
    "--ipu-to-codelets": _codelets,
}


if __name__ == "__main__":
    sys.exit(main())
