"""Bodies of linalg operations as `ScalarFunction` values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t10.core.scalar import ScalarFunction, ScalarOp, constant_text
from t10.dialect.location import source_text
from t10.dialect.mlir import ir
from t10.errors import UnsupportedOpError

# Numbered as in the arith dialect's definition of CmpFPredicate and CmpIPredicate.
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
COMPUTING_DIALECTS = ("arith.", "math.")


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

    def inline(self, function: ScalarFunction, arguments: tuple[int, ...]) -> int:
        """Append the operations of a function applied to values of this one and return its result's number."""
        numbers = list(arguments)
        for op in function.ops:
            numbers.append(
                self.add(op.opcode, tuple(numbers[i] for i in op.operands), op.dtype, op.attribute)
            )
        return numbers[function.result]

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


def drop_inputs(function: ScalarFunction, kept: tuple[int, ...]) -> ScalarFunction:
    """Return the function with only the inputs `kept`, in that order; the others must be unused."""
    builder = ScalarBuilder(len(kept))
    numbers = {old: new for new, old in enumerate(kept)}
    arguments = tuple(numbers.get(i, -1) for i in range(function.n_inputs))
    return builder.finish(builder.inline(function, arguments))


def used_inputs(function: ScalarFunction) -> set[int]:
    """Return the numbers of the inputs that a function reads."""
    used = {v for op in function.ops for v in op.operands if v < function.n_inputs}
    return used | ({function.result} if function.result < function.n_inputs else set())


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


def read_scalar(value: Any, builder: ScalarBuilder, numbers: dict[Any, int]) -> int:
    """Append what computes an SSA value inside a linalg body; `numbers` maps block arguments and values met before.

    Raises `UnsupportedOpError` for operations outside `arith` and `math`.
    """
    known = numbers.get(value)
    if known is not None:
        return known
    owner = value.owner
    if isinstance(owner, ir.Block):
        raise UnsupportedOpError("a linalg body reads a value that is neither its own nor a constant")
    op = owner.operation
    dtype = str(value.type)
    if op.name == "arith.constant":
        text = constant_of(op.attributes["value"])
        if text is None:
            raise UnsupportedOpError(f"a linalg body reads the constant {op}")
        number = builder.constant(text, dtype)
    elif op.name == "linalg.index":
        number = builder.add("index", (), dtype, str(ir.IntegerAttr(op.attributes["dim"]).value))
    elif op.name.startswith(COMPUTING_DIALECTS):
        operands = tuple(read_scalar(operand, builder, numbers) for operand in op.operands)
        number = builder.add(op.name, operands, dtype, _predicate(op))
    else:
        raise UnsupportedOpError(
            f"{op.name} inside a linalg body cannot be planned (expected arith and math operations)",
            location=source_text(op),
        )
    numbers[value] = number
    return number


def _predicate(op: Any) -> str:
    """Return the name of a comparison's predicate, empty for other operations."""
    names: Mapping[str, tuple[str, ...]] = {"arith.cmpf": FLOAT_PREDICATES, "arith.cmpi": INTEGER_PREDICATES}
    if op.name not in names:
        return ""
    return names[op.name][int(ir.IntegerAttr(op.attributes["predicate"]).value)]
