"""Vertices as the machine takes them: words of state in tile memory, entry addresses, and what they write."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.core.arrays import Ints
from t10.core.codelet import POINTERS, Codelet, CodeletKind, Field
from t10.core.device import ComputeSet, DeviceProgram, PerTile, Reference, Variable, VertexGroup
from t10.errors import VerifyError
from t10.isa.image import Image
from t10.sim.device.memory import DeviceMemory, variable_bytes

WORD_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Vertices of one compute set and kind that the machine runs at once.

    One entry per vertex: tile, addresses of its code and its state, and the number of its group in the compute set.
    """

    kind: CodeletKind
    tiles: NDArray[np.int32]
    entries: Ints
    states: Ints
    groups: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What vertices of a group write: `n_bytes` of a variable at an offset of every tile's memory."""

    variable: str
    tiles: NDArray[np.int32]
    offsets: Ints
    n_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class LoadedSet:
    """A compute set whose vertices' words lie in the memories of their tiles."""

    compute_set: ComputeSet
    batches: tuple[Batch, ...]
    written: tuple[Written, ...]

    @property
    def written_names(self) -> frozenset[str]:
        """Return the names of the variables that the vertices write."""
        return frozenset(each.variable for each in self.written)


def load(program: DeviceProgram, image: Image, memory: DeviceMemory) -> dict[str, LoadedSet]:
    """Write all vertices' words into the memories and return the compute sets by name.

    Raises `VerifyError` for a codelet, variable or symbol that does not exist, a tile with two vertices in one compute
    set, or words that do not fit their fields.
    """
    codelets = {codelet.name: codelet for codelet in program.codelets}
    loaded: dict[str, LoadedSet] = {}
    for compute_set in program.compute_sets:
        _check_tiles(compute_set, program.n_tiles)
        batches: dict[CodeletKind, list[Batch]] = {}
        written: list[Written] = []
        for number, group in enumerate(compute_set.groups):
            codelet = codelets.get(group.codelet)
            if codelet is None:
                raise VerifyError(
                    f"compute set '{compute_set.name}' names codelet '{group.codelet}', which is not there"
                )
            written += _write_words(memory, compute_set.name, group, codelet)
            batches.setdefault(codelet.kind, []).append(
                _batch(number, group, codelet, _entry(image, codelet))
            )
        joined = tuple(_joined(batches[kind]) for kind in sorted(batches))
        loaded[compute_set.name] = LoadedSet(compute_set, joined, tuple(written))
    return loaded


def _entry(image: Image, codelet: Codelet) -> int:
    address = image.symbols.get(codelet.entry)
    if address is None:
        raise VerifyError(f"the image has no symbol {codelet.entry} for codelet '{codelet.name}'")
    return address


def _batch(number: int, group: VertexGroup, codelet: Codelet, entry: int) -> Batch:
    n = len(group.tiles)
    return Batch(
        codelet.kind,
        np.array(group.tiles, np.int32),
        np.full(n, entry, np.int64),
        np.full(n, group.state_address_bytes, np.int64),
        np.full(n, number, np.int64),
    )


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch(
        batches[0].kind,
        np.concatenate([each.tiles for each in batches]),
        np.concatenate([each.entries for each in batches]),
        np.concatenate([each.states for each in batches]),
        np.concatenate([each.groups for each in batches]),
    )


def _check_tiles(compute_set: ComputeSet, n_tiles: int) -> None:
    """Refuse vertices outside the chip and two of them on one tile."""
    tiles = np.array([tile for group in compute_set.groups for tile in group.tiles], np.int64)
    name = compute_set.name
    if tiles.size and not 0 <= int(tiles.min()) <= int(tiles.max()) < n_tiles:
        raise VerifyError(f"compute set '{name}' has a vertex on tile {int(tiles.max())} of {n_tiles}")
    counts = np.bincount(tiles, minlength=1)
    if (counts > 1).any():
        raise VerifyError(
            f"compute set '{name}' has {int(counts.max())} vertices on tile {int(counts.argmax())}"
        )


def _write_words(memory: DeviceMemory, user: str, group: VertexGroup, codelet: Codelet) -> list[Written]:
    """Write the words of a group's vertices; return what they will write."""
    if len(group.words) != len(codelet.fields):
        raise VerifyError(
            f"compute set '{user}' gives {len(group.words)} words to codelet '{codelet.name}' "
            f"of {len(codelet.fields)} fields"
        )
    tiles = np.array(group.tiles, np.int32)
    words = np.zeros((len(tiles), len(group.words)), np.int64)
    written: list[Written] = []
    for column, (word, field) in enumerate(zip(group.words, codelet.fields, strict=True)):
        if not isinstance(word, Reference):
            words[:, column] = _per_tile(word, len(tiles), f"{user}: {field.name}")
            continue
        if field.kind not in POINTERS:
            raise VerifyError(
                f"compute set '{user}' points field '{field.name}' ({field.kind}) at '{word.variable}'"
            )
        variable = memory.variable(word.variable, f"compute set '{user}'")
        words[:, column] = _addresses(word, variable, tiles, field, f"compute set '{user}', '{codelet.name}'")
        if field.kind in ("out", "inout"):
            written.append(
                Written(
                    word.variable,
                    tiles,
                    np.full(len(tiles), memory.offset(variable), np.int64),
                    variable_bytes(variable),
                )
            )
    data = (words & 0xFFFFFFFF).astype("<u4").view(np.uint8).reshape(len(tiles), -1)
    if data.size:
        memory.native.write_rows(tiles, group.state_address_bytes - memory.base, np.ascontiguousarray(data))
    return written


def _addresses(
    word: Reference, variable: Variable, tiles: NDArray[np.int32], field: Field, user: str
) -> Ints:
    """Return the address that a reference means on every tile."""
    offsets = _per_tile(word.offset_bytes, len(tiles), f"{user}: {field.name}")
    if ((offsets < 0) | (offsets > variable_bytes(variable))).any():
        raise VerifyError(f"{user} points '{field.name}' outside variable '{word.variable}'")
    addresses = variable.address_bytes + offsets
    crooked = np.flatnonzero(addresses % field.align_bytes)
    if crooked.size:
        raise VerifyError(
            f"{user} gives '{field.name}' address {int(addresses[crooked[0]]):#x} on tile {int(tiles[crooked[0]])}, "
            f"which is no multiple of {field.align_bytes}"
        )
    return addresses


def _per_tile(value: PerTile, n: int, what: str) -> Ints:
    """Return one number per tile."""
    row = np.array(value, np.int64)
    if row.ndim and len(row) != n:
        raise VerifyError(f"{what} has {len(row)} numbers for {n} tiles")
    return np.broadcast_to(row, n)
