"""Losses of classes, as a choice by comparison: what is meant is the sum over all classes that equal the target."""

from __future__ import annotations

import numpy as np

from t10.frontend.rewrites.site import KIND, Rule, Site


def _negative_log_likelihood(site: Site) -> bool:
    return _loss(site, site.input(0))


def _cross_entropy(site: Site) -> bool:
    shape = site.shape(0)
    if shape is None or len(shape) < 2:
        return False
    scores = site.op("LogSoftmax", site.input(0), axis=1)
    if not _loss(site, scores):
        return False
    site.give(scores, 1)
    return True


def _loss(site: Site, scores: str) -> bool:
    """Write loss = -w[target] * score[target], 0 for classes to ignore; its mean divides by the weights that count."""
    shape, kind = site.shape(0), site.kind(0)
    if shape is None or len(shape) < 2 or not kind or site.shape(1) is None:
        return False
    n_classes, rank = shape[1], len(shape)
    target = site.cast(site.input(1), KIND.INT32)
    row = site.reshape(target, (shape[0], 1, *shape[2:]))
    places = np.arange(n_classes, dtype=np.int32).reshape(
        [n_classes if dim == 1 else 1 for dim in range(rank)]
    )
    is_meant = site.op("Equal", row, site.constant(places))
    zero = site.scalar(0, kind)
    picked = site.reduce("ReduceSum", site.op("Where", is_meant, scores, zero), [1], keep=False)
    weight = ""
    if site.input(2):
        column = site.reshape(site.input(2), places.shape)
        weight = site.reduce("ReduceSum", site.op("Where", is_meant, column, zero), [1], keep=False)
    loss = site.op("Neg", site.op("Mul", picked, weight) if weight else picked)
    ignored = site.option("ignore_index", None)
    if ignored is not None:
        is_ignored = site.op("Equal", target, site.scalar(int(ignored), KIND.INT32))
        loss = site.op("Where", is_ignored, zero, loss)
        weight = site.op("Where", is_ignored, zero, weight or site.scalar(1, kind))
    _reduced(site, loss, weight, rank - 1)
    return True


def _reduced(site: Site, loss: str, weight: str, rank: int) -> None:
    how, axes = str(site.option("reduction", "mean")), list(range(rank))
    if how == "none":
        site.give(loss)
    elif how == "sum":
        site.give(site.reduce("ReduceSum", loss, axes, keep=False))
    elif not weight:
        site.give(site.reduce("ReduceMean", loss, axes, keep=False))
    else:
        total = site.reduce("ReduceSum", loss, axes, keep=False)
        site.give(site.op("Div", total, site.reduce("ReduceSum", weight, axes, keep=False)))


RULES: dict[str, Rule] = {
    "NegativeLogLikelihoodLoss": _negative_log_likelihood,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
}
