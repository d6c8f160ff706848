"""Vector codelets that ask where they are, over several outer axes."""

from __future__ import annotations

import pytest
from support.codelet_runs import run_task

from t10.codelets.count import counted_cycles, run_cycles
from t10.codelets.vector.family import VectorFamily
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("named", [(1, 0), (2, 0), (2, 1), (0, 1)])
def test_indices_of_several_outer_axes(named: tuple[int, int], dtype: str) -> None:
    """A causal mask over a batch of matrices: rows begin anew in every one of them."""
    extents = (3, 4, 16)
    ops = (ScalarOp("index", (), "index", str(named[0])), ScalarOp("index", (), "index", str(named[1])),
           ScalarOp("arith.cmpi", (2, 3), "i1", "sle"), ScalarOp("arith.addf", (0, 1), dtype),
           ScalarOp("arith.select", (4, 5, 0), dtype))  # fmt: skip
    strides = ((80, 20, 1), (0, 16, 1), (64, 16, 1))
    x, mask, output = (TaskOperand(dtype, each, 8) for each in strides)
    task = Task(extents, (x, mask), output, "none", ScalarFunction(2, ops, 6), origin=(5, 3, 1))
    compiled = VectorFamily().compile(task)
    assert compiled is not None
    run_task(task, compiled).check()
    assert counted_cycles(task) == run_cycles(task)
