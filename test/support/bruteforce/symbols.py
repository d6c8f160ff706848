"""Values as numbers that stand for what was computed from what, and what a graph should give, without a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.graph import Graph

Index = tuple[int, ...]
Values = Mapping[Index, int]
MODULUS = (1 << 61) - 1


class BrokenPlan(Exception):
    """The plan cannot be executed: something is read that is not there."""


def mixed(*parts: int) -> int:
    """Return a number that stands for a combination of numbers: different for different ones, in practice."""
    return hash(parts) % MODULUS


def text_number(text: str) -> int:
    """Return a number that stands for a text, the same in every process."""
    return mixed(*text.encode())


def combined(how: str, left: int | None, right: int) -> int:
    """Return two partial results combined; None is the neutral element."""
    if left is None:
        return right
    if how == "max":
        return max(left, right)
    if how == "min":
        return min(left, right)
    return (left + right) % MODULUS


def boxes(extents: AxisSizes) -> Iterator[Index]:
    """Yield all index tuples of a box in row-major order."""
    return product(*(range(extent) for extent in extents))


def expected(graph: Graph, given: Mapping[str, Values]) -> dict[str, dict[Index, int]]:
    """Return every result of a graph under `mixed`, without any plan."""
    values: dict[str, Values] = dict(given)
    for spec in graph.operators:
        result: dict[Index, int | None] = {}
        for point in boxes(spec.extents):
            term = mixed(*(element(graph, values, o, point) for o in spec.inputs))
            where = output_index(spec, point)
            result[where] = combined(spec.combine, result.get(where), term)
        values[spec.output.name] = {
            where: finished(spec, total, [element(graph, values, o, point) for o in spec.epilogue_inputs])
            for where, total in result.items()
            if total is not None
            for point in [point_of(spec, where)]
        }
    return {out.name: {i: value_at(graph, values, out.value, i) for i in boxes(graph.shape_by_value[out.value])}
            for out in graph.outputs}  # fmt: skip


def output_index(spec: OperatorSpec, point: Index) -> Index:
    """Return where a point of the iteration space is written."""
    return tuple(point[dim.terms[0].axis] if dim.terms else dim.offset for dim in spec.output.dims)


def point_of(spec: OperatorSpec, where: Index) -> Index:
    """Return a point that writes an output element, 0 along reduction axes."""
    point = [0] * len(spec.axes)
    for dim, index in zip(spec.output.dims, where, strict=True):
        for term in dim.terms:
            point[term.axis] = index
    return tuple(point)


def finished(spec: OperatorSpec, total: int, extra: list[int]) -> int:
    """Return the epilogue of a combined value."""
    return total if spec.epilogue is None else mixed(total, *extra)


def read_index(operand: Operand, point: Index) -> Index:
    """Return which element of an operand a point reads; it may lie outside."""
    return tuple(dim.offset + sum(t.coefficient * point[t.axis] for t in dim.terms) for dim in operand.dims)


def is_inside(operand: Operand, index: Index) -> bool:
    """Return whether an index lies in the operand's tensor."""
    return all(0 <= i < extent for i, extent in zip(index, operand.shape, strict=True))


def padding(operand: Operand) -> int:
    """Return the number that stands for an operand's padding."""
    return text_number(f"padding {operand.pad_value}")


def element(graph: Graph, values: Mapping[str, Values], operand: Operand, point: Index) -> int:
    """Return the value that a point reads of an operand."""
    index = read_index(operand, point)
    return value_at(graph, values, operand.name, index) if is_inside(operand, index) else padding(operand)


def value_at(graph: Graph, values: Mapping[str, Values], name: str, index: Index) -> int:
    """Return one element of a value, through views."""
    found = origin(graph, name, index)
    return found if isinstance(found, int) else values[found[0]][found[1]]


def origin(graph: Graph, name: str, index: Index) -> tuple[str, Index] | int:
    """Return which element of which input, weight or result a value's element is; a number for a constant."""
    view = next((view for view in graph.views if view.name == name), None)
    if view is None:
        return name, index
    shapes = graph.shape_by_value
    source, at = view.sources[0], index
    if view.kind == "reshape":
        at = unflatten(flatten(index, view.shape), shapes[source])
    elif view.kind == "transpose":
        at = tuple(index[view.permutation.index(d)] for d in range(len(index)))
    elif view.kind == "slice":
        at = tuple(o + s * i for o, s, i in zip(view.offsets, view.strides, index, strict=True))
    elif view.kind == "broadcast":
        at = tuple(index[d] for d in view.dims)
    elif view.kind == "concat":
        along = index[view.axis]
        for source in view.sources:
            if along < shapes[source][view.axis]:
                break
            along -= shapes[source][view.axis]
        at = (*index[: view.axis], along, *index[view.axis + 1 :])
    else:
        at = tuple(i - low for i, low in zip(index, view.low, strict=True))
        if not all(0 <= i < n for i, n in zip(at, shapes[source], strict=True)):
            return text_number(f"constant {view.value}")
    return origin(graph, source, at)


def flatten(index: Index, shape: tuple[int, ...]) -> int:
    """Return the row-major number of an index."""
    number = 0
    for i, extent in zip(index, shape, strict=True):
        number = number * extent + i
    return number


def unflatten(number: int, shape: tuple[int, ...]) -> Index:
    """Return the index of a row-major number."""
    index: list[int] = []
    for extent in reversed(shape):
        number, i = divmod(number, extent)
        index.append(i)
    return tuple(reversed(index))
