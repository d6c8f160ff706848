"""An ONNX model lowered to linalg on tensors, through torch-mlir's importer and passes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from t10.dialect.mlir import dialect, extras, ir, passmanager, walk
from t10.errors import T10Error, UnsupportedOpError
from t10.frontend.diagnose import leftovers, reason_of, refuse_unsupported, without_types
from t10.frontend.unsupported import UnsupportedNode
from t10.passes.patterns.driver import apply_patterns
from t10.passes.patterns.extreme_of_comparison import EXTREME_OF_COMPARISON
from t10.passes.patterns.narrow_comparison import NARROW_COMPARISON
from t10.passes.patterns.narrowed_constant import NARROWED_CONSTANT
from t10.passes.patterns.run_time_checks import RUN_TIME_CHECKS

NAME = "t10.name"
WEIGHT = "t10.weight"
TYPE = "t10.type"
"""The type that the model declares of an argument or result without a sign: `t10.type = ui8` of a tensor of i8."""

TO_TORCH = "builtin.module(func.func(convert-torch-onnx-to-torch))"
TO_LINALG = (
    "builtin.module(torch-lower-to-backend-contract{backend-legal-ops=aten.flatten.using_ints,aten.unflatten.int},"
    "torch-backend-to-linalg-on-tensors-backend-pipeline)"
)
_SHORT_OF_TORCH = 2
"""The number of int16 among torch's types."""
CLEAN = "builtin.module(func.func(canonicalize,cse),symbol-dce)"


def lower(
    model: Any,
    *,
    context: Any,
    weight_names: frozenset[str],
    name: str,
    declared: Mapping[str, str] = MappingProxyType({}),
    source: str = "model",
    refused: Sequence[UnsupportedNode] = (),
) -> Any:
    """Return the module of a prepared model: one `func.func` of linalg on tensors, in `context`.

    Arguments and results carry `t10.name`, weights `t10.weight`, those `declared` without a sign `t10.type`. Raises
    `UnsupportedOpError` naming every node that cannot be lowered, those that were `refused` (and taken out of the
    model) before among them.
    """
    if refused or without_types(model, source):
        refuse_unsupported(model, source, refused, _accepts)
    dialect("torch").register_dialect(context)
    with context, ir.Location.unknown():
        try:
            module = run_lowering(model, context)
        except T10Error:
            raise
        except Exception as error:  # torch-mlir's importer raises of all kinds for what it does not expect
            refuse_unsupported(model, source, (), _accepts, error)
        _tidy(module, model, weight_names, name, declared)
        left = leftovers(module)
        if left:
            listed = "; ".join(f"node {name!r} becomes {kind}" for name, kind in left.items())
            refuse_unsupported(model, source, (), _accepts, UnsupportedOpError(listed))
        passmanager.PassManager.parse(CLEAN).run(module.operation)
    return module


def run_lowering(model: Any, context: Any) -> Any:
    """Return the module the passes make of a model; raises `MLIRError` when one of them refuses."""
    importer = extras("onnx_importer")
    info = importer.ModelInfo(model)
    module = info.create_module(context=context)
    cache = _dense_cache(importer)(context)
    nodes = importer.NodeImporter.define_function(info.main_graph, module.operation, context_cache=cache)
    with warnings.catch_warnings():  # of values without a type, which are refused by name
        warnings.simplefilter("ignore")
        nodes.import_all()
    _cast_to_shorts(module)
    passmanager.PassManager.parse(TO_TORCH).run(module.operation)
    passmanager.PassManager.parse(TO_LINALG).run(module.operation)
    return module


def _cast_to_shorts(module: Any) -> None:
    """Write every Cast to int16 as a conversion of torch, in place: torch-mlir reads ONNX's to other types alone."""
    for op in list(walk(module)):
        if op.operation.name != "torch.operator":
            continue
        attributes = op.operation.attributes
        if ir.StringAttr(attributes["name"]).value != "onnx.Cast":
            continue
        if ir.IntegerAttr(attributes["torch.onnx.to"]).value != onnx.TensorProto.INT16:
            continue
        with ir.InsertionPoint(op.operation), op.operation.location:
            number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _SHORT_OF_TORCH)
            given = (
                op.operation.operands[0],
                _constant("int", value=number),
                *(_constant("bool", value=ir.BoolAttr.get(False)) for _ in range(2)),
                _constant("none"),
            )
            made = ir.Operation.create(
                "torch.aten.to.dtype", results=[op.operation.results[0].type], operands=given
            )
        op.operation.results[0].replace_all_uses_with(made.result)
        op.operation.erase()


def _constant(kind: str, **attributes: Any) -> Any:
    """Return a new constant of torch's dialect."""
    of = ir.Type.parse(f"!torch.{kind}")
    return ir.Operation.create(f"torch.constant.{kind}", results=[of], attributes=attributes).result


def _dense_cache(importer: Any) -> Any:
    """Return the importer's context cache, changed to keep constants as dense attributes.

    Resources, its own choice, cannot be read back from Python; only small constants reach it.
    """

    class DenseCache(importer.ContextCache):
        __slots__ = ()

        def tensor_proto_to_attr(self, tp: Any) -> Any:
            array = numpy_helper.to_array(tp)
            kind = self.tensor_proto_to_builtin_type(tp)
            if array.size == 0 or tp.data_type == onnx.TensorProto.STRING:
                return importer.ContextCache.tensor_proto_to_attr(self, tp)
            if array.dtype == np.bool_:
                return ir.DenseElementsAttr.get([ir.BoolAttr.get(bool(value)) for value in array.flat], kind)
            return ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=kind)

    return DenseCache


def _accepts(model: Any) -> str:
    """Return why a model of one node cannot be lowered (words that follow its operator), empty if it can.

    It runs in a context of its own.
    """
    from t10.dialect.mlir import new_context

    context = new_context()
    dialect("torch").register_dialect(context)
    with context, ir.Location.unknown():
        try:
            module = run_lowering(model, context)
        except Exception as error:
            return f"is not lowered: {reason_of(str(error))}"
        _tidy(module, model, frozenset(), "node", {})
        kinds = dict.fromkeys(leftovers(module).values())
    return f"becomes {', '.join(kinds)}, which is no tensor expression" if kinds else ""


def _tidy(
    module: Any, model: Any, weight_names: frozenset[str], name: str, declared: Mapping[str, str]
) -> None:
    """Name arguments and results, drop what torch-mlir leaves behind."""
    function = next(op.operation for op in module.body.operations if op.operation.name == "func.func")
    for op in list(module.body.operations):
        if op.operation.name == "ml_program.global":
            op.operation.erase()
    for attribute in list(function.attributes):
        if attribute.startswith("torch."):
            del function.attributes[attribute]
    function.attributes["sym_name"] = ir.StringAttr.get(name)
    arguments = [
        signature_entry(
            value.name, is_weight=value.name in weight_names, declared=declared.get(value.name, "")
        )
        for value in model.graph.input
    ]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(arguments)
    results = [
        signature_entry(value.name, declared=declared.get(value.name, "")) for value in model.graph.output
    ]
    function.attributes["res_attrs"] = ir.ArrayAttr.get(results)
    apply_patterns(function, (RUN_TIME_CHECKS, NARROW_COMPARISON, NARROWED_CONSTANT, EXTREME_OF_COMPARISON))


def signature_entry(name: str, *, is_weight: bool = False, declared: str = "") -> Any:
    """Return the attributes of an argument or result; `declared` is its type where that has no sign."""
    entries = {NAME: ir.StringAttr.get(name)}
    if is_weight:
        entries[WEIGHT] = ir.UnitAttr.get()
    elif declared:
        entries[TYPE] = ir.TypeAttr.get(ir.Type.parse(declared))
    return ir.DictAttr.get(entries)
