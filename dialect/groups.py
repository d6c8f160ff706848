"""Operands of mixed types on an operation defined through IRDL.

IRDL lets one variadic group hold operands of one type only: a constraint that is met twice must be met by equal types.
An operation with operands of any types therefore has `OPERAND_GROUPS` variadic groups, each a run of equal types, and
the attribute `operandSegmentSizes` says how long each run is (unused groups are 0). The builders fill it in.
"""

from collections.abc import Sequence
from typing import Any

from t10.dialect.mlir import ir
from t10.dialect.ods import Operand, ext
from t10.errors import UnsupportedOpError

OPERAND_GROUPS = 12
"""Number of runs of equal operand types that an operation can hold."""

SEGMENTS = "operandSegmentSizes"


def operand_groups() -> list[Any]:
    """Return the fields of an operation with operands of any types: `OPERAND_GROUPS` variadic groups."""
    kind = Sequence[Operand[Any]]
    return [
        ext.FieldDef.from_type_hint(f"operands_{i}", kind, ext.FieldSpecifier())
        for i in range(OPERAND_GROUPS)
    ]


def segment_sizes(types: Sequence[Any]) -> Any:
    """Return the `operandSegmentSizes` attribute for operands of these types.

    Raises `UnsupportedOpError` if they form more runs of equal types than an operation can hold.
    """
    sizes: list[int] = []
    previous = None
    for type_ in types:
        if sizes and type_ == previous:
            sizes[-1] += 1
        else:
            sizes.append(1)
        previous = type_
    if len(sizes) > OPERAND_GROUPS:
        raise UnsupportedOpError(
            f"{len(types)} operands form {len(sizes)} runs of equal type, expected at most {OPERAND_GROUPS}",
            hint="order operands so that equal types stand together, or leave an elementwise op out of the operator",
        )
    return ir.DenseI32ArrayAttr.get(sizes + [0] * (OPERAND_GROUPS - len(sizes)))
