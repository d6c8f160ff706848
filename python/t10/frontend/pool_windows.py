"""Where the windows of a pool lie, and pools without `ceil_mode`: explicit pads that make the same windows.

MaxPool(ceil_mode=1, pads=[1, 1], 5 elements, steps of 2)   becomes   MaxPool(pads=[1, 0])

ONNX's shape inference counts a last window that begins behind the elements; before opset 22 it does so for every pool.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from t10.errors import InputError
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.reading import reading
from t10.frontend.shapes import infer_shapes
from t10.frontend.unsupported import STANDARD_DOMAINS

Shape = tuple[int, ...]
POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows along one axis: `n` elements between `low` and `high` given zeros; `n_windows` of them are computed."""

    n: int
    kernel: int
    stride: int
    dilation: int
    low: int
    high: int
    n_windows: int

    @property
    def reach(self) -> int:
        """Return how many zeros the last window needs behind the elements."""
        last = (self.n_windows - 1) * self.stride + (self.kernel - 1) * self.dilation + 1
        return max(last - self.n - self.low, 0)

    def counts(self) -> NDArray[np.float64]:
        """Return how many taps of every window lie on elements."""
        windows, taps = np.arange(self.n_windows)[:, None], np.arange(self.kernel)[None, :]
        places = windows * self.stride + taps * self.dilation - self.low
        return ((places >= 0) & (places < self.n)).sum(axis=1).astype(np.float64)


def windows_of(node: Any, spatial: Shape) -> tuple[Windows, ...]:
    """Return the windows of a pool along every spatial axis."""
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    rank, kernel = len(spatial), given["kernel_shape"]
    strides, dilations = (given.get(name, [1] * rank) for name in ("strides", "dilations"))
    pads, auto = given.get("pads", [0] * 2 * rank), given.get("auto_pad", b"NOTSET").decode()
    is_ceil = bool(given.get("ceil_mode", 0))
    found: list[Windows] = []
    for i, n in enumerate(spatial):
        span = (kernel[i] - 1) * dilations[i] + 1
        low, high = (pads[i], pads[i + rank]) if auto == "NOTSET" else (0, 0)
        if auto.startswith("SAME"):
            missing = max((-(-n // strides[i]) - 1) * strides[i] + span - n, 0)
            low = missing // 2 if auto == "SAME_UPPER" else missing - missing // 2
            high = missing - low
        room = n + low + high - span
        count = (-(-room // strides[i]) if is_ceil else room // strides[i]) + 1
        # A window that would start behind the elements and the zeros before them is left out.
        is_behind = is_ceil and (count - 1) * strides[i] >= n + low
        found.append(Windows(n, kernel[i], strides[i], dilations[i], low, high, count - int(is_behind)))
    return tuple(found)


def without_ceil_mode(model: Any, source: str) -> Any:
    """Return the model, its shapes inferred, with pools of known shapes without `ceil_mode`.

    Raises `InputError` where the model declares another result than a pool makes.
    """
    outputs = deepcopy(list(model.graph.output))
    declared = {value.name: _shape(value) for value in outputs}
    while True:
        model = infer_shapes(model, source)
        shapes = {value.name: _shape(value) for value in (*model.graph.input, *model.graph.value_info)}
        places = (
            i for i, node in enumerate(model.graph.node) if _rounds_up(node) and shapes.get(node.input[0])
        )
        place = next(places, None)
        if place is None:
            return model
        nodes = list(model.graph.node)
        spatial = shapes[nodes[place].input[0]][2:]
        with reading(nodes[place]):
            nodes[place : place + 1] = _explicit(nodes[place], windows_of(nodes[place], spatial), declared)
        replace_all(model.graph.node, nodes)
        replace_all(model.graph.output, outputs)  # what was inferred with windows in the padding is wrong


def _rounds_up(node: Any) -> bool:
    names = {a.name: a for a in node.attribute}
    is_pool = node.op_type in POOLS and node.domain in STANDARD_DOMAINS and "kernel_shape" in names
    return is_pool and "ceil_mode" in names and bool(names["ceil_mode"].i)


def _explicit(node: Any, windows: tuple[Windows, ...], declared: dict[str, Shape]) -> list[Any]:
    """Return a pool with the pads that make its windows; zeros that an average counts become elements first."""
    made, stated = tuple(axis.n_windows for axis in windows), declared.get(node.output[0], ())
    if stated and stated[2:] != made:
        raise InputError(
            f"{node.op_type} makes {made}, the model declares {stated[2:]} behind batch and channels",
            operator=node.name or node.output[0],
            hint="leave the shape out of the model, or export it again",
        )
    before: list[Any] = []
    low, high = [axis.low for axis in windows], [axis.reach for axis in windows]
    if any(a.name == "count_include_pad" and a.i for a in node.attribute):
        given = [0, 0, *low, 0, 0, *(axis.high for axis in windows)]
        name = f"{node.output[0]}.given"
        values = onnx.numpy_helper.from_array(np.array(given, np.int64))
        before = [
            onnx.helper.make_node("Constant", [], [f"{name}.pads"], name=node.name, value=values),
            onnx.helper.make_node("Pad", [node.input[0], f"{name}.pads"], [name], name=node.name),
        ]
        for each in before:
            each.metadata_props.extend(node.metadata_props)
        node.input[0] = name
        low, high = [0] * len(low), [max(axis.reach - axis.high, 0) for axis in windows]
    dropped = ("ceil_mode", "auto_pad", "pads", "count_include_pad")
    kept = [a for a in node.attribute if a.name not in dropped]
    replace_all(node.attribute, [*kept, onnx.helper.make_attribute("pads", [*low, *high])])
    return [*before, node]


def _shape(value: Any) -> Shape:
    """Return a static shape, () where a dim is unknown."""
    dims = value.type.tensor_type.shape.dim
    return tuple(dim.dim_value for dim in dims) if all(dim.HasField("dim_value") for dim in dims) else ()
