"""Islands of f64 are computed in f32: the chip has no f64.

```mlir
%0 = arith.extf %x : f16 to f64          %0 = arith.extf %x : f16 to f32
%1 = math.sqrt %0 : f64           ->     %1 = math.sqrt %0 : f32
%2 = arith.truncf %1 : f64 to f16        %2 = arith.truncf %1 : f32 to f16
```

An island is what f64 values are computed from each other, anywhere in the module. It is narrowed where nothing but f32,
f16, weights and constants come in, and nothing but f32, f16, comparisons and integers of up to 32 bits come out: an
input or output of f64 keeps its type and what hangs together with it. So do integers of more than 16 bits that come in,
and weights and constants that f32 makes infinite or zero: f64 holds them and f32 does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.dialect.elements import elements
from t10.dialect.mlir import ir, walk
from t10.frontend.imported import ImportedModel
from t10.frontend.lower import NAME

WIDE, NARROW = "f64", "f32"
LARGEST = float(np.finfo(np.float32).max)
MASKED = float(np.finfo(np.float64).max)
"""The largest number of f64. It stands for the largest there is: models mask with it, and f32 has a largest one too."""
_INTEGERS = ("i1", "i8", "i16")
"""Integers that f32 holds."""
_NARROWED = ("linalg", "math", "tensor")
"""Dialects whose operations mean the same on f32."""
_ARITH = frozenset(
    f"arith.{name}"
    for name in (
        "addf", "cmpf", "divf", "extf", "maximumf", "maxnumf", "minimumf", "minnumf", "mulf", "negf",
        "remf", "select", "sitofp", "subf", "truncf", "uitofp",
    )
)  # fmt: skip


def narrow_islands(model: ImportedModel) -> ImportedModel:
    """Return a model whose islands of f64 are f32, and their weights with them; its module is changed."""
    function = next(op.operation for op in model.module.body.operations if op.operation.name == "func.func")
    if not any(_is_wide(value) for op in walk(function) for value in _values(op.operation)):
        return model
    with model.module.context, function.location:
        _split_constants(function)
        weights = dict(_weights(function, model.weight_names))
        held = [value for name, value in weights.items() if _is_wide(value) and _is_held(model.weights[name])]
        islands = _Islands(function, held)
        rounded = {name for name, value in weights.items() if islands.is_narrowed(value)}
        islands.narrow()
    values = {name: _rounded(each) if name in rounded else each for name, each in model.weights.items()}
    return replace(model, weights=values)


def _weights(function: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a function that are weights, by name."""
    block, wanted = function.regions[0].blocks[0], frozenset(names)
    entries = list(ir.ArrayAttr(function.attributes["arg_attrs"])) if block.arguments else []
    for argument, entry in zip(block.arguments, entries, strict=True):
        name = ir.StringAttr(ir.DictAttr(entry)[NAME]).value
        if name in wanted:
            yield name, argument


def _rounded(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return values rounded to f32, the largest of f64 to the largest it has."""
    return np.where(np.isinf(values), values, np.clip(values, -LARGEST, LARGEST)).astype(np.float32)


def _is_held(values: NDArray[Any]) -> bool:
    """Return whether f32 holds values to within its accuracy: it makes none infinite, and only zeros zero."""
    with np.errstate(over="ignore", under="ignore"):
        narrow = values.astype(np.float32)
    is_masked = np.abs(values) == MASKED
    has_changed = (np.isinf(narrow) & ~is_masked) != np.isinf(values)
    return not (has_changed | ((narrow == 0) != (values == 0))).any()


def _is_wide(value: Any) -> bool:
    return str(_element(value.type)) == WIDE


def _element(kind: Any) -> Any:
    return kind.element_type if isinstance(kind, ir.RankedTensorType) else kind


class _Islands:
    """The f64 values of a function, joined where an operation has several; those of `kept` sets stay f64.

    `weights` are the arguments that may be narrowed.
    """

    def __init__(self, function: Any, weights: Iterable[Any]) -> None:
        self.function = function
        self.parents: dict[Any, Any] = {}
        self.operations = [op.operation for op in walk(function)]
        arguments, of_weights = function.regions[0].blocks[0].arguments, set(weights)
        kept = [value for value in arguments if _is_wide(value) and value not in of_weights]
        for op in self.operations[1:]:
            wide = [value for value in _values(op) if _is_wide(value)]
            for value in wide[1:]:
                self.parents[self._root(value)] = self._root(wide[0])
            kept += [] if _may_narrow(op) else wide
        self.kept = frozenset(map(self._root, kept))

    def _root(self, value: Any) -> Any:
        while self.parents.get(value, value) != value:
            value = self.parents[value]
        return value

    def is_narrowed(self, value: Any) -> bool:
        """Return whether a value is of f64 and of an island that becomes f32."""
        return _is_wide(value) and self._root(value) not in self.kept

    def narrow(self) -> None:
        """Give every value of the islands its new type."""
        made = {value for op in self.operations for value in _values(op)}
        arguments = self.function.regions[0].blocks[0].arguments
        for value in [each for each in (*arguments, *made) if self.is_narrowed(each)]:
            owner = value.owner
            if not isinstance(owner, ir.Block) and owner.operation.name == "arith.constant":
                owner.operation.attributes["value"] = _constant(owner.operation.attributes["value"])
            value.set_type(_narrow_type(value.type))
        for op in self.operations:
            if op.name in ("arith.extf", "arith.truncf") and op.operands[0].type == op.results[0].type:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()
        kind = ir.FunctionType(ir.TypeAttr(self.function.attributes["function_type"]).value)
        made_type = ir.FunctionType.get([argument.type for argument in arguments], kind.results)
        self.function.attributes["function_type"] = ir.TypeAttr.get(made_type)


def _values(op: Any) -> list[Any]:
    """Return the values an operation joins: operands, results, the arguments of its blocks and what these yield."""
    blocks = [block for region in op.regions for block in region.blocks]
    ends = [block.operations[len(block.operations) - 1].operation for block in blocks]
    inside = [
        value for block, end in zip(blocks, ends, strict=True) for value in (*block.arguments, *end.operands)
    ]
    return [*op.operands, *op.results, *inside]


def _split_constants(function: Any) -> None:
    """Give every reader of an f64 constant, or of an empty tensor, one of its own: it joins no islands."""
    for op in [each.operation for each in walk(function)]:
        if op.name not in ("arith.constant", "tensor.empty") or not _is_wide(op.results[0]):
            continue
        for use in list(op.results[0].uses)[1:]:
            copy = op.clone(ip=ir.InsertionPoint(op))
            use.owner.operands[use.operand_number] = copy.operation.results[0]


def _may_narrow(op: Any) -> bool:
    """Return whether an operation on f64 is one on f32 as well."""
    if op.name == "arith.constant":
        return not _is_wide(op.results[0]) or _is_held(_values_of(op.attributes["value"]))
    if op.name in ("arith.sitofp", "arith.uitofp"):
        return str(_element(op.operands[0].type)) in _INTEGERS
    if op.name in ("arith.fptosi", "arith.fptoui"):
        return str(_element(op.results[0].type)) in (*_INTEGERS, "i32")
    return op.name in _ARITH or op.name.partition(".")[0] in _NARROWED


def _narrow_type(kind: Any) -> Any:
    narrow = ir.F32Type.get()
    return ir.RankedTensorType.get(kind.shape, narrow) if isinstance(kind, ir.RankedTensorType) else narrow


def _values_of(attribute: Any) -> NDArray[np.float64]:
    """Return the values of a constant in f64."""
    if isinstance(attribute, ir.FloatAttr):
        return np.array(attribute.value)
    if attribute.is_splat:
        return np.array(attribute.get_splat_value().value)
    values = elements(attribute, WIDE)
    assert values is not None, "a resource is a weight"
    return values


def _constant(attribute: Any) -> Any:
    """Return a constant's value in f32."""
    values = _rounded(_values_of(attribute))
    if isinstance(attribute, ir.FloatAttr):
        return ir.FloatAttr.get(ir.F32Type.get(), float(values))
    kind = _narrow_type(attribute.type)
    if attribute.is_splat:
        return ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(ir.F32Type.get(), float(values)))
    return ir.DenseElementsAttr.get(values, type=kind)
