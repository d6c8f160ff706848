"""Operations of the `ipu` dialect that define parts: codelets, exchange patterns, element tables, host tensors."""

# The docstrings below are part of the reference page: tools/gen_docs.py writes it.

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from t10.core.codelet import why_no_field
from t10.core.dtypes import NUMPY_BY_DTYPE
from t10.core.scalar import parse_constant
from t10.dialect.attributes import int_tuple, required, required_int, to_python
from t10.dialect.ipu_base import Ipu, TensorType, array_of, checked_range, create
from t10.dialect.mlir import ir
from t10.dialect.ods import (
    ArrayAttr,
    IntegerAttr,
    Invalid,
    Operand,
    StringAttr,
    TypeAttr,
    verifier,
)

CODELET_KINDS = ("multi", "supervisor")
FIELD_KINDS = ("in", "out", "inout", "scratch", "u32", "i32", "f32")
FIELD_KEYS = ("name", "kind", "dtype", "align", "interleaved")
NUMBER_KINDS = ("u32", "i32", "f32")
TILE_DTYPES = tuple(dtype for dtype in NUMPY_BY_DTYPE if dtype != "f64")
"""Element types of what fields point to."""
NUMBER = ("", 4, False)
"""Element type, alignment and interleaving of a field that is a number."""
ALIGNMENTS = (1, 2, 4, 8, 16, 32)
DIRECTIONS = ("weight", "input", "output")
N_RUN_COLUMNS, N_FILL_COLUMNS = 9, 5


class CodeletOp(Ipu.Operation, name="codelet"):
    """Defines code for one kind of task: vertices name it.

    ```mlir
    "ipu.graph"() ({
      "ipu.codelet"() {sym_name = "Relu_f16", kind = "multi", summary = "rectifies", stack_bytes = 0, apart = [],
        fields = [{name = "out", kind = "inout", dtype = "f16", align = 8, interleaved = false},
                  {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}],
        assembly = "...", cpp_reference = "return true;"} : () -> ()
      "ipu.sequence"() ({ }) : () -> ()
    }) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()
    ```

    A vertex is one 32-bit word per field, in order: pointers (`in`, `out`, `inout`, `scratch`) and numbers (`u32`,
    `i32`, `f32`). `multi` runs on all workers of a tile at once, `supervisor` on its supervisor. `assembly` defines the
    entry symbol `__runCodelet_t10__NAME`; `cpp_reference` is the body of a C++ method that computes the same. A codelet
    with the unit attribute `is_cpp` runs that on an IPU, too: its assembly is for our simulator only. `apart` are pairs
    of field names that must lie in different memory elements.
    """

    sym_name: StringAttr
    kind: StringAttr
    fields: ArrayAttr
    assembly: StringAttr
    cpp_reference: StringAttr
    summary: StringAttr
    stack_bytes: IntegerAttr
    apart: ArrayAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check the kinds of the codelet and of its fields, and that fields have names of their own."""
        if self.kind.value not in CODELET_KINDS:
            raise Invalid(f'kind is "{self.kind.value}", expected one of {", ".join(CODELET_KINDS)}')
        checked_range(self.stack_bytes.value, 0, "stack_bytes")
        names: set[str] = set()
        for field in to_python(self.fields):
            name, kind, dtype, _, interleaved = (required(field, key, "field") for key in FIELD_KEYS)
            if not all(isinstance(each, str) for each in (name, kind, dtype)) or not isinstance(
                interleaved, bool
            ):
                raise Invalid(f"field is {field}, expected texts, a number and whether it is interleaved")
            if kind not in FIELD_KINDS:
                raise Invalid(f"field '{name}' is of kind {kind}, expected one of {', '.join(FIELD_KINDS)}")
            if name in names:
                raise Invalid(f"has two fields '{name}'")
            if reason := why_no_field(str(name)):
                raise Invalid(f"has a field '{name}': {reason}")
            if (
                kind in NUMBER_KINDS
                and (field.get("dtype"), field.get("align"), field.get("interleaved")) != NUMBER
            ):
                raise Invalid(
                    f"field '{name}' is {field}, expected dtype \"\", align 4 and no interleaving of a number"
                )
            if kind not in NUMBER_KINDS and field.get("align") not in ALIGNMENTS:
                raise Invalid(
                    f"field '{name}' has align = {field.get('align')}, expected one of {list(ALIGNMENTS)}"
                )
            if kind not in (*NUMBER_KINDS, "scratch") and field.get("dtype") not in TILE_DTYPES:
                raise Invalid(
                    f"field '{name}' points to '{field.get('dtype')}', expected one of {', '.join(TILE_DTYPES)}"
                )
            names.add(name)
        for pair in to_python(self.apart):
            found: list[Any] = list(cast("tuple[Any, ...]", pair)) if isinstance(pair, tuple) else [pair]
            if len(found) != 2 or any(name not in names for name in found):
                raise Invalid(f"apart holds {found}, expected two of its fields")


class PatternOp(Ipu.Operation, name="pattern"):
    """Defines who sends what to whom in an exchange: copies apply it to their operands.

    ```mlir
    "ipu.graph"() ({
      "ipu.pattern"() {sym_name = "p", constants = ["0.0"],
        runs = dense<[[0, 1, 0, 0, 8, 4, 2, 16, 4]]> : tensor<1x9xi32>,
        fills = dense<[[0, 16, 2, 1, 0]]> : tensor<1x5xi32>, fill_values = dense<[0]> : tensor<1xi32>} : () -> ()
      "ipu.sequence"() ({ }) : () -> ()
    }) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()
    ```

    A row of `runs` is: number of the source operand, source tile, byte offset there, target tile, byte offset there,
    bytes of one piece, how many pieces, byte distance between pieces at the source and at the target. A row of `fills`
    writes the constant that `fill_values` names: target tile, offset, bytes of one piece, how many, distance. Above,
    tile 0 takes 4 bytes at 0 and 4 bytes at 16 of tile 1 to 8 and 12, and sets the two bytes at 16 to zero.
    """

    sym_name: StringAttr
    constants: ArrayAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check the shapes of the tables and that every value filled in exists."""
        runs, fills, values = (array_of(self, name) for name in ("runs", "fills", "fill_values"))
        if runs.ndim != 2 or runs.shape[1] != N_RUN_COLUMNS:
            raise Invalid(f"runs has shape {list(runs.shape)}, expected [n, {N_RUN_COLUMNS}]")
        if fills.ndim != 2 or fills.shape[1] != N_FILL_COLUMNS or values.shape != fills.shape[:1]:
            raise Invalid(
                f"fills has shape {list(fills.shape)} and fill_values {list(values.shape)}, "
                f"expected [n, {N_FILL_COLUMNS}] and [n]"
            )
        n_constants = len(to_python(self.constants))
        for constant in to_python(self.constants):
            _check_number(constant, "constant")
        if values.size and not 0 <= int(values.min()) <= int(values.max()) < n_constants:
            raise Invalid(f"fill_values name constants outside 0 .. {n_constants - 1}")
        for name, rows, places, counts in (("runs", runs, 5, slice(5, 7)), ("fills", fills, 2, slice(2, 4))):
            if (rows[:, :places] < 0).any() or (rows[:, counts] < 1).any():
                raise Invalid(f"{name} holds a negative tile or offset, or a piece of no bytes")
            if rows[rows[:, counts.stop - 1] == 1, counts.stop :].any():
                raise Invalid(f"{name} holds a distance between pieces of which there is one, expected 0")


class TableOp(Ipu.Operation, name="table"):
    """Defines which element of a host tensor every slot holds, shape [tiles, slots], -1 for none.

    ```mlir
    "ipu.graph"() ({
      "ipu.table"() {sym_name = "t", elements = dense<[[0, 1], [2, -1]]> : tensor<2x2xi32>} : () -> ()
      "ipu.sequence"() ({ }) : () -> ()
    }) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()
    ```
    """

    sym_name: StringAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check the shape of the table."""
        shape = array_of(self, "elements").shape
        if len(shape) != 2:
            raise Invalid(f"elements has shape {list(shape)}, expected [tiles, slots]")


class HostOp(Ipu.Operation, name="host"):
    """A tensor that crosses the host's link: a weight, an input or an output of the model.

    ```mlir
    "ipu.graph"() ({
      %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [2], address = 0, mapping = [[0, 1]]}
        : () -> !ipu.tensor
      "ipu.table"() {sym_name = "t", elements = dense<[[0, 1], [2, -1]]> : tensor<2x2xi32>} : () -> ()
      "ipu.host"(%x) {name = "x", direction = "input", element = f16, shape = [3],
                      pieces = [{operand = 0, table = "t", fill = "0"}]} : (!ipu.tensor) -> ()
      "ipu.sequence"() ({ }) : () -> ()
    }) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()
    ```

    Each piece says which elements lie in the slots of one operand (-1 for an output's constants, whose value is
    `fill`). Slots that a table leaves out hold `fill`. Pieces of an output have all its elements.
    """

    operands_: Sequence[Operand[TensorType]]
    name: StringAttr
    direction: StringAttr
    element: TypeAttr
    shape: ArrayAttr
    pieces: ArrayAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check the direction and that pieces name operands."""
        if self.attributes["direction"].value not in DIRECTIONS:
            raise Invalid(
                f'direction is "{self.attributes["direction"].value}", expected one of {", ".join(DIRECTIONS)}'
            )
        int_tuple(to_python(self.shape), "shape")
        n = len(self.operation.operands)
        for piece in to_python(self.attributes["pieces"]):
            number = required_int(piece, "operand", "piece")
            _check_number(required(piece, "fill", "piece"), "fill")
            if not -1 <= number < n:
                raise Invalid(f"a piece is of operand {number}, expected -1 or one of the {n} operands")
            if number < 0 and self.attributes["direction"].value != "output":
                raise Invalid("a piece of an input has no operand, expected one: only outputs have constants")


def _check_number(text: Any, what: str) -> None:
    """Refuse what `t10.core.scalar` does not read as a number."""
    try:
        parse_constant(text)
    except (TypeError, ValueError):
        raise Invalid(f"{what} is {text}, expected a number") from None


def dense(array: Any) -> Any:
    """Return the attribute of an array of 32-bit integers."""
    return ir.DenseElementsAttr.get(np.ascontiguousarray(array, dtype=np.int32))


def codelet(name: str, fields: Sequence[Mapping[str, Any]], **rest: Any) -> Any:
    """Return a new codelet definition; `rest` are its other attributes."""
    return create("ipu.codelet", {"sym_name": name, "fields": tuple(fields), **rest})


def pattern(name: str, *, runs: Any, fills: Any, fill_values: Any, constants: Sequence[str]) -> Any:
    """Return a new pattern definition; tables are integer arrays."""
    tables = {"runs": dense(runs), "fills": dense(fills), "fill_values": dense(fill_values)}
    return create("ipu.pattern", {"sym_name": name, **tables, "constants": tuple(constants)})


def table(name: str, elements: Any) -> Any:
    """Return a new table definition from an integer array."""
    return create("ipu.table", {"sym_name": name, "elements": dense(elements)})


def host(
    handles: Sequence[Any],
    *,
    name: str,
    direction: str,
    element: Any,
    shape: Sequence[int],
    pieces: Sequence[Mapping[str, Any]],
) -> Any:
    """Return a new host tensor on the handles of the variables it lies in."""
    fields: dict[str, Any] = {"name": name, "direction": direction, "element": ir.TypeAttr.get(element)}
    fields |= {"shape": tuple(shape), "pieces": tuple(pieces)}
    return create("ipu.host", fields, operands=handles)
