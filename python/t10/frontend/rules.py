"""What a model must keep to before anything else looks at it: ONNX's rules of form, and bounds on its sizes.

A model file is not trusted. Shape inference, inlining and lowering are native code that takes much for granted, or does
as much work as a file tells it to, so names, types, extents and sizes are checked first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from math import prod
from typing import Any

import onnx

from t10.errors import InputError
from t10.frontend.cycles import order_problem
from t10.frontend.external import bits_in_file
from t10.frontend.protobuf_fields import all_nodes
from t10.frontend.schemas import MAX_RANK, schema_problems
from t10.frontend.unsupported import STANDARD_DOMAINS

MAX_ELEMENTS = 2**40
"""Most elements of a tensor: a thousand times what the largest chip holds."""
MAX_NODES = 1_000_000
"""Most nodes of a model, with its functions expanded and the bodies of control flow counted once."""
MAX_NAME = 16_384
"""Most characters of a name: every error, plan and report quotes it."""
MAX_DEPTH = 24
"""Most levels of graphs in attributes of nodes."""
MAX_PROBLEMS = 20

_TYPES = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}
_COMPLEX = (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128)


def check_rules(model: Any, source: str) -> None:
    """Raise `InputError` with the first rule that a model breaks; `details` holds the others, up to a bound."""
    problems = broken_rules(model)
    if problems:
        raise InputError(f"{source} breaks the rules of ONNX: {problems[0]}", details=tuple(problems[1:]))


def broken_rules(model: Any) -> list[str]:
    """Return what is wrong with the form of a model, one sentence each; empty if nothing is."""
    found: dict[str, None] = {}
    for problem in _problems(model):
        found[problem] = None
        if len(found) == MAX_PROBLEMS:
            break
    return list(found)


def check_sizes(model: Any, source: str) -> None:
    """Raise `InputError` if a value of the graph would be absurdly large, as shape inference found, or the graph is."""
    if len(model.graph.node) > MAX_NODES:
        raise InputError(
            f"{source}: it has {len(model.graph.node)} nodes once loops are unrolled (at most {MAX_NODES})"
        )
    for value in (*model.graph.value_info, *model.graph.output):
        for problem in _value_problems(value):
            raise InputError(f"{source}: {problem}")


def _problems(model: Any) -> Iterator[str]:
    if not model.graph.output:
        yield "its graph has no output"
    yield from _opset_problems(model)
    yield from _size_problems(model)
    yield from _graph_problems(model.graph, frozenset(), 0)
    yield from schema_problems(model)


def _opset_problems(model: Any) -> Iterator[str]:
    versions: dict[str, int] = {}
    if not model.opset_import:
        yield "it states no opset (expected opset_import of ai.onnx)"
    for entry in model.opset_import:
        domain = "" if entry.domain in STANDARD_DOMAINS else entry.domain
        if versions.setdefault(domain, entry.version) != entry.version:
            yield f"it states two opsets of {entry.domain or 'ai.onnx'}: {versions[domain]} and {entry.version}"
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= versions.get("", 1) <= newest:
        yield f"it states opset {versions['']} of ai.onnx (known are 1 to {newest})"
    for function in model.functions:
        for entry in function.opset_import:
            domain = "" if entry.domain in STANDARD_DOMAINS else entry.domain
            if domain in versions and versions[domain] != entry.version:
                yield (
                    f"function {_cut(function.name)} is of opset {entry.version} of {entry.domain or 'ai.onnx'}, "
                    f"the model of {versions[domain]}"
                )


def _size_problems(model: Any) -> Iterator[str]:
    """Yield functions that call themselves, are defined twice, or would make more nodes than can be worked on."""
    functions: dict[tuple[str, str], Any] = {}
    for function in model.functions:
        key = (function.domain, function.name)
        if key in functions:
            yield f"function {_cut(function.name)} is defined twice"
        functions[key] = function
    n_by_function: dict[tuple[str, str], int] = {}
    for key in functions:
        cycle = _count_calls(key, functions, n_by_function)
        if cycle:
            yield f"function {_cut(cycle)} calls itself"
            return
    total = _n_nodes(model.graph.node, n_by_function)
    if total > MAX_NODES:
        yield f"it has {total} nodes with its functions expanded (expected at most {MAX_NODES})"


def _count_calls(
    key: tuple[str, str], functions: dict[tuple[str, str], Any], n_by_function: dict[tuple[str, str], int]
) -> str:
    """Count the nodes that a function makes, called ones first; returns the name of one that calls itself."""
    waiting, open_keys = [key], set[tuple[str, str]]()
    while waiting:
        current = waiting[-1]
        if current in n_by_function:
            open_keys.discard(waiting.pop())
            continue
        open_keys.add(current)
        called = {
            (node.domain, node.op_type) for node in all_nodes(functions[current].node)
        } & functions.keys()
        missing = sorted(called - n_by_function.keys())
        if any(each in open_keys for each in missing):
            return str(current[1])
        waiting.extend(missing)
        if not missing:
            n_by_function[current] = _n_nodes(functions[current].node, n_by_function)
    return ""


def _n_nodes(nodes: Any, n_by_function: dict[tuple[str, str], int]) -> int:
    return sum(n_by_function.get((node.domain, node.op_type), 1) for node in all_nodes(nodes))


def _graph_problems(graph: Any, outer: frozenset[str], depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        yield f"graphs are nested more than {MAX_DEPTH} levels deep"
        return
    yield from _repeated("input", [value.name for value in graph.input])
    yield from _repeated("initializer", [tensor.name for tensor in graph.initializer])
    if depth == 0:  # a body may return a value twice: what is carried on is collected, too
        yield from _repeated("output", [value.name for value in graph.output])
    yield from _repeated("result", [name for node in graph.node for name in node.output if name])
    for value in (*graph.input, *graph.value_info, *graph.output):
        yield from _value_problems(value)
    for tensor in graph.initializer:
        yield from _tensor_problems(tensor)
    if graph.sparse_initializer:
        yield "it has sparse initializers (expected dense ones)"
    given = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    made = {name for node in graph.node for name in node.output if name}
    for name in sorted((given & made) - {""}):
        yield f"{_cut(name)} is given to the graph and made in it"
    yield from order_problem(graph, outer | given)
    inside = outer | given | made
    for value in graph.output:
        if value.name not in inside:
            yield f"output {_cut(value.name)} is made by no node"
    for node in graph.node:
        yield from _node_problems(node, inside, depth)
    for name in chain(inside, (node.name for node in graph.node)):
        if len(name) > MAX_NAME:
            yield f"{_cut(name)} is a name of {len(name):,} characters (expected at most {MAX_NAME:,})"


def _node_problems(node: Any, inside: frozenset[str], depth: int) -> Iterator[str]:
    if not node.op_type:
        yield f"node {_cut(node.name)} has no operator"
    yield from _repeated(f"attribute of node {_cut(node.name)}", [each.name for each in node.attribute])
    for attribute in node.attribute:
        for tensor in (*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors):
            yield from _tensor_problems(tensor)
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            yield from _graph_problems(graph, inside, depth + 1)


def _repeated(what: str, names: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"{what} {_cut(name)} is there twice"
            return
        seen.add(name)


def _value_problems(value: Any) -> Iterator[str]:
    if value.type.WhichOneof("value") != "tensor_type":
        return
    kind = value.type.tensor_type
    if kind.elem_type and kind.elem_type not in _TYPES:
        yield f"{_cut(value.name)} has the unknown element type {kind.elem_type}"
    dims = [dim.dim_value for dim in kind.shape.dim if dim.HasField("dim_value")]
    yield from size_problem(value.name, dims)


def size_problem(name: str, dims: Sequence[int]) -> Iterator[str]:
    """Yield what is wrong with the rank or the number of elements of a tensor; dims of 0 or less do not matter."""
    if len(dims) > MAX_RANK:
        yield f"{_cut(name)} has {len(dims)} dims (expected at most {MAX_RANK})"
        return
    n_elements = prod(dim for dim in dims if dim > 0)
    if n_elements > MAX_ELEMENTS:
        shape = "x".join(str(dim) for dim in dims[:8])
        yield f"{_cut(name)} of shape {shape} has {n_elements:.3g} elements (expected at most {MAX_ELEMENTS:.3g})"


def _tensor_problems(tensor: Any) -> Iterator[str]:
    """Yield what does not fit together of type, dims and data of a constant."""
    if tensor.data_type not in _TYPES:
        yield f"tensor {_cut(tensor.name)} has the unknown element type {tensor.data_type}"
        return
    if any(dim < 0 for dim in tensor.dims):
        yield f"tensor {_cut(tensor.name)} has the dim {min(tensor.dims)} (expected 0 or more)"
        return
    too_large = list(size_problem(tensor.name, tensor.dims))
    yield from too_large
    if tensor.HasField("segment"):
        yield f"tensor {_cut(tensor.name)} is a segment (expected a whole tensor)"
        return
    if too_large or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return
    field = onnx.helper.tensor_dtype_to_field(tensor.data_type)
    if tensor.data_type == onnx.TensorProto.STRING:
        found, expected, unit = len(tensor.string_data), prod(tensor.dims), "texts"
    elif tensor.HasField("raw_data"):
        found, expected, unit = (
            len(tensor.raw_data),
            -(-prod(tensor.dims) * bits_in_file(tensor) // 8),
            "bytes",
        )
    else:
        per_element = 2 if tensor.data_type in _COMPLEX else 1
        packed = max(1, 8 // bits_in_file(tensor))
        found, expected = len(getattr(tensor, field)), -(-prod(tensor.dims) * per_element // packed)
        unit = "numbers"
    if found != expected:
        yield f"tensor {_cut(tensor.name)} of dims {list(tensor.dims)[:8]} holds {found} {unit} (expected {expected})"


def _cut(name: str) -> str:
    """Return a name in quotes, shortened."""
    return repr(name if len(name) <= 80 else f"{name[:77]}...")
