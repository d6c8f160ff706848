"""The numbers of a reduction's vertex, of one task in one shape: code knows them as words only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from t10.codelets.nest import share_points
from t10.codelets.reduce.shape import Shape
from t10.core.dtypes import size_bytes
from t10.core.task import Task
from t10.core.tile import N_WORKERS


@dataclass(frozen=True, slots=True)
class Numbers:
    """What words hold; steps and strides are in bytes.

    `has_working` as in `RegisterLayout`. `own` are the numbers of a family that uses these loops for something else.
    """

    task: Task
    shape: Shape
    has_working: bool = False
    own: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def share(self) -> int:
        """Return the points of the shared level that a worker takes."""
        return share_points(self.shape.parallel[0].extent, self.shape.share.unit)

    def size(self, operand: int) -> int:
        """Return the bytes of an operand's element."""
        return size_bytes(self.task.operands[operand].dtype)

    def stride(self, operand: int) -> int:
        """Return the stride of the outermost parallel level."""
        return self.shape.parallel[0].strides[operand] * self.size(operand)

    def pace(self, operand: int, n_bytes: int) -> int:
        """Return the stride of the inner loop in accesses of `n_bytes`."""
        return self.shape.inner.strides[operand] * self.size(operand) // n_bytes

    def step(self, operand: int, k: int, *, ends_early: bool) -> int:
        """Return how far an operand's pointer moves after one point of parallel level `k`."""
        parallel = self.shape.parallel
        if k + 1 < len(parallel):
            back = parallel[k + 1].extent * parallel[k + 1].strides[operand]
        elif self.has_working or operand == len(self.task.inputs) or not self.shape.moves(operand):
            back = 0
        else:
            back = self._moved(operand, ends_early=ends_early)
        is_every_sixth = k == 0 and self.shape.is_dealt
        stride = parallel[k].strides[operand] * (N_WORKERS if is_every_sixth else 1)
        return (stride - back) * self.size(operand)

    def outer_step(self, operand: int, k: int) -> int:
        """Return how far an input's pointer moves after one point of outer reduction `k`."""
        back = self._moved_inside(operand, k)
        return (self.shape.outer[k].strides[operand] - back) * self.size(operand)

    def _moved(self, operand: int, *, ends_early: bool) -> int:
        """Return how many elements an input's pointer moves from the beginning to the end of an output."""
        outer = self.shape.outer
        if not outer:
            return self._moved_inside(operand, -1)
        if ends_early:
            return (outer[0].extent - 1) * outer[0].strides[operand] + self._moved_inside(operand, 0)
        return outer[0].extent * outer[0].strides[operand]

    def _moved_inside(self, operand: int, k: int) -> int:
        """Return how many elements the loops inside outer reduction `k` move an input's pointer."""
        outer, inner = self.shape.outer, self.shape.inner
        if k + 1 < len(outer):
            return outer[k + 1].extent * outer[k + 1].strides[operand]
        if self.shape.mode == "rows":
            return self.shape.steps * self.shape.lanes * inner.strides[operand]
        return inner.extent * inner.strides[operand]
