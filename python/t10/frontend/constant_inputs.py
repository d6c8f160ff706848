"""Inputs of operators that must be known before the model runs: shapes, axes, counts, bounds."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from t10.frontend.unsupported import STANDARD_DOMAINS, UnsupportedNode, title_of, unsupported

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

WORDS_BY_OPERATOR: dict[str, dict[int, str]] = {
    **{f"Reduce{word}": {1: "axes"} for word in _REDUCTIONS},
    **{f"{word}Window": {0: "size"} for word in ("Blackman", "Hamming", "Hann")},
    "AffineGrid": {1: "size"},
    "CenterCropPad": {1: "shape"},
    "Col2Im": {1: "image_shape", 2: "block_shape"},
    "ConstantOfShape": {0: "shape"},
    "CumProd": {1: "axis"},
    "CumSum": {1: "axis"},
    "DFT": {1: "dft_length", 2: "axis"},
    "Dropout": {1: "ratio", 2: "training_mode"},
    "Expand": {1: "shape"},
    "If": {0: "cond"},
    "Loop": {0: "trip count", 1: "cond"},
    "MaxUnpool": {2: "output_shape"},
    "MelWeightMatrix": {
        0: "num_mel_bins",
        1: "dft_length",
        2: "sample_rate",
        3: "lower_edge",
        4: "upper_edge",
    },
    "OneHot": {1: "depth"},
    "Pad": {1: "pads", 3: "axes"},
    "Range": {0: "start", 1: "limit", 2: "delta"},
    "Reshape": {1: "shape"},
    "Resize": {1: "roi", 2: "scales", 3: "sizes"},
    "STFT": {1: "frame_step", 3: "frame_length"},
    "SequenceAt": {1: "position"},
    "SequenceErase": {1: "position"},
    "SequenceInsert": {2: "position"},
    "Slice": {1: "starts", 2: "ends", 3: "axes", 4: "steps"},
    "Split": {1: "split"},
    "SplitToSequence": {1: "split"},
    "Squeeze": {1: "axes"},
    "Tile": {1: "repeats", 2: "axis"},
    "TopK": {1: "k"},
    "Trilu": {1: "k"},
    "Unsqueeze": {1: "axes"},
    "Upsample": {1: "scales"},
}
"""By operator, its inputs that must be constant and what ONNX calls them."""
_BOUNDED = ("If", "Loop", "TopK")
_CONTRIBUTED: dict[str, dict[int, str]] = {"GroupQueryAttention": {6: "total_sequence_length"}}
"""The same of ONNX Runtime's own."""


def constant_inputs(node: Any) -> dict[str, str]:
    """Return the values that a node needs as constants, and what ONNX calls each."""
    by_operator = _CONTRIBUTED if node.domain == "com.microsoft" else WORDS_BY_OPERATOR
    if node.domain not in (*STANDARD_DOMAINS, "com.microsoft"):
        return {}
    words = by_operator.get(node.op_type, {})
    return {node.input[i]: word for i, word in words.items() if i < len(node.input) and node.input[i]}


def computed_constants(
    model: Any, source: str, weights: Iterable[str], asked: Collection[str] = ()
) -> list[UnsupportedNode]:
    """Return the nodes that need a constant for what is known only when the model runs; constants are folded before.

    Each names the inputs of the model that it is computed from: fixed, they would make it constant. Left out are nodes
    that need but extents (`asked`) of other nodes that are refused, unless they would need a bound of their own.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    found: list[UnsupportedNode] = []
    for node in model.graph.node:
        computed = {name: word for name, word in constant_inputs(node).items() if name not in constants}
        is_follow_up = node.op_type not in _BOUNDED and all(name in asked for name in computed)
        if not computed or is_follow_up:
            continue
        origins = fixable_inputs(model, computed, weights)
        listed = ", ".join(f"{word} ({name!r} is computed)" for name, word in computed.items())
        hint = "export the model with constants there"
        if origins:
            hint += "".join(f", or fix input {name!r} with --constant {name}=..." for name in origins)
        if node.op_type == "If":
            hint += ", or give both branches results of one static shape"
        if node.op_type == "Loop":
            hint += f", or bound it: --bound {title_of(node)}=N"
        found.append(unsupported(node, source, f"needs constants for its {listed}", hint, origins))
    return found


def fixable_inputs(model: Any, names: Iterable[str], weights: Iterable[str]) -> tuple[str, ...]:
    """Return the inputs of the model that values are computed from, in order of name.

    Of what only the shape is asked for, the values do not count, but those that shapes are made from.
    """
    maker = {name: node for node in model.graph.node for name in node.output if name}
    inputs = {value.name for value in model.graph.input} - set(weights)
    stack, seen = [(name, True) for name in names], set[tuple[str, bool]]()
    while stack:
        name, is_value = stack.pop()
        if not name or (name, is_value) in seen:
            continue
        seen.add((name, is_value))
        node = maker.get(name)
        if node is None:
            continue
        only_shape = not is_value or node.op_type in ("Shape", "Size")
        stack.extend((source, not only_shape) for source in node.input)
        if not is_value:
            stack.extend((source, True) for source in constant_inputs(node))
    return tuple(sorted({name for name, is_value in seen if is_value} & inputs))
