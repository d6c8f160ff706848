"""The model of `t10 demo`: the feed-forward layer of BERT-base, whose weights are as large as the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx

from t10.version import VERSION

onnx: Any = untyped_onnx

TOKENS, HIDDEN, WIDE = 128, 768, 3072
SEED = 0
OPSET, IR_VERSION = 20, 9
TITLE = f"the feed-forward layer of BERT-base ({HIDDEN} -> {WIDE:,} -> {HIDDEN}, {TOKENS} tokens, f16)"


def write_demo_model(path: Path) -> None:
    """Write the layer, with random weights of the size that trained ones have, to an ONNX file."""
    make = onnx.helper
    dtype = onnx.TensorProto.FLOAT16
    rng = np.random.default_rng(SEED)

    def weight(name: str, *shape: int) -> Any:
        values = rng.standard_normal(shape) / np.sqrt(shape[0])
        return onnx.numpy_helper.from_array(values.astype(np.float16), name)

    nodes = [
        make.make_node(kind, inputs, [output], name=name, **attributes)
        for kind, inputs, output, name, attributes in (
            ("MatMul", ["x", "up.weight"], "up", "/up/MatMul", {}),
            ("Add", ["up", "up.bias"], "wide", "/up/Add", {}),
            ("Gelu", ["wide"], "active", "/Gelu", {}),
            ("MatMul", ["active", "down.weight"], "down", "/down/MatMul", {}),
            ("Add", ["down", "down.bias"], "narrow", "/down/Add", {}),
            ("Add", ["narrow", "x"], "sum", "/residual/Add", {}),
            ("LayerNormalization", ["sum", "norm.scale", "norm.bias"], "y", "/norm", {"axis": -1}),
        )
    ]
    graph = make.make_graph(
        nodes,
        "bert_feed_forward",
        [make.make_tensor_value_info("x", dtype, [TOKENS, HIDDEN])],
        [make.make_tensor_value_info("y", dtype, [TOKENS, HIDDEN])],
        [
            weight("up.weight", HIDDEN, WIDE),
            weight("up.bias", WIDE),
            weight("down.weight", WIDE, HIDDEN),
            weight("down.bias", HIDDEN),
            weight("norm.scale", HIDDEN),
            weight("norm.bias", HIDDEN),
        ],
    )
    model = make.make_model(
        graph,
        opset_imports=[make.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="t10 demo",
        producer_version=VERSION,
    )
    path.write_bytes(model.SerializeToString())
