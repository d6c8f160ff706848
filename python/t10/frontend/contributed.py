"""What ONNX Runtime adds to ONNX's operators: which of it is read, and where it is written with ONNX's own."""

from __future__ import annotations

from typing import Any

from t10.frontend.rewrites import contributed, contributed_attention, contributed_cache, quantized_contributed
from t10.frontend.rewrites.apply import MOST_EXTENT, rewrite_by
from t10.frontend.rewrites.contributed import DOMAIN
from t10.frontend.rewrites.site import Rule
from t10.frontend.unsupported import STANDARD_DOMAINS

_RULES: dict[str, Rule] = {
    **contributed.RULES,
    **contributed_attention.RULES,
    **contributed_cache.RULES,
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


def rewrite_contributed(model: Any) -> bool:
    """Replace, in place, operators of ONNX Runtime whose operands have known types and extents; return if any."""
    own = {name: rule for name, rule in _RULES.items() if name in _IN_STANDARD}
    has_changed = rewrite_by(model, own, MOST_EXTENT, domains=STANDARD_DOMAINS)
    return rewrite_by(model, _RULES, MOST_EXTENT, domains=(DOMAIN,)) or has_changed
