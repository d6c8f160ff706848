"""Types of the native module `t10.plan.search._batch_function` (source: `_batch_function.cpp`)."""

import numpy as np
from numpy.typing import NDArray

def evaluate(description: object, columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return float64 [n]: a described function of the rows of `columns`, float64 [n_inputs, n].

    `description` is a `t10.cost.formula.Formula` or has `n_inputs` and `evaluate(rows)`, as
    `t10.cost.program.CostCallable` does. Raises ValueError where the formula is malformed or the number of columns is
    wrong, and whatever a Python function raises.
    """

def least(formula: object, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return float64 [n]: what a formula is never below, and 0 at least, where inputs lie in boxes.

    `low` and `high` are float64 [n_inputs, n]. Raises ValueError for what is no formula, or where they differ in shape.
    """
