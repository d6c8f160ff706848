"""An emitted program as an executable of this machine: compiled with g++ against the host implementation."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from t10.core.atomic import replaced_file, write_text
from t10.core.tile import IPU_MEMORY, N_WORKERS, TileMemory
from t10.core.trust.files import DOCUMENT_BYTES, read_text
from t10.errors import InputError
from t10.sim.poplar_host.code import code_bytes
from t10.sim.poplar_host.popc import registry_text

VertexCode = Literal["cpp", "assembly"]
"""What vertices run: their C++ bodies, or their assembly on the instruction-set simulator."""

HOST = Path(__file__).resolve().parent
SIMULATOR = HOST.parents[1] / "isa" / "simulator"
LIBRARY = SIMULATOR / "libt10_isa.a"
COMPILER = "g++"
PROGRAM_FILES = ("program.cpp", "t10_runtime.cpp", "codelets.cpp", "tables.bin")
# C++ references round every operation to its own type: nothing may be contracted or kept wider.
FLAGS = ("-std=c++17", "-ffp-contract=off", "-pipe", f"-DT10_WORKERS={N_WORKERS}")
SHOWN_LINES = 12


@dataclass(frozen=True, slots=True)
class _Unit:
    """A source to compile: a path or a text, what it includes, and how hard to optimise.

    `program` is the folder of the program where it includes files of that, all by quoted names: a file there that is
    called like a header of the system or of Poplar is nobody's.
    """

    name: str
    text: str
    optimisation: str
    includes: tuple[Path, ...]
    program: Path | None = None
    source: Path | None = None
    """The file whose text it is, for messages."""


def build(
    folder: Path | str,
    build_folder: Path | str,
    vertices: VertexCode = "cpp",
    memory: TileMemory = IPU_MEMORY,
) -> Path:
    """Return the executable of the program in `folder`; objects made before in `build_folder` are used again.

    `memory` is that of a tile, where vertices run their assembly. Raises `InputError` when the folder holds no
    program, there is no g++, or the program does not compile.
    """
    source, into = Path(folder).resolve(), Path(build_folder).resolve()
    missing = [name for name in PROGRAM_FILES if not (source / name).is_file()]
    if missing:
        raise InputError(f"{folder} holds no emitted program: {', '.join(missing)} is missing")
    if shutil.which(COMPILER) is None:
        raise InputError(
            f"{COMPILER} is not on the path", hint="install a C++17 compiler to run programs on this machine"
        )
    into.mkdir(parents=True, exist_ok=True)
    codelets = registry_text(_text(source / "codelets.cpp"))
    headers = (HOST / "include", HOST / "source")
    units = [
        _Unit("host", '#include "all.hpp"\n', "-O1", headers),
        _unit("program", source),
        _unit("t10_runtime", source),
        _Unit("codelets", codelets, "-O1", headers, source),
    ]
    libraries: list[Path] = []
    if vertices == "assembly":
        units.append(_Unit("tiles", _tiles_text(source, into, memory), "-O1", (*headers, SIMULATOR)))
        libraries.append(LIBRARY)
    with ThreadPoolExecutor(max_workers=len(units)) as pool:
        objects = list(pool.map(_compiled, units, [into] * len(units)))
    digest = hashlib.blake2b("".join(o.name for o in objects).encode(), digest_size=8).hexdigest()
    executable = into / f"program-{digest}"
    if not executable.exists():
        with tempfile.TemporaryDirectory(dir=into) as own:
            made = Path(own) / executable.name
            _run([COMPILER, *map(str, (*objects, *libraries)), "-o", str(made)], "linking the program")
            made.replace(executable)
    return executable


def _unit(name: str, source: Path) -> _Unit:
    """Return a source of the program as it is."""
    path = source / f"{name}.cpp"
    return _Unit(name, _text(path), "-O0", (HOST / "include",), source, path)


def _text(path: Path) -> str:
    return read_text(path, DOCUMENT_BYTES)


def _tiles_text(source: Path, into: Path, memory: TileMemory) -> str:
    """Return the source that links tiles with the program's code, which is assembled into a file for them."""
    if not LIBRARY.is_file():
        raise InputError(
            "the library of the instruction-set simulator is missing",
            hint="build the native modules of T10 first",
        )
    assembled = code_bytes(_text(source / "codelets.S"), memory)
    path = into / f"code-{hashlib.blake2b(assembled, digest_size=8).hexdigest()}.bin"
    with replaced_file(path) as made:
        made.write_bytes(assembled)
    library = hashlib.blake2b(LIBRARY.read_bytes(), digest_size=8).hexdigest()
    return (
        f'// linked with the simulator {library}\n#include "tiles.hpp"\n'
        f'static poplar_host::SimulatedTiles simulated("{path}");\n'
        "static const bool linked = (poplar_host::tiles() = &simulated) != nullptr;\n"
    )


def _compiled(unit: _Unit, into: Path) -> Path:
    """Return the object file of a source, compiled unless one of the same sources is there."""
    digest = hashlib.blake2b(digest_size=8)
    for part in (unit.text, unit.optimisation, *FLAGS):
        digest.update(part.encode() + b"\0")
    for include in (*unit.includes, *([unit.program] if unit.program else [])):
        for header in sorted((*include.rglob("*.hpp"), *include.glob("*.h"))):
            digest.update(header.read_bytes())
        if (include / "codelets.cpp").exists() and unit.name == "codelets":
            digest.update((include / "codelets.cpp").read_bytes())
    stem = f"{unit.name}-{digest.hexdigest()}"
    compiled = into / f"{stem}.o"
    if not compiled.exists():
        source = into / f"{stem}.cpp"
        line = f'#line 1 "{unit.source}"\n' if unit.source else ""
        write_text(source, line + unit.text)
        where = [f"-I{include}" for include in unit.includes]
        where += ["-iquote", str(unit.program)] if unit.program else []
        # Another process may be compiling the same.
        with tempfile.TemporaryDirectory(dir=into) as own:
            made = Path(own) / compiled.name
            command = [COMPILER, *FLAGS, unit.optimisation, *where, "-c", str(source), "-o", str(made)]
            _run(command, f"compiling {unit.name}.cpp")
            made.replace(compiled)
    return compiled


def _run(command: Sequence[str], what: str) -> None:
    """Run a command; raises `InputError` with its first error, file and line, and the lines around it."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        first = next((n for n, line in enumerate(lines) if "error: " in line), 0)
        said = lines[first] if lines else f"it ended with {done.returncode}"
        raise InputError(
            f"{what} with {COMPILER} failed: {said}", details=tuple(lines[first + 1 : first + SHOWN_LINES])
        )
