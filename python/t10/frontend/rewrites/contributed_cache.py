"""GroupQueryAttention of ONNX Runtime's domain: heads that share keys, a cache, places that data decide.

The key of a token at place p is written to row p of the cache, and a query sees the keys up to its own place. Where the
first new token lies is `seqlens_k + 1 - new tokens`, 0 at the first prompt, whose tokens are all there are. Of a prompt
that is padded behind `seqlens_k + 1` tokens, only these are seen. Rows of the cache behind the last token are 0, as in
ONNX Runtime where past and present are two buffers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.frontend.rewrites.contributed import root_mean_square
from t10.frontend.rewrites.contributed_attention import FLOATS, rotation_at
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

_QUERY, _KEY, _VALUE, _PAST_KEY, _PAST_VALUE, _LENGTHS, TOTAL, _COS, _SIN, _PLACES, _BIAS, _SINK = range(12)
_QUERY_NORM, _KEY_NORM = 14, 15
_OTHERS = (12, 13, 16)
"""Scales of a quantised cache, and lengths of padded chunks: no rule takes these."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What a node computes: extents, and where its tokens begin: a number, or the name of [batch, 1, 1, 1] in int32.

    `last` is the name of the place of each sequence's last token in a padded prompt, in the same extents.
    """

    batch: int
    n: int
    n_kv: int
    n_new: int
    size: int
    n_total: int
    n_past: int
    start: int | str
    last: str = ""

    @property
    def n_present(self) -> int:
        return max(self.n_total, self.n_past)

    def of_queries(self, site: Site) -> str:
        """Write the places of the queries, along axis 2."""
        if isinstance(self.start, int):
            return places(site, self.n_new, 2, self.start)
        return site.op("Add", places(site, self.n_new, 2), self.start)


def _group_query(site: Site) -> bool:
    step, kind = _step(site), site.kind(0)
    if step is None or kind not in FLOATS:
        return False
    parts = _parts(site, step)
    if parts is None:
        return False
    q, k, v = parts
    if site.option("do_rotary", 0):
        rotation = _rotation(site, step)
        if rotation is None:
            return False
        q = rotation.turn(site, q, (step.batch, step.n, step.n_new, step.size))
        k = rotation.turn(site, k, (step.batch, step.n_kv, step.n_new, step.size))
    k, v = (_present(site, step, past, new, kind) for past, new in ((_PAST_KEY, k), (_PAST_VALUE, v)))
    site.give(k, 1)
    site.give(v, 2)
    if step.n_present > step.n_total:
        k, v = (site.slice(each, 2, 0, step.n_total) for each in (k, v))
    heads = Heads(q, k, v, step.batch, step.n, step.n_kv, step.n_new, step.n_total, step.size, step.size)
    how = Weighing(
        scale_of(site, step.size),
        float(site.option("softcap", 0.0)),
        [site.input(_BIAS)] if site.input(_BIAS) else [],
        _allowed(site, step),
        _sink(site, step, kind),
    )
    made, scores, weights = attend(site, heads, how, kind)
    if step.last and not _is_clamped(site):
        made = _without_padding(site, step, made, kind)
    site.give(merge_heads(site, made, heads))
    if site.output(3) and int(site.option("qk_output", 0)) == 1:
        # What is masked is 0 here, as ONNX Runtime leaves it.
        weights = site.op("Where", how.allowed, scores, site.scalar(0, kind)) if how.allowed else scores
    site.give(weights, 3)
    return True


def _step(site: Site) -> _Step | None:
    """Return the extents of a node; None where they are not known, or where its form has no rule."""
    query, total = site.shape(_QUERY), site.constant_input(TOTAL)
    n, n_kv = int(site.option("num_heads", 0)), int(site.option("kv_num_heads", 0))
    past = site.shape(_PAST_KEY) if site.input(_PAST_KEY) else ()
    key = site.shape(_KEY) if site.input(_KEY) else ()
    is_odd = any(site.input(place) for place in _OTHERS) or site.option("sliding_window_cache", 0)
    if query is None or total is None or past is None or key is None or is_odd or len(query) != 3:
        return None
    batch, n_new, width = query
    if n < 1 or n_kv < 1 or n % n_kv or (key and key[1] != n_new):
        return None
    size = width // n if key else width // (n + 2 * n_kv)
    n_total, n_past = int(total.reshape(-1)[0]), past[2] if past else 0
    lengths = site.constant_input(_LENGTHS)
    found: set[int] = set() if lengths is None else {int(each) for each in lengths.reshape(-1)}
    last = (
        ""
        if found == {n_total - 1}
        else site.reshape(site.cast(site.input(_LENGTHS), KIND.INT32), (batch, 1, 1, 1))
    )
    start: int | str = 0
    if n_new != n_total:
        start = (
            found.pop() + 1 - n_new
            if len(found) == 1
            else site.op("Add", last, site.scalar(1 - n_new, KIND.INT32))
        )
        last = ""
    is_there = n_total >= n_new and (not isinstance(start, int) or 0 <= start <= max(n_past, 0))
    return _Step(batch, n, n_kv, n_new, size, n_total, n_past, start, last) if is_there else None


def _parts(site: Site, step: _Step) -> tuple[str, str, str] | None:
    """Write the new queries, keys and values as heads, normalised where the node has weights for it."""
    counts = (step.n, step.n_kv, step.n_kv)
    if site.input(_KEY):
        names = [site.input(place) for place in (_QUERY, _KEY, _VALUE)]
    else:
        bounds = [sum(counts[:i]) * step.size for i in range(4)]
        names = [site.slice(site.input(_QUERY), 2, bounds[i], bounds[i + 1]) for i in range(3)]
    q, k, v = (
        split_heads(site, name, step.batch, step.n_new, n, step.size)
        for name, n in zip(names, counts, strict=True)
    )
    plain = float(site.option("qk_norm_epsilon", 1e-6))
    if site.input(_QUERY_NORM):
        epsilon = float(site.option("q_norm_epsilon", plain))
        q, _ = root_mean_square(site, q, site.input(_QUERY_NORM), site.kind(0), [3], epsilon)
    if site.input(_KEY_NORM):
        epsilon = float(site.option("k_norm_epsilon", plain))
        k, _ = root_mean_square(site, k, site.input(_KEY_NORM), site.kind(0), [3], epsilon)
    return q, k, v


def _rotation(site: Site, step: _Step) -> Rotation | None:
    cache = site.shape(_COS)
    if cache is None or 2 * cache[1] > step.size:
        return None
    interleaved = bool(site.option("rotary_interleaved", 0))
    if site.input(_PLACES):
        at = (step.batch, step.n_new)
        return rotation_at(site, site.input(_PLACES), (_COS, _SIN), at, interleaved, cache[1])
    if not isinstance(step.start, int):
        rows = site.reshape(step.of_queries(site), (step.batch, step.n_new))
        at = (step.batch, step.n_new)
        return rotation_at(site, rows, (_COS, _SIN), at, interleaved, cache[1])
    cos, sin = (
        site.reshape(
            site.slice(site.input(place), 0, step.start, step.start + step.n_new),
            (1, 1, step.n_new, cache[1]),
        )
        for place in (_COS, _SIN)
    )
    return Rotation(cos, sin, 2 * cache[1], interleaved)


def _present(site: Site, step: _Step, past: int, new: str, kind: int) -> str:
    """Write the cache with new rows in it, and zeros behind them."""
    old, n, n_past = site.input(past), step.n_new, step.n_past

    def zeros(n_rows: int) -> str:
        extents = [step.batch, step.n_kv, n_rows, step.size]
        return site.op("Expand", site.scalar(0, kind), site.constant(extents, np.int64))

    if isinstance(step.start, int):
        end = step.start + n
        parts = [site.slice(old, 2, 0, step.start) if step.start < n_past else old] if step.start else []
        parts.append(new)
        if step.n_present > end:
            parts.append(zeros(step.n_present - end))
        return site.concat(parts, 2) if len(parts) > 1 else new
    more = step.n_total - n_past
    old = site.slice(old, 2, 0, step.n_total) if more < 0 else old
    if more > 0:
        old = site.concat([old, zeros(more)], 2) if n_past else zeros(more)
    rows = places(site, step.n_total, 2)
    if n_past:
        old = site.op("Where", at_most(site, rows, step.start), old, site.scalar(0, kind))
    if n == 1:
        made = site.op("Where", site.op("Equal", rows, step.start), new, old)
    else:
        # Row t is that of the new token t - start. A product with ones would spread what is not finite.
        token = site.op("Sub", rows, step.start)
        token = site.op(
            "Min", site.op("Max", token, site.scalar(0, KIND.INT32)), site.scalar(n - 1, KIND.INT32)
        )
        extents = site.constant([step.batch, step.n_kv, step.n_total, step.size], np.int64)
        moved = site.op("GatherElements", new, site.op("Expand", token, extents), axis=2)
        end = site.op("Add", step.start, site.scalar(n, KIND.INT32))
        is_new = site.op("And", site.op("Not", below(site, rows, step.start)), below(site, rows, end))
        made = site.op("Where", is_new, moved, old)
    return site.concat([made, zeros(-more)], 2) if more < 0 else made


def _allowed(site: Site, step: _Step) -> str:
    """Write which keys a query may see: up to its own place, no further back than the window is long."""
    keys = places(site, step.n_total, 3)
    if not site.option("causal", 1):
        if isinstance(step.start, int):
            return at_most(site, keys, step.last) if step.last else ""
        return below(site, keys, site.op("Add", step.start, site.scalar(step.n_new, KIND.INT32)))
    queries = step.of_queries(site)
    if step.last and _is_clamped(site):
        queries = site.op("Min", queries, step.last)
    allowed = at_most(site, keys, queries)
    window = int(site.option("local_window_size", -1))
    if window > 0:
        first = site.op("Sub", queries, site.scalar(window, KIND.INT32))
        allowed = site.op("And", allowed, site.op("Greater", keys, first))
    return site.op("And", allowed, at_most(site, keys, step.last)) if step.last else allowed


def _is_clamped(site: Site) -> bool:
    """Return whether padding sees the window of the last token, as in ONNX Runtime's plain kernel, not its own one."""
    return bool(site.option("smooth_softmax", 0) > 0 or site.input(_SINK) or site.output(3))


def _without_padding(site: Site, step: _Step, made: str, kind: int) -> str:
    """Write 0 for queries whose window holds no token."""
    window = int(site.option("local_window_size", -1))
    if window <= 0:
        return made
    end = site.op("Add", step.last, site.scalar(window, KIND.INT32))
    return site.op("Where", site.op("Greater", end, step.of_queries(site)), made, site.scalar(0, kind))


def _sink(site: Site, step: _Step, kind: int) -> str:
    if site.input(_SINK):
        return site.reshape(site.input(_SINK), (1, step.n, 1, 1))
    return (
        site.constant(np.zeros((1, 1, 1, 1)), site.dtype(0)) if site.option("smooth_softmax", 0) > 0 else ""
    )


RULES: dict[str, Rule] = {"GroupQueryAttention": _group_query}
