"""What ONNX Runtime adds to ONNX's operators: which of it is read, and where it is written with ONNX's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t10.frontend.rewrites import (
    contributed,
    contributed_attention,
    contributed_cache,
    contributed_experts,
    contributed_images,
    contributed_matrices,
    quantized_contributed,
    recurrent,
)
from t10.frontend.rewrites.apply import MOST_EXTENT, rewrite_by
from t10.frontend.rewrites.contributed import DOMAIN
from t10.frontend.rewrites.site import Rule
from t10.frontend.unsupported import STANDARD_DOMAINS

_RULES: dict[str, Rule] = {
    **contributed.RULES,
    **contributed_attention.RULES,
    **contributed_cache.RULES,
    **contributed_experts.RULES,
    **contributed_images.RULES,
    **contributed_matrices.RULES,
    **recurrent.CONTRIBUTED,
}
_PACKED = ("GatherBlockQuantized", "MatMulNBits")
"""Operators that `packed_weights` rewrites, where their weights are."""
_IN_STANDARD = ("SimplifiedLayerNormalization",)
"""Operators of ONNX Runtime that stand in ONNX's own domain."""

READ = frozenset(
    {
        *((DOMAIN, name) for name in (*_RULES, *_PACKED, *quantized_contributed.RULES)),
        *(("", name) for name in _IN_STANDARD),
    }
)
"""Domain and name of every operator of ONNX Runtime that is read, in some of its forms at least."""


ATTENTIONS = frozenset((DOMAIN, name) for name in ("Attention", "GroupQueryAttention", "MultiHeadAttention"))
"""Domain and name of those with scores."""

_MASKS = {"Attention": 3, "MultiHeadAttention": 4}
"""Which input is a mask."""


def known_reason(node: Any, shapes: Mapping[str, Sequence[int]]) -> tuple[str, str] | None:
    """Return why a node is in a form that has no rule, and what would help; None where that is not known."""
    names: list[str] = [*node.input]
    inputs = dict(enumerate(names))
    if node.op_type == "MatMulNBits" and inputs.get(4):
        return (
            f"has g_idx {inputs[4]!r} (expected weights in the order of their groups)",
            "quantise without reordering rows (GPTQ's desc_act or act_order off)",
        )
    options = {attribute.name: attribute.i for attribute in node.attribute}
    if node.op_type == "Attention" and options.get("do_rotary"):
        return (
            "has do_rotary = 1 (expected queries and keys that are not rotated)",
            "rotate them with RotaryEmbedding before a MultiHeadAttention",
        )
    if node.op_type == "DynamicQuantizeLSTM":
        return (
            "is not of f32, or has lengths of several sequences (expected f32, and one sequence or all of them whole)",
            "leave it out of the quantisation",
        )
    if node.op_type == "Inverse":
        most = contributed_matrices.MOST_ROWS
        return (
            f"is of matrices of more than {most} rows, or not of square ones in f32 or f16",
            "invert it on the host",
        )
    if node.op_type == "MoE" and any(names[6:]):
        return (
            "has a third product, fc3 (expected gates in fc1)",
            "give gates and values in fc1: swiglu_fusion 1",
        )
    if node.op_type == "MoE" and any(each.s == b"swiglu" for each in node.attribute):
        return (
            f"has swiglu_fusion {options.get('swiglu_fusion', 0)} (expected 1, as ONNX Runtime has on a CPU)",
            "let columns of gates and values in fc1_experts_weights alternate: g, v, g, v, ...",
        )
    mask = inputs.get(_MASKS.get(node.op_type, -1), "")
    if len(shapes.get(mask, ())) == 4:
        extents = "x".join(map(str, shapes[mask]))
        return (
            f"has a mask {mask!r} of extents {extents} (expected at most 3 dims)",
            "give a mask of [batch, keys] or [batch, queries, keys], or add 0 and -10000 as attention_bias",
        )
    return None


def rewrite_contributed(model: Any) -> bool:
    """Replace, in place, operators of ONNX Runtime whose operands have known types and extents; return if any."""
    own = {name: rule for name, rule in _RULES.items() if name in _IN_STANDARD}
    has_changed = rewrite_by(model, own, MOST_EXTENT, domains=STANDARD_DOMAINS)
    return rewrite_by(model, _RULES, MOST_EXTENT, domains=(DOMAIN,)) or has_changed


def rewrite_attentions(model: Any) -> bool:
    """Replace, in place, those of `ATTENTIONS` whose operands have known types and extents; return if any."""
    return rewrite_by(model, {name: _RULES[name] for _, name in ATTENTIONS}, MOST_EXTENT, domains=(DOMAIN,))
