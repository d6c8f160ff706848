"""`--example-count-products`: how many products of scalars each function computes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from t10.dialect.mlir import ir, walk
from t10.passes.diagnostic import emit_remark
from t10.passes.registry import Pass, PassFailure, option


@dataclass(frozen=True, slots=True)
class CountProducts(Pass):
    """Write the number of products of scalars in its matrix products on every function."""

    name: ClassVar[str] = "example-count-products"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-import",)

    most: int = option(0, help="refuse matrix products of more (0: none)", unit="products")

    def apply(self, module: Any) -> None:
        """Count; raises `PassFailure` at the first operation that has too many."""
        for function in module.body.operations:
            counts = [self._count(op) for op in walk(function) if op.operation.name == "linalg.matmul"]
            kind = ir.IntegerType.get_signless(64)
            function.attributes["example.products"] = ir.IntegerAttr.get(kind, sum(counts))

    def _count(self, op: Any) -> int:
        rows, inner = ir.RankedTensorType(op.operation.operands[0].type).shape
        columns = ir.RankedTensorType(op.operation.operands[1].type).shape[1]
        count = prod((rows, inner, columns))
        if self.most and count > self.most:
            raise PassFailure(op, f"computes {count} products (expected at most {self.most})")
        emit_remark(op, f"computes {count} products")
        return count
