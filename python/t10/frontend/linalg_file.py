"""Modules that are linalg already: read, checked, their arguments named."""

from __future__ import annotations

import re
from typing import Any

from t10.core.guard import parsing
from t10.core.trust.files import decoding
from t10.dialect.functions import only_function
from t10.dialect.location import location_name, location_text
from t10.dialect.mlir import ir, signature_attributes
from t10.errors import UnsupportedOpError
from t10.frontend.flatten import flatten
from t10.frontend.imported import ImportedModel
from t10.frontend.lower import NAME, TYPE, WEIGHT
from t10.frontend.mlir_text import parse_module
from t10.frontend.module_weights import lift_constants

_CAST = "builtin.unrealized_conversion_cast"
_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*")


def read_linalg(data: bytes, source: str, context: Any) -> ImportedModel:
    """Return the model of MLIR text or bytecode with one function; arguments without `t10.name` get `argN`.

    Raises `InputError` for text that does not parse and for modules without exactly one function with a body.
    """
    with context, parsing(data):
        module = parse_module(data, source)
    with decoding(source):
        return named_model(module, source)


def named_model(module: Any, source: str) -> ImportedModel:
    """Return the model of a module of linalg: its arguments and results named, its large constants lifted to weights.

    Raises `InputError` for modules without exactly one function with a body.
    """
    with module.context, ir.Location.unknown():
        flatten(module)
        function = only_function(module, source)
        block = function.regions[0].blocks[0]
        _declare_unsigned(function)
        _named(function, "arg_attrs", "arg", [argument_name(argument) for argument in block.arguments])
        n_results = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results)
        results = _named(function, "res_attrs", "result", [""] * n_results)
        arguments = _names(function)
    model = ImportedModel(
        module=module,
        weights={},
        input_names=tuple(name for name, is_weight in arguments if not is_weight),
        output_names=tuple(name for name, _ in results),
        weight_names=tuple(name for name, is_weight in arguments if is_weight),
        source=source,
    )
    return lift_constants(model)


def _declare_unsigned(function: Any) -> None:
    """Make arguments and results of integers without a sign signless ones that carry `t10.type`.

    StableHLO's lowering leaves such types at the boundary, and casts between them and what it computes with.
    """
    block = function.regions[0].blocks[0]
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    if not any(_is_unsigned(each) for each in (*kind.inputs, *kind.results)):
        return
    terminator = list(block.operations)[-1].operation
    for i, value in enumerate(terminator.operands):
        if _is_unsigned(kind.results[i]) and not isinstance(value.owner, ir.Block):
            cast = value.owner
            if cast.name != _CAST:
                raise UnsupportedOpError(
                    f"{cast.name} makes {value.type}", location=location_text(cast.location)
                )
            terminator.operands[i] = cast.operands[0]
            if not list(cast.results[0].uses):
                cast.erase()
    for argument in block.arguments:
        if _is_unsigned(argument.type):
            argument.set_type(_signless(argument.type))
            for cast in [use.owner for use in argument.uses if use.owner.name == _CAST]:
                cast.results[0].replace_all_uses_with(argument)
                cast.erase()
    for key, types in (("arg_attrs", kind.inputs), ("res_attrs", kind.results)):
        entries = signature_attributes(function, key, len(types))
        for entry, each in zip(entries, types, strict=True):
            if _is_unsigned(each):
                entry[TYPE] = ir.TypeAttr.get(each.element_type)
        function.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in entries])
    inputs, results = ([_signless(each) for each in types] for types in (kind.inputs, kind.results))
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _is_unsigned(kind: Any) -> bool:
    element = kind.element_type if isinstance(kind, ir.RankedTensorType) else kind
    return isinstance(element, ir.IntegerType) and element.is_unsigned


def _signless(kind: Any) -> Any:
    """Return a type with its elements without the mark that they have no sign."""
    if not _is_unsigned(kind):
        return kind
    return ir.RankedTensorType.get(
        kind.shape, ir.IntegerType.get_signless(kind.element_type.width), kind.encoding
    )


def argument_name(argument: Any) -> str:
    """Return the name an argument's location gives it (`loc("x")`); empty if it has none."""
    name = location_name(argument.location) or ""
    return name if _IDENTIFIER.fullmatch(name) else ""


def _named(function: Any, key: str, stem: str, wanted: list[str]) -> list[tuple[str, bool]]:
    """Give every argument or result a `t10.name` and return (name, is a weight) of each.

    Those that have none take the wanted one, or `stem` and a number where that is empty or taken.
    """
    entries: list[dict[str, Any]] = [{} for _ in wanted]
    if key in function.attributes:
        entries = [
            {e.name: e.attr for e in ir.DictAttr(row)} for row in ir.ArrayAttr(function.attributes[key])
        ]
    taken = {ir.StringAttr(entry[NAME]).value for entry in entries if NAME in entry}
    for i, (entry, name) in enumerate(zip(entries, wanted, strict=True)):
        if NAME in entry:
            continue
        chosen = name if name and name not in taken else f"{stem}{i}"
        taken.add(chosen)
        entry[NAME] = ir.StringAttr.get(chosen)
    function.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in entries])
    return [(ir.StringAttr(entry[NAME]).value, WEIGHT in entry) for entry in entries]


def _names(function: Any) -> list[tuple[str, bool]]:
    """Return (name, is a weight) of every argument."""
    rows = [ir.DictAttr(row) for row in ir.ArrayAttr(function.attributes["arg_attrs"])]
    return [(ir.StringAttr(row[NAME]).value, WEIGHT in row) for row in rows]
