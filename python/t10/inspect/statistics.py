"""How often every operator occurs, and what it takes: multiply-accumulates, parameters, bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from t10.inspect.dtypes import bytes_of
from t10.inspect.facts import ModelFacts, NodeFacts, Port

Shape = tuple[int, ...]
Shapes = tuple[Shape | None, ...]


@dataclass(frozen=True, slots=True)
class KindStatistics:
    """All nodes of one operator.

    `n_macs` are multiply-accumulates of contractions, `n_parameters` and `weight_bytes` constants that are read (each
    counted at its first reader), `output_bytes` what is made. `n_unknown` nodes are left out of the sums: they make
    something whose shape the file does not determine. Bodies of loops are counted once.
    """

    kind: str
    n_nodes: int = 0
    n_macs: int = 0
    n_parameters: int = 0
    weight_bytes: int = 0
    output_bytes: int = 0
    n_unknown: int = 0


def statistics(facts: ModelFacts) -> tuple[KindStatistics, ...]:
    """Return a row per operator, the most multiply-accumulates first, then the most nodes, then by name."""
    rows: dict[str, KindStatistics] = {}
    counted: set[str] = set()
    for node in facts.graph.all_nodes():
        row = rows.get(node.kind, KindStatistics(node.kind))
        weights = [n for n in dict.fromkeys(node.inputs) if n in facts.weight_names and n not in counted]
        counted.update(weights)
        ports = [facts.values[name] for name in weights if name in facts.values]
        made = [facts.values.get(name) for name in node.outputs if name]
        is_known = all(port is not None and port.shape is not None for port in made)
        rows[node.kind] = replace(
            row,
            n_nodes=row.n_nodes + 1,
            n_macs=row.n_macs + macs_of(node, facts.values),
            n_parameters=row.n_parameters + sum(port.n_elements or 0 for port in ports),
            weight_bytes=row.weight_bytes + sum(bytes_of(port.dtype, port.n_elements or 0) for port in ports),
            output_bytes=row.output_bytes
            + sum(bytes_of(port.dtype, port.n_elements or 0) for port in made if port is not None),
            n_unknown=row.n_unknown + (not is_known),
        )
    return tuple(sorted(rows.values(), key=lambda row: (-row.n_macs, -row.n_nodes, row.kind)))


def macs_of(node: NodeFacts, values: Mapping[str, Port]) -> int:
    """Return the multiply-accumulates of a node; 0 for what is no contraction and where shapes are not known."""
    kind = node.kind.rpartition(".")[2].rpartition("/")[2]
    count = _MACS.get(kind)
    if count is None:
        return 0
    shapes = tuple(values[name].shape if name in values else None for name in node.inputs)
    output = values[node.outputs[0]].shape if node.outputs and node.outputs[0] in values else None
    return 0 if output is None else count(node, shapes, output)


def _at(shapes: Shapes, i: int) -> Shape | None:
    return shapes[i] if i < len(shapes) else None


def _matmul(node: NodeFacts, shapes: Shapes, output: Shape) -> int:
    del node
    left = _at(shapes, 0)
    return prod(output) * left[-1] if left else 0


def _gemm(node: NodeFacts, shapes: Shapes, output: Shape) -> int:
    del node
    left = _at(shapes, 0)
    return output[-1] * prod(left) if left and output else 0


def _conv(node: NodeFacts, shapes: Shapes, output: Shape) -> int:
    del node
    kernel = _at(shapes, 1)
    return prod(output) * prod(kernel[1:]) if kernel else 0


def _quantized_conv(node: NodeFacts, shapes: Shapes, output: Shape) -> int:
    return _conv(node, (None, _at(shapes, 3)), output)


def _conv_transpose(node: NodeFacts, shapes: Shapes, output: Shape) -> int:
    del node, output
    x, kernel = _at(shapes, 0), _at(shapes, 1)
    return prod(x) * prod(kernel[1:]) if x and kernel else 0


def _recurrent(node: NodeFacts, shapes: Shapes, output: Shape) -> int:
    """Steps times batch times both matrices of a gate row."""
    del node, output
    x, w, r = (_at(shapes, i) for i in range(3))
    return x[0] * x[1] * (prod(w) + prod(r)) if x and len(x) == 3 and w and r else 0


def _einsum(node: NodeFacts, shapes: Shapes, output: Shape) -> int:
    """Points of the loop nest over all labels, where two or more operands meet."""
    del output
    terms = dict(node.attributes).get("equation", "").replace(" ", "").partition("->")[0].split(",")
    extents: dict[str, int] = {}
    if len(terms) < 2 or len(terms) != len(shapes) or any("." in term for term in terms):
        return 0
    for term, shape in zip(terms, shapes, strict=True):
        if shape is None or len(shape) != len(term):
            return 0
        extents.update(zip(term, shape, strict=True))
    return prod(extents.values()) * (len(terms) - 1)


def _attention(node: NodeFacts, shapes: Shapes, output: Shape) -> int:
    """Scores and weighted values: every query meets every key, those of the past among them."""
    del node
    query, key, past = _at(shapes, 0), _at(shapes, 1), _at(shapes, 4)
    if not query or not key or len(key) < 2:
        return 0
    length = key[-2] + (past[-2] if past and len(past) > 1 else 0)
    return (prod(query) + prod(output)) * length


_MACS: dict[str, Callable[[NodeFacts, Shapes, Shape], int]] = {
    "MatMul": _matmul,
    "matmul": _matmul,
    "batch_matmul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearMatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ConvInteger": _conv,
    "QLinearConv": _quantized_conv,
    "ConvTranspose": _conv_transpose,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "Einsum": _einsum,
    "Attention": _attention,
}
