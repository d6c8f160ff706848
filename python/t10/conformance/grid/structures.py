"""How an operator is written down: attributes, extents, and the inputs that say what is computed rather than on what.

An operator's structures are those of its node tests in the onnx package. Where all inputs are data of one shape, or
broadcast to one, the shapes of `_SHAPES` join them: 1s, primes, sizes that split over cores. Operators with structure of
their own get more from `_SWEEPS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from t10.conformance.cases import Case, load_cases

Shape = tuple[int, ...]

_INDEX_TYPES = frozenset({"tensor(int32)", "tensor(int64)"})
_KEPT = frozenset(
    {
        "roi", "rois", "ratio", "training_mode", "start", "limit", "delta", "lower_edge_hertz", "upper_edge_hertz",
        "target_type", "grid", "size", "num_mel_bins", "dft_length", "sample_rate", "depth", "iou_threshold", "position_ids",
        "score_threshold", "max_output_boxes_per_class", "condition", "cond", "M", "theta", "Y_shift",
    }
)  # fmt: skip
"""Inputs by name that say what is computed: they keep the values of the node test."""
_NEVER = frozenset({"If", "Loop", "Scan"})
"""Operators that hold other operators."""
_MOST_TESTS = 4
"""Most node tests that an operator takes its structures from."""

_SHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((61, 61), (61, 61)),
    ((1,), (1,)),
    ((), ()),
    ((7, 1, 5), (1, 3, 5)),
    ((13,), ()),
    ((2, 4, 16, 33), (2, 4, 16, 33)),
)
"""Of a first input and of all others; the first is large enough that every pair of extremes meets."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input: its formal name and type in the schema, its shape, and its values where they are structural."""

    formal: str
    type_name: str
    shape: Shape
    value: NDArray[Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Structure:
    """A node without element types; an input that is left out is None."""

    operator: str
    label: str
    inputs: tuple[Input | None, ...]
    n_outputs: int
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_elementwise: bool = False


def structures_by_operator(schemas: Mapping[str, Any]) -> dict[str, list[Structure]]:
    """Return the structures of every operator of ONNX's own domain that is not one of control flow."""
    found: dict[str, list[Structure]] = {}
    for case in load_cases(("node",)):
        operator = case.operator.rpartition("-")[0]
        if operator not in schemas or operator in _NEVER or "_expanded" in case.name:
            continue
        structure = _of_test(case, schemas[operator])
        if structure is not None:
            found.setdefault(operator, []).append(structure)
    for operator, schema in schemas.items():
        tests = _different(found.get(operator, []))
        found[operator] = [*_broadcast(tests), *_swept(operator, schema), *tests[:_MOST_TESTS]]
    return found


def formals_of(schema: Any, n: int) -> list[Any]:
    """Return the formal of every one of n inputs; the last may stand for many."""
    return [schema.inputs[min(i, len(schema.inputs) - 1)] for i in range(n)]


def is_structural(formal: Any) -> bool:
    """Return whether an input says what is computed: its name does, or it is an index of nothing but that type."""
    return formal.name in _KEPT or (bool(formal.types) and set(formal.types) <= _INDEX_TYPES) or (
        len(formal.types) == 1 and formal.type_str.startswith("tensor(") and formal.name not in ("x_scale", "w_scale", "y_scale")
    )  # fmt: skip


def _of_test(case: Case, schema: Any) -> Structure | None:
    node, data = case.model.graph.node[0], case.data_sets[0]
    names = [value.name for value in case.model.graph.input]
    given = dict(zip(names, data.inputs, strict=False))
    inputs: list[Input | None] = []
    for name, formal in zip(node.input, formals_of(schema, len(node.input)), strict=True):
        array = given.get(name)
        if not name:
            inputs.append(None)
            continue
        if array is None:
            return None
        kept = array if is_structural(formal) else None
        inputs.append(Input(formal.name, formal.type_str, array.shape, kept))
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    reference = data.outputs[0] if data.outputs else None
    shapes = [each.shape for each in inputs if each]
    is_elementwise = (
        None not in inputs
        and len(node.output) == 1
        and all(each is not None and each.value is None for each in inputs)
        and reference is not None
        and _broadcasts(shapes, reference.shape)
        and not any(isinstance(value, list) for value in attributes.values())
    )
    return Structure(
        case.operator.rpartition("-")[0],
        case.name.removeprefix("node/test_"),
        tuple(inputs),
        len(node.output),
        attributes,
        is_elementwise,
    )


def _broadcasts(shapes: list[Shape], result: Shape) -> bool:
    try:
        return bool(shapes) and np.broadcast_shapes(*shapes) == result
    except ValueError:
        return False


def _different(found: list[Structure]) -> list[Structure]:
    """Return structures without those that differ only in types or numbers, those of other attributes first."""
    by_attributes: dict[str, Structure] = {}
    by_all: dict[str, Structure] = {}
    for each in found:
        by_attributes.setdefault(repr(sorted(each.attributes.items(), key=lambda item: item[0])), each)
        by_all.setdefault(repr((each.attributes, [i and (i.shape, i.value) for i in each.inputs])), each)
    first = list(by_attributes.values())
    return first + [each for each in by_all.values() if each not in first]


def _broadcast(tests: list[Structure]) -> Iterator[Structure]:
    """Yield an elementwise structure once per shape, with the attributes of each of its tests at the first."""
    seen: list[Mapping[str, Any]] = []
    for test in tests:
        if not test.is_elementwise or test.attributes in seen:
            continue
        shapes = _SHAPES if not seen else _SHAPES[:1]
        seen.append(test.attributes)
        for number, (first, others) in enumerate(shapes):
            inputs = tuple(
                Input(each.formal, each.type_name, others if i else first)
                for i, each in enumerate(test.inputs)
                if each is not None
            )
            text = "x".join(map(str, first)) or "scalar"
            label = text if seen[0] is test.attributes else f"{text}-{len(seen)}"
            if number == 0 or len(inputs) > 1 or first != (7, 1, 5):
                yield Structure(test.operator, label, inputs, 1, test.attributes, is_elementwise=True)


def _swept(operator: str, schema: Any) -> Iterator[Structure]:
    """Yield the structures of a sweep: attributes, shapes of data, values of structural inputs by formal name."""
    for number, (attributes, shapes, values) in enumerate(_sweeps(operator)):
        formals = formals_of(schema, len(shapes) + len(values))
        data = iter(shapes)
        inputs = tuple(
            Input(f.name, f.type_str, values[f.name].shape, values[f.name])
            if f.name in values
            else Input(f.name, f.type_str, next(data))
            for f in formals
        )
        n_outputs = attributes.get("num_outputs", 1)
        yield Structure(operator, f"sweep{number}", inputs, n_outputs, attributes)


Sweep = tuple[dict[str, Any], list[Shape], dict[str, NDArray[Any]]]


def _sweeps(operator: str) -> Iterator[Sweep]:
    """Yield what an operator is tried with besides its tests."""

    def ints(*values: int) -> NDArray[Any]:
        return np.array(values, np.int64)

    if operator.startswith("Reduce"):
        for shape, axes in (((3, 7, 5), (1,)), ((4, 1024), (1,)), ((1, 17, 96), (0, 2)), ((2, 64, 13), (0,))):
            yield {"keepdims": 0}, [shape], {"axes": ints(*axes)}
        yield {"keepdims": 1}, [(61, 13)], {}
    elif operator in ("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax"):
        for shape, axis in (((3, 7, 5), 1), ((4, 257), 1), ((61, 13), 0)):
            yield {"axis": axis}, [shape], {}
    elif operator in ("MatMul", "MatMulInteger"):
        for a, b in (
            ((5, 7), (7, 3)),
            ((1, 61), (61, 1)),
            ((2, 3, 17, 32), (32, 13)),
            ((16, 128), (128, 64)),
        ):
            yield {}, [a, b], {}
    elif operator == "Gemm":
        yield {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}, [(13, 5), (11, 13), (5, 11)], {}
        yield {}, [(1, 61), (61, 32), (32,)], {}
    elif operator in ("Conv", "ConvInteger"):
        yield {"pads": [1, 1, 1, 1]}, [(1, 3, 11, 13), (8, 3, 3, 3)], {}
        yield {"strides": [2, 2], "group": 4}, [(2, 8, 9, 9), (8, 2, 3, 3)], {}
        yield {"dilations": [2]}, [(1, 5, 17), (7, 5, 3)], {}
        yield {}, [(1, 16, 8, 8), (32, 16, 1, 1)], {}
    elif operator == "ConvTranspose":
        yield {"strides": [2, 2], "pads": [1, 1, 1, 1]}, [(1, 3, 5, 7), (3, 4, 3, 3)], {}
    elif operator in ("MaxPool", "AveragePool", "LpPool"):
        yield {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, [(1, 2, 7, 5)], {}
        yield (
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
            [(1, 2, 4, 4)],
            {},
        )
        yield {"kernel_shape": [3], "pads": [1, 1]}, [(2, 3, 61)], {}
        yield {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, [(1, 17, 8, 8)], {}
    elif operator.startswith("Global"):
        for shape in ((1, 3, 7, 5), (2, 13, 64), (1, 2, 32, 33)):
            yield {}, [shape], {}
    elif operator == "Transpose":
        yield {"perm": [2, 0, 1]}, [(3, 7, 16)], {}
        yield {"perm": [1, 0]}, [(61, 61)], {}
    elif operator == "Concat":
        yield {"axis": 1}, [(3, 1, 5), (3, 7, 5), (3, 16, 5)], {}
    elif operator == "Reshape":
        yield {}, [(61, 16)], {"shape": ints(4, 61, 4)}
    elif operator == "Slice":
        for starts, ends, steps in (((1, 0), (60, 13), (3, 2)), ((-1, 5), (-100, 6), (-2, 1))):
            yield (
                {},
                [(61, 13)],
                {"starts": ints(*starts), "ends": ints(*ends), "axes": ints(0, 1), "steps": ints(*steps)},
            )
    elif operator == "Pad":
        for mode in ("constant", "reflect", "edge"):
            yield {"mode": mode}, [(3, 7, 13)], {"pads": ints(0, 2, 1, 0, 1, 3)}
    elif operator in ("Gather", "GatherElements"):
        indices = np.arange(21).reshape(3, 7) * 5 % 13
        yield {"axis": 0}, [(13, 7)], {"indices": indices.astype(np.int64)}
    elif operator == "Expand":
        yield {}, [(7, 1, 5)], {"shape": ints(3, 7, 13, 5)}
    elif operator == "Tile":
        yield {}, [(7, 5)], {"repeats": ints(3, 2)}
    elif operator == "Where":
        for shape in ((61, 61), (7, 1, 5), ()):
            yield {}, [shape, shape, shape], {}
    elif operator == "Clip":
        yield {}, [(61, 61), (), ()], {}
    elif operator in ("CumSum", "CumProd"):
        yield {}, [(3, 17)], {"axis": np.array(1, np.int64)}
    elif operator == "BatchNormalization":
        yield {}, [(2, 7, 5, 3), (7,), (7,), (7,), (7,)], {}
    elif operator in ("LayerNormalization", "RMSNormalization"):
        yield {"axis": -1}, [(3, 5, 61), (61,)], {}
        yield {"axis": -1}, [(16, 768), (768,)], {}
