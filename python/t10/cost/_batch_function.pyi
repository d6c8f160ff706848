"""Types of the native module `t10.cost._batch_function` (source: `_batch_function.cpp`)."""

import numpy as np
from numpy.typing import NDArray

class BatchFunction:
    """A function that was read from its description."""

def read(description: object) -> BatchFunction:
    """Return a described function: reading a formula takes longer than evaluating it for a few rows.

    `description` is a `t10.cost.formula.Formula` or has `n_inputs` and `evaluate(rows)`, as
    `t10.cost.program.CostCallable` does. Raises ValueError where the formula is malformed.
    """

def evaluate(function: object, columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return float64 [n]: a function, or one that is described, of the rows of `columns`, float64 [n_inputs, n].

    Raises ValueError where the number of columns is wrong, and whatever `read` or a Python function raises.
    """

def least(formula: object, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return float64 [n]: what a formula is never below, and 0 at least, where inputs lie in boxes.

    `low` and `high` are float64 [n_inputs, n]. Raises ValueError for what is no formula, or where they differ in shape.
    """
