"""Heads of attention written with products and a softmax, and what attention in ONNX Runtime's domain shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from t10.frontend.rewrites.site import KIND, Site


@dataclass(frozen=True, slots=True)
class Heads:
    """Queries, keys and values of extents [batch, head, length, size]; a head of keys may serve several of queries."""

    q: str
    k: str
    v: str
    batch: int
    n: int
    n_kv: int
    n_queries: int
    n_keys: int
    size: int
    v_size: int


@dataclass(frozen=True, slots=True)
class Weighing:
    """How scores become weights: a scale, a soft cap, terms to add, what may be seen, what softmax has besides."""

    scale: float
    softcap: float = 0.0
    terms: Sequence[str] = ()
    allowed: str = ""
    sink: str = ""
    """Extents [1, head, 1, 1]."""


def scale_of(site: Site, size: int) -> float:
    """Return the factor of scores that a node states, that of its heads' size where it states none."""
    return float(site.option("scale", 0.0)) or 1 / sqrt(size)


def split_heads(site: Site, x: str, batch: int, length: int, n: int, size: int) -> str:
    """Write [batch, length, n * size] as [batch, n, length, size]."""
    return site.transpose(site.reshape(x, (batch, length, n, size)), (0, 2, 1, 3))


def merge_heads(site: Site, x: str, heads: Heads) -> str:
    """Write [batch, n, length, size] as [batch, length, n * size]."""
    turned = site.transpose(x, (0, 2, 1, 3))
    return site.reshape(turned, (heads.batch, heads.n_queries, heads.n * heads.v_size))


def attend(site: Site, heads: Heads, how: Weighing, kind: int) -> tuple[str, str, str]:
    """Write attention; return what it makes, [batch, n, queries, size], its scores and its weights."""
    group = heads.n // heads.n_kv
    q = site.op("Mul", heads.q, site.scalar(how.scale, kind))
    if group > 1:
        # Queries that share keys are rows of one product: keys are not repeated.
        q = site.reshape(q, (heads.batch, heads.n_kv, group * heads.n_queries, heads.size))
    scores = site.op("MatMul", q, site.transpose(heads.k, (0, 1, 3, 2)))
    if group > 1:
        scores = site.reshape(scores, (heads.batch, heads.n, heads.n_queries, heads.n_keys))
    if how.softcap:
        cap = site.scalar(how.softcap, kind)
        scores = site.op("Mul", site.op("Tanh", site.op("Div", scores, cap)), cap)
    for term in how.terms:
        scores = site.op("Add", scores, term)
    if how.allowed:
        lowest = site.scalar(np.finfo(np.float16 if kind == KIND.FLOAT16 else np.float32).min, kind)
        scores = site.op("Where", how.allowed, scores, lowest)
    weights = _with_sink(site, scores, how.sink) if how.sink else site.op("Softmax", scores, axis=-1)
    factor = weights
    if group > 1:
        factor = site.reshape(weights, (heads.batch, heads.n_kv, group * heads.n_queries, heads.n_keys))
    made = site.op("MatMul", factor, heads.v)
    if group > 1:
        made = site.reshape(made, (heads.batch, heads.n, heads.n_queries, heads.v_size))
    return made, scores, weights


def _with_sink(site: Site, scores: str, sink: str) -> str:
    """Write a softmax whose sum has the power of one more score, which no value belongs to."""
    largest = site.op("Max", site.reduce("ReduceMax", scores, [3], keep=True), sink)
    powers = site.op("Exp", site.op("Sub", scores, largest))
    total = site.reduce("ReduceSum", powers, [3], keep=True)
    return site.op("Div", powers, site.op("Add", total, site.op("Exp", site.op("Sub", sink, largest))))


def at_most(site: Site, x: str, y: str) -> str:
    """Write x <= y."""
    return site.op("Not", site.op("Greater", x, y))


def below(site: Site, x: str, y: str) -> str:
    """Write x < y."""
    return site.op("Less", x, y)


def places(site: Site, n: int, axis: int, start: int = 0) -> str:
    """Write the places along one of four axes: comparing those of two axes takes no memory as a mask does."""
    extents = [n if each == axis else 1 for each in range(4)]
    return site.constant(np.arange(start, start + n, dtype=np.int32).reshape(extents))


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and sines that broadcast with [batch, head, length, half]; how many elements of a head are turned."""

    cos: str
    sin: str
    n_turned: int
    interleaved: bool

    def turn(self, site: Site, x: str, extents: tuple[int, int, int, int]) -> str:
        """Write x, of extents [batch, head, length, size], turned by the angles of its places."""
        *_, size = extents
        half, last = self.n_turned // 2, 3
        rest = "" if size == self.n_turned else site.slice(x, last, self.n_turned, size)
        turned = x if not rest else site.slice(x, last, 0, self.n_turned)
        if self.interleaved:
            low, high = (site.slice(turned, last, i, self.n_turned, 2) for i in (0, 1))
        else:
            low, high = (site.slice(turned, last, i * half, (i + 1) * half) for i in (0, 1))
        real = site.op("Sub", site.op("Mul", low, self.cos), site.op("Mul", high, self.sin))
        imaginary = site.op("Add", site.op("Mul", low, self.sin), site.op("Mul", high, self.cos))
        if self.interleaved:
            pairs = [site.reshape(each, (*extents[:3], half, 1)) for each in (real, imaginary)]
            joined = site.reshape(site.concat(pairs, 4), (*extents[:3], self.n_turned))
        else:
            joined = site.concat([real, imaginary], last)
        return site.concat([joined, rest], last) if rest else joined
