"""`--t10-outline-constants`: long constants out of the text of operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.dialect.elements import as_resource, elements, is_long
from t10.dialect.mlir import ir, walk
from t10.errors import UnsupportedOpError
from t10.passes.registry import Pass


@dataclass(frozen=True, slots=True)
class OutlineConstants(Pass):
    """Turn tensor constants of more than 16 elements into resources, at the end of the text.

    Splats stay as they are, and so do elements of types that numpy does not have. `t10 compile` has made weights of
    such constants, arguments whose values lie beside the module, before it runs any pass.
    """

    name: ClassVar[str] = "t10-outline-constants"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-import",)
    reads: ClassVar[str] = "any module"
    leaves: ClassVar[str] = "`dense_resource` in place of `dense` of more than 16 elements that differ"

    def apply(self, module: Any) -> None:
        """Replace the value of every such constant."""
        for op in walk(module):
            if is_long(op.operation):
                _outline(op.operation)

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether no such constant is left."""
        return not any(is_long(op.operation) for op in walk(module))


def _outline(op: Any) -> None:
    kind = ir.RankedTensorType(op.results[0].type)
    try:
        values = elements(op.attributes["value"], str(kind.element_type))
    except (ValueError, TypeError, RuntimeError, UnsupportedOpError):
        return
    assert values is not None
    op.attributes["value"] = as_resource(values, kind)
