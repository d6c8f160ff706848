"""What bringing operands costs, by the states of the operators that make and read them, and what that saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.schedule import Phase

MOST_BEGUN = 500_000
"""Entries of the largest table of what begins phases: a maximum of what is known."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Bytes that are not needed in a phase, by the states of an edge; see `selection.Saving`."""

    phase: Phase
    n_bytes: Ints
    is_certain: bool = True


@dataclass(slots=True)
class Edge:
    """What bringing one operand costs, by the states of its sources' operators and, last, of its own.

    `cycles` are what it adds to an exchange phase, `begins` what beginning one for it takes: none where nothing comes
    from other cores. Equal operators between equal states share one edge; `step`, `number` and `makers` are those of
    the first.
    """

    step: int
    number: int
    makers: tuple[int, ...]
    cycles: Ints
    is_exact: Bools
    begins: Ints
    savings: tuple[Saved, ...] = ()


Part = tuple[tuple[int, ...], Edge]
"""An edge, and the operators of its scope as they are in a model."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The edges of operands that arrive in one exchange phase, and all operators of their scopes, ascending.

    The phase is begun where any of them moves. Where a table over all would be too large, the scope leaves out
    operators of those that move most rarely, and costs are a bound: these move where they do in all states of the
    operators that are left out.
    """

    scope: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def key(self) -> object:
        """Return what its table depends on: equal edges, of operators that stand to each other in the same way."""
        places = {operator: place for place, operator in enumerate(self.scope)}
        return tuple((id(edge), tuple(map(places.get, where))) for where, edge in self.parts)

    def cycles(self, n_states: Sequence[int]) -> Ints:
        """Return what beginning the phase takes, by the states of its scope, so many of each operator."""
        cycles = np.zeros(n_states, np.int64)
        for where, edge in self.parts:
            left_out = tuple(n for n, each in enumerate(where) if each not in self.scope)
            begins = edge.begins.min(axis=left_out) if left_out else edge.begins
            kept = [each for each in where if each in self.scope]
            lengths = [n if each in kept else 1 for each, n in zip(self.scope, n_states, strict=True)]
            np.maximum(cycles, begins.transpose(np.argsort(kept)).reshape(lengths), out=cycles)
        return cycles


def begun_by(parts: Sequence[Part], n_states: Sequence[int]) -> Begun:
    """Return what begins a phase for some edges, given the number of states of every operator; see `Begun`."""
    taken: list[Part] = []
    scope: tuple[int, ...] = ()
    for where, edge in sorted(parts, key=lambda part: -float((part[1].begins > 0).mean())):
        # Others change nothing where the phase begins in any case.
        if taken and taken[0][1].begins.all():
            break
        wider = tuple(sorted({*scope, *where}))
        if not taken or prod(n_states[operator] for operator in wider) <= MOST_BEGUN:
            scope = wider
        taken.append((where, edge))
    return Begun(scope, tuple(taken))
