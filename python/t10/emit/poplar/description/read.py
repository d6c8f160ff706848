"""program.json read back as a device program: strict, so that a damaged or edited file is an error or another program.

What is checked here is what the device simulator takes for granted; it checks the rest itself (vertices and their
fields, what copies read and write).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.codelet import POINTERS, Codelet, Field
from t10.core.device import (
    RUN_COLUMNS,
    ComputeSet,
    Copy,
    DeviceProgram,
    Exchange,
    Execute,
    HostPiece,
    HostTensor,
    MemoryMap,
    OperatorProgram,
    Pattern,
    PerTile,
    Reference,
    Repeat,
    Step,
    Variable,
    VertexGroup,
)
from t10.core.dtypes import size_bytes
from t10.core.scalar import parse_constant
from t10.core.trust.files import decoding
from t10.core.trust.schema import read_record
from t10.emit.poplar.description import records
from t10.emit.poplar.slots import elements_of
from t10.emit.poplar.tables import read_tables
from t10.errors import InputError

TABLES_FILE = "tables.bin"
FILL_COLUMNS = 5
WORD_BYTES = 4


def read_program(folder: Path, chip: ChipSpec) -> DeviceProgram:
    """Return the device program that program.json and tables.bin of a folder describe, for a chip.

    Its codelets have fields but no code: that is codelets.S. Raises `InputError` that names the file for one that is
    missing or malformed, and for what does not exist: names, tables, tiles, addresses.
    """
    path = folder / records.PROGRAM_FILE
    document = read_record(records.ProgramDocument, path, records.FORMAT, records.VERSION)
    tables = read_tables(folder / TABLES_FILE)
    try:
        with decoding(path):
            return _Reader(document, tables, chip).program()
    except InputError as error:
        raise InputError(f"{path}: {error.message}") from None


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a pattern needs: tiles by source (ascending), and of the target; and the most bytes a tile receives."""

    n_source_tiles: tuple[tuple[int, int], ...]
    n_target_tiles: int
    received_bytes: int


class _Reader:
    """Reads one document; everything it names must exist."""

    def __init__(
        self, document: records.ProgramDocument, tables: Sequence[NDArray[np.int32]], chip: ChipSpec
    ) -> None:
        self.document, self.tables, self.chip = document, tables, chip
        self.elements: dict[tuple[int, int, int | None, int], NDArray[np.int32]] = {}
        self.lists: dict[int, tuple[int, ...]] = {}
        self.shapes: dict[str, _Shape] = {}
        self.operators = {each.operator for each in document.operators}

    def program(self) -> DeviceProgram:
        """Return the whole program."""
        document = self.document
        if document.chip != self.chip.name:
            raise InputError(f"chip: found '{document.chip}', the model is compiled for '{self.chip.name}'")
        if document.n_tiles > self.chip.n_cores:
            raise InputError(f"n_tiles: found {document.n_tiles}, the chip has {self.chip.n_cores}")
        self.memory = self._memory()
        self.variables = {v.name: v for v in map(self._variable, document.variables)}
        self.codelets = {codelet.name: codelet for codelet in map(_codelet, document.codelets)}
        patterns = tuple(map(self._pattern, document.patterns))
        self.patterns = {each.key: each for each in patterns}
        copies = tuple(map(self._copy, document.copies))
        for what, names in (
            ("variables", [each.name for each in document.variables]),
            ("codelets", [each.name for each in document.codelets]),
            ("compute_sets", [each.name for each in document.compute_sets]),
            ("patterns", [each.key for each in document.patterns]),
            ("copies", [each.name for each in document.copies]),
        ):
            _check_unique(what, names)
        return DeviceProgram(
            name=document.name,
            chip=document.chip,
            n_tiles=document.n_tiles,
            memory=self.memory,
            variables=tuple(self.variables.values()),
            codelets=tuple(self.codelets.values()),
            compute_sets=tuple(map(self._compute_set, document.compute_sets)),
            patterns=patterns,
            copies=copies,
            operators=tuple(
                OperatorProgram(each.operator, tuple(map(self._step, each.steps)))
                for each in document.operators
            ),
            weights=self._hosts("weights", document.weights),
            inputs=self._hosts("inputs", document.inputs),
            outputs=self._hosts("outputs", document.outputs),
        )

    def _memory(self) -> MemoryMap:
        memory = MemoryMap(**self.document.memory.model_dump())
        tile = self.chip.tile_memory
        starts = [start for _, start, _ in memory.regions]
        if (memory.base, memory.end) != (tile.base, tile.end):
            raise InputError(
                f"memory: found addresses {memory.base:#x} to {memory.end:#x}, a tile of the chip has {tile.base:#x} "
                f"to {tile.end:#x}"
            )
        if [memory.base, *starts, memory.end] != sorted([memory.base, *starts, memory.end]):
            raise InputError("memory: the regions do not follow each other")
        return memory

    def _variable(self, row: records.VariableRecord) -> Variable:
        what, memory = f"variable '{row.name}'", self.memory
        first, last = (memory.scratch, memory.stack) if row.role == "scratch" else (memory.data, memory.end)
        end = row.address_bytes + prod(row.shape) * size_bytes(row.dtype)
        if not first <= row.address_bytes <= end <= last:
            raise InputError(
                f"{what} lies at [{row.address_bytes:#x}, {end:#x}), outside of [{first:#x}, {last:#x})"
            )
        if row.n_tiles > self.document.n_tiles:
            raise InputError(f"{what} lies on {row.n_tiles} of {self.document.n_tiles} tiles")
        return Variable(row.name, row.role, row.dtype, row.shape, row.n_tiles, row.address_bytes)

    def _compute_set(self, row: records.ComputeSetRecord) -> ComputeSet:
        what = f"compute set '{row.name}'"
        self._check_operator(row.operator, what)
        groups = tuple(self._group(each, what) for each in row.groups)
        return ComputeSet(row.name, row.operator, row.kind, groups, row.cycles)

    def _group(self, row: records.GroupRecord, what: str) -> VertexGroup:
        tiles = self._tiles(row.tiles, what)
        end = row.state_address_bytes + WORD_BYTES * len(row.words)
        if not self.memory.state <= row.state_address_bytes <= end <= self.memory.scratch:
            raise InputError(
                f"{what}: its vertices' words at {row.state_address_bytes:#x} lie outside of the state"
            )
        codelet = self.codelets.get(row.codelet)
        if codelet is None or len(row.words) != len(codelet.fields):
            raise InputError(
                f"{what}: codelet '{row.codelet}' is not there, or has other fields than it is given"
            )
        words: list[PerTile | Reference] = []
        for word, field in zip(row.words, codelet.fields, strict=True):
            if isinstance(word, records.ReferenceRecord) != (field.kind in POINTERS):
                raise InputError(f"{what}: field '{field.name}' is a {field.kind}, its word is not")
            if not isinstance(word, records.ReferenceRecord):
                words.append(self._per_tile(word, len(tiles), what))
                continue
            n_tiles = self._named(word.variable, what).n_tiles
            if tiles[-1] >= n_tiles:
                raise InputError(
                    f"{what} uses variable '{word.variable}' on tile {tiles[-1]}; it has {n_tiles}"
                )
            words.append(Reference(word.variable, self._per_tile(word.offset_bytes, len(tiles), what)))
        return VertexGroup(row.codelet, tiles, tuple(words), row.state_address_bytes, row.cycles)

    def _tiles(
        self, row: records.TilesRecord | records.TableRecord | tuple[int, ...], what: str
    ) -> tuple[int, ...]:
        n_tiles = self.document.n_tiles
        if isinstance(row, records.TilesRecord):
            last = row.first + (row.count - 1) * row.step
            tiles = tuple(range(row.first, last + 1, row.step)) if last < n_tiles else (last,)
        else:
            tiles = row if isinstance(row, tuple) else self._list(row.table, what)
        if not tiles or tiles[0] < 0 or tiles[-1] >= n_tiles or list(tiles) != sorted(set(tiles)):
            raise InputError(f"{what} needs tiles of 0 to {n_tiles - 1}, ascending")
        return tiles

    def _per_tile(
        self, row: int | records.StepsRecord | records.TableRecord | tuple[int, ...], n: int, what: str
    ) -> PerTile:
        if isinstance(row, int):
            return row
        if isinstance(row, records.StepsRecord):
            return tuple(row.first + i * row.step for i in range(n))
        numbers = row if isinstance(row, tuple) else self._list(row.table, what)
        if len(numbers) != n:
            raise InputError(f"{what} has {len(numbers)} numbers for {n} tiles")
        return numbers

    def _pattern(self, row: records.PatternRecord) -> Pattern:
        what = f"pattern '{row.key}'"
        none = np.zeros(0, np.int32)
        runs = none if row.runs is None else self._table(row.runs, what)
        fills = none if row.fills is None else self._table(row.fills.table, what)
        values = none if row.fills is None else self._table(row.fills.values, what)
        constants = () if row.fills is None else row.fills.constants
        if len(runs) % len(RUN_COLUMNS) or len(fills) != FILL_COLUMNS * len(values):
            raise InputError(
                f"{what}: its tables have no rows of {len(RUN_COLUMNS)} and {FILL_COLUMNS} columns"
            )
        for text in constants:
            _check_constant(text, what)
        runs, fills = runs.reshape(-1, len(RUN_COLUMNS)), fills.reshape(-1, FILL_COLUMNS)
        _check_pieces(runs[:, 5], runs[:, 6], runs[:, [8, 7]], what)
        _check_pieces(fills[:, 2], fills[:, 3], fills[:, 4:], what)
        if (runs[:, :5] < 0).any() or (fills[:, :2] < 0).any():
            raise InputError(f"{what}: a row has a negative number")
        if len(values) and not 0 <= values.min() <= values.max() < len(constants):
            raise InputError(f"{what} fills with a constant that it does not have")
        self.shapes[row.key] = _shape_of(runs, fills)
        return Pattern(row.key, runs, fills, values, constants)

    def _copy(self, row: records.CopyRecord) -> Copy:
        what = f"copy '{row.name}'"
        self._check_operator(row.operator, what)
        pattern = self.patterns.get(row.pattern)
        if pattern is None:
            raise InputError(f"{what} names pattern '{row.pattern}', which is not there")
        target = self._named(row.target, what)
        sources = [self._named(name, what) for name in row.sources]
        shape = self.shapes[row.pattern]
        if shape.n_source_tiles and shape.n_source_tiles[-1][0] >= len(sources):
            raise InputError(f"{what} has {len(sources)} sources, its pattern more")
        is_outside = any(n_tiles > sources[number].n_tiles for number, n_tiles in shape.n_source_tiles)
        if is_outside or shape.n_target_tiles > target.n_tiles:
            raise InputError(f"{what} names tiles that its variables do not lie on")
        if size_bytes(row.dtype) != size_bytes(target.dtype):
            raise InputError(f"{what} is of {row.dtype}, its target of {target.dtype}")
        return Copy(row.name, row.operator, row.kind, row.sources, row.target, row.dtype, row.pattern,
                    shape.received_bytes, row.cycles)  # fmt: skip

    def _step(self, row: records.StepRecord) -> Step:
        if isinstance(row, records.ExecuteRecord):
            return Execute(row.execute)
        if isinstance(row, records.ExchangeRecord):
            return Exchange(row.exchange)
        return Repeat(row.repeat, tuple(map(self._step, row.body)))

    def _hosts(self, what: str, rows: tuple[records.HostTensorRecord, ...]) -> tuple[HostTensor, ...]:
        _check_unique(what, [row.name for row in rows])
        return tuple(
            HostTensor(
                row.name, row.dtype, row.shape, tuple(self._piece(each, row, what) for each in row.pieces)
            )
            for row in rows
        )

    def _piece(self, row: records.PieceRecord, tensor: records.HostTensorRecord, direction: str) -> HostPiece:
        what = f"tensor '{tensor.name}'"
        _check_constant(row.fill, what)
        n_elements, n_tiles, n_slots = prod(tensor.shape), 1, None
        if row.variable or direction != "outputs":
            variable = self._named(row.variable, what)
            n_tiles, n_slots = variable.n_tiles, prod(variable.shape)
            if size_bytes(variable.dtype) != size_bytes(tensor.dtype):
                raise InputError(
                    f"{what} is of {tensor.dtype}, variable '{variable.name}' of {variable.dtype}"
                )
        key = (row.slots, n_tiles, n_slots, n_elements)
        if key not in self.elements:
            table = self._table(row.slots, what)
            try:
                self.elements[key] = elements_of(table, n_tiles, n_slots, n_elements)
            except InputError as error:
                raise InputError(f"{what}: table {row.slots} of {TABLES_FILE} {error.message}") from None
        return HostPiece(row.variable, self.elements[key], row.fill)

    def _check_operator(self, name: str, what: str) -> None:
        if name not in self.operators:
            raise InputError(f"{what} is for operator '{name}', which is not there")

    def _named(self, name: str, what: str) -> Variable:
        if name not in self.variables:
            raise InputError(f"{what} names variable '{name}', which is not there")
        return self.variables[name]

    def _table(self, number: int, what: str) -> NDArray[np.int32]:
        if number >= len(self.tables):
            raise InputError(f"{what} names table {number}; {TABLES_FILE} has {len(self.tables)}")
        return self.tables[number]

    def _list(self, number: int, what: str) -> tuple[int, ...]:
        if number not in self.lists:
            self.lists[number] = tuple(self._table(number, what).tolist())
        return self.lists[number]


def _codelet(row: records.CodeletRecord) -> Codelet:
    return Codelet(
        row.name, row.kind, tuple(map(_field, row.fields)), assembly="", cpp_reference="", summary=""
    )


def _field(row: records.FieldRecord) -> Field:
    if (row.to is not None) != (row.kind in POINTERS):
        raise InputError(f"field '{row.name}': 'to' belongs to a pointer, and every pointer needs it")
    return Field(row.name, row.kind, **(row.to.model_dump() if row.to else {}))


def _shape_of(runs: NDArray[np.int32], fills: NDArray[np.int32]) -> _Shape:
    """Return what a pattern needs."""
    numbers, which = np.unique(runs[:, 0], return_inverse=True)
    tiles = np.zeros(len(numbers), np.int64)
    np.maximum.at(tiles, which.reshape(-1), runs[:, 1].astype(np.int64) + 1)
    by_source = tuple(zip(numbers.tolist(), tiles.tolist(), strict=True))
    n_target_tiles = int(max(runs[:, 3].max(initial=-1), fills[:, 0].max(initial=-1))) + 1
    others = runs[runs[:, 1] != runs[:, 3]]
    last = np.flatnonzero(np.diff(others[:, 3], append=-1))
    total = np.cumsum(others[:, 5].astype(np.int64) * others[:, 6])[last]
    return _Shape(by_source, n_target_tiles, int(np.diff(total, prepend=0).max(initial=0)))


def _check_pieces(
    n_bytes: NDArray[np.int32], counts: NDArray[np.int32], steps: NDArray[np.int32], what: str
) -> None:
    """Refuse rows of pieces without bytes, written over each other, or with a step where there is one piece only."""
    is_one = counts == 1
    is_overlap = ~is_one & (np.abs(steps[:, 0].astype(np.int64)) < n_bytes)
    if (n_bytes < 1).any() or (counts < 1).any() or is_overlap.any() or (steps[is_one] != 0).any():
        raise InputError(
            f"{what}: a row's pieces have no bytes, lie over each other, or step though there is one"
        )


def _check_constant(text: str, what: str) -> None:
    try:
        parse_constant(text)
    except ValueError:
        raise InputError(f"{what}: '{text}' is no constant") from None


def _check_unique(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{what}: two of them are named '{name}'")
        seen.add(name)
