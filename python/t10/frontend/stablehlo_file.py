"""StableHLO, as JAX prints it or stores it portably: lowered to linalg by StableHLO's own passes."""

from __future__ import annotations

import importlib
import re
from typing import Any

from t10.dialect.functions import functions_of
from t10.dialect.location import location_text
from t10.dialect.mlir import ir, package, passmanager, walk
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.diagnose import leftovers, reason_of
from t10.frontend.imported import ImportedModel
from t10.frontend.linalg_file import named_model
from t10.frontend.mlir_text import parse_module
from t10.frontend.written_size import check_calls

_HOLDS = re.compile(r"\b(?:stablehlo|chlo|vhlo)\.\w")
_PORTABLE = b"StableHLO_v"
"""What writes portable artifacts names itself so in the header of its bytecode."""
_HEADER_BYTES = 64

# No binding registers CHLO; this pass depends on it, and running it on nothing loads it.
LOAD_CHLO = "builtin.module(func.func(stablehlo-complex-math-expander))"
TO_LINALG = (
    "builtin.module(inline,symbol-dce,func.func(stablehlo-legalize-deprecated-ops),func.func(chlo-legalize-to-stablehlo),"
    "func.func(canonicalize),stablehlo-legalize-to-linalg,func.func(canonicalize,cse),symbol-dce)"
)
OPAQUE = ("stablehlo.custom_call", "stablehlo.while", "stablehlo.sort", "stablehlo.rng", "stablehlo.fft")


def holds_stablehlo(data: bytes) -> bool:
    """Return whether MLIR text or bytecode is of StableHLO."""
    if data[:4] == b"ML\xefR":
        return _PORTABLE in data[:_HEADER_BYTES]
    return _HOLDS.search(data.decode(errors="replace")) is not None


def read_stablehlo(data: bytes, source: str, context: Any) -> ImportedModel:
    """Return the model of StableHLO text or of a portable artifact; its functions are inlined into the public one.

    Arguments are named by their locations where those have names, else `argN`; large constants become weights. Raises
    `InputError` for what cannot be parsed or has dynamic shapes, `UnsupportedOpError` naming every operation that
    StableHLO's lowering to linalg leaves.
    """
    load_dialects(context)
    with context, ir.Location.unknown():
        module = _parsed(data, source, context)
        _require_static(module, source)
        check_calls(functions_of(module))
        before = _unsupported(module)
        _join(module)
        try:
            passmanager.PassManager.parse(TO_LINALG).run(module.operation)
        except ir.MLIRError as error:
            named = "; ".join(before) or reason_of(str(error))
            raise UnsupportedOpError(
                f"the module cannot be lowered to linalg: {named}", location=source
            ) from error
        left = leftovers(module)
        if left:
            named = "; ".join(
                f"{kind} ({where})" for where, kind in left.items() if not kind.endswith(".return")
            )
            raise UnsupportedOpError(
                f"no tensor expression: {named}",
                location=source,
                hint="loops of a constant number of rounds can be unrolled by the tracer (jax.lax.scan's unroll)",
            )
    return named_model(module, source)


def load_dialects(context: Any) -> None:
    """Load StableHLO and CHLO into a context and make their passes known; raises `InputError` where they are absent."""
    try:
        bindings = importlib.import_module(f"{package}._mlir_libs._stablehlo")
    except ModuleNotFoundError:
        raise InputError(
            f"MLIR's bindings {package} have no StableHLO", hint="pip install torch-mlir"
        ) from None
    bindings.register_dialect(context)
    bindings.register_stablehlo_passes()
    with context, ir.Location.unknown():
        passmanager.PassManager.parse(LOAD_CHLO).run(ir.Module.create().operation)


def _parsed(data: bytes, source: str, context: Any) -> Any:
    """Return the module of text or of a portable artifact."""
    try:
        if data[:4] == b"ML\xefR":
            bindings = importlib.import_module(f"{package}._mlir_libs._stablehlo")
            return bindings.deserialize_portable_artifact(context, data)
        return parse_module(data, source)
    except (ir.MLIRError, ValueError) as error:
        raise InputError(f"{source} cannot be parsed: {error}") from error


def _join(module: Any) -> None:
    """Rewrite concatenations: StableHLO's lowering chooses by branches per element, a slice each is a view."""
    for op in walk(module):
        operation = op.operation
        if operation.name != "stablehlo.concatenate":
            continue
        kind = operation.results[0].type
        element = kind.element_type
        if isinstance(element, ir.IntegerType) and not element.is_signless:
            continue
        axis = ir.IntegerAttr(operation.attributes["dimension"]).value
        with ir.InsertionPoint(operation), operation.location:
            joined = ir.Operation.create(
                "tensor.concat",
                results=[kind],
                operands=list(operation.operands),
                attributes={"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)},
            )
        operation.results[0].replace_all_uses_with(joined.results[0])
        operation.erase()


def _require_static(module: Any, source: str) -> None:
    """Raise `InputError` for the first value of a dynamic shape."""
    for op in walk(module):
        operation = op.operation
        blocks = [block for region in operation.regions for block in region.blocks]
        values = [*operation.results, *(argument for block in blocks for argument in block.arguments)]
        for value in values:
            kind = value.type
            if isinstance(kind, ir.UnrankedTensorType) or (
                isinstance(kind, ir.RankedTensorType) and not kind.has_static_shape
            ):
                raise InputError(
                    f"{source}: {operation.name} has a value of type {kind} (expected static shapes)",
                    location=location_text(operation.location),
                    hint="trace the function with concrete shapes",
                )


def _unsupported(module: Any) -> list[str]:
    """Return the operations that are known to have no form in linalg, each once, with where they are."""
    found = {
        op.operation.name: location_text(op.operation.location)
        for op in walk(module)
        if op.operation.name in OPAQUE
    }
    return [f"{name} ({where})" for name, where in sorted(found.items())]
