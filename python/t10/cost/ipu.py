"""`IpuCostModel`: an IPU core and exchange, from a chip file's numbers (ipu timing reference, sections 5 and 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from t10.chip import ChipSpec, load_chip
from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.loads import Loads, MoveRates
from t10.cost.combine import Boxes, combine_operator
from t10.cost.exchange import ExchangeCosts, exchange_costs
from t10.cost.fitted import FitTable, bundled_table
from t10.cost.matrix import MatrixAxes, matrix_axes, product_cycles
from t10.cost.model import PlainForms, chip_fingerprint
from t10.cost.vector import box_cycles, combine_quad_cycles, elementwise_cycles, gather_cycles, load_cycles

EVEN_BYTES = 8
"""Parts of a reduction arrive at multiples of so many bytes."""

MEASURED_CHIP = "ipu-mk2"
"""The chip on whose core costs were measured."""


def compute_part(chip: ChipSpec) -> tuple[object, ...]:
    """Return what of a chip decides how long compute steps take."""
    units = tuple(
        sorted((u.in_dtype, u.acc_dtype, u.in_block, u.out_block, u.row_cycles) for u in chip.matrix_units)
    )
    return (chip.n_workers, chip.vector_width_f16, chip.vector_width_f32, units)


@lru_cache(maxsize=1)
def measured_compute() -> tuple[object, ...]:
    """Return what decides how long compute steps take on the core that costs were measured on."""
    return compute_part(load_chip(MEASURED_CHIP))


@lru_cache(maxsize=1024)
def _matrix_axes(spec: OperatorSpec) -> MatrixAxes | None:
    return matrix_axes(spec)


@dataclass(frozen=True, slots=True)
class IpuCostModel(PlainForms):
    """The `CostModel` of a chip built like an IPU. Numbers are modelled, not measured on silicon."""

    chip: ChipSpec
    table: FitTable = field(default_factory=bundled_table)
    name: str = "ipu"
    exchange: ExchangeCosts = field(default_factory=exchange_costs)

    @property
    def is_fitted(self) -> bool:
        """Return whether compute steps are priced as they were measured: by a core that computes as an IPU's does."""
        return compute_part(self.chip) == measured_compute()

    def fingerprint(self) -> str:
        """Return a text that differs whenever any number differs: the chip, and what was fitted."""
        fitted = self.table.digest if self.is_fitted else ""
        return f"ipu {chip_fingerprint(self.chip)} {fitted} {self.exchange.digest}"

    @property
    def move_rates(self) -> MoveRates:
        """Return the rates at which loads of relayouts and set-ups are counted."""
        return self.exchange.rates(self.chip)

    def move_cycles(self, loads: Loads) -> int:
        """Return the cycles of a relayout or set-up with these loads."""
        return self.exchange.phase_cycles(self.chip, loads)

    def sub_task_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes`, shape (candidates, axes)."""
        fitted = self.table.predicted(spec, "sub_task", boxes) if self.is_fitted else None
        if fitted is not None:
            return fitted + self.chip.launch_cycles
        roles = _matrix_axes(spec)
        if roles is not None:
            cycles = product_cycles(self.chip, spec, roles, boxes)
        elif spec.selectors:
            cycles = gather_cycles(self.chip, spec, boxes)
        else:
            cycles = box_cycles(self.chip, spec, boxes)
        return cycles + self.chip.launch_cycles

    def epilogue_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints) -> Ints:
        """Return the cycles of the epilogue for every candidate; the closed form does not ask for the runs."""
        if spec.epilogue is None:
            return np.zeros_like(n_slots)
        fitted = self.table.epilogue(spec, n_slots, runs) if self.is_fitted else None
        if fitted is not None:
            return fitted + self.chip.launch_cycles
        dtypes = (spec.acc_dtype, *(operand.dtype for operand in spec.epilogue_inputs))
        return self.chip.launch_cycles + elementwise_cycles(self.chip, spec.epilogue, dtypes, n_slots)

    def exchange_cycles(self, max_bytes: int, fragments: int, *, neighbour: bool) -> int:
        """Return the cycles of one exchange phase in which no core sends or receives more than `max_bytes`."""
        if max_bytes == 0:
            return 0
        words = -(-max_bytes // self.chip.exchange_bytes_per_cycle)
        return self._phase_cycles(neighbour) + words + self.chip.fragment_cycles * (max(fragments, 1) - 1)

    def copy_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core copies or fills at most `n_bytes` of its own memory; 0 for none."""
        if n_bytes == 0:
            return 0
        return self.chip.copy_launch_cycles + -(-n_bytes // self.chip.copy_bytes_per_cycle)

    def shift_cycles_many(self, n_bytes: Ints) -> Ints:
        """Return the cycles of one shift for every candidate; `n_bytes` may have any shape."""
        full, rest = np.divmod(n_bytes, self.chip.shift_buffer_bytes)
        whole = self._round_cycles(np.full_like(rest, self.chip.shift_buffer_bytes))
        return full * whole + np.where(rest > 0, self._round_cycles(rest), 0)

    def reduce_cycles_many(
        self, spec: OperatorSpec, n_members: Ints, chunk_bytes: Ints, n_slots: Ints
    ) -> Ints:
        """Return the cycles of a reduce-scatter for every candidate; 0 where it has one member.

        Every core takes `n_members - 1` chunks. As many as fit the shift buffer come in one exchange phase; a chunk
        larger than the buffer comes in pieces. Then they are combined with the core's own.
        """
        del chunk_bytes
        rounds = n_members - 1
        item_bytes = size_bytes(spec.acc_dtype)
        buffer_slots = self.chip.shift_buffer_bytes // item_bytes
        piece = np.maximum(np.minimum(n_slots, buffer_slots), 1)
        at_once = np.maximum(buffer_slots // _even(piece, item_bytes), 1)
        n_pieces = -(-n_slots // piece)
        last = n_slots - (n_pieces - 1) * piece
        full, rest = np.divmod(rounds, at_once)
        total = (n_pieces - 1) * self._scatter_rounds(spec, piece, at_once, full, rest)
        total = total + self._scatter_rounds(spec, last, at_once, full, rest)
        return np.where(rounds > 0, total, 0)

    def _scatter_rounds(
        self, spec: OperatorSpec, n_slots: Ints, at_once: Ints, full: Ints, rest: Ints
    ) -> Ints:
        """Return the cycles in which pieces of `n_slots` come: `at_once` in `full` phases, `rest` in a further one."""
        total = full * self._combined(spec, n_slots, at_once, at_once)
        return total + np.where(rest > 0, self._combined(spec, n_slots, rest, rest), 0)

    def _combined(self, spec: OperatorSpec, n_slots: Ints, n_received: Ints, n_parts: Ints) -> Ints:
        """Return the cycles of a phase that brings every core parts of `n_slots` elements, and of combining them."""
        moved = self.exchange.parts_cycles(self.chip, n_slots * size_bytes(spec.acc_dtype), n_received)
        return moved + self.combine_cycles_many(spec, n_parts, n_slots)

    def combine_cycles_many(self, spec: OperatorSpec, n_parts: Ints, n_slots: Ints) -> Ints:
        """Return the cycles in which a core combines `n_parts` parts of `n_slots` elements each, launch included."""
        if self.is_fitted and spec.combine != "none":
            one = combine_operator(spec.acc_dtype, spec.combine)
            fitted = self.table.predicted(one, "combine", Boxes(n_parts, n_slots))
            if fitted is not None:
                return fitted + self.chip.launch_cycles
        quads = _quads(n_parts * n_slots, self.chip)
        adds = self.chip.n_workers * quads * (2 * load_cycles(spec.acc_dtype) + combine_quad_cycles(spec))
        return adds + self.chip.launch_cycles

    def all_reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of an all-reduce for every candidate; 0 where it has one member.

        In a phase every core takes the same elements of all others, as many as fit the shift buffer, and combines them
        with its own; of more than two members, its own part is copied among the others'. What many cores want of one
        is sent to all of them at once, so receiving takes the time.
        """
        others = n_members - 1
        item_bytes = size_bytes(spec.acc_dtype)
        n_parts = np.where(others > 1, n_members, 1)
        room = self.chip.shift_buffer_bytes // item_bytes // n_parts
        at_once = np.maximum(room - room % _even(1, item_bytes), 1)
        full, rest = np.divmod(n_slots, at_once)
        total = full * self._all_combined(spec, at_once, others)
        total = total + np.where(rest > 0, self._all_combined(spec, rest, others), 0)
        return np.where(others > 0, total, 0)

    def _all_combined(self, spec: OperatorSpec, n_slots: Ints, others: Ints) -> Ints:
        """Return the cycles of one phase of an all-reduce."""
        n_bytes = n_slots * size_bytes(spec.acc_dtype)
        own = np.where(others > 1, self.exchange.own_part_cycles(self.chip, n_bytes), 0)
        # Where its own part is among them it is not added to what was there: as many additions.
        return own + self._combined(spec, n_slots, others, others)

    def _phase_cycles(self, neighbour: bool) -> int:
        chip = self.chip
        latency = chip.latency_neighbour_cycles if neighbour else chip.latency_any_cycles
        return chip.sync_cycles + chip.setup_cycles + latency

    def _round_cycles(self, n_bytes: Ints) -> Ints:
        """Return the cycles of one round of a shift: exchange into the shift buffer, copy to where it belongs."""
        chip = self.chip
        words = -(-n_bytes // chip.exchange_bytes_per_cycle)
        copied = -(-n_bytes // chip.copy_bytes_per_cycle)
        return self._phase_cycles(True) + words + chip.copy_launch_cycles + copied


def _even(n_slots: Ints | int, item_bytes: int) -> Any:
    """Return slots rounded up to whole eight bytes."""
    step = max(EVEN_BYTES // item_bytes, 1)
    return -(-n_slots // step) * step


def _quads(n_elements: Ints, chip: ChipSpec) -> Ints:
    """Return how many groups of four elements the busiest worker has."""
    return -(-n_elements // (4 * chip.n_workers))
