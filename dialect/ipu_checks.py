"""What verifiers of the `ipu` dialect check of graphs: names, mappings, vertices and what fits a tile."""

from math import prod
from typing import Any, cast

from t10.dialect.attributes import int_tuple, required, required_int, to_python
from t10.dialect.ipu_base import inner
from t10.dialect.mlir import ir
from t10.dialect.ods import Invalid

PROGRAM_STEPS = ("ipu.sequence", "ipu.repeat", "ipu.execute", "ipu.copy")


def check_program(op: Any) -> None:
    """Check that a region holds program steps only."""
    for step in inner(op):
        if step.name not in PROGRAM_STEPS:
            raise Invalid(f"holds {step.name}, expected one of {', '.join(PROGRAM_STEPS)}")


def check_steps(op: Any, names: set[str]) -> None:
    """Check that every compute set and pattern that a program uses is defined before it."""
    for step in inner(op):
        for kind, definition in (("compute_set", "ipu.compute_set"), ("pattern", "ipu.pattern")):
            name = step.attributes[kind].value if kind in step.attributes else None
            if name is not None and name not in names:
                raise Invalid(f"uses '{name}', which no {definition} before it defines")
        if step.name in ("ipu.sequence", "ipu.repeat"):
            check_steps(step, names)


def check_fits(op: Any, tiles: int, memory_bytes: int) -> None:
    """Check that an allocation lies in the chip's tiles and in their memory."""
    name = op.attributes["sym_name"].value
    check_mapping(to_python(op.attributes["mapping"]), tiles, f"allocation '{name}'")
    shape = int_tuple(to_python(op.attributes["shape"]), "shape")
    end = op.attributes["address"].value + prod(shape) * width_bytes(op.attributes["element"].value)
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


def define(op: Any, names: set[str], codelets: dict[str, int]) -> None:
    """Add the name that an operation defines, and of codelets the number of fields."""
    if "sym_name" not in op.attributes:
        return
    name = op.attributes["sym_name"].value
    if name in names:
        raise Invalid(f"defines '{name}' twice")
    names.add(name)
    if op.name == "ipu.codelet":
        codelets[name] = len(op.attributes["fields"])


def check_tables(op: Any, names: set[str]) -> None:
    """Check that the tables of a host tensor are defined before it."""
    for piece in to_python(op.attributes["pieces"]):
        if required(piece, "table", "piece") not in names:
            raise Invalid(f"uses '{piece['table']}', which no ipu.table before it defines")


def check_vertex(op: Any, name: str, tiles: int, codelets: dict[str, int]) -> None:
    """Check a vertex against the chip and the codelet it names."""
    mapping = to_python(op.attributes["mapping"])
    check_mapping(mapping, tiles, f"vertex of '{name}'")
    codelet_name = op.attributes["codelet"].value
    if codelet_name not in codelets:
        raise Invalid(f"vertex of '{name}' runs '{codelet_name}', which no ipu.codelet before it defines")
    words: tuple[Any, ...] = to_python(op.attributes["words"])
    if len(words) != codelets[codelet_name]:
        raise Invalid(
            f"vertex of '{name}' has {len(words)} words, expected {codelets[codelet_name]}: a word per field of "
            f"'{codelet_name}'"
        )
    n_tiles = sum(last - first + 1 for first, last in mapping)
    for number, word in enumerate(words):
        is_pointer = isinstance(word, dict)
        value: Any = required(word, "offset", "word") if is_pointer else word
        count = len(value) if hasattr(value, "__len__") else n_tiles
        if count != n_tiles:
            raise Invalid(f"word {number} of a vertex of '{name}' has {count} numbers for {n_tiles} tiles")
        operand = required_int(word, "operand", "word") if is_pointer else 0
        if is_pointer and not 0 <= operand < len(op.operands):
            raise Invalid(
                f"word {number} of a vertex of '{name}' points to operand {operand} of {len(op.operands)}"
            )
