"""On the chip they are meant for, the fronts of real operators are those of their whole filtered spaces."""

from __future__ import annotations

import pytest
from support import specs
from support.whole_space import whole_front

from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.cost import IpuCostModel
from t10.plan.options import PlanOptions
from t10.plan.search.operator import search_operator

CHIP = load_chip("ipu-mk2")
COST = IpuCostModel(CHIP).least
"""Bounds of steps, not counts: they are quick. `test_search` counts the whole spaces of small operators."""
OPTIONS = PlanOptions(max_front=10_000)

BERT_LARGE = {
    "projection": specs.matmul(128, 1024, 1024),
    "scores": specs.bmm(16, 128, 128, 64),
    "context": specs.bmm(16, 128, 64, 128),
    "up": specs.matmul(128, 4096, 1024),
    "down": specs.matmul(128, 1024, 4096),
    "statistics": specs.row_reduce(128, 1024, "sum"),
    "embedding": specs.gather(128, 1024, 512),
    "residual": specs.elementwise((128, 1024)),
}
VIT_BASE = {
    "projection": specs.matmul(197, 768, 768),
    "scores": specs.bmm(12, 197, 197, 64),
    "context": specs.bmm(12, 197, 64, 197),
    "up": specs.matmul(197, 3072, 768),
    "softmax": specs.row_reduce(12 * 197, 197, "max"),
}
RESNET_18 = {
    "stem": specs.conv2d(1, 64, 112, 112, 3, 7, 7, stride=2, pad=3),
    "pool": specs.max_pool2d(1, 64, 56, 56, 3, pad=1),
    "c64": specs.conv2d(1, 64, 56, 56, 64, 3, 3, pad=1),
    "c128/2": specs.conv2d(1, 128, 28, 28, 64, 3, 3, stride=2, pad=1),
    "shortcut": specs.conv2d(1, 128, 28, 28, 64, 1, 1, stride=2),
    "c512": specs.conv2d(1, 512, 7, 7, 512, 3, 3, pad=1),
}
MODELS = {"bert-large": BERT_LARGE, "vit-base": VIT_BASE, "resnet-18": RESNET_18}
EVERY = [
    pytest.param(spec, id=f"{model} {name}")
    for model, kinds in MODELS.items()
    for name, spec in kinds.items()
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("spec", EVERY)
def test_what_is_pruned_is_not_on_the_front(spec: OperatorSpec) -> None:
    pruned, whole = (
        search_operator(spec, CHIP, COST, OPTIONS, is_pruning=is_pruning) for is_pruning in (True, False)
    )
    assert pruned.front == whole.front
    assert pruned.statistics.n_plans == whole.statistics.n_plans


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [BERT_LARGE["scores"], BERT_LARGE["embedding"], RESNET_18["pool"]],
    ids=lambda spec: f"{spec.kind} {spec.extents}",
)
def test_the_front_is_that_of_all_plans_priced_in_numpy(spec: OperatorSpec) -> None:
    found = search_operator(spec, CHIP, COST, OPTIONS).front
    expected = whole_front(spec, CHIP, COST, OPTIONS)
    assert [((p.plan.f_op, p.plan.ft), p.cycles.total, p.active_bytes) for p in found] == expected
