"""The `ipu` dialect: a planned model as the chip sees it, before any text is emitted.

A *graph* holds *allocations* (bytes at an address on a set of tiles), *codelets* (code, and the fields of its
vertices), *compute sets* (which vertices run on which tiles, and their words), *patterns* of exchanges, *host* tensors
with *tables* of what lies where, and one *sequence*: the program, made of executions of compute sets, copies through
the exchange, and repeats. These are the three device interfaces of the paper: allocate, compute, shift (T10 §5). A
graph that lowering made is all that `t10-translate` needs; [ipu-backend.md](ipu-backend.md) says what becomes of it.

    graph, block = ipu.graph("main", chip="ipu-mk2", tiles=1472, memory_bytes=638976)
    with ir.InsertionPoint(block):
        x = ipu.alloc("x", element=f16, shape=(4, 8), address=0, mapping=ipu.ranges(range(16)), role="input")

A *mapping* is an array of inclusive ranges of tiles, `[[0, 15], [32, 47]]`, in ascending order. Operations print in
MLIR's generic form.
"""

# The docstrings below are the reference page: tools/gen_docs.py writes it.

from collections.abc import Iterable, Sequence
from typing import Any

from t10.core.device import MOST_TRIPS
from t10.dialect.attributes import int_tuple, to_python
from t10.dialect.ipu_base import Ipu, TensorType, checked_range, create, inner
from t10.dialect.ipu_checks import (
    Codelets,
    States,
    check_apart,
    check_compute_set,
    check_fits,
    check_host,
    check_mapping,
    check_program,
    check_steps,
    check_tables,
    define,
    read_regions,
    width_bytes,
)
from t10.dialect.ipu_parts import CodeletOp, HostOp, PatternOp, TableOp
from t10.dialect.mlir import ir
from t10.dialect.ods import (
    ArrayAttr,
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

ROLES = ("input", "output", "weight", "activation", "partial", "buffer", "scratch")
VERTEX_KINDS = ("fill", "sub_task", "combine", "epilogue")
COPY_KINDS = ("shift", "copy_out", "relayout", "setup", "reduce")
_MEMBERS = (
    "ipu.alloc",
    "ipu.codelet",
    "ipu.compute_set",
    "ipu.host",
    "ipu.pattern",
    "ipu.sequence",
    "ipu.table",
)

Mapping = Sequence[tuple[int, int]]
"""Inclusive ranges of tiles, ascending."""


class GraphOp(Ipu.Operation, name="graph", traits=[IsIsolatedFromAbove, NoTerminator]):
    """A planned model on one chip: allocations and compute sets, then one sequence.

    ```mlir
    "ipu.graph"() ({
      %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [4, 8], address = 0,
                          mapping = [[0, 15]]} : () -> !ipu.tensor
      %y = "ipu.alloc"() {sym_name = "y", role = "output", element = f16, shape = [4, 8], address = 64,
                          mapping = [[0, 15]]} : () -> !ipu.tensor
      "ipu.codelet"() {sym_name = "Exp_f16", kind = "multi", summary = "exponentials", stack_bytes = 0, apart = [],
        fields = [{name = "x", kind = "in", dtype = "f16", align = 8, interleaved = false},
                  {name = "y", kind = "out", dtype = "f16", align = 8, interleaved = false}],
        assembly = "...", cpp_reference = "return true;"} : () -> ()
      "ipu.compute_set"() ({
        "ipu.vertex"(%x, %y) {codelet = "Exp_f16", op_name = "/exp", mapping = [[0, 15]], cycles = 90, state = 1024,
          words = [{operand = 0, offset = 0}, {operand = 1, offset = 0}]} : (!ipu.tensor, !ipu.tensor) -> ()
      }) {sym_name = "exp"} : () -> ()
      "ipu.sequence"() ({
        "ipu.execute"() {compute_set = "exp"} : () -> ()
      }) : () -> ()
    }) {sym_name = "main", chip = "ipu-mk2", tiles = 1472, memory_bytes = 638976} : () -> ()
    ```

    `tiles` is the number of tiles, `memory_bytes` that of one tile. Addresses are reused over time, so allocations may
    overlap; each must end within the memory. Lowering adds `memory_base`, the address that all others count from, and
    `regions`: where code, vertex state, scratch memory, stacks, exchange code and data begin.
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
        codelets: Codelets = {}
        tables: dict[str, Any] = {}
        hosts: set[str] = set()
        states: States = {}
        regions = read_regions(self)
        members = inner(self)
        for op in members:
            if op.name not in _MEMBERS:
                raise Invalid(f"holds {op.name}, expected one of {', '.join(_MEMBERS)}")
            if op.name == "ipu.alloc":
                check_fits(op, tiles, memory_bytes, regions)
            elif op.name == "ipu.compute_set":
                check_compute_set(op, tiles, codelets, regions, states)
            elif op.name == "ipu.host":
                check_host(op, hosts)
                check_tables(op, tables)
            elif op.name == "ipu.sequence":
                check_steps(op, names, tables)
            if op.name in ("ipu.table", "ipu.pattern"):
                tables[op.attributes["sym_name"].value] = op
            define(op, names, codelets)
        check_apart(states)
        sequences = sum(op.name == "ipu.sequence" for op in members)
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
    weight, activation, partial (sums that are still to be combined), buffer (of the exchange), scratch (of codelets).
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
        width = width_bytes(self.element.value)
        if self.address.value < 0 or self.address.value % width:
            raise Invalid(
                f"address = {self.address.value}, expected a multiple of {width} bytes, the element's size"
            )
        check_mapping(to_python(self.mapping), None, "allocation")


class ComputeSetOp(Ipu.Operation, name="compute_set", traits=[NoTerminator]):
    """Vertices that run at the same time, each on its own tiles; then all tiles meet at a barrier (BSP).

    ```mlir
    "ipu.graph"() ({
      %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]}
        : () -> !ipu.tensor
      "ipu.codelet"() {sym_name = "Scale_f16", kind = "multi", summary = "scales", stack_bytes = 0, apart = [],
        fields = [{name = "x", kind = "inout", dtype = "f16", align = 8, interleaved = false}],
        assembly = "...", cpp_reference = "return true;"} : () -> ()
      "ipu.compute_set"() ({
        "ipu.vertex"(%x) {codelet = "Scale_f16", op_name = "/Mul", mapping = [[0, 3]], cycles = 60, state = 1024,
          words = [{operand = 0, offset = 0}]} : (!ipu.tensor) -> ()
      }) {sym_name = "scale"} : () -> ()
      "ipu.sequence"() ({ }) : () -> ()
    }) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()
    ```

    A compute set is a definition: `ipu.execute` runs it. Lowering adds `op_name`, the operator; `kind`: fill, sub_task,
    combine or epilogue; and `cycles`, the modelled time.
    """

    sym_name: StringAttr
    body: Region

    @verifier
    def verify_region_invariants(self) -> None:
        """Check that it holds vertices only, and what lowering adds, if it is there."""
        for op in inner(self):
            if op.name != "ipu.vertex":
                raise Invalid(f"holds {op.name}, expected only ipu.vertex")
        if "kind" in self.attributes and self.attributes["kind"].value not in VERTEX_KINDS:
            raise Invalid(
                f'kind is "{self.attributes["kind"].value}", expected one of {", ".join(VERTEX_KINDS)}'
            )
        if "cycles" in self.attributes:
            slowest = max((op.attributes["cycles"].value for op in inner(self)), default=0)
            if self.attributes["cycles"].value != slowest:
                raise Invalid(
                    f"cycles = {self.attributes['cycles'].value}, expected {slowest}: the slowest vertex"
                )


class VertexOp(Ipu.Operation, name="vertex"):
    """One sub-task on every tile of `mapping`: runs `codelet` on words that point into its operands.

    ```mlir
    "ipu.graph"() ({
      %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]}
        : () -> !ipu.tensor
      "ipu.codelet"() {sym_name = "Relu_f16", kind = "multi", summary = "rectifies", stack_bytes = 0, apart = [],
        fields = [{name = "out", kind = "inout", dtype = "f16", align = 8, interleaved = false},
                  {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}],
        assembly = "...", cpp_reference = "return true;"} : () -> ()
      "ipu.compute_set"() ({
        "ipu.vertex"(%x) {codelet = "Relu_f16", op_name = "/Relu", mapping = [[0, 3]], cycles = 48, state = 1024,
                          words = [{operand = 0, offset = 0}, [8, 8, 8, 5]]} : (!ipu.tensor) -> ()
      }) {sym_name = "relu"} : () -> ()
      "ipu.sequence"() ({ }) : () -> ()
    }) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()
    ```

    `words` has an entry per field of the codelet: a number, or a byte offset into an operand; where tiles differ, an
    array with one number per tile. `state` is where the words lie on each of the tiles. `op_name` names the operator it
    computes; `cycles` is the modelled time of the slowest tile.
    """

    operands_: Sequence[Operand[TensorType]]
    codelet: StringAttr
    op_name: StringAttr
    mapping: ArrayAttr
    words: ArrayAttr
    state: IntegerAttr
    cycles: IntegerAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check that it names a codelet, and that its tiles and numbers are well-formed."""
        if not self.codelet.value:
            raise Invalid("names no codelet")
        checked_range(self.cycles.value, 0, "cycles")
        checked_range(self.state.value, 0, "state")
        check_mapping(to_python(self.mapping), None, "vertex")


class CopyOp(Ipu.Operation, name="copy"):
    """Moves data between tiles through the exchange, as a pattern says; what a tile takes from itself it copies.

    ```mlir
    "ipu.graph"() ({
      %a = "ipu.alloc"() {sym_name = "a", role = "weight", element = f16, shape = [3], address = 0, mapping = [[0, 5]]}
        : () -> !ipu.tensor
      %b = "ipu.alloc"() {sym_name = "b", role = "buffer", element = f16, shape = [3], address = 64, mapping = [[0, 5]]}
        : () -> !ipu.tensor
      "ipu.pattern"() {sym_name = "p", constants = [], runs = dense<[[0, 1, 0, 0, 0, 4, 1, 0, 0]]> : tensor<1x9xi32>,
        fills = dense<> : tensor<0x5xi32>, fill_values = dense<> : tensor<0xi32>} : () -> ()
      "ipu.sequence"() ({
        "ipu.copy"(%a, %b) {sym_name = "shift a", kind = "shift", op_name = "/MatMul", pattern = "p", bytes = 4,
                            cycles = 40} : (!ipu.tensor, !ipu.tensor) -> ()
      }) : () -> ()
    }) {sym_name = "main", chip = "test-16", tiles = 16, memory_bytes = 65536} : () -> ()
    ```

    Operands are the sources (several where a concatenation is read through), then the target. `kind` is one of shift
    (one step of a rotation, into the shift buffer), copy_out (from there to its place), relayout, setup and reduce.
    `bytes` is the most any tile receives from others, `cycles` the modelled time. `op_name` names the operator it
    serves.
    """

    operands_: Sequence[Operand[TensorType]]
    sym_name: StringAttr
    kind: StringAttr
    op_name: StringAttr
    pattern: StringAttr
    bytes: IntegerAttr
    cycles: IntegerAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check the kind, the operands and the counts."""
        if len(self.operation.operands) < 2:
            raise Invalid(f"has {len(self.operation.operands)} operands, expected sources and a target")
        if self.kind.value not in COPY_KINDS:
            raise Invalid(f'kind is "{self.kind.value}", expected one of {", ".join(COPY_KINDS)}')
        checked_range(self.attributes["bytes"].value, 0, "bytes")
        checked_range(self.cycles.value, 0, "cycles")


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
        check_program(self)


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
        if not 1 <= self.count.value <= MOST_TRIPS:
            raise Invalid(f"count = {self.count.value}, expected 1 to {MOST_TRIPS}")
        check_program(self)


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
    GraphOp, AllocOp, CodeletOp, ComputeSetOp, VertexOp, PatternOp, TableOp, HostOp, SequenceOp, RepeatOp, ExecuteOp,
    CopyOp,
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
    return create("ipu.alloc", fields, results=[TensorType.get()]).result


def compute_set(name: str) -> tuple[Any, Any]:
    """Return a new compute set and its empty block, to be filled with vertices."""
    return _with_block("ipu.compute_set", {"sym_name": name})


def vertex(
    operands: Sequence[Any],
    *,
    codelet: str,
    op_name: str,
    mapping: Mapping,
    words: Sequence[Any],
    state: int,
    cycles: int,
) -> Any:
    """Return a new vertex on handles that computes a part of operator `op_name`; `words` as `VertexOp` has them."""
    fields: dict[str, Any] = {"codelet": codelet, "op_name": op_name, "mapping": tuple(mapping)}
    fields |= {"words": tuple(words), "state": state, "cycles": cycles}
    return create("ipu.vertex", fields, operands=operands)


def copy(
    name: str,
    sources: Sequence[Any],
    target: Any,
    *,
    kind: str,
    op_name: str,
    pattern: str,
    bytes_: int,
    cycles: int,
) -> Any:
    """Return a new exchange from some handles to another; `bytes_` is the most any tile receives."""
    fields: dict[str, Any] = {"sym_name": name, "kind": kind, "op_name": op_name, "pattern": pattern}
    fields |= {"bytes": bytes_, "cycles": cycles}
    return create("ipu.copy", fields, operands=(*sources, target))


def sequence() -> tuple[Any, Any]:
    """Return a new sequence and its empty block."""
    return _with_block("ipu.sequence", {})


def repeat(count: int) -> tuple[Any, Any]:
    """Return a new repeat and its empty block."""
    return _with_block("ipu.repeat", {"count": count})


def execute(compute_set_name: str) -> Any:
    """Return a new execution of a compute set."""
    return create("ipu.execute", {"compute_set": compute_set_name})


def ranges(tiles: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the mapping of a set of tile numbers: inclusive ranges, ascending."""
    found: list[tuple[int, int]] = []
    for tile in sorted(set(tiles)):
        if found and tile == found[-1][1] + 1:
            found[-1] = (found[-1][0], tile)
        else:
            found.append((tile, tile))
    return tuple(found)


def _with_block(name: str, fields: dict[str, Any]) -> tuple[Any, Any]:
    """Return a new operation with a region, and the region's block."""
    op = create(name, fields, regions=1)
    return op, op.regions[0].blocks.append()
