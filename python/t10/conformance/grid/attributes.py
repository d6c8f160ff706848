"""Structures by attributes: every value of a string, a flag and an axis of a schema, and every pair of values of two.

The values of a string are its default and those that node tests of the onnx package have.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice, product
from typing import Any
from zlib import crc32

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from t10.conformance.grid.structure import Structure, formals_of

_onnx: Any = onnx
_evaluator: Any = ReferenceEvaluator
_KINDS: Any = _onnx.defs.OpSchema.AttrType

_NO_FLAGS = frozenset(
    {
        *("batch_dims", "block_size", "dtype", "group", "input_forget", "k", "max_gram_length", "new_axis"),
        *("offset_group", "output_datatype", "output_dtype", "output_height", "output_width", "precision"),
        *("qk_matmul_output_mode", "rotary_embedding_dim", "sample_size", "sampling_ratio", "start"),
        *("stash_type", "training_mode", "value_int"),
    }
)
"""Integers of a default 0 or 1 that are counts, types or places, or that no reference takes."""
_NO_CHOICES = frozenset({"equation", "pattern", "delimiter", "locale", "value_string"})
"""Strings that may be anything: there are no values to go through."""
_MOST_SETTINGS = 24
"""Structures that are made of others by replacing attributes, per operator."""

Form = tuple[tuple[bool, ...], int]
Part = tuple[tuple[str, Any], ...]


def varied(schema: Any, tests: Sequence[Structure], chosen: Sequence[Structure]) -> Iterator[Structure]:
    """Yield structures of values and pairs of values that no chosen one has; `tests` are those of node tests.

    Tests come first, then others with their attributes replaced, but for what ONNX does not take.
    """
    choices = _choices(schema, tests)
    seen = {part for each in chosen for part in _parts(schema, each, choices)}
    by_form: dict[Form, Structure] = {}
    for each in (*(each for each in chosen if each.label.startswith("sweep")), *tests):
        by_form.setdefault(_form(each), each)
    bases = list(by_form.values())
    for test in tests:
        parts = _parts(schema, test, choices)
        if not parts <= seen and set(test.attributes) <= set(schema.attributes):
            seen |= parts
            bases.append(test)
            yield replace(test, is_variation=True)
    yield from islice(_replaced(schema, bases or chosen[:1], choices, seen), _MOST_SETTINGS)


def _replaced(
    schema: Any, bases: Sequence[Structure], choices: Mapping[str, tuple[Any, ...]], seen: set[Part]
) -> Iterator[Structure]:
    """Yield bases with other attributes, as long as a value or a pair is not seen yet."""
    for base in bases:
        values = {**choices, **_axes(schema, base)}
        seen |= _parts(schema, base, values)
        settings = [dict(zip(values, setting, strict=True)) for setting in product(*values.values())]
        for setting in sorted(settings, key=lambda each: crc32(repr(each).encode())):
            before = {name: _value(schema, base, name) for name in setting}
            changed = ",".join(f"{n}={_text(v)}" for n, v in setting.items() if v != before[n])
            attributes = {**base.attributes, **setting}
            if setting.get("auto_pad", b"NOTSET") != b"NOTSET":
                attributes.pop("pads", None)
            found = replace(
                base, label=f"{base.label}-{changed}", attributes=attributes, is_elementwise=False, is_variation=True
            )  # fmt: skip
            parts = _parts(schema, found, values)
            if not parts <= seen and _is_taken(schema, found):
                seen |= parts
                yield found


def _choices(schema: Any, tests: Sequence[Structure]) -> dict[str, tuple[Any, ...]]:
    """Return the values of strings and flags by name."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, attribute in sorted(schema.attributes.items()):
        default = _default(attribute)
        if attribute.type == _KINDS.STRING and name not in _NO_CHOICES:
            used = [default, *(each.attributes.get(name) for each in tests)]
            found[name] = tuple(dict.fromkeys(value for value in used if value is not None))
        if attribute.type == _KINDS.INT and default in (0, 1) and name != "axis" and name not in _NO_FLAGS:
            found[name] = (0, 1)
    return found


def _axes(schema: Any, base: Structure) -> dict[str, tuple[int, ...]]:
    """Return axes of the first input, counted from both ends, where an attribute gives one."""
    first = base.inputs[0] if base.inputs else None
    if "axis" not in schema.attributes or first is None:
        return {}
    rank = len(first.shape)
    return {"axis": tuple(axis for axis in (0, -1, 1, -2, 2) if -rank <= axis < rank)}


def _form(structure: Structure) -> Form:
    """Return which inputs are there, and how many outputs."""
    return tuple(each is not None for each in structure.inputs), structure.n_outputs


def _parts(schema: Any, structure: Structure, names: Iterable[str]) -> set[Part]:
    """Return every value by name, and every pair of them, and with every value the form."""
    setting = [(name, _value(schema, structure, name)) for name in names]
    return {*((each,) for each in setting), *combinations([*setting, ("", _form(structure))], 2)}


def _value(schema: Any, structure: Structure, name: str) -> Any:
    value = structure.attributes.get(name, _default(schema.attributes[name]))
    return value.encode() if isinstance(value, str) else value


def _default(attribute: Any) -> Any:
    return helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _is_taken(schema: Any, structure: Structure) -> bool:
    """Return whether shape inference and the reference evaluator take it, with floats where it may have them."""
    infos: list[Any] = []
    inputs: dict[str, NDArray[Any]] = {}
    names = [f"x{i}" if each is not None else "" for i, each in enumerate(structure.inputs)]
    for name, each, formal in zip(names, structure.inputs, formals_of(schema, len(names)), strict=True):
        if each is None:
            continue
        kind = "tensor(float)" if "tensor(float)" in formal.types else min(formal.types)
        number = onnx.TensorProto.DataType.Value(kind[len("tensor(") : -1].upper())
        ones = np.ones(each.shape, helper.tensor_dtype_to_np_dtype(number))
        inputs[name] = ones if each.value is None else each.value
        number = helper.np_dtype_to_tensor_dtype(inputs[name].dtype)
        infos.append(helper.make_tensor_value_info(name, number, each.shape))
    outputs = [f"y{i}" for i in range(structure.n_outputs)]
    node = helper.make_node(structure.operator, names, outputs, **structure.attributes)
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    opset = helper.make_opsetid("", _onnx.defs.onnx_opset_version())
    model = helper.make_model(helper.make_graph([node], "grid", infos, results), opset_imports=[opset])
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            _onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
            found = _evaluator(model).run(None, inputs)
    except Exception:  # numpy, the C++ of onnx, and whatever an operator's reference is written with
        return False
    return all(isinstance(each, np.ndarray) and each.size for each in found)
