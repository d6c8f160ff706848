"""Structures of operators beside their node tests: attributes, shapes of data, values of structural inputs by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """One structure; `shapes` are those of the inputs that are data, in their order."""

    shapes: tuple[Shape, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    values: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])


def _ints(**values: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    return {name: np.array(numbers, np.int64) for name, numbers in values.items()}


_REDUCTIONS = (
    *(
        Sweep((shape,), {"keepdims": 0}, _ints(axes=axes))
        for shape, axes in (
            ((3, 7, 5), (1,)),
            ((4, 1024), (1,)),
            ((1, 17, 96), (0, 2)),
            ((2, 64, 13), (0,)),
        )
    ),
    Sweep(((61, 13),), {"keepdims": 1}),
)
_ALONG_AXIS = tuple(
    Sweep((shape,), {"axis": axis}) for shape, axis in (((3, 7, 5), 1), ((4, 257), 1), ((61, 13), 0))
)
_PRODUCTS = tuple(
    Sweep(shapes)
    for shapes in (
        ((5, 7), (7, 3)),
        ((1, 61), (61, 1)),
        ((2, 3, 17, 32), (32, 13)),
        ((16, 128), (128, 64)),
    )
)
_CONVOLUTIONS = (
    Sweep(((1, 3, 11, 13), (8, 3, 3, 3)), {"pads": [1, 1, 1, 1]}),
    Sweep(((2, 8, 9, 9), (8, 2, 3, 3)), {"strides": [2, 2], "group": 4}),
    Sweep(((1, 5, 17), (7, 5, 3)), {"dilations": [2]}),
    Sweep(((1, 16, 8, 8), (32, 16, 1, 1))),
)
_POOLS = (
    Sweep(((1, 2, 7, 5),), {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
    Sweep(
        ((1, 2, 4, 4),),
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    ),
    Sweep(((2, 3, 61),), {"kernel_shape": [3], "pads": [1, 1]}),
    Sweep(((1, 17, 8, 8),), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
)
_WHOLE_IMAGES = tuple(Sweep((shape,)) for shape in ((1, 3, 7, 5), (2, 13, 64), (1, 2, 32, 33)))
_ROWS = (Sweep(((3, 5, 61), (61,)), {"axis": -1}), Sweep(((16, 768), (768,)), {"axis": -1}))
_SLICES = tuple(
    Sweep(((61, 13),), {}, _ints(starts=starts, ends=ends, axes=(0, 1), steps=steps))
    for starts, ends, steps in (((1, 0), (60, 13), (3, 2)), ((-1, 5), (-100, 6), (-2, 1)))
)
_LOOK_UPS = (
    Sweep(((13, 7),), {"axis": 0}, {"indices": (np.arange(21).reshape(3, 7) * 5 % 13).astype(np.int64)}),
)


def _recurrent(n_gates: int, **attributes: int) -> tuple[Sweep, ...]:
    """Return a cell of one and of two directions, of 4 steps, 2 rows, 5 inputs and 3 states."""
    return tuple(
        Sweep(
            ((4, 2, 5), (n, 3 * n_gates, 5), (n, 3 * n_gates, 3), (n, 6 * n_gates)),
            {"hidden_size": 3, "direction": direction, **attributes},
        )
        for n, direction in ((1, "reverse"), (2, "bidirectional"))
    )


_SUMS_ALONG = (Sweep(((3, 17),), {}, {"axis": np.array(1, np.int64)}),)

SWEEPS: Mapping[str, tuple[Sweep, ...]] = {
    **dict.fromkeys(
        (
            *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
            *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
        ),
        _REDUCTIONS,
    ),
    **dict.fromkeys(("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax"), _ALONG_AXIS),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _PRODUCTS),
    **dict.fromkeys(("Conv", "ConvInteger"), _CONVOLUTIONS),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _POOLS),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), _WHOLE_IMAGES),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _ROWS),
    **dict.fromkeys(("Gather", "GatherElements"), _LOOK_UPS),
    **dict.fromkeys(("CumSum", "CumProd"), _SUMS_ALONG),
    "Gemm": (
        Sweep(((13, 5), (11, 13), (5, 11)), {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}),
        Sweep(((1, 61), (61, 32), (32,))),
    ),
    "ConvTranspose": (Sweep(((1, 3, 5, 7), (3, 4, 3, 3)), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),),
    "DepthToSpace": tuple(Sweep(((2, 18, 4, 5),), {"blocksize": 3, "mode": mode}) for mode in ("CRD", "DCR")),
    "SpaceToDepth": (Sweep(((2, 5, 6, 9),), {"blocksize": 3}),),
    "RNN": _recurrent(1),
    "GRU": _recurrent(3, linear_before_reset=1),
    "LSTM": _recurrent(4),
    "Transpose": (Sweep(((3, 7, 16),), {"perm": [2, 0, 1]}), Sweep(((61, 61),), {"perm": [1, 0]})),
    "Concat": (Sweep(((3, 1, 5), (3, 7, 5), (3, 16, 5)), {"axis": 1}),),
    "Reshape": (Sweep(((61, 16),), {}, _ints(shape=(4, 61, 4))),),
    "Slice": _SLICES,
    "Pad": tuple(
        Sweep(((3, 7, 13),), {"mode": mode}, _ints(pads=(0, 2, 1, 0, 1, 3)))
        for mode in ("constant", "reflect", "edge")
    ),
    "Expand": (Sweep(((7, 1, 5),), {}, _ints(shape=(3, 7, 13, 5))),),
    "Tile": (Sweep(((7, 5),), {}, _ints(repeats=(3, 2))),),
    "Where": tuple(Sweep((shape, shape, shape)) for shape in ((61, 61), (7, 1, 5), ())),
    "Clip": (Sweep(((61, 61), (), ())),),
    "BatchNormalization": (Sweep(((2, 7, 5, 3), (7,), (7,), (7,), (7,))),),
}
