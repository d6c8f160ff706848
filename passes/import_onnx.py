"""`--t10-import`: the onnx dialect of onnx-mlir to linalg on tensors, in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.dialect.mlir import ir, walk
from t10.passes.registry import Pass, option


@dataclass(frozen=True, slots=True)
class ImportOnnx(Pass):
    """Lower operations of the onnx dialect to linalg on tensors; modules without any stay as they are.

    The functions of the module give way to the lowered one, which keeps the entry point's name. Weights, constants of
    more than 16 floats or 512 other elements, become arguments marked `t10.weight`; their values are dropped.
    """

    name: ClassVar[str] = "t10-import"
    reads: ClassVar[str] = "operations of the `onnx` dialect, as onnx-mlir prints them"
    leaves: ClassVar[str] = "linalg on tensors of static shape; weights as arguments marked `t10.weight`"

    keep_f64: bool = option(False, help="leave f64 that only f32 and f16 go into and come out of as it is")
    shape: tuple[str, ...] = option((), help="extents of dynamic dims, as name=1x128 or symbolic_dim=1")

    def apply(self, module: Any) -> None:
        """Replace what the module holds by its lowering; raises `UnsupportedOpError` naming what cannot be lowered."""
        from t10.frontend.double_islands import narrow_islands
        from t10.frontend.importer import import_proto
        from t10.frontend.onnx_dialect import to_onnx
        from t10.frontend.shapes import parse_shape

        if self.is_done(module):
            return
        model = to_onnx(module)
        imported = import_proto(
            model, source="module", shapes=dict(map(parse_shape, self.shape)), context=module.context
        )
        imported = imported if self.keep_f64 else narrow_islands(imported)
        for op in list(module.body.operations):
            op.operation.erase()
        for attribute in list(module.operation.attributes):
            del module.operation.attributes[attribute]
        with module.context, ir.Location.unknown():
            for op in imported.module.body.operations:
                op.operation.clone(ip=ir.InsertionPoint(module.body))

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether the module holds no operation of the onnx dialect."""
        return not any(op.operation.name.startswith("onnx.") for op in walk(module))
