"""Programs of `torch.export`, through torch-mlir's FX importer; PyTorch is not needed unless there is one to read.

program = torch.export.export(module.eval(), (x,))
imported = import_torch(program)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.dialect.mlir import dialect, extras, ir, new_context, passmanager
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.diagnose import leftovers, reason_of
from t10.frontend.double_islands import narrow_islands
from t10.frontend.imported import ImportedModel
from t10.frontend.lower import CLEAN, NAME, WEIGHT
from t10.frontend.module_weights import lift_constants
from t10.passes.patterns.driver import apply_patterns
from t10.passes.patterns.extreme_of_comparison import EXTREME_OF_COMPARISON
from t10.passes.patterns.run_time_checks import RUN_TIME_CHECKS

TO_LINALG = (
    "builtin.module(torchdynamo-export-to-torch-backend-pipeline{backend-legal-ops=aten.flatten.using_ints,"
    "aten.unflatten.int},torch-backend-to-linalg-on-tensors-backend-pipeline)"
)
_STATE = ("PARAMETER", "BUFFER", "CONSTANT_TENSOR")
_MUTATIONS = ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a traced graph: its name, and its value where it is a weight."""

    name: str
    value: NDArray[np.generic] | None = None

    @property
    def is_weight(self) -> bool:
        """Return whether it has a value."""
        return self.value is not None


def import_torch(program: Any, *, keep_f64: bool = False, context: Any = None) -> ImportedModel:
    """Return an `ExportedProgram` as linalg on tensors; parameters, buffers and constants become weights by name.

    Outputs are `output0`, `output1`, ... Raises `InputError` for dims that stay dynamic and inputs that are not
    tensors, `UnsupportedOpError` for programs that change their state and for what torch-mlir does not lower.
    """
    flat = program.run_decompositions(extras("fx_decomp_util").get_decomposition_table())
    changed = [spec for spec in flat.graph_signature.output_specs if spec.kind.name in _MUTATIONS]
    if changed:
        named = ", ".join(str(spec.target) for spec in changed)
        raise UnsupportedOpError(
            f"the program changes {named} (expected a function of its inputs)",
            hint="export the module in evaluation mode: torch.export.export(module.eval(), ...)",
        )
    arguments = tuple(_argument(spec, flat) for spec in flat.graph_signature.input_specs)
    return import_graph(flat.graph, arguments, name="torch_program", keep_f64=keep_f64, context=context)


def import_graph(
    graph: Any, arguments: Sequence[Argument], *, name: str, keep_f64: bool = False, context: Any = None
) -> ImportedModel:
    """Return a functional `torch.fx` graph of ATen operators as linalg; `arguments` are its placeholders in order.

    Raises as `import_torch` does.
    """
    _require_static(graph)
    context = context if context is not None else new_context()
    dialect("torch").register_dialect(context)
    with context, ir.Location.unknown():
        importer = extras("fx_importer").FxImporter(context=context)
        try:
            importer.import_stateless_graph(graph, func_name=name)
            passmanager.PassManager.parse(TO_LINALG).run(importer.module.operation)
        except (ir.MLIRError, RuntimeError, ValueError, TypeError) as error:
            raise UnsupportedOpError(
                f"torch-mlir does not lower the program: {reason_of(str(error))}"
            ) from error
        module = importer.module
        n_results = _tidy(module, arguments)
        left = leftovers(module)
        if left:
            named = "; ".join(f"{kind} ({where})" for where, kind in left.items())
            raise UnsupportedOpError(f"no tensor expression: {named}")
        passmanager.PassManager.parse(CLEAN).run(module.operation)
    model = ImportedModel(
        module=module,
        weights={each.name: each.value for each in arguments if each.value is not None},
        input_names=tuple(each.name for each in arguments if not each.is_weight),
        output_names=tuple(f"output{i}" for i in range(n_results)),
        weight_names=tuple(each.name for each in arguments if each.is_weight),
        source=name,
    )
    model = lift_constants(model)
    return model if keep_f64 else narrow_islands(model)


def as_array(tensor: Any, name: str) -> NDArray[np.generic]:
    """Return a tensor's values; raises `InputError` for element types that numpy does not have."""
    try:
        return tensor.detach().cpu().numpy()
    except TypeError as error:
        raise InputError(
            f"{name} is of {tensor.dtype} ({error})", hint="convert the module: module.half()"
        ) from error


def _argument(spec: Any, program: Any) -> Argument:
    """Return what a placeholder of an exported program is."""
    if not hasattr(spec.arg, "name") or type(spec.arg).__name__ != "TensorArgument":
        raise InputError(
            f"input {getattr(spec.arg, 'name', spec.arg)!r} is not a tensor (expected tensors alone)"
        )
    if spec.kind.name not in _STATE:
        return Argument(spec.arg.name)
    held: Mapping[str, Any] = program.state_dict
    value = held[spec.target] if spec.target in held else program.constants[spec.target]
    return Argument(str(spec.target), as_array(value, str(spec.target)))


def _require_static(graph: Any) -> None:
    """Raise `InputError` for a placeholder with a dim that is not a number."""
    for node in graph.nodes:
        shape = getattr(node.meta.get("val"), "shape", ())
        if node.op == "placeholder" and not all(isinstance(extent, int) for extent in shape):
            raise InputError(
                f"input {node.name!r} has shape {tuple(shape)} (expected numbers)",
                hint="export without dynamic_shapes, compile with dynamic=False",
            )


def _tidy(module: Any, arguments: Sequence[Argument]) -> int:
    """Name arguments and results of the one function, drop what torch-mlir leaves behind; return how many results."""
    for op in list(module.body.operations):
        if op.operation.name == "ml_program.global":
            op.operation.erase()
    function = next(op.operation for op in module.body.operations if op.operation.name == "func.func")
    for attribute in list(function.attributes):
        if attribute.startswith("torch."):
            del function.attributes[attribute]
    unit = ir.UnitAttr.get()
    rows = [
        {NAME: ir.StringAttr.get(each.name), **({WEIGHT: unit} if each.is_weight else {})}
        for each in arguments
    ]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])
    results = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
    names = [ir.DictAttr.get({NAME: ir.StringAttr.get(f"output{i}")}) for i in range(len(results))]
    function.attributes["res_attrs"] = ir.ArrayAttr.get(names)
    apply_patterns(function, (RUN_TIME_CHECKS, EXTREME_OF_COMPARISON))
    return len(results)
