"""How an operator is written down: attributes, extents, and the inputs that say what is computed rather than on what.

An operator's structures are those of its node tests in the onnx package. Where all inputs are data of one shape, or
broadcast to one, the shapes of `_SHAPES` join them: 1s, primes, sizes that split over cores. Operators with structure
of their own get more from `SWEEPS`; values of attributes that none of these have follow (`varied`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from onnx import helper

from t10.conformance.cases import Case, load_cases
from t10.conformance.grid.attributes import varied
from t10.conformance.grid.structure import Input, Structure, formals_of
from t10.conformance.grid.sweeps import SWEEPS, Shape
from t10.conformance.grid.values import POSITIVE

_INDEX_TYPES = frozenset({"tensor(int32)", "tensor(int64)"})
_KEPT = frozenset(
    {
        *(
            "roi",
            "rois",
            "ratio",
            "training_mode",
            "start",
            "limit",
            "delta",
            "grid",
            "size",
            "theta",
        ),
        *(
            "lower_edge_hertz",
            "upper_edge_hertz",
            "num_mel_bins",
            "dft_length",
            "sample_rate",
            "depth",
            "cond",
            "M",
        ),
        *("position_ids", "indices", "iou_threshold", "score_threshold", "max_output_boxes_per_class"),
    }
)
"""Inputs by name that say what is computed: they keep the values of the node test."""
_NEVER = frozenset({"If", "Loop", "Scan"})
"""Operators that hold other operators."""
_MOST_OPERANDS = 3
"""Most inputs of an elementwise operator: more are scales and zero points."""
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
        chosen = [*_broadcast(tests), *_swept(operator, schema), *tests[:_MOST_TESTS]]
        found[operator] = [*chosen, *varied(schema, tests, chosen)]
    return found


def _is_structural(formal: Any) -> bool:
    """Return whether an input says what is computed: its name does, or it is an index, or of one type and no scale."""
    is_index = bool(formal.types) and set(formal.types) <= _INDEX_TYPES
    has_one_type = formal.type_str.startswith("tensor(") and formal.name not in POSITIVE
    is_mask_of_rows = (formal.name, formal.type_str) == ("condition", "T1")
    return formal.name in _KEPT or is_index or has_one_type or is_mask_of_rows


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
        kept = array if _is_structural(formal) else None
        inputs.append(Input(formal.name, formal.type_str, array.shape, kept))
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    reference = data.outputs[0] if data.outputs else None
    shapes = [each.shape for each in inputs if each]
    is_elementwise = (
        None not in inputs
        and len(node.output) == 1
        and len(inputs) <= _MOST_OPERANDS
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
            has_axes = all(-len(first) <= axis < len(first) for axis in _axes(test.attributes))
            if has_axes and (number == 0 or len(inputs) > 1 or first != (7, 1, 5)):
                yield Structure(test.operator, label, inputs, 1, test.attributes, is_elementwise=True)


def _axes(attributes: Mapping[str, Any]) -> list[int]:
    return [
        int(axis)
        for name, value in attributes.items()
        if name in ("axis", "axes")
        for axis in np.ravel(value)
    ]


def _swept(operator: str, schema: Any) -> Iterator[Structure]:
    """Yield the structures of an operator's sweeps."""
    for number, sweep in enumerate(SWEEPS.get(operator, ())):
        formals = formals_of(schema, len(sweep.shapes) + len(sweep.values))
        data = iter(sweep.shapes)
        inputs = tuple(
            Input(f.name, f.type_str, sweep.values[f.name].shape, sweep.values[f.name])
            if f.name in sweep.values
            else Input(f.name, f.type_str, next(data))
            for f in formals
        )
        yield Structure(operator, f"sweep{number}", inputs, 1, sweep.attributes)
