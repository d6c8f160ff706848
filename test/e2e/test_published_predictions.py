"""Beside the published planner, under its own cost model: NeRF, the smallest of the three models it predicts."""

from __future__ import annotations

import pytest
from planner.planned import STRICT_PAPER, Request, planned
from planner.published import PUBLISHED_MODELS, PUBLISHED_OPERATORS

NERF = next(model for model in PUBLISHED_MODELS if model.name == "nerf")


def test_nerf_is_nearly_twice_as_fast_as_predicted_there() -> None:
    outcome = planned(Request("nerf", is_published=True, cost_model="t10-paper"))
    assert outcome.status == "planned", outcome.error
    assert NERF.cycles / outcome.cycles >= 1.9
    assert outcome.optimality is not None
    assert outcome.optimality.gap is not None
    assert outcome.optimality.gap <= 0.001
    assert outcome.cycles_by_kind["relayout"] == 0


def test_nerf_is_faster_even_if_no_arithmetic_is_hidden() -> None:
    outcome = planned(Request("nerf", is_published=True, cost_model=STRICT_PAPER))
    assert NERF.cycles / outcome.cycles >= 1.5


@pytest.mark.parametrize("name", ["NeRF 2073600x64x64", "ViT 50x768x768", "BERT 128x1024x1024"])
def test_a_product_is_not_slower_than_predicted_there(name: str) -> None:
    published = next(operator for operator in PUBLISHED_OPERATORS if operator.name == name)
    outcome = planned(Request(name, is_published=True, cost_model="t10-paper"))
    assert outcome.status == "planned", outcome.error
    assert outcome.cycles <= published.cycles
