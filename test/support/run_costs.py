"""A cost model whose epilogues are priced by how they lie: every row begins anew, odd rows take longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.expression import OperatorSpec
from t10.cost import IpuCostModel
from t10.cost.counted import slots_and_runs

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowByRow(IpuCostModel):
    """The prices of an IPU but for epilogues: rows shared by six workers, four elements at a time."""

    name: str = "row by row"

    def epilogue_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints) -> Ints:
        """Return the cycles of the epilogue for every candidate."""
        if spec.epilogue is None:
            return np.zeros_like(n_slots)
        rows = -(-n_slots // runs)
        share = -(-rows // 6)
        where: Any = np.where
        return 40 + share * (7 + where(runs % 4 == 0, 5, 11) * -(-runs // 4))

    def end_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        """Return the cycles of the epilogue over windows: what lies there is not counted from code."""
        return self.epilogue_cycles_many(spec, *slots_and_runs(spec, windows, n_members))
