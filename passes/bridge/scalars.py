"""`ScalarFunction` values grown, and constants as they spell them."""

from __future__ import annotations

from typing import Any

from t10.core.expression import AffineDim
from t10.core.scalar import ScalarFunction, ScalarOp, constant_text
from t10.dialect.mlir import ir


class ScalarBuilder:
    """Grows a scalar function; equal operations are made once."""

    def __init__(self, n_inputs: int) -> None:
        """Start a function of `n_inputs` values."""
        self.n_inputs = n_inputs
        self.ops: list[ScalarOp] = []
        self._number_by_op: dict[ScalarOp, int] = {}

    def add(self, opcode: str, operands: tuple[int, ...], dtype: str, attribute: str = "") -> int:
        """Append an operation and return the number of its value."""
        op = ScalarOp(opcode, operands, dtype, attribute)
        number = self._number_by_op.get(op)
        if number is None:
            number = self.n_inputs + len(self.ops)
            self.ops.append(op)
            self._number_by_op[op] = number
        return number

    def constant(self, text: str, dtype: str) -> int:
        """Append a constant given by its spelling."""
        return self.add("const", (), dtype, text)

    def affine(self, form: AffineDim) -> int:
        """Append an affine form of positions on axes."""
        total: int | None = None
        for term in form.terms:
            part = self.add("index", (), "index", str(term.axis))
            if term.coefficient != 1:
                part = self.add("arith.muli", (part, self.constant(str(term.coefficient), "index")), "index")
            total = part if total is None else self.add("arith.addi", (total, part), "index")
        if total is None or form.offset:
            offset = self.constant(str(form.offset), "index")
            total = offset if total is None else self.add("arith.addi", (total, offset), "index")
        return total

    def finish(self, result: int) -> ScalarFunction:
        """Return the function that yields value `result`, without operations it does not need."""
        needed = {result}
        for i in range(len(self.ops) - 1, -1, -1):
            if self.n_inputs + i in needed:
                needed.update(self.ops[i].operands)
        renumbered = {i: i for i in range(self.n_inputs)}
        kept: list[ScalarOp] = []
        for i, op in enumerate(self.ops):
            if self.n_inputs + i in needed:
                renumbered[self.n_inputs + i] = self.n_inputs + len(kept)
                kept.append(
                    ScalarOp(op.opcode, tuple(renumbered[v] for v in op.operands), op.dtype, op.attribute)
                )
        return ScalarFunction(self.n_inputs, tuple(kept), renumbered[result])


def constant_of(attribute: Any) -> str | None:
    """Return the spelling of a scalar or splat constant attribute, None for anything else."""
    if isinstance(attribute, ir.BoolAttr):
        return constant_text(bool(ir.BoolAttr(attribute).value))
    if isinstance(attribute, ir.FloatAttr):
        return constant_text(float(ir.FloatAttr(attribute).value))
    if isinstance(attribute, ir.IntegerAttr):
        return constant_text(int(ir.IntegerAttr(attribute).value))
    if isinstance(attribute, ir.DenseElementsAttr):
        elements = ir.DenseElementsAttr(attribute)
        return constant_of(elements.get_splat_value()) if elements.is_splat else None
    return None


def constant_value(value: Any) -> str | None:
    """Return the spelling of an SSA value that an `arith.constant` makes (scalar or splat), None for any other."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    return constant_of(owner.operation.attributes["value"])
