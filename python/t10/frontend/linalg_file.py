"""Modules that are linalg already: read, checked, their arguments named."""

from __future__ import annotations

from typing import Any

from t10.dialect.mlir import ir
from t10.errors import InputError
from t10.frontend.imported import ImportedModel
from t10.frontend.lower import NAME, WEIGHT


def read_linalg(data: bytes, source: str, context: Any) -> ImportedModel:
    """Return the model of MLIR text or bytecode with one function; arguments without `t10.name` get `argN`.

    Raises `InputError` for text that does not parse and for modules without exactly one function with a body.
    """
    with context:
        try:
            module = ir.Module.parse(data)
        except ir.MLIRError as error:
            raise InputError(f"{source} cannot be parsed: {error}") from error
        function = only_function(module, source)
        block = function.regions[0].blocks[0]
        arguments = _named(function, "arg_attrs", "arg", len(block.arguments))
        n_results = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results)
        results = _named(function, "res_attrs", "result", n_results)
    return ImportedModel(
        module=module,
        weights={},
        input_names=tuple(name for name, is_weight in arguments if not is_weight),
        output_names=tuple(name for name, _ in results),
        weight_names=tuple(name for name, is_weight in arguments if is_weight),
        source=source,
    )


def only_function(module: Any, source: str) -> Any:
    """Return the one function of a module that has a body; raises `InputError` if there are none or several."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    bodies = [op for op in functions if len(op.regions[0].blocks)]
    if len(bodies) != 1:
        raise InputError(f"{source} has {len(bodies)} functions with a body (expected one)")
    return bodies[0]


def _named(function: Any, key: str, stem: str, count: int) -> list[tuple[str, bool]]:
    """Give every argument or result a `t10.name` and return (name, is a weight) of each."""
    entries: list[dict[str, Any]] = [{} for _ in range(count)]
    if key in function.attributes:
        entries = [
            {e.name: e.attr for e in ir.DictAttr(row)} for row in ir.ArrayAttr(function.attributes[key])
        ]
    for i, entry in enumerate(entries):
        entry.setdefault(NAME, ir.StringAttr.get(f"{stem}{i}"))
    function.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in entries])
    return [(ir.StringAttr(entry[NAME]).value, WEIGHT in entry) for entry in entries]
