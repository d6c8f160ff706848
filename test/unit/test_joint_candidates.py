"""What candidates of an operator are said to receive before any is counted."""

from __future__ import annotations

import numpy as np
import pytest
from support import specs

from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.cost import IpuCostModel
from t10.plan import PlanOptions
from t10.plan.context import context_of
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.joint.candidates import NEVER, Candidates, listed_by_front
from t10.plan.joint.marginals import Marginals

PATCHES = specs.conv2d(1, 24, 7, 7, 3, 8, 8, stride=8, name="patches")
WINDOWS = specs.conv2d(1, 12, 14, 14, 4, 3, 3, name="windows")


@pytest.mark.parametrize("spec", [PATCHES, WINDOWS], ids=lambda spec: spec.name)
def test_what_windows_of_an_input_receive_is_near_what_is_counted(spec: OperatorSpec) -> None:
    """An estimate that ranks: a quarter above at most. Without the gaps of cut kernels the median is 0 for patches."""
    found = _candidates(spec)
    assert found.moved is not None
    numbers = np.arange(0, len(found.cycles), max(1, len(found.cycles) // 150))
    said = (found.cycles - found.listed.cycles - found.fixed_cycles)[numbers]
    counted = found.moved(numbers)
    moving = counted > 0
    shares = said[moving] / counted[moving]
    assert (said[~moving] == 0).all()
    assert shares.max() <= 1.25
    assert np.median(shares) >= 0.35


def test_gaps_between_windows_are_not_read() -> None:
    """A kernel of one element in steps of two reads 7 of 13 rows."""
    before = specs.map_unary((1, 4, 13, 13), "math.absf", name="before", x="v", o="x")
    found = _candidates(before, specs.conv2d(1, 8, 7, 7, 4, 1, 1, stride=2))
    reading, rows = found.readings[0], found.listed.rows
    sharers = rows[:, 1]
    assert (reading.most_cores == NEVER).all()
    assert (reading.mean == -(-4 * 7 * 7 * (sharers - 1) // rows.prod(axis=1))).all()


def _candidates(*operators: OperatorSpec) -> Candidates:
    """Return the candidates of the last operator of a model."""
    chip, options = load_chip("test-64"), PlanOptions()
    cost, graph = IpuCostModel(chip), specs.chain_graph("few", operators)
    fronts, context = operator_fronts(graph, chip, cost, options), context_of(graph, chip, cost)
    listed = listed_by_front(context, fronts, options)
    found = Marginals(context, fronts, options, listed, through_views=True).by_step[-1]
    assert found is not None
    return found
