"""The `ipu` dialect: a planned model as the chip sees it, before any text is emitted.

A *graph* holds *allocations* (bytes at an address on a set of tiles), *compute sets* (which vertex runs on which tiles)
and one *sequence*: the program, made of executions of compute sets, copies through the exchange, and repeats. These are
the three device interfaces of the paper: allocate, compute, shift (T10 §5).

    graph, block = ipu.graph("main", chip="ipu-mk2", tiles=1472, memory_bytes=638976)
    with ir.InsertionPoint(block):
        x = ipu.alloc("x", element=f16, shape=(4, 8), address=0, mapping=ipu.ranges(range(16)), role="input")

A *mapping* is an array of inclusive ranges of tiles, `[[0, 15], [32, 47]]`, in ascending order. Operations print in
MLIR's generic form.
"""

# The docstrings below are the reference page: tools/gen_docs.py writes it.

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, cast

from t10.dialect.attributes import int_tuple, to_attr, to_python
from t10.dialect.mlir import ir
from t10.dialect.ods import (
    ArrayAttr,
    Dialect,
    IntegerAttr,
    Invalid,
    IsIsolatedFromAbove,
    NoTerminator,
    Operand,
    Region,
    Result,
    StringAttr,
    TypeAttr,
    verifier,
)

ROLES = ("input", "output", "weight", "activation", "partial", "buffer")
COPY_KINDS = ("shift", "relayout", "setup", "reduce", "input", "output")
_PROGRAM = ("ipu.sequence", "ipu.repeat", "ipu.execute", "ipu.copy")

Mapping = Sequence[tuple[int, int]]
"""Inclusive ranges of tiles, ascending."""


class Ipu(Dialect, name="ipu"):
    """Allocations, vertices, compute sets, copies and programs of an inter-core connected chip."""


class TensorType(Ipu.Type, name="tensor"):
    """A handle of an allocation: the variable that vertices and copies name.

    ```mlir
    func.func private @f(!ipu.tensor)
    ```
    """


class GraphOp(Ipu.Operation, name="graph", traits=[IsIsolatedFromAbove, NoTerminator]):
    """A planned model on one chip: allocations and compute sets, then one sequence.

    ```mlir
    "ipu.graph"() ({
      %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [4, 8], address = 0,
                          mapping = [[0, 15]]} : () -> !ipu.tensor
      %y = "ipu.alloc"() {sym_name = "y", role = "output", element = f16, shape = [4, 8], address = 64,
                          mapping = [[0, 15]]} : () -> !ipu.tensor
      "ipu.compute_set"() ({
        "ipu.vertex"(%x, %y) {codelet = "exp_f16", op_name = "/exp", mapping = [[0, 15]], cycles = 90}
          : (!ipu.tensor, !ipu.tensor) -> ()
      }) {sym_name = "exp"} : () -> ()
      "ipu.sequence"() ({
        "ipu.execute"() {compute_set = "exp"} : () -> ()
      }) : () -> ()
    }) {sym_name = "main", chip = "ipu-mk2", tiles = 1472, memory_bytes = 638976} : () -> ()
    ```

    `tiles` is the number of tiles, `memory_bytes` that of one tile. Addresses are reused over time, so allocations may
    overlap; each must end within the memory.
    """

    sym_name: StringAttr
    chip: StringAttr
    tiles: IntegerAttr
    memory_bytes: IntegerAttr
    body: Region

    @verifier
    def verify_region_invariants(self) -> None:
        """Check every allocation and mapping against the chip, and that what is executed is defined."""
        tiles, memory_bytes = self.tiles.value, self.memory_bytes.value
        names: set[str] = set()
        sequences = 0
        for op in _inner(self):
            if op.name == "ipu.compute_set" or op.name == "ipu.alloc":
                name = op.attributes["sym_name"].value
                if name in names:
                    raise Invalid(f"defines '{name}' twice")
                names.add(name)
            if op.name == "ipu.alloc":
                _check_fits(op, tiles, memory_bytes)
            elif op.name == "ipu.compute_set":
                for vertex in _inner(op):
                    what = f"vertex of '{op.attributes['sym_name'].value}'"
                    _check_mapping(to_python(vertex.attributes["mapping"]), tiles, what)
            elif op.name == "ipu.sequence":
                sequences += 1
                _check_executes(op, names)
            else:
                raise Invalid(f"holds {op.name}, expected ipu.alloc, ipu.compute_set or ipu.sequence")
        if sequences != 1:
            raise Invalid(f"holds {sequences} sequences, expected one: the program")


class AllocOp(Ipu.Operation, name="alloc"):
    """Allocates a tensor: the same shape at the same address of every tile it is mapped to.

    ```mlir
    "ipu.graph"() ({
      %w = "ipu.alloc"() {sym_name = "w", role = "weight", element = f16, shape = [2, 8], address = 1024,
                          mapping = [[0, 15], [32, 47]]} : () -> !ipu.tensor
      "ipu.sequence"() ({ }) : () -> ()
    }) {sym_name = "main", chip = "ipu-mk2", tiles = 1472, memory_bytes = 638976} : () -> ()
    ```

    `shape` is what one tile holds, in elements of type `element`; `address` in bytes. `role` is one of input, output,
    weight, activation, partial (sums that are still to be combined) and buffer (of the exchange).
    """

    handle: Result[TensorType]
    sym_name: StringAttr
    role: StringAttr
    element: TypeAttr
    shape: ArrayAttr
    address: IntegerAttr
    mapping: ArrayAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check role, shape, address and mapping by themselves; the graph checks them against the chip."""
        if self.role.value not in ROLES:
            raise Invalid(f'role is "{self.role.value}", expected one of {", ".join(ROLES)}')
        shape = int_tuple(to_python(self.shape), "shape")
        if any(extent < 1 for extent in shape):
            raise Invalid(f"shape = {list(shape)}, expected extents of at least 1")
        width_bytes = _width_bytes(self.element.value)
        if self.address.value < 0 or self.address.value % width_bytes:
            raise Invalid(
                f"address = {self.address.value}, expected a multiple of {width_bytes} bytes, the element's size"
            )
        _check_mapping(to_python(self.mapping), None, "allocation")


class ComputeSetOp(Ipu.Operation, name="compute_set", traits=[NoTerminator]):
    """Vertices that run at the same time, each on its own tiles; then all tiles meet at a barrier (BSP).

    ```mlir
    "ipu.graph"() ({
      %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]}
        : () -> !ipu.tensor
      "ipu.compute_set"() ({
        "ipu.vertex"(%x) {codelet = "scale_f16", op_name = "/Mul", mapping = [[0, 3]], cycles = 60}
          : (!ipu.tensor) -> ()
      }) {sym_name = "scale"} : () -> ()
      "ipu.sequence"() ({ }) : () -> ()
    }) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()
    ```

    A compute set is a definition: `ipu.execute` runs it.
    """

    sym_name: StringAttr
    body: Region

    @verifier
    def verify_region_invariants(self) -> None:
        """Check that it holds vertices only."""
        for op in _inner(self):
            if op.name != "ipu.vertex":
                raise Invalid(f"holds {op.name}, expected only ipu.vertex")


class VertexOp(Ipu.Operation, name="vertex"):
    """One sub-task on every tile of `mapping`: runs `codelet` on its fields, inputs in order and then the output.

    ```mlir
    "ipu.graph"() ({
      %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]}
        : () -> !ipu.tensor
      %y = "ipu.alloc"() {sym_name = "y", role = "output", element = f16, shape = [8], address = 16, mapping = [[0, 3]]}
        : () -> !ipu.tensor
      "ipu.compute_set"() ({
        "ipu.vertex"(%x, %y) {codelet = "relu_f16", op_name = "/Relu", mapping = [[0, 3]], cycles = 48}
          : (!ipu.tensor, !ipu.tensor) -> ()
      }) {sym_name = "relu"} : () -> ()
      "ipu.sequence"() ({ }) : () -> ()
    }) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()
    ```

    `op_name` names the operator it computes; `cycles` is the modelled time of the slowest tile.
    """

    operands_: Sequence[Operand[TensorType]]
    codelet: StringAttr
    op_name: StringAttr
    mapping: ArrayAttr
    cycles: IntegerAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check that it names a codelet, has fields, and that its tiles are well-formed."""
        if not self.codelet.value:
            raise Invalid("names no codelet")
        if len(self.operation.operands) == 0:
            raise Invalid("has no fields, expected at least an output")
        if self.cycles.value < 0:
            raise Invalid(f"cycles = {self.cycles.value}, expected a number that is not negative")
        _check_mapping(to_python(self.mapping), None, "vertex")


class CopyOp(Ipu.Operation, name="copy"):
    """Moves data between tiles through the exchange, or to and from the host.

    ```mlir
    "ipu.graph"() ({
      %a = "ipu.alloc"() {sym_name = "a", role = "weight", element = f16, shape = [3], address = 0, mapping = [[0, 5]]}
        : () -> !ipu.tensor
      %b = "ipu.alloc"() {sym_name = "b", role = "buffer", element = f16, shape = [3], address = 64, mapping = [[0, 5]]}
        : () -> !ipu.tensor
      "ipu.sequence"() ({
        "ipu.copy"(%a, %b) {kind = "shift", op_name = "/MatMul", bytes = 4, rounds = 1, cycles = 40}
          : (!ipu.tensor, !ipu.tensor) -> ()
      }) : () -> ()
    }) {sym_name = "main", chip = "test-16", tiles = 16, memory_bytes = 65536} : () -> ()
    ```

    Operands are the sources (several where a concatenation is read through), then the target. `kind` is one of shift
    (one step of a rotation), relayout, setup, reduce, input and output. `bytes` is the most any tile receives, `rounds`
    how often the shift buffer is filled, `cycles` the modelled time. `op_name` names the operator it serves.
    """

    operands_: Sequence[Operand[TensorType]]
    kind: StringAttr
    op_name: StringAttr
    bytes: IntegerAttr
    rounds: IntegerAttr
    cycles: IntegerAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check the kind, the operands and the counts."""
        if len(self.operation.operands) < 2:
            raise Invalid(f"has {len(self.operation.operands)} operands, expected sources and a target")
        if self.kind.value not in COPY_KINDS:
            raise Invalid(f'kind is "{self.kind.value}", expected one of {", ".join(COPY_KINDS)}')
        for name, least in (("bytes", 0), ("rounds", 1), ("cycles", 0)):
            if self.attributes[name].value < least:
                raise Invalid(f"{name} = {self.attributes[name].value}, expected at least {least}")


class SequenceOp(Ipu.Operation, name="sequence", traits=[NoTerminator]):
    """Runs the program in its region, one step after the other.

    ```mlir
    "ipu.graph"() ({
      "ipu.sequence"() ({
        "ipu.sequence"() ({ }) : () -> ()
      }) : () -> ()
    }) {sym_name = "main", chip = "ipu-mk2", tiles = 1472, memory_bytes = 638976} : () -> ()
    ```

    Steps are `ipu.execute`, `ipu.copy`, `ipu.repeat` and further sequences.
    """

    body: Region

    @verifier
    def verify_region_invariants(self) -> None:
        """Check that it holds program steps only."""
        _check_program(self)


class RepeatOp(Ipu.Operation, name="repeat", traits=[NoTerminator]):
    """Runs the program in its region `count` times: the loop of a compute-shift nest.

    ```mlir
    "ipu.graph"() ({
      "ipu.compute_set"() ({ }) {sym_name = "step"} : () -> ()
      "ipu.sequence"() ({
        "ipu.repeat"() ({
          "ipu.execute"() {compute_set = "step"} : () -> ()
        }) {count = 3} : () -> ()
      }) : () -> ()
    }) {sym_name = "main", chip = "ipu-mk2", tiles = 1472, memory_bytes = 638976} : () -> ()
    ```
    """

    count: IntegerAttr
    body: Region

    @verifier
    def verify_region_invariants(self) -> None:
        """Check the count and that it holds program steps only."""
        if self.count.value < 1:
            raise Invalid(f"count = {self.count.value}, expected at least 1")
        _check_program(self)


class ExecuteOp(Ipu.Operation, name="execute"):
    """Runs a compute set of the graph.

    ```mlir
    "ipu.graph"() ({
      "ipu.compute_set"() ({ }) {sym_name = "step"} : () -> ()
      "ipu.sequence"() ({
        "ipu.execute"() {compute_set = "step"} : () -> ()
      }) : () -> ()
    }) {sym_name = "main", chip = "ipu-mk2", tiles = 1472, memory_bytes = 638976} : () -> ()
    ```
    """

    compute_set: StringAttr


OPERATIONS: tuple[type[Any], ...] = (
    GraphOp, AllocOp, ComputeSetOp, VertexOp, SequenceOp, RepeatOp, ExecuteOp, CopyOp
)  # fmt: skip
ATTRIBUTES: tuple[type[Any], ...] = (TensorType,)


def graph(name: str, *, chip: str, tiles: int, memory_bytes: int) -> tuple[Any, Any]:
    """Return a new graph and its empty block."""
    fields = {"sym_name": name, "chip": chip, "tiles": tiles, "memory_bytes": memory_bytes}
    return _with_block("ipu.graph", fields)


def alloc(name: str, *, element: Any, shape: Sequence[int], address: int, mapping: Mapping, role: str) -> Any:
    """Return the handle of a new allocation: `shape` elements of type `element` at byte `address` of every tile."""
    fields = {"sym_name": name, "role": role, "element": ir.TypeAttr.get(element), "shape": tuple(shape)}
    fields |= {"address": address, "mapping": tuple(mapping)}
    return _create("ipu.alloc", fields, results=[TensorType.get()]).result


def compute_set(name: str) -> tuple[Any, Any]:
    """Return a new compute set and its empty block, to be filled with vertices."""
    return _with_block("ipu.compute_set", {"sym_name": name})


def vertex(operands: Sequence[Any], *, codelet: str, op_name: str, mapping: Mapping, cycles: int) -> Any:
    """Return a new vertex on handles (inputs, then output) that computes a part of operator `op_name`."""
    fields = {"codelet": codelet, "op_name": op_name, "mapping": tuple(mapping), "cycles": cycles}
    return _create("ipu.vertex", fields, operands=operands)


def copy(
    sources: Sequence[Any], target: Any, *, kind: str, op_name: str, bytes_: int, rounds: int, cycles: int
) -> Any:
    """Return a new exchange from some handles to another; `bytes_` is the most any tile receives."""
    fields = {"kind": kind, "op_name": op_name, "bytes": bytes_, "rounds": rounds, "cycles": cycles}
    return _create("ipu.copy", fields, operands=(*sources, target))


def sequence() -> tuple[Any, Any]:
    """Return a new sequence and its empty block."""
    return _with_block("ipu.sequence", {})


def repeat(count: int) -> tuple[Any, Any]:
    """Return a new repeat and its empty block."""
    return _with_block("ipu.repeat", {"count": count})


def execute(compute_set_name: str) -> Any:
    """Return a new execution of a compute set."""
    return _create("ipu.execute", {"compute_set": compute_set_name})


def ranges(tiles: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the mapping of a set of tile numbers: inclusive ranges, ascending."""
    found: list[tuple[int, int]] = []
    for tile in sorted(set(tiles)):
        if found and tile == found[-1][1] + 1:
            found[-1] = (found[-1][0], tile)
        else:
            found.append((tile, tile))
    return tuple(found)


def _create(
    name: str,
    fields: dict[str, Any],
    *,
    operands: Sequence[Any] = (),
    results: Sequence[Any] = (),
    **rest: Any,
) -> Any:
    """Return a new operation at the current insertion point."""
    attributes = {key: to_attr(value) for key, value in fields.items()}
    location = ir.Location.current or ir.Location.unknown()
    return ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=attributes, loc=location, **rest
    )


def _with_block(name: str, fields: dict[str, Any]) -> tuple[Any, Any]:
    """Return a new operation with a region, and the region's block."""
    op = _create(name, fields, regions=1)
    return op, op.regions[0].blocks.append()


def _inner(op: Any) -> list[Any]:
    """Return the operations directly inside an operation's region."""
    return [inner.operation for block in op.regions[0].blocks for inner in block.operations]


def _check_program(op: Any) -> None:
    """Check that a region holds program steps only."""
    for inner in _inner(op):
        if inner.name not in _PROGRAM:
            raise Invalid(f"holds {inner.name}, expected one of {', '.join(_PROGRAM)}")


def _check_executes(op: Any, names: set[str]) -> None:
    """Check that every compute set a program executes is defined before it."""
    for inner in _inner(op):
        if inner.name == "ipu.execute" and inner.attributes["compute_set"].value not in names:
            raise Invalid(
                f"executes '{inner.attributes['compute_set'].value}', which no ipu.compute_set before it defines"
            )
        if inner.name in ("ipu.sequence", "ipu.repeat"):
            _check_executes(inner, names)


def _check_fits(op: Any, tiles: int, memory_bytes: int) -> None:
    """Check that an allocation lies in the chip's tiles and in their memory."""
    name = op.attributes["sym_name"].value
    _check_mapping(to_python(op.attributes["mapping"]), tiles, f"allocation '{name}'")
    shape = int_tuple(to_python(op.attributes["shape"]), "shape")
    end = op.attributes["address"].value + prod(shape) * _width_bytes(op.attributes["element"].value)
    if end > memory_bytes:
        raise Invalid(
            f"allocation '{name}' ends at byte {end}, expected at most {memory_bytes}, the memory of a tile"
        )


def _check_mapping(mapping: Any, tiles: int | None, what: str) -> None:
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


def _width_bytes(element: Any) -> int:
    """Return the bytes of an element; one bit takes one byte."""
    if isinstance(element, ir.IndexType):
        return 8
    width = getattr(element, "width", None)
    if width is None:
        raise Invalid(f"element is {element}, expected an integer or floating-point type")
    return max(1, width // 8)
