"""From files of assembly to one image: each is assembled by itself, then all are linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from t10.core.tile import IPU_MEMORY, TileMemory
from t10.isa.assembler.assembler import Assembler, FlatStatement
from t10.isa.assembler.layout import finish
from t10.isa.assembler.lines import Reporter, TooManyErrors
from t10.isa.assembler.linkage import Unit, connect, keep_needed
from t10.isa.image import Image

_LASTING: Final = frozenset(
    (
        ".section", ".text", ".data", ".rodata", ".bss", ".previous", ".worker", ".supervisor", ".allow_optimizations",
        ".set", ".equ", ".equiv",
    )
)  # fmt: skip


class Source(NamedTuple):
    """A file of assembly: its text, and its name in messages, whose folder is searched for includes."""

    text: str
    name: str = "codelets.S"


def assemble(
    text: str,
    *,
    base_address: int | None = None,
    memory: TileMemory = IPU_MEMORY,
    source: str = "codelets.S",
    defines: Mapping[str, str] | None = None,
    include_paths: tuple[Path | str, ...] = (),
) -> Image:
    """Return one file as an image in which every symbol is defined; see `link`."""
    return link(
        (Source(text, source),),
        base_address=base_address,
        memory=memory,
        defines=defines,
        include_paths=include_paths,
    )


def link(
    sources: Sequence[Source],
    *,
    base_address: int | None = None,
    memory: TileMemory = IPU_MEMORY,
    defines: Mapping[str, str] | None = None,
    include_paths: tuple[Path | str, ...] = (),
    entries: Sequence[str] = (),
) -> Image:
    """Return files as one image that begins at `base_address` (a multiple of eight; default: `memory`'s begin).

    A file sees the symbols of others that they export (`.globl`, `.weak`). With `entries`, the image holds only the
    sections that these symbols need. `defines` are macros of the C preprocessor. Raises AssemblyError, which holds
    every error found, each with file, line and column, and InputError for an entry that is not there.
    """
    base = memory.base if base_address is None else base_address
    paths = tuple(Path(path) for path in include_paths)
    reporter = Reporter()
    assemblers = [Assembler(source.name, reporter, defines or {}, paths, memory) for source in sources]
    return _linked(sources, assemblers, reporter, base, entries)[1]


class FlatFile(NamedTuple):
    """A file's statements.

    `exported` are the names that other files see; for those in `replaced`, weak ones, another file's definition counts;
    those in `absent` are weak and defined nowhere.
    """

    statements: tuple[FlatStatement, ...]
    exported: frozenset[str]
    replaced: frozenset[str]
    absent: frozenset[str]


def flattened(
    sources: Sequence[Source],
    *,
    defines: Mapping[str, str] | None = None,
    include_paths: tuple[Path | str, ...] = (),
    entries: Sequence[str] = (),
) -> tuple[tuple[FlatFile, ...], Image]:
    """Return files with macros, repetitions and conditions gone, as statements, and the image they make.

    Flags of the matrix engine and the memory map (`TMEM_...`) stay names; conditions see the memory of an IPU Mk2. With
    `entries`, statements of sections that these do not need are left out. Raises as `link` does.
    """
    paths = tuple(Path(path) for path in include_paths)
    reporter = Reporter()
    assemblers = [Assembler(source.name, reporter, defines or {}, paths, IPU_MEMORY) for source in sources]
    for assembler in assemblers:
        assembler.flat = []
    units, image = _linked(sources, assemblers, reporter, IPU_MEMORY.base, entries)
    files = tuple(
        _flat(assembler.flat or [], unit) for assembler, unit in zip(assemblers, units, strict=True)
    )
    return files, image


def _flat(statements: Sequence[FlatStatement], unit: Unit) -> FlatFile:
    """Return a file's statements, of sections left out only those that no address depends on."""
    sections = unit.output.sections
    kept = (one for one in statements if sections[one.section].is_needed or _is_lasting(one))
    owners = {name: unit.output.symbols.owner(name) for name in unit.output.weak}
    replaced = (name for name, owner in owners.items() if owner not in (None, unit.output.symbols))
    absent = (name for name, owner in owners.items() if owner is None)
    return FlatFile(tuple(kept), frozenset(unit.output.exported), frozenset(replaced), frozenset(absent))


def _is_lasting(statement: FlatStatement) -> bool:
    """Return whether a statement says something about what follows in other sections."""
    return not statement.is_label and (statement.word in _LASTING or statement.rest.startswith("="))


def _linked(
    sources: Sequence[Source],
    assemblers: Sequence[Assembler],
    reporter: Reporter,
    base_address: int,
    entries: Sequence[str],
) -> tuple[list[Unit], Image]:
    """Return the assembled files and their image."""
    units: list[Unit] = []
    image = None
    try:
        units += [assembler.read(source.text) for source, assembler in zip(sources, assemblers, strict=True)]
        connect(units, reporter)
        if entries:
            reporter.raise_if_any()
            keep_needed(units, entries)
        image = finish(units, reporter, base_address)
    except TooManyErrors:
        pass
    reporter.raise_if_any()
    assert image is not None
    return units, image
