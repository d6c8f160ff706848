"""Types of the native module `t10.plan.joint._minsum` (source: `_minsum.cpp`)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

class Elimination:
    """The least sum of costs of single states and of tables over few variables each, by variable elimination."""

    def __init__(
        self, n_states: Sequence[int], factors: Sequence[tuple[Sequence[int], NDArray[np.float64]]]
    ) -> None:
        """Lay out the elimination; a factor is (variables, costs row-major over their states), a constant without any.

        Raises ValueError for variables that are unknown, without states, or twice in a factor, for tables of a wrong
        size, and where variables are so entangled that a message would have more than 2^24 entries.
        """

    def minimise(self, state_costs: NDArray[np.float64]) -> tuple[float, list[int], int]:
        """Return (least sum, state of every variable, sums formed) for costs of single states, variables end to end.

        The least sum is infinite, and the states meaningless, where every assignment costs infinitely much. States that
        another one beats in any case form no sums, nor do variables that are equal to others.
        """

    def least_by_state(self, state_costs: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
        """Return (least sum of all assignments with a state, for every state; sums formed); infinite where none is.

        It takes about twice the sums of eliminating every variable with all of its states. Rounded as sums are.
        """
