"""Rows of which only the first are valid, followed through the operators that read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NoReturn

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from t10.errors import UnsupportedOpError
from t10.frontend.rewrites.bounded import FILL_KEY, OWNER_KEY, Bounds
from t10.frontend.unsupported import node_location, title_of

_SPREAD = frozenset(
    {
        *("Abs", "Add", "And", "Cast", "Ceil", "Clip", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu"),
        *("Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Less"),
        *(
            "LessOrEqual",
            "Log",
            "Max",
            "Mean",
            "Min",
            "Mod",
            "Mul",
            "Neg",
            "Not",
            "Or",
            "Pow",
            "Reciprocal",
            "Relu",
        ),
        *("Round", "Sigmoid", "Sign", "Softplus", "Sqrt", "Sub", "Sum", "Tanh", "Where"),
    }
)
"""Operators that compute each element of those at its place."""
_ALONG = frozenset({"Concat", "LayerNormalization", "LogSoftmax", "Slice", "Softmax", "Split"})
"""Operators that keep rows apart unless they go along these."""
_NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "ReduceSum": lambda dtype: 0,
    "ReduceSumSquare": lambda dtype: 0,
    "ReduceL1": lambda dtype: 0,
    "ReduceL2": lambda dtype: 0,
    "ReduceProd": lambda dtype: 1,
    "ReduceMax": lambda dtype: _limit(dtype, "min"),
    "ReduceMin": lambda dtype: _limit(dtype, "max"),
}
"""What changes nothing in a reduction."""
_FILLS: dict[str, Callable[[Any], Any]] = {
    "zero": lambda dtype: 0,
    "least": lambda dtype: _limit(dtype, "min"),
    "most": lambda dtype: _limit(dtype, "max"),
    "lowest": lambda dtype: np.finfo(dtype).min,
}
"""What invalid rows may have to hold (`FILL_KEY`)."""
_MOVES = frozenset({"Cast", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators whose result holds numbers of their first operand only."""
_OF_IMAGES = frozenset(
    {
        *("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace", "GlobalAveragePool"),
        *("GlobalLpPool", "GlobalMaxPool", "GroupNormalization", "InstanceNormalization", "LRN", "LpPool"),
        *("MaxPool", "SpaceToDepth"),
    }
)
"""Operators that compute what stands along their first axis apart."""
_REDUCED_APART = frozenset({"ArgMax", "ArgMin", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"})
"""Reductions that have no neutral number, or whose count matters: they go along other axes only."""
_TAKES_ROWS = frozenset({"Compress", "NonMaxSuppression", "NonZero", "TopK"})
"""Operators that leave invalid rows out if they have a bound of their own."""
_NOWHERE = 1 << 24
"""A place behind the end of every tensor: what is scattered there hits nothing."""


def _limit(dtype: Any, which: str) -> Any:
    """Return the least or greatest value of a type: an infinity of floats, False or True of bool."""
    if dtype == np.bool_:
        return which == "max"
    if dtype.kind in "iu":
        return getattr(np.iinfo(dtype), which)
    return np.inf if which == "max" else -np.inf


class Follower:
    """The rows of values by name, what is added to the graph on the way, and the node that is looked at."""

    def __init__(self, model: Any, bounds: Bounds, source: str) -> None:
        """Take what is known of the model's values."""
        graph = model.graph
        self.rows, self.source, self.places = dict(bounds.rows), source, set(bounds.places)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.kinds: dict[str, int] = {}
        for value in (*graph.input, *graph.value_info, *graph.output):
            kind = value.type.tensor_type
            self.kinds[value.name] = kind.elem_type
            self.shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        for tensor in graph.initializer:
            self.shapes[tensor.name], self.kinds[tensor.name] = tuple(tensor.dims), tensor.data_type
        self.constants: dict[str, NDArray[Any]] = {}
        self._before: list[Any] = []

    def followed(self, node: Any) -> list[Any]:
        """Return what stands for a node, which may read masked values; its results' rows are known behind it."""
        if node.op_type in _MOVES and node.input[0] in self.places:
            self.places.update(node.output)
        fill = next((entry.value for entry in node.metadata_props if entry.key == FILL_KEY), None)
        if fill is not None:
            return self._given(node, *fill.split("\n", 2))
        given = [(i, self.rows[name]) for i, name in enumerate(node.input) if name in self.rows]
        if not given or node.output[0] in self.rows:
            return [node]
        if node.op_type in ("Shape", "Size"):
            return [node]
        self._before = []
        if self._chooses(node):
            given = given[1:]
        if len({rows.valid for _, rows in given}) > 1:
            self._refuse(node)
        axes = self._axes(node, [(i, rows.axis) for i, rows in given])
        for name, axis in zip(node.output, axes, strict=False):
            if name and axis is not None:
                self.rows[name] = replace(given[0][1], axis=axis)
        return [*self._before, node]

    def _given(self, node: Any, fill: str, axis: str, like: str) -> list[Any]:
        """Return a node that hands on what a bounded operator reads, with a number in its invalid rows."""
        name = node.input[0]
        rows, others = self.rows.get(name), self.rows.get(like)
        if rows is None:
            return [node]
        if axis not in ("", str(rows.axis)) or (like and (others is None or others.valid != rows.valid)):
            self._refuse(node)
        self._before = []
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(self.kinds[name]))
        node.input[0] = self._masked(name, _FILLS[fill](dtype))
        return [*self._before, node]

    def _chooses(self, node: Any) -> bool:
        """Return whether a node gathers bounded rows by bounded places: valid places are those of valid rows.

        Places that were computed otherwise may be negative, which count from the last row.
        """
        if node.op_type != "Gather" or any(name not in self.rows for name in node.input):
            return False
        rank = len(self.shapes[node.input[0]])
        along = int(self._option(node, "axis", 0)) % rank
        return node.input[1] in self.places and self.rows[node.input[0]].axis == along

    def filled(self, nodes: list[Any], name: str) -> list[Any]:
        """Return nodes by which an output holds zeros in its invalid rows."""
        inner = f"{name}.rows"
        for node in nodes:
            for names in (node.input, node.output):
                for i, each in enumerate(names):
                    if each == name:
                        names[i] = inner
        self.kinds[inner], self.shapes[inner], self.rows[inner] = (
            self.kinds[name],
            self.shapes[name],
            self.rows[name],
        )
        self._before = []
        self._masked(inner, 0)
        self._before[-1].output[0] = name
        return [*nodes, *self._before]

    def _axes(self, node: Any, given: Sequence[tuple[int, int]]) -> list[int | None]:
        """Return the axis of the rows of every output, None where they have none."""
        n = len(node.output)
        if node.op_type in _SPREAD:
            return [self._spread(node, given)] * n
        places = [i for i, _ in given]
        axis, rank = given[0][1], len(self.shapes[node.input[given[0][0]]])
        if node.op_type in _ALONG and (node.op_type == "Concat" or places == [0]):
            return self._along(node, given, rank)
        if (node.op_type in _NEUTRAL or node.op_type in _REDUCED_APART) and places == [0]:
            return [self._reduced(node, axis, rank)] * n
        if node.op_type in ("ScatterND", "ScatterElements") and set(places) <= {1, 2} and 1 in places:
            return [self._scattered(node, given)] * n
        if node.op_type in ("MatMul", "RoiAlign") and len(places) > 1:
            return [self._side_by_side(node, given)] * n
        moved = self._moved(node, places, axis, rank)
        if moved is None:
            self._refuse(node)
        return [moved] * n

    def _moved(self, node: Any, places: list[int], axis: int, rank: int) -> int | None:
        """Return where the rows of one operand go, None for an operator that is not known to keep them apart."""
        if node.op_type in _OF_IMAGES and places == [0]:
            trains = node.op_type == "BatchNormalization" and self._option(node, "training_mode", 0)
            return 0 if axis == 0 and not trains else None
        if node.op_type == "RoiAlign" and places[0] > 0:
            return 0 if axis == 0 else None
        if node.op_type == "TopK" and places == [0]:
            return axis if int(self._option(node, "axis", -1)) % rank != axis else None
        if node.op_type == "Expand" and places == [0]:
            made = self.shapes.get(node.output[0], ())
            place = axis + len(made) - rank
            return place if made and made[place] == self.shapes[node.input[0]][axis] else None
        if node.op_type == "Transpose" and places == [0]:
            return list(self._option(node, "perm", range(rank)[::-1])).index(axis)
        if node.op_type in ("Squeeze", "Unsqueeze", "Reshape", "Flatten") and places == [0]:
            return self._reshaped(self.shapes[node.input[0]], self.shapes.get(node.output[0], ()), axis)
        if node.op_type in ("MatMul", "Gemm"):
            return self._product(node, places, axis, rank)
        if node.op_type == "Gather":
            along = int(self._option(node, "axis", 0)) % len(self.shapes[node.input[0]])
            if places == [1]:
                return along + axis
            if places == [0] and along != axis:
                return axis + (len(self.shapes[node.input[1]]) - 1 if along < axis else 0)
        if node.op_type == "GatherND" and places == [1] and not self._option(node, "batch_dims", 0):
            return axis if axis < rank - 1 else None
        return None

    def _spread(self, node: Any, given: Sequence[tuple[int, int]]) -> int:
        """Return the axis in the result of an elementwise operator, whose operands end at the same axis."""
        rank = len(self.shapes.get(node.output[0], ()))
        found = {axis + rank - len(self.shapes[node.input[i]]) for i, axis in given}
        if len(found) != 1:
            self._refuse(node)
        return found.pop()

    def _along(self, node: Any, given: Sequence[tuple[int, int]], rank: int) -> list[int | None]:
        axis = given[0][1]
        if any(each != axis for _, each in given):
            self._refuse(node)
        if node.op_type == "Slice":
            axes = self._constant(node, 3)
            gone = {int(each) % rank for each in axes} if axes is not None else set(range(rank))
        elif node.op_type == "LayerNormalization":
            gone = set(range(int(self._option(node, "axis", -1)) % rank, rank))
        else:
            default = -1 if node.op_type in ("Softmax", "LogSoftmax") else 0
            gone = {int(self._option(node, "axis", default)) % rank}
        if axis in gone:
            self._refuse(node)
        return [axis] * len(node.output)

    def _reduced(self, node: Any, axis: int, rank: int) -> int | None:
        """Return the axis behind a reduction; one along the rows leaves out the invalid ones."""
        if node.op_type in ("ArgMax", "ArgMin"):
            found = [self._option(node, "axis", 0)]
        else:
            axes = self._constant(node, 1) if len(node.input) > 1 and node.input[1] else None
            found = (
                self._option(node, "axes", list(range(rank))) if axes is None else axes.reshape(-1).tolist()
            )
        all_of_none = range(0 if self._option(node, "noop_with_empty_axes", 0) else rank)
        gone = {int(each) % rank for each in found or all_of_none}
        if axis not in gone:
            return axis if self._option(node, "keepdims", 1) else axis - sum(each < axis for each in gone)
        if node.op_type not in _NEUTRAL:
            self._refuse(node)
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(self.kinds[node.input[0]]))
        node.input[0] = self._masked(node.input[0], _NEUTRAL[node.op_type](dtype))
        return None

    def _side_by_side(self, node: Any, given: Sequence[tuple[int, int]]) -> int:
        """Return the axis in the result of an operator of several operands whose rows belong together."""
        if node.op_type == "RoiAlign" and set(given) == {(1, 0), (2, 0)}:
            return 0
        # From the end: matrices are stacked along the axes before the last two.
        found = {axis - len(self.shapes[node.input[i]]) for i, axis in given}
        if node.op_type != "MatMul" or len(found) != 1 or max(found) >= -2:
            self._refuse(node)
        return found.pop() + len(self.shapes.get(node.output[0], ()))

    def _scattered(self, node: Any, given: Sequence[tuple[int, int]]) -> None:
        """Let invalid rows hit nothing."""
        of_places = next(axis for i, axis in given if i == 1)
        rank = len(self.shapes[node.input[1]])
        is_row = node.op_type == "ScatterElements" or of_places < rank - 1
        if not is_row or any(axis != of_places for _, axis in given):
            self._refuse(node)
        node.input[1] = self._masked(node.input[1], _NOWHERE)

    def _product(self, node: Any, places: list[int], axis: int, rank: int) -> int | None:
        """Return the axis in a product, which must not add up the rows."""
        made = len(self.shapes.get(node.output[0], ()))
        is_turned = [node.op_type == "Gemm" and self._option(node, name, 0) for name in ("transA", "transB")]
        if len(places) != 1 or places[0] > 1 or rank < 2:
            return None
        of_rows = axis == rank - 2 if not is_turned[places[0]] else axis == rank - 1
        if axis < rank - 2:
            return axis + made - rank
        if places[0] == 0:
            return made - 2 if of_rows else None
        return None if of_rows else made - 1

    @staticmethod
    def _reshaped(before: tuple[int, ...], after: tuple[int, ...], axis: int) -> int | None:
        """Return the axis of the same rows behind a change of extents, None where they are cut or joined."""
        outer = prod(before[:axis])
        for place, extent in enumerate(after):
            if extent == before[axis] and prod(after[:place]) == outer:
                return place
        return None

    def _masked(self, name: str, fill: Any) -> str:
        """Write a value with a number in the invalid rows."""
        rows, shape = self.rows[name], self.shapes[name]
        stem = f"{name}.masked.{fill}"
        if f"{stem}.fill" in self.constants:
            return stem
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(self.kinds[name]))
        extents = [rows.n if axis == rows.axis else 1 for axis in range(len(shape))]
        self.constants[f"{stem}.shape"] = np.array(extents, np.int64)
        self.constants[f"{stem}.fill"] = np.array(fill, dtype)
        make = onnx.helper.make_node
        where = [f"{stem}.valid", name, f"{stem}.fill"]
        self._before.append(
            make("Reshape", [rows.valid, f"{stem}.shape"], [f"{stem}.valid"], name=f"{stem}.valid")
        )
        self._before.append(make("Where", where, [stem], name=stem))
        return stem

    @staticmethod
    def _option(node: Any, name: str, default: Any) -> Any:
        for attribute in node.attribute:
            if attribute.name == name:
                return onnx.helper.get_attribute_value(attribute)
        return default

    def _constant(self, node: Any, place: int) -> NDArray[Any] | None:
        name = node.input[place] if place < len(node.input) else ""
        return numpy_helper.to_array(self.tensors[name]) if name in self.tensors else None

    def _refuse(self, node: Any) -> NoReturn:
        """Refuse a node, or that of the model which it was written for."""
        owner = next((entry.value for entry in node.metadata_props if entry.key == OWNER_KEY), None)
        operator, title = (node.op_type, title_of(node)) if owner is None else owner.split("\n", 1)
        bound = next((self.rows[name].bound for name in node.input if name in self.rows), "")
        hint = "end the model before it, and compute it on the host from the rows that the count says"
        if operator in _TAKES_ROWS and owner is None:
            hint = f"bound it, too: --bound {title}=N"
        raise UnsupportedOpError(
            f"{operator} is not known to keep invalid rows of the bounded result {bound!r} apart from others",
            operator=title,
            location=node_location(node, self.source),
            hint=hint,
        )
