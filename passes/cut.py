"""A fused module cut to some of its operators: a module of its own, which takes in and returns what crosses the cut."""

from __future__ import annotations

from typing import Any

from t10.core.pieces import Pieces, unnamed
from t10.dialect.mlir import ir, signature_attributes
from t10.errors import T10Error
from t10.passes.bridge.write_program import update_signature
from t10.passes.fusion.arguments import argument_entries, drop_arguments, set_argument_entries
from t10.passes.read_graph import NAME, ReadModule, read_graph


def cut_module(module: Any, pieces: Pieces, first: int, end: int) -> ReadModule:
    """Cut a fused module of `pieces.graph` down to operators `first` up to `end`, and return what is left of it.

    What operators before make becomes arguments, what those behind need becomes results. Needs a current context and
    location. Raises `T10Error` where the module is not that graph.
    """
    read = read_graph(module)
    values = {spec.output.name: read.operations[spec.name].results[0] for spec in read.graph.operators}
    function = read.function
    block = function.regions[0].blocks[0]
    entries = argument_entries(function)
    for value in pieces.crossing(first):
        made = values[value.name]
        argument = block.add_argument(made.type, ir.Location.unknown())
        made.replace_all_uses_with(argument)
        entries.append({NAME: ir.StringAttr.get(value.name)})
        values[value.name] = argument
    set_argument_entries(function, entries)
    returned = list(block.operations)[-1].operation
    attributes = signature_attributes(function, "res_attrs", len(returned.operands))
    kept = [number for number, home in enumerate(pieces.homes) if first <= home < end]
    results = [returned.operands[number] for number in kept]
    named = [
        ir.DictAttr.get({**attributes[number], NAME: ir.StringAttr.get(pieces.graph.outputs[number].name)})
        for number in kept
    ]
    for value in pieces.crossing(end):
        results.append(values[value.name])
        named.append(ir.DictAttr.get({NAME: ir.StringAttr.get(value.name)}))
    with ir.InsertionPoint(returned):
        ir.Operation.create("func.return", operands=results)
    returned.erase()
    function.attributes["res_attrs"] = ir.ArrayAttr.get(named)
    _clean(function, block)
    update_signature(function)
    left = read_graph(module)
    if unnamed(left.graph) != unnamed(pieces.piece(first, end)):
        raise T10Error(f"operators {first} to {end} of the module are not those of its graph")
    return left


def _clean(function: Any, block: Any) -> None:
    """Erase operations and arguments that nothing reads."""
    for op in reversed(list(block.operations)[:-1]):
        if not any(_is_used(result) for result in op.operation.results):
            op.operation.erase()
    drop_arguments(
        function, [number for number, argument in enumerate(block.arguments) if not _is_used(argument)]
    )


def _is_used(value: Any) -> bool:
    return next(iter(value.uses), None) is not None
