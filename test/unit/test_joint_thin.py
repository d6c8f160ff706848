"""Deep models keep the states with which choices take least; what is left of a model is solved as before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import specs
from support.random_selections import every_choice, random_selection

from t10.chip import load_chip
from t10.cost import IpuCostModel
from t10.plan import PlanOptions, plan_module
from t10.plan.joint import choose, states, thin
from t10.plan.joint.selection import Rows, Selection
from t10.plan.joint.thin import thinned

N_PROBLEMS = 120
PLENTY = 1 << 30


def named(selection: Selection) -> list[Any]:
    """Return names in place of plans, a tuple of its own for every operator."""
    return [tuple(f"{step}.{n}" for n in range(many)) for step, many in enumerate(selection.n_states)]


def test_states_of_the_best_choice_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory does not matter every bound is what the best choice with a state takes."""
    monkeypatch.setattr(thin, "MOST_STATES", 1)
    monkeypatch.setattr(thin, "PARTS_AT_REST", (0.5,))
    n_left_out = 0
    for number in range(N_PROBLEMS):
        selection = replace(random_selection(number), room_bytes=PLENTY)
        choices = every_choice(selection)
        fastest = choices.rows[choices.cycles == choices.cycles.min()]
        if len(fastest) == 1:
            best = selection.states_of(fastest[0]).tolist()
            found = thinned(named(selection), selection, [])
            assert found == tuple((f"{step}.{state}",) for step, state in enumerate(best))
            n_left_out += sum(selection.n_states) - len(best)
    assert n_left_out > N_PROBLEMS


def test_kept_choices_stay_and_the_others_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thin, "MOST_STATES", 2)
    for number in range(N_PROBLEMS):
        selection = random_selection(number)
        kept = np.random.default_rng(number).choice(every_choice(selection).rows, 2)
        found: Any = thinned(named(selection), selection, list(kept))
        for step, own in enumerate(found):
            names = {f"{step}.{selection.states_of(rows)[step]}" for rows in kept}
            assert names <= set(own)
            assert list(own) == sorted(own, key=lambda name: int(name.split(".")[1]))
            fits = every_choice(selection).is_fitting.any()
            assert len(own) <= 2 + len(names) or not fits


def test_nothing_is_left_out_where_nothing_fits() -> None:
    selection = replace(random_selection(3), room_bytes=0)
    own = named(selection)
    assert thinned(own, selection, []) == tuple(own)


def test_operators_that_are_alike_stay_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thin, "MOST_STATES", 1)
    shared = ("a", "b", "c")
    for number in range(N_PROBLEMS):
        selection = replace(random_selection(number), room_bytes=PLENTY)
        own = named(selection)
        for step, many in enumerate(selection.n_states):
            own[step] = shared if many == len(shared) else own[step]
        found: Any = thinned(own, selection, [])
        alike = [each for each, before in zip(found, own, strict=True) if before is shared]
        assert all(each is alike[0] for each in alike)


def test_states_stay_that_one_of_several_alike_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two operators of one tuple of states, each best in one of them, and neither in the third."""
    monkeypatch.setattr(thin, "MOST_STATES", 2)
    rows = Rows(
        np.arange(6), np.array([0, 90, 50, 90, 0, 50]), np.zeros(6, np.int64), np.zeros((6, 3), np.int64)
    )
    selection = Selection((3, 3), rows, (), (), (), PLENTY)
    shared: Any = ("a", "b", "c")
    assert thinned([shared, shared], selection, []) == (("a", "b"), ("a", "b"))


def test_a_deep_model_is_planned_with_few_states_as_well_as_with_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chip = load_chip("test-16")
    graph = specs.mlp_graph(24, (48, 96, 64) * 22 + (48,))
    assert len(graph.operators) > choose.FEW_OPERATORS

    def planned() -> tuple[int, int]:
        known = plan_module(graph, chip, PlanOptions(), cost=IpuCostModel(chip)).optimality
        assert known is not None
        return known.cycles, known.n_states

    cycles, n_states = planned()

    def all_of_them(every: Any, *_: Any) -> Any:
        return every

    monkeypatch.setattr(choose, "thinned", all_of_them)
    of_all, n_all = planned()
    assert n_states < n_all
    assert cycles <= 1.002 * of_all
    monkeypatch.setattr(choose, "THINNED", states.DEEP)
    of_few, n_few = planned()
    assert n_few < n_all
    assert cycles <= of_few
