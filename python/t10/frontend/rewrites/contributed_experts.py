"""MoE of ONNX Runtime's domain: every expert computes all rows, and weights of 0 leave out those not chosen.

share  = softmax(router);  weight = share of the k largest, else 0;  divided by their sum if that is asked for
y[row] = sum over e of weight[row, e] * (activation(x W1[e]^T + b1[e]) W2[e]^T + b2[e])
"""

from __future__ import annotations

from math import prod

import numpy as np

from t10.frontend.rewrites.contributed import tanh_gelu
from t10.frontend.rewrites.site import KIND, Rule, Site

FLOATS = (KIND.FLOAT, KIND.FLOAT16)
_INTERLEAVED = 1
"""What `swiglu_fusion` is if columns of gates and of values alternate."""


def _experts(site: Site) -> bool:
    shape, routes, first, second = (site.shape(place) for place in (0, 1, 2, 4))
    kind = site.kind(0)
    if shape is None or routes is None or first is None or second is None or kind not in FLOATS:
        return False
    k, rows = int(site.option("k", 1)), prod(shape[:-1])
    if any(site.input(place) for place in range(6, len(site.node.input))) or not 1 <= k <= routes[-1]:
        return False
    x = site.reshape(site.input(0), (1, rows, shape[-1]))
    hidden = _product(site, x, 2, 3)
    activated = _activated(site, hidden, kind, first[1])
    if activated is None:
        return False
    made = _product(site, activated, 4, 5)
    weights = site.reshape(site.transpose(_weights(site, k, kind), (1, 0)), (routes[-1], rows, 1))
    total = site.reduce("ReduceSum", site.op("Mul", made, weights), [0], keep=False)
    site.give(site.reshape(total, shape))
    return True


def _product(site: Site, x: str, weights: int, bias: int) -> str:
    """Write the product with the weights of every expert, [experts, rows, columns], and add their biases."""
    made = site.op("MatMul", x, site.transpose(site.input(weights), (0, 2, 1)))
    if not site.input(bias):
        return made
    n_experts, columns = site.shape(bias) or (0, 0)
    return site.op("Add", made, site.reshape(site.input(bias), (n_experts, 1, columns)))


def _activated(site: Site, x: str, kind: int, width: int) -> str | None:
    """Write the activation that the node names; None for one that ONNX Runtime has not on a CPU, either."""
    name = str(site.option("activation_type", "relu"))
    if name == "swiglu":
        return _gated(site, x, kind, width) if site.option("swiglu_fusion", 0) == _INTERLEAVED else None
    if name == "identity":
        return x
    if name == "relu":
        return site.op("Relu", x)
    if name == "gelu":
        return tanh_gelu(site, x, kind)
    return site.op("Mul", x, site.op("Sigmoid", x)) if name == "silu" else None


def _gated(site: Site, x: str, kind: int, width: int) -> str:
    """Write g * sigmoid(alpha * g) * (v + beta) of columns g, v, g, v, ..., both within a limit."""
    gate, value = (site.slice(x, 2, first, width, 2) for first in (0, 1))
    limit = site.option("swiglu_limit", None)
    if limit is not None:
        low, high = site.scalar(-float(limit), kind), site.scalar(float(limit), kind)
        gate = site.op("Min", gate, high)
        value = site.op("Min", site.op("Max", value, low), high)
    alpha = site.scalar(float(site.option("activation_alpha", 1.0)), kind)
    beta = site.scalar(float(site.option("activation_beta", 0.0)), kind)
    share = site.op("Sigmoid", site.op("Mul", gate, alpha))
    return site.op("Mul", site.op("Mul", gate, share), site.op("Add", value, beta))


def _weights(site: Site, k: int, kind: int) -> str:
    """Write what every expert counts in every row, [rows, experts]; softmax and sums are taken in f32.

    Of equal experts ONNX Runtime chooses the last ones, and TopK the first: it is given the reverse order.
    """
    rows, n_experts = site.shape(1) or (0, 0)
    routes = site.input(1) if kind == KIND.FLOAT else site.cast(site.input(1), KIND.FLOAT)
    backwards = site.slice(routes, 1, -1, -n_experts - 1, -1)
    largest, places = site.several("TopK", [backwards, site.constant([k], np.int64)], ("", ""), axis=1)
    most = site.slice(largest, 1, 0, 1)
    powers = site.op("Exp", site.op("Sub", largest, most))
    of_all = powers
    if not site.option("normalize_routing_weights", 0):
        of_all = site.op("Exp", site.op("Sub", routes, most))
    share = site.op("Div", powers, site.reduce("ReduceSum", of_all, [1], keep=True))
    numbers = site.constant(np.arange(n_experts, dtype=np.int64)[::-1].reshape(1, 1, -1))
    is_chosen = site.op("Equal", site.reshape(places, (rows, k, 1)), numbers)
    chosen = site.op("Mul", site.cast(is_chosen, KIND.FLOAT), site.reshape(share, (rows, k, 1)))
    weights = site.reduce("ReduceSum", chosen, [1], keep=False)
    return weights if kind == KIND.FLOAT else site.cast(weights, kind)


RULES: dict[str, Rule] = {"MoE": _experts}
