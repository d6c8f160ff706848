"""`--t10-import`: the onnx dialect of onnx-mlir to linalg on tensors, in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.dialect.mlir import ir, walk
from t10.errors import InputError
from t10.passes.diagnostic import input_name
from t10.passes.registry import Pass, option
from t10.passes.weight_values import taken_out


@dataclass(frozen=True, slots=True)
class ImportOnnx(Pass):
    """Lower operations of the onnx dialect, or of TOSA, to linalg on tensors; modules without any stay as they are.

    The functions of the module give way to the lowered one, which keeps the entry point's name. Weights, constants of
    more than 16 floats or 512 other elements, become arguments marked `t10.weight`; their values leave the module (see
    `--save-weights`).
    """

    name: ClassVar[str] = "t10-import"
    reads: ClassVar[str] = "operations of the `onnx` dialect, as onnx-mlir prints them, or of TOSA"
    leaves: ClassVar[str] = "linalg on tensors of static shape; weights as arguments marked `t10.weight`"

    keep_f64: bool = option(False, help="leave f64 that only f32 and f16 go into and come out of as it is")
    shape: tuple[str, ...] = option((), help="extents of dynamic dims, as name=1x128 or symbolic_dim=1")
    constant: str = option("", help="inputs to fix, as name=1,2 or name=FILE.npy, separated by commas")
    dtype: str = option("", help="fp16 turns f32, f64 and bf16 of the model into f16")

    def apply(self, module: Any) -> None:
        """Replace what the module holds by its lowering; raises `UnsupportedOpError` naming what cannot be lowered."""
        from t10.frontend.double_islands import narrow_islands
        from t10.frontend.given import parse_constants
        from t10.frontend.importer import import_proto
        from t10.frontend.onnx_dialect import to_onnx
        from t10.frontend.shapes import parse_shapes
        from t10.frontend.tosa_file import is_tosa, lower_tosa

        if self.is_done(module) or is_tosa(module):
            self._check_unused(module)
            if is_tosa(module):
                lower_tosa(module)
            return
        imported = import_proto(
            to_onnx(module),
            source=input_name(),
            shapes=parse_shapes(self.shape),
            dtype=self.dtype or None,
            constants=parse_constants(self.constants),
            context=module.context,
        )
        imported = imported if self.keep_f64 else narrow_islands(imported)
        taken_out(imported.weights)
        for op in list(module.body.operations):
            op.operation.erase()
        for attribute in list(module.operation.attributes):
            del module.operation.attributes[attribute]
        with module.context, ir.Location.unknown():
            for op in imported.module.body.operations:
                op.operation.clone(ip=ir.InsertionPoint(module.body))

    def _check_unused(self, module: Any) -> None:
        """Raise `InputError` for options that mean nothing to a module that states its shapes and types."""
        given = {"shape": self.shape, "constant": self.constant, "dtype": self.dtype}
        unused = [f"--{name}" for name, value in given.items() if value]
        if unused and not _has_names(module):
            raise InputError(f"{', '.join(unused)}: the module holds no operation of the onnx dialect")

    @property
    def constants(self) -> tuple[str, ...]:
        """Return one text `name=values` per input to fix; the commas among values part the option's text, too."""
        texts: list[str] = []
        for part in self.constant.split(",") if self.constant else ():
            if "=" in part or not texts:
                texts.append(part)
            else:
                texts[-1] += f",{part}"
        return tuple(texts)

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether the module holds no operation of the onnx dialect or of TOSA."""
        return not any(op.operation.name.startswith(("onnx.", "tosa.")) for op in walk(module))


def _has_names(module: Any) -> bool:
    """Return whether the functions of a module have what an import leaves: names of inputs or outputs."""
    attributes = [op.operation.attributes for op in module.body.operations]
    signatures = [str(each[key]) for each in attributes for key in ("arg_attrs", "res_attrs") if key in each]
    return any("t10.name" in signature for signature in signatures)
