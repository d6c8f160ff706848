"""Attention of ONNX Runtime's domain with packed or apart heads, and rotary embeddings.

Masks are added as ONNX Runtime adds them: `mask_filter_value` where a key is masked.
"""

from __future__ import annotations

import numpy as np

from t10.frontend.rewrites.heads import (
    Heads,
    Rotation,
    Weighing,
    at_most,
    attend,
    below,
    merge_heads,
    places,
    scale_of,
    split_heads,
)
from t10.frontend.rewrites.site import KIND, Rule, Site

FLOATS = (KIND.FLOAT, KIND.FLOAT16)


def _masked(site: Site, place: int, heads: Heads, kind: int) -> str | None:
    """Write a mask as what is added to scores; None for a form that is not known."""
    shape, batch, keys = site.shape(place), heads.batch, heads.n_keys
    if shape is None:
        return None
    mask = site.input(place)
    if shape == (batch,):
        hidden = site.op("Not", below(site, places(site, keys, 3), _ends(site, mask, 0, batch)))
    elif shape == (2 * batch,):
        behind = site.op("Not", below(site, places(site, keys, 3), _ends(site, mask, 0, batch)))
        before = below(site, places(site, keys, 3), _ends(site, mask, batch, batch))
        hidden = site.op("Or", behind, before)
    elif shape in ((batch, keys), (batch, heads.n_queries, keys)):
        wide = (batch, 1, 1, keys) if len(shape) == 2 else (batch, 1, heads.n_queries, keys)
        hidden = site.op(
            "Not", site.op("Greater", site.reshape(mask, wide), site.scalar(0, site.kind(place)))
        )
    else:
        return None
    filtered = site.scalar(float(site.option("mask_filter_value", -10000.0)), kind)
    return site.op("Where", hidden, filtered, site.scalar(0, kind))


def _ends(site: Site, mask: str, first: int, batch: int) -> str:
    part = site.slice(mask, 0, first, first + batch)
    return site.reshape(site.cast(part, KIND.INT32), (batch, 1, 1, 1))


def _causal(site: Site, heads: Heads, n_past: int) -> str:
    """Write which keys a query may see: those of the past, and those behind it up to its own place.

    The last query sees all keys in ONNX Runtime, also where there are more of them than queries.
    """
    ends = np.arange(n_past, n_past + heads.n_queries, dtype=np.int32)
    ends[-1:] = heads.n_keys - 1
    return at_most(site, places(site, heads.n_keys, 3), site.constant(ends.reshape(1, 1, -1, 1)))


def _finish(
    site: Site, heads: Heads, mask: int, bias: int, kind: int, *, n_past: int
) -> tuple[str, str] | None:
    """Write attention with the mask and the bias at two places; return its result, and its scores."""
    terms: list[str] = []
    if site.input(mask):
        term = _masked(site, mask, heads, kind)
        if term is None:
            return None
        terms.append(term)
    if site.input(bias):
        terms.append(site.input(bias))
    allowed = _causal(site, heads, n_past) if site.option("unidirectional", 0) else ""
    how = Weighing(scale_of(site, heads.size), terms=terms, allowed=allowed)
    made, scores, _ = attend(site, heads, how, kind)
    return merge_heads(site, made, heads), scores


def _attention(site: Site) -> bool:
    """Write com.microsoft.Attention: one product makes queries, keys and values."""
    kind = site.kind(0)
    if kind not in FLOATS or site.input(6):
        return False
    projected = site.op("MatMul", site.input(0), site.input(1))
    if site.input(2):
        projected = site.op("Add", projected, site.input(2))
    return _attended(site, projected, kind, mask=3, past=4, bias=5)


def _quantized_attention(site: Site) -> bool:
    """Write com.microsoft.QAttention: an integer product makes queries, keys and values."""
    kind = site.kind(3)
    if kind not in FLOATS:
        return False
    total = site.op("MatMulInteger", *(site.input(place) for place in (0, 1, 6, 7)))
    scale = site.op("Mul", site.input(3), site.input(4))
    projected = site.op("Add", site.op("Mul", site.cast(total, kind), scale), site.input(2))
    return _attended(site, projected, kind, mask=5, past=8, bias=_NOWHERE)


_NOWHERE = 99
"""The place of an input that no node has."""


def _attended(site: Site, projected: str, kind: int, *, mask: int, past: int, bias: int) -> bool:
    """Write attention of queries, keys and values side by side; other operands are inputs at some places."""
    shape, weights, n = site.shape(0), site.shape(1), int(site.option("num_heads", 0))
    is_odd = site.option("do_rotary", 0) or site.option("past_present_share_buffer", 0)
    if shape is None or weights is None or len(shape) != 3 or n < 1 or is_odd:
        return False
    batch, length, _ = shape
    widths = [int(each) for each in site.option("qkv_hidden_sizes", [])] or [weights[1] // 3] * 3
    parts: list[str] = []
    for i, width in enumerate(widths):
        start = sum(widths[:i])
        part = site.slice(projected, 2, start, start + width)
        parts.append(split_heads(site, part, batch, length, n, width // n))
    q, k, v = parts
    before = site.shape(past) if site.input(past) else None
    if site.input(past) and before is None:
        return False
    if before is not None:
        of_past = [site.reshape(site.slice(site.input(past), 0, i, i + 1), before[1:]) for i in (0, 1)]
        k, v = (site.concat([old, new], 2) for old, new in zip(of_past, (k, v), strict=True))
    n_past = before[3] if before is not None else 0
    keys = length + n_past
    heads = Heads(q, k, v, batch, n, n, length, keys, widths[0] // n, widths[2] // n)
    made = _finish(site, heads, mask, bias, kind, n_past=n_past)
    if made is None:
        return False
    site.give(made[0])
    if site.output(1):
        both = [site.reshape(each, (1, batch, n, keys, widths[1] // n)) for each in (k, v)]
        site.give(site.concat(both, 0), 1)
    return True


def _multi_head(site: Site) -> bool:
    """Write com.microsoft.MultiHeadAttention."""
    kind, n = site.kind(0), int(site.option("num_heads", 0))
    if kind not in FLOATS or n < 1 or site.input(8) or site.input(9):
        return False
    found = _apart(site, n)
    if found is None:
        return False
    heads = _with_past(site, found)
    if heads is None:
        return False
    made = _finish(site, heads, 4, 5, kind, n_past=heads.n_keys - found.n_keys)
    if made is None:
        return False
    site.give(made[0])
    for place, name in ((1, heads.k), (2, heads.v), (3, made[1])):
        site.give(name, place)
    return True


def _apart(site: Site, n: int) -> Heads | None:
    """Write queries, keys and values as heads, their bias added, from the forms in which they may be given."""
    query, key, value = (site.shape(place) for place in range(3))
    if query is None or (site.input(1) and key is None) or (site.input(2) and value is None):
        return None
    batch, length = query[:2]
    if len(query) == 5:
        parts = [_part(site, 0, 3, i, query) for i in range(3)]
        return _biased(site, [*parts], (batch, n, length, length, query[4], query[4]), (True, True, True))
    if key is None or len(query) != 3:
        return None
    size = query[2] // n
    q = split_heads(site, site.input(0), batch, length, n, size)
    if len(key) == 5:
        k, v = (_part(site, 1, 2, i, key) for i in range(2))
        return _biased(site, [q, k, v], (batch, n, length, key[1], size, size), (True, True, True))
    if value is None:
        return None
    if len(key) == 4:
        extents = (batch, n, length, key[2], size, value[3])
        return _biased(site, [q, site.input(1), site.input(2)], extents, (True, False, False))
    k = split_heads(site, site.input(1), batch, key[1], n, size)
    v = split_heads(site, site.input(2), batch, key[1], n, value[2] // n)
    return _biased(site, [q, k, v], (batch, n, length, key[1], size, value[2] // n), (True, True, True))


def _part(site: Site, place: int, n_parts: int, i: int, shape: tuple[int, ...]) -> str:
    """Write one part of [batch, length, n, parts, size] as [batch, n, length, size]."""
    batch, length, n, _, size = shape
    part = site.slice(site.input(place), 3, i, i + 1) if n_parts > 1 else site.input(place)
    return split_heads(site, part, batch, length, n, size)


def _biased(
    site: Site, parts: list[str], extents: tuple[int, int, int, int, int, int], has_bias: tuple[bool, ...]
) -> Heads:
    batch, n, length, keys, size, v_size = extents
    if site.input(3):
        start = 0
        for i, width in enumerate((n * size, n * size, n * v_size)):
            if has_bias[i]:
                row = site.slice(site.input(3), 0, start, start + width)
                parts[i] = site.op("Add", parts[i], site.reshape(row, (1, n, 1, width // n)))
            start += width
    q, k, v = parts
    return Heads(q, k, v, batch, n, n, length, keys, size, v_size)


def _with_past(site: Site, heads: Heads) -> Heads | None:
    """Put keys and values of the past before those of a node; None where the extents of the past are not known."""
    if not site.input(6):
        return heads
    past = site.shape(6)
    if past is None or not site.input(7):
        return None
    k = site.concat([site.input(6), heads.k], 2)
    v = site.concat([site.input(7), heads.v], 2)
    keys = heads.n_keys + past[2]
    extents = (heads.batch, heads.n, heads.n, heads.n_queries, keys, heads.size, heads.v_size)
    return Heads(heads.q, k, v, *extents)


def _rotary(site: Site) -> bool:
    """Write com.microsoft.RotaryEmbedding of [batch, length, width] or [batch, n, length, size]."""
    shape, cache, at = site.shape(0), site.shape(2), site.shape(1)
    if shape is None or cache is None or at is None or len(shape) not in (3, 4):
        return False
    if site.option("is_packed_batching", 0) or float(site.option("scale", 1.0)) != 1.0:
        return False
    n_turned = 2 * cache[1]
    n = int(site.option("num_heads", 0))
    if len(shape) == 4:
        batch, n, length, size = shape
    else:
        batch, length, width = shape
        size = width // n if n else n_turned
        n = width // size
    if n_turned > size:
        return False
    x = site.input(0) if len(shape) == 4 else split_heads(site, site.input(0), batch, length, n, size)
    rows = site.input(1)
    if at == (1,):
        rows = site.op("Add", rows, site.constant(np.arange(length, dtype=site.dtype(1))))
    leading = 1 if at == (1,) else batch
    rotation = rotation_at(
        site, rows, (2, 3), (leading, length), bool(site.option("interleaved", 0)), cache[1]
    )
    turned = rotation.turn(site, x, (batch, n, length, size))
    if len(shape) == 3:
        turned = site.reshape(site.transpose(turned, (0, 2, 1, 3)), shape)
    site.give(turned)
    return True


def rotation_at(
    site: Site, rows: str, caches: tuple[int, int], extents: tuple[int, int], interleaved: bool, half: int
) -> Rotation:
    """Write the cosines and sines of places, of extents (batch, length), from tables at two inputs of the node."""
    cos, sin = (
        site.reshape(site.op("Gather", site.input(cache), rows, axis=0), (extents[0], 1, extents[1], half))
        for cache in caches
    )
    return Rotation(cos, sin, 2 * half, interleaved)


RULES: dict[str, Rule] = {
    "Attention": _attention,
    "MultiHeadAttention": _multi_head,
    "QAttention": _quantized_attention,
    "RotaryEmbedding": _rotary,
}
