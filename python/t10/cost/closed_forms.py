"""What steps take on cores that no code is generated for: closed forms in a chip file's numbers, launches left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.expression import OperatorSpec
from t10.core.scalar import identity
from t10.cost.combine import others_of
from t10.cost.matrix import MatrixAxes, matrix_axes, product_cycles
from t10.cost.vector import (
    box_cycles,
    combine_work,
    elementwise_cycles,
    gather_cycles,
    group_cycles,
    group_elements,
    load_cycles,
)


@dataclass(frozen=True, slots=True)
class ClosedForms:
    """Cycles of steps on a chip's core, as the best known code takes there; see docs/cost-model.md."""

    chip: ChipSpec

    def sub_task(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes`, shape (candidates, axes)."""
        roles = _matrix_axes(spec)
        if roles is not None:
            return product_cycles(self.chip, spec, roles, boxes)
        if spec.selectors:
            return gather_cycles(self.chip, spec, boxes)
        return box_cycles(self.chip, spec, boxes)

    def epilogue(self, spec: OperatorSpec, n_slots: Ints, runs: Ints, n_members: Ints | None = None) -> Ints:
        """Return the cycles of the epilogue, a copy where there is none; neither runs nor chunks count here."""
        del runs, n_members
        dtypes = (spec.acc_dtype, *(operand.dtype for operand in spec.epilogue_inputs))
        return elementwise_cycles(self.chip, spec.epilogue or identity(), dtypes, n_slots)

    def combine(self, spec: OperatorSpec, n_parts: Ints, n_slots: Ints, *, is_whole: bool = False) -> Ints:
        """Return the cycles in which a core combines `n_parts` parts of `n_slots` elements each."""
        n_parts = others_of(n_parts) if is_whole else n_parts
        work = ((spec.acc_dtype, 2 * load_cycles(spec.acc_dtype)), *combine_work(spec))
        n_groups = -(-(n_parts * n_slots) // (group_elements(self.chip, work) * self.chip.n_workers))
        return self.chip.n_workers * n_groups * group_cycles(self.chip, work)


@lru_cache(maxsize=1024)
def _matrix_axes(spec: OperatorSpec) -> MatrixAxes | None:
    return matrix_axes(spec)
