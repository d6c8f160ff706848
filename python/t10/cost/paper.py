"""`PaperCostModel` (`t10-paper`): costs by the constants published with T10, to compare plans under one model.

Cores, memory and the shift buffer are the chip file's; all times are the published constants', whatever the chip says.
What the published model does not say is derived in `paper_compute` and explained in `docs/cost-model.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.geometry import window_chunk_many
from t10.cost import paper_compute as compute
from t10.cost.matrix import MatrixAxes, matrix_axes
from t10.cost.model import PlainForms, chip_fingerprint
from t10.cost.paper_constants import PaperConstants, published_constants


@lru_cache(maxsize=1024)
def _matrix_axes(spec: OperatorSpec) -> MatrixAxes | None:
    return matrix_axes(spec) if compute.uses_engine(spec) else None


def paper_cost_model(chip: ChipSpec, *, hides_arithmetic: bool = True) -> PaperCostModel:
    """Return the model `t10-paper` with its published constants."""
    return PaperCostModel(chip, published_constants(), hides_arithmetic)


@dataclass(frozen=True, slots=True)
class PaperCostModel(PlainForms):
    """The `CostModel` of the published constants.

    `hides_arithmetic` says whether arithmetic of epilogues may issue beside their loads and store; if not, every
    scalar operation of an epilogue takes its own slot (0.25 cycle per f16 element).
    """

    chip: ChipSpec
    constants: PaperConstants
    hides_arithmetic: bool = True

    @property
    def name(self) -> str:
        """Return what reports call the model."""
        return "t10-paper" if self.hides_arithmetic else "t10-paper (no hidden arithmetic)"

    def fingerprint(self) -> str:
        """Return a text that differs whenever any number differs."""
        return " ".join((self.name, chip_fingerprint(self.chip), self.constants.model_dump_json()))

    def sub_task_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes`, shape (candidates, axes)."""
        roles = _matrix_axes(spec)
        if roles is not None and (spec.kind == "convolution" or roles.positions):
            return compute.convolution_cycles(self.constants, spec, roles, boxes)
        if roles is not None:
            return compute.product_cycles(self.constants, spec, roles, boxes)
        if spec.selectors:
            return compute.gather_cycles(self.constants, spec, boxes)
        if spec.kind == "pooling":
            return compute.pooling_cycles(self.constants, spec, boxes)
        if spec.combine != "none":
            return compute.reduction_cycles(self.constants, spec, boxes)
        return compute.elementwise_cycles(self.constants, spec, boxes)

    def epilogue_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints) -> Ints:
        """Return the cycles of the epilogue for every candidate; the published model knows no runs."""
        del runs
        return compute.epilogue_cycles(self.constants, spec, n_slots, hides_arithmetic=self.hides_arithmetic)

    def exchange_cycles(self, max_bytes: int, fragments: int, *, neighbour: bool) -> int:
        """Return the cycles of one exchange phase; the published model knows neither fragments nor distance."""
        del fragments, neighbour
        if max_bytes == 0:
            return 0
        return int(self._moved(np.array(max_bytes, np.int64), self.constants.sync_cycles))

    def copy_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core copies or fills at most `n_bytes`: as a unary operator does."""
        if n_bytes == 0:
            return 0
        accesses = np.array(n_bytes, np.int64)
        return compute.start_cycles(self.constants, 1) + int(compute.streamed(self.constants, accesses, 2))

    def shift_cycles_many(self, n_bytes: Ints) -> Ints:
        """Return the cycles of one shift for every candidate; `n_bytes` may have any shape."""
        rounds = compute.ceil_div(n_bytes, self.chip.shift_buffer_bytes)
        return self._moved(n_bytes, rounds * self._round_sync_cycles)

    def reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of a reduce-scatter for every candidate; 0 where it has one member.

        Every core takes `n_members - 1` chunks, as many at once as fit the buffer, synchronised like rounds of a
        shift; what a phase brings is added by a binary elementwise step.
        """
        rounds = n_members - 1
        chunk = window_chunk_many(n_slots, n_members)
        chunk_bytes, buffer_bytes = chunk * size_bytes(spec.acc_dtype), self.chip.shift_buffer_bytes
        at_once = np.maximum(buffer_bytes // np.maximum(chunk_bytes, 1), 1)
        phases = -(-rounds // at_once) * np.maximum(compute.ceil_div(chunk_bytes, buffer_bytes), 1)
        moved = self._moved(rounds * chunk_bytes, phases * self._round_sync_cycles)
        starts = phases * compute.start_cycles(self.constants, 2)
        adds = compute.streamed(self.constants, rounds * chunk, 3 * size_bytes(spec.acc_dtype))
        return np.where(rounds > 0, moved + starts + adds, 0)

    def all_reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of an all-reduce for every candidate; 0 where it has one member.

        Every core takes the parts of all others, as many elements of each at once as fit the buffer, synchronised like
        rounds of a shift; what a phase brings is added by a binary elementwise step.
        """
        others = n_members - 1
        item_bytes = size_bytes(spec.acc_dtype)
        at_once = np.maximum(self.chip.shift_buffer_bytes // (item_bytes * np.maximum(others, 1)), 1)
        phases = -(-n_slots // at_once)
        moved = self._moved(others * n_slots * item_bytes, phases * self._round_sync_cycles)
        starts = phases * compute.start_cycles(self.constants, 2)
        adds = compute.streamed(self.constants, others * n_slots, 3 * item_bytes)
        return np.where(others > 0, moved + starts + adds, 0)

    @property
    def _round_sync_cycles(self) -> int:
        return self.constants.sync_cycles * self.constants.syncs_per_shift_round

    def _moved(self, n_bytes: Ints, sync_cycles: Ints | int) -> Ints:
        """Return the cycles of a transfer and its synchronisation, slower where there is more than one chip."""
        cycles = sync_cycles + compute.ceil_div(n_bytes * self.constants.exchange_millicycles_per_byte, 1000)
        if self.chip.n_cores <= self.constants.cores_of_a_chip:
            return cycles
        return compute.ceil_div(cycles * self.constants.many_chips_percent, 100)
