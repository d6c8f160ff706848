"""Types of the native module `t10.plan.search._evaluate` (source: `_evaluate.cpp`)."""

import numpy as np
from numpy.typing import NDArray

def evaluate_nests(
    steps: NDArray[np.int32],
    shift_cycles: NDArray[np.float64],
    subtask_cycles: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the cycles of `n` candidate nests, each under its best loop order: float64 [n].

    `steps` is int32 [n, axis]: sub-tasks along each rotating axis (1 when nothing rotates there). `shift_cycles` is
    float64 [n, axis]: cycles of one advance of that axis, all tensors that rotate along it together.
    `subtask_cycles` is float64 [n]: cycles of one sub-task. Per candidate the axes are ordered by descending
    advance cost, outermost first, and the result is `prod(S) * subtask + sum_a c_a (S_a - 1) prod_{b outside a} S_b`
    (compute-shift model, theorem 3). Raises ValueError when shapes disagree, a step count is below 1, or there are
    more than 16 axes; TypeError when an argument is not such an array.
    """
