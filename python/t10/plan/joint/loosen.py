"""A problem whose operators are too entangled to be eliminated one by one, made looser until they are not.

A table over several operators is replaced by its least values over one of them, where that loses least: no choice costs
more by the looser tables, so a bound of the looser problem is a bound of the problem.
Source: mini-bucket elimination (Dechter and Rish 2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from t10.core.arrays import Ints
from t10.plan.joint.relaxation import Relaxation
from t10.plan.joint.selection import Selection, Table


def relaxation_of(selection: Selection) -> Relaxation:
    """Return the relaxation of a problem, its tables loosened, as few as needed, where operators are too entangled."""
    found = _eliminated(selection)
    while found is None:
        order = _cheapest_first(selection)
        looser = _loosened(selection, order)
        found = _eliminated(looser)
        if found is None:
            selection = looser
            continue
        few, many = 0, len(order)
        while many - few > 1:
            middle = (few + many) // 2
            tried = _eliminated(_loosened(selection, order[:middle]))
            few, many, found = (middle, many, found) if tried is None else (few, middle, tried)
    return found


def _cheapest_first(selection: Selection) -> list[tuple[int, int]]:
    """Return the tables over several operators that have a choice, each with the place of the one it loses least by."""
    losses: list[tuple[int, int, int]] = []
    for number, table in enumerate(selection.costs):
        places = [place for place, n_states in enumerate(table.values.shape) if n_states > 1]
        if len(places) > 1:
            loss, place = min((_most_lost(table.values, place), place) for place in places)
            losses.append((loss, number, place))
    return [(number, place) for _, number, place in sorted(losses)]


def _most_lost(values: Ints, place: int) -> int:
    return int((values - values.min(axis=place, keepdims=True)).max())


def _loosened(selection: Selection, order: Sequence[tuple[int, int]]) -> Selection:
    """Return a problem with tables replaced by their least values over the operator at a place."""
    tables = list(selection.costs)
    for number, place in order:
        scope = tables[number].scope
        tables[number] = Table(scope[:place] + scope[place + 1 :], tables[number].values.min(axis=place))
    return replace(selection, costs=tuple(tables))


def _eliminated(selection: Selection) -> Relaxation | None:
    """Return the relaxation of a problem, None where its operators are too entangled."""
    try:
        return Relaxation(selection)
    except ValueError as error:
        if "too entangled" not in str(error):
            raise
        return None
