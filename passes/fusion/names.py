"""Names of operators: the name of the ONNX node, with a suffix if a node became several operators."""

from __future__ import annotations

from t10.dialect.location import location_name
from t10.dialect.mlir import ir
from t10.passes.bridge.tree import Apply, visit
from t10.passes.fusion.graph import FusionGraph, Nest, Opaque, kind_of

_COMBINE_WORDS = {
    "addf": "sum",
    "addi": "sum",
    "mulf": "product",
    "muli": "product",
    "andi": "all",
    "ori": "any",
}
_DULL = frozenset(
    {"arith.truncf", "arith.extf", "arith.constant", "arith.index_cast", "arith.sitofp", "arith.uitofp"}
)


def operator_names(graph: FusionGraph) -> dict[int, str]:
    """Return a unique name per nest's result; names operators have already are kept."""
    nests = [nest for nest in graph.nests() if not nest.is_move or nest.epilogue is not None]
    taken = _taken(graph) | {nest.name for nest in nests if nest.name}
    names = {nest.result: nest.name for nest in nests if nest.name}
    fresh = [nest for nest in nests if not nest.name]
    bases = {nest.result: location_name(nest.location) or "" for nest in fresh}
    counts: dict[str, int] = {}
    for base in bases.values():
        counts[base] = counts.get(base, 0) + 1
    for nest in fresh:
        base = bases[nest.result]
        word = word_of(nest)
        wanted = word if not base else base if counts[base] == 1 else f"{base}.{word}"
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name)
        names[nest.result] = name
    return names


def word_of(nest: Nest) -> str:
    """Return one word for what a nest does: how it combines, or its last operation that is no cast."""
    kind = kind_of(nest)
    if kind not in ("elementwise", "reduction"):
        return kind
    if nest.combine:
        opcode = nest.combine.removeprefix("arith.")
        return _COMBINE_WORDS.get(opcode, opcode[:3])
    opcodes = [
        node.opcode for node in visit(nest.body) if isinstance(node, Apply) and node.opcode not in _DULL
    ]
    return opcodes[-1].rpartition(".")[2].rstrip("f") if opcodes else "copy"


def _taken(graph: FusionGraph) -> set[str]:
    named: set[str] = set()
    for node in graph.nodes():
        if isinstance(node, Opaque) and "op_name" in node.op.attributes:
            named.add(ir.StringAttr(node.op.attributes["op_name"]).value)
    return named
