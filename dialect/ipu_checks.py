"""What verifiers of the `ipu` dialect check of graphs: names, mappings, vertices and what fits a tile."""

from itertools import pairwise
from math import prod
from typing import Any, cast

import numpy as np

from t10.core.codelet import POINTERS
from t10.core.dtypes import size_bytes
from t10.dialect.attributes import int_tuple, required, required_int, to_python
from t10.dialect.ipu_base import array_of, inner
from t10.dialect.mlir import ir
from t10.dialect.ods import Invalid

PROGRAM_STEPS = ("ipu.sequence", "ipu.repeat", "ipu.execute", "ipu.copy")


def check_program(op: Any) -> None:
    """Check that a region holds program steps only."""
    for step in inner(op):
        if step.name not in PROGRAM_STEPS:
            raise Invalid(f"holds {step.name}, expected one of {', '.join(PROGRAM_STEPS)}")


def check_steps(op: Any, names: set[str], patterns: dict[str, Any]) -> None:
    """Check that every compute set and pattern that a program uses is defined before it, and that copies fit."""
    for step in inner(op):
        for kind, definition in (("compute_set", "ipu.compute_set"), ("pattern", "ipu.pattern")):
            name = step.attributes[kind].value if kind in step.attributes else None
            if name is not None and name not in names:
                raise Invalid(f"uses '{name}', which no {definition} before it defines")
        if step.name in ("ipu.sequence", "ipu.repeat"):
            check_steps(step, names, patterns)
        elif step.name == "ipu.copy":
            _check_copy(step, patterns[step.attributes["pattern"].value])


def _check_copy(op: Any, pattern: Any) -> None:
    """Check that a pattern names sources, tiles and bytes that a copy has, and how much its tiles receive."""
    name, runs, fills = op.attributes["sym_name"].value, array_of(pattern, "runs"), array_of(pattern, "fills")
    *sources, target = (_allocated(value) for value in op.operands)
    if len(runs) and int(runs[:, 0].max()) >= len(sources):
        raise Invalid(f"copy '{name}' reads source {int(runs[:, 0].max())} of {len(sources)}")
    for number, source in enumerate(sources):
        _check_spans(runs[runs[:, 0] == number][:, [1, 2, 5, 6, 7]], source, f"copy '{name}' reads")
    _check_spans(runs[:, [3, 4, 5, 6, 8]], target, f"copy '{name}' writes")
    _check_spans(fills, target, f"copy '{name}' fills")
    width = width_bytes(op.operands[len(sources)].owner.attributes["element"].value)
    if (runs[:, [2, 4, 5, 7, 8]] % width).any() or (fills[:, [1, 2, 4]] % width).any():
        raise Invalid(f"copy '{name}' moves parts of elements of {width} bytes")
    moved = np.where(runs[:, 1] != runs[:, 3], runs[:, 5].astype(np.int64) * runs[:, 6], 0)
    received = int(np.bincount(runs[:, 3], weights=moved, minlength=1).max())
    stated = op.attributes["bytes"].value
    if stated != received:
        raise Invalid(
            f"copy '{name}' has bytes = {stated}, expected {received}: the most that a tile receives"
        )


def _allocated(value: Any) -> tuple[str, int, int]:
    """Return name, number of tiles and bytes of the allocation that a handle is of."""
    attributes = value.owner.attributes
    shape = int_tuple(to_python(attributes["shape"]), "shape")
    mapping = to_python(attributes["mapping"])
    size = prod(shape) * width_bytes(attributes["element"].value)
    return attributes["sym_name"].value, mapping[-1][1] + 1, size


def _check_spans(spans: Any, allocated: tuple[str, int, int], what: str) -> None:
    """Refuse spans (tile, offset, bytes, count, step) that leave an allocation."""
    name, n_tiles, size = allocated
    wide = spans.astype(np.int64)
    last = wide[:, 1] + (wide[:, 3] - 1) * wide[:, 4]
    low, high = np.minimum(wide[:, 1], last), np.maximum(wide[:, 1], last) + wide[:, 2]
    bad = np.flatnonzero((low < 0) | (high > size) | (wide[:, 0] >= n_tiles))
    if len(bad):
        tile, first, end = int(wide[bad[0], 0]), int(low[bad[0]]), int(high[bad[0]])
        raise Invalid(
            f"{what} bytes {first} to {end} of '{name}' on tile {tile}, which has {size} on {n_tiles} tiles"
        )


REGIONS = ("code", "state", "scratch", "stack", "exchange", "free", "data")
"""Regions of a tile's memory, lowest first."""


def read_regions(op: Any) -> dict[str, int] | None:
    """Return where the regions of a graph begin, None where lowering has not said so; raises `Invalid`."""
    if "regions" not in op.attributes:
        return None
    regions = to_python(op.attributes["regions"])
    starts = [required_int(regions, name, "regions") for name in REGIONS]
    if starts != sorted(starts) or starts[0] or starts[-1] > op.attributes["memory_bytes"].value:
        raise Invalid(
            f"regions begin at {starts}, expected 0 and then ascending numbers up to the end of the memory"
        )
    return dict(zip(REGIONS, starts, strict=True))


States = dict[int, tuple[str, int, object]]
"""By the address of words: a compute set whose vertices have them there, where they end, and what they are."""


Codelets = dict[str, tuple[Any, ...]]
"""The fields of a codelet, by its name."""


def check_compute_set(
    op: Any, tiles: int, codelets: Codelets, regions: dict[str, int] | None, states: States
) -> None:
    """Check the vertices of a compute set, and where their words lie if the graph says where they may."""
    name = op.attributes["sym_name"].value
    for vertex in inner(op):
        check_vertex(vertex, name, tiles, codelets)
        if regions is not None:
            _check_state(vertex, name, regions)
    if regions is not None:
        _check_states(op, states)


def check_host(op: Any, hosts: set[str]) -> None:
    """Check that a tensor of the host is the only one of its name and direction."""
    key = f"{op.attributes['direction'].value} {op.attributes['name'].value}"
    if key in hosts:
        raise Invalid(f"has {key} twice")
    hosts.add(key)


def _check_states(op: Any, states: States) -> None:
    """Check that the vertices of a compute set share their words with those of others only where they are equal."""
    name = op.attributes["sym_name"].value
    by_start: dict[int, list[Any]] = {}
    for vertex in inner(op):
        by_start.setdefault(vertex.attributes["state"].value, []).append(vertex)
    for start, vertices in by_start.items():
        end = start + 4 * max(len(vertex.attributes["words"]) for vertex in vertices)
        words = tuple((vertex.attributes["mapping"], _addressed(vertex)) for vertex in vertices)
        other, _, found = states.setdefault(start, (name, end, words))
        if found != words:
            raise Invalid(f"vertices of '{other}' and '{name}' have different words at byte {start}")


def check_apart(states: States) -> None:
    """Check that words that do not begin at one address do not overlap."""
    starts = sorted(states)
    for start, after in pairwise(starts):
        name, end, _ = states[start]
        if end > after:
            raise Invalid(
                f"the words of '{name}' end at byte {end}, behind where those of '{states[after][0]}' begin"
            )


def _addressed(vertex: Any) -> tuple[object, ...]:
    """Return the words of a vertex with the addresses of what they point into."""
    found: list[object] = []
    for word in vertex.attributes["words"]:
        word = word.maybe_downcast()
        if isinstance(word, ir.DictAttr):
            pointed = vertex.operands[word["operand"].value].owner.attributes["address"]
            found.append((pointed.value, word["offset"]))
        else:
            found.append(word)
    return tuple(found)


def _check_state(op: Any, name: str, regions: dict[str, int]) -> None:
    """Check that the words of a vertex lie in their region."""
    start = op.attributes["state"].value
    end = start + 4 * len(op.attributes["words"])
    if start % 4 or not regions["state"] <= start <= end <= regions["scratch"]:
        raise Invalid(
            f"vertex of '{name}' has its words at bytes {start} to {end}, expected words within {regions['state']} to "
            f"{regions['scratch']}"
        )


def check_fits(op: Any, tiles: int, memory_bytes: int, regions: dict[str, int] | None) -> None:
    """Check that an allocation lies in the chip's tiles and in their memory, from where its region begins."""
    name = op.attributes["sym_name"].value
    check_mapping(to_python(op.attributes["mapping"]), tiles, f"allocation '{name}'")
    shape = int_tuple(to_python(op.attributes["shape"]), "shape")
    end = op.attributes["address"].value + prod(shape) * width_bytes(op.attributes["element"].value)
    least = (
        0 if regions is None else regions["scratch" if op.attributes["role"].value == "scratch" else "data"]
    )
    if op.attributes["address"].value < least:
        raise Invalid(
            f"allocation '{name}' is at byte {op.attributes['address'].value}, expected at least {least}"
        )
    if end > memory_bytes:
        raise Invalid(
            f"allocation '{name}' ends at byte {end}, expected at most {memory_bytes}, the memory of a tile"
        )


def check_mapping(mapping: Any, tiles: int | None, what: str) -> None:
    """Check that a mapping is ascending ranges of tiles that exist."""
    if not isinstance(mapping, tuple) or not mapping:
        raise Invalid(f"{what} has mapping {mapping}, expected ranges of tiles such as [[0, 15]]")
    previous = -1
    for i, pair in enumerate(cast("tuple[Any, ...]", mapping)):
        row = int_tuple(pair, f"mapping[{i}]")
        if len(row) != 2 or row[0] > row[1]:
            raise Invalid(f"{what} has range {list(row)}, expected [first, last]")
        if row[0] <= previous:
            raise Invalid(f"{what} has range {list(row)} after tile {previous}, expected ascending ranges")
        previous = row[1]
    if tiles is not None and previous >= tiles:
        raise Invalid(
            f"{what} is mapped to tile {previous} of a chip of {tiles} tiles, expected at most {tiles - 1}"
        )


def width_bytes(element: Any) -> int:
    """Return the bytes of an element; one bit takes one byte."""
    if isinstance(element, ir.IndexType):
        return 8
    width = getattr(element, "width", None)
    if width is None:
        raise Invalid(f"element is {element}, expected an integer or floating-point type")
    return max(1, width // 8)


def define(op: Any, names: set[str], codelets: Codelets) -> None:
    """Add the name that an operation defines, and of codelets the fields."""
    if "sym_name" not in op.attributes:
        return
    name = op.attributes["sym_name"].value
    if name in names:
        raise Invalid(f"defines '{name}' twice")
    names.add(name)
    if op.name == "ipu.codelet":
        codelets[name] = to_python(op.attributes["fields"])


def check_tables(op: Any, tables: dict[str, Any]) -> None:
    """Check that the tables of a host tensor are defined before it, and have its elements and its variables' slots."""
    n_elements = prod(int_tuple(to_python(op.attributes["shape"]), "shape"))
    held: list[Any] = []
    for piece in to_python(op.attributes["pieces"]):
        name = required(piece, "table", "piece")
        if name not in tables:
            raise Invalid(f"uses '{name}', which no ipu.table before it defines")
        elements = array_of(tables[name], "elements")
        if elements.size and not -1 <= int(elements.min()) <= int(elements.max()) < n_elements:
            raise Invalid(
                f"'{name}' names elements outside 0 .. {n_elements - 1} of '{op.attributes['name'].value}'"
            )
        if piece["operand"] >= 0:
            handle = op.operands[piece["operand"]]
            variable, n_tiles, size = _allocated(handle)
            if handle.owner.attributes["element"] != op.attributes["element"]:
                raise Invalid(f"has a piece in '{variable}', which has elements of another type")
            slots = size // width_bytes(op.attributes["element"].value)
            if elements.shape[0] > n_tiles or elements.shape[1] > slots:
                raise Invalid(
                    f"'{name}' has shape {list(elements.shape)}, expected at most {n_tiles} tiles and {slots} slots: "
                    f"those of '{variable}'"
                )
        held.append(elements)
    if op.attributes["direction"].value == "output":
        _check_whole(op.attributes["name"].value, held, n_elements)


def _check_whole(name: str, pieces: list[Any], n_elements: int) -> None:
    """Refuse an output of which no piece has some element."""
    # No longer than tables can fill, whatever shape is stated.
    is_missing = np.ones(min(n_elements, sum(each.size for each in pieces) + 1), np.bool_)
    for elements in pieces:
        is_missing[elements[(elements >= 0) & (elements < len(is_missing))]] = False
    if is_missing.any():
        raise Invalid(f"no piece of output '{name}' has element {int(np.argmax(is_missing))} of {n_elements}")


def check_vertex(op: Any, name: str, tiles: int, codelets: Codelets) -> None:
    """Check a vertex against the chip and the codelet it names."""
    mapping = to_python(op.attributes["mapping"])
    check_mapping(mapping, tiles, f"vertex of '{name}'")
    codelet_name = op.attributes["codelet"].value
    if codelet_name not in codelets:
        raise Invalid(f"vertex of '{name}' runs '{codelet_name}', which no ipu.codelet before it defines")
    words: tuple[Any, ...] = to_python(op.attributes["words"])
    fields = codelets[codelet_name]
    if len(words) != len(fields):
        raise Invalid(
            f"vertex of '{name}' has {len(words)} words, expected {len(fields)}: a word per field of "
            f"'{codelet_name}'"
        )
    n_tiles = sum(last - first + 1 for first, last in mapping)
    for number, (word, field) in enumerate(zip(words, fields, strict=True)):
        is_pointer = isinstance(word, dict)
        value: Any = required(word, "offset", "word") if is_pointer else word
        count = len(value) if hasattr(value, "__len__") else n_tiles
        if count != n_tiles:
            raise Invalid(f"word {number} of a vertex of '{name}' has {count} numbers for {n_tiles} tiles")
        if is_pointer != (field["kind"] in POINTERS):
            raise Invalid(
                f"word {number} of a vertex of '{name}' is a {'pointer' if is_pointer else 'number'}, expected what "
                f"field '{field['name']}' of '{codelet_name}' is: {field['kind']}"
            )
        if is_pointer:
            pointed = required_int(word, "operand", "word")
            _check_pointer(op, f"word {number} of a vertex of '{name}'", pointed, value, field)


def _check_pointer(op: Any, what: str, operand: int, value: Any, field: dict[str, Any]) -> None:
    """Check that a word points into an operand of its vertex, to elements as wide as the field's."""
    if not 0 <= operand < len(op.operands):
        raise Invalid(f"{what} points to operand {operand} of {len(op.operands)}")
    last = to_python(op.attributes["mapping"])[-1][1]
    variable, n_allocated, size = _allocated(op.operands[operand])
    offsets = value if hasattr(value, "__len__") else (value,)
    if last >= n_allocated or not 0 <= min(offsets) <= max(offsets) < size:
        raise Invalid(
            f"{what} points to bytes {min(offsets)} to {max(offsets)} of '{variable}' on tile {last}, which has {size} "
            f"on {n_allocated} tiles"
        )
    element = op.operands[operand].owner.attributes["element"].value
    # Elements of 64 bits are two words, the low one first.
    if field["kind"] != "scratch" and min(size_bytes(field["dtype"]), 4) != min(width_bytes(element), 4):
        raise Invalid(
            f"{what} points to elements of {element}, expected those of field '{field['name']}': {field['dtype']}"
        )
