"""`IpuCostModel`: an IPU core and exchange, from a chip file's numbers (ipu timing reference, sections 5 and 8)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from t10.chip import ChipSpec, load_chip
from t10.codelets.compile import own_digest
from t10.core.arrays import Bools, Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.loads import Loads, MoveRates
from t10.core.placed_costs import StepLies
from t10.cost.bound.step import LeastSteps
from t10.cost.closed_forms import ClosedForms
from t10.cost.code_digest import code_digest
from t10.cost.combine import even_slots
from t10.cost.counted import CountedSteps, slots_and_runs
from t10.cost.exchange import exchange_rates, own_part_cycles, parts_cycles, phase_cycles
from t10.cost.model import PlainForms, chip_fingerprint
from t10.cost.steps import Steps

COUNTED_CHIP = "ipu-mk2"
"""The chip for whose core code is generated and counted."""


def compute_part(chip: ChipSpec) -> tuple[object, ...]:
    """Return what of a chip decides how long compute steps take."""
    units = tuple(
        sorted((u.in_dtype, u.acc_dtype, u.in_block, u.out_block, u.row_cycles) for u in chip.matrix_units)
    )
    return (chip.n_workers, chip.vector_width_f16, chip.vector_width_f32, units)


@lru_cache(maxsize=1)
def counted_compute() -> tuple[object, ...]:
    """Return what decides how long compute steps take on the core that code is generated for."""
    return compute_part(load_chip(COUNTED_CHIP))


@dataclass(frozen=True, slots=True)
class IpuCostModel(PlainForms):
    """The `CostModel` of a chip built like an IPU. Numbers are modelled, not measured on silicon.

    On a core that computes as an IPU's does a step takes what is counted from its code (`t10.cost.counted`), on others
    what closed forms say. With `is_least`, the numbers are lower bounds of that, quick and traceable. Operands of steps
    lie as `lies` says, as well as they can without it.
    """

    chip: ChipSpec
    name: str = "ipu"
    is_least: bool = False
    lies: StepLies | None = None

    def lying(self, lies: StepLies) -> IpuCostModel:
        """Return the model of steps whose operands lie so."""
        return replace(self, lies=lies)

    @property
    def is_counted(self) -> bool:
        """Return whether compute steps are priced from their code: it runs on a core that computes as an IPU's does."""
        return compute_part(self.chip) == counted_compute()

    @property
    def least(self) -> IpuCostModel:
        """Return the model whose numbers are never above this one's and are quick; itself where its own are."""
        return replace(self, is_least=True) if self.is_counted and not self.is_least else self

    def fingerprint(self) -> str:
        """Return a text that differs whenever any number differs: the chip, the code, what exchanges take."""
        code = f"{code_digest()} {own_digest()}" if self.is_counted else ""
        return (
            f"ipu {chip_fingerprint(self.chip)} {code} {self.move_rates.numbers} {self.is_least} {self.lies}"
        )

    def steps_alike(self, spec: OperatorSpec) -> Hashable:
        """Return all of an operator but what follows its steps; see `t10.cost.model.AlikeCosts`."""
        output = replace(spec.output, dtype=spec.acc_dtype)
        alone = replace(spec, name="", output=output, epilogue=None, epilogue_inputs=(), location="")
        return own_digest(), alone

    def reductions_alike(self, spec: OperatorSpec) -> Hashable:
        """Return what of an operator reductions look at; see `t10.cost.model.AlikeCosts`."""
        return own_digest(), spec.acc_dtype, spec.combine

    @property
    def move_rates(self) -> MoveRates:
        """Return the rates at which loads of relayouts and set-ups are counted."""
        return exchange_rates(self.chip)

    def move_cycles(self, loads: Loads) -> int:
        """Return the cycles of a relayout or set-up with these loads."""
        return phase_cycles(self.chip, loads)

    @property
    def _steps(self) -> Steps:
        if not self.is_counted:
            return ClosedForms(self.chip)
        return LeastSteps(self.chip.launch_cycles) if self.is_least else CountedSteps(self.chip, self.lies)

    def sub_task_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes`, shape (candidates, axes)."""
        return self.chip.launch_cycles + self._steps.sub_task(spec, boxes)

    def epilogue_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints) -> Ints:
        """Return the cycles of the epilogue for every candidate; the closed form does not ask for the runs."""
        if spec.epilogue is None:
            return np.zeros_like(n_slots)
        return self.chip.launch_cycles + self._steps.epilogue(spec, n_slots, runs)

    def step_cycles_many(self, spec: OperatorSpec, boxes: Ints, windows: Ints, adds: Bools) -> Ints:
        """Return the cycles of compute steps; see `t10.core.costs.WindowCosts`."""
        steps = self._steps
        if not isinstance(steps, CountedSteps):
            return self.sub_task_cycles_many(spec, boxes)
        return self.chip.launch_cycles + steps.step(spec, boxes, windows, adds)

    def fill_cycles_many(self, spec: OperatorSpec, n_slots: Ints) -> Ints:
        """Return the cycles in which a core fills so many accumulators, 0 where nothing is counted."""
        steps = self._steps
        if not isinstance(steps, CountedSteps):
            return np.zeros_like(n_slots)
        return self.chip.launch_cycles + steps.fill(spec, n_slots)

    def end_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        """Return the cycles in which accumulators become results; see `t10.core.costs.WindowCosts`."""
        steps = self._steps
        if not isinstance(steps, CountedSteps):
            return self.chunk_cycles_many(spec, *slots_and_runs(spec, windows, n_members), n_members)
        return self.chip.launch_cycles + steps.end(spec, windows, n_members)

    def sees_windows(self, spec: OperatorSpec) -> bool:
        """Return whether a bound of steps is higher where windows are no longer than the box: of bounds it is."""
        del spec
        return self.is_least

    def whole_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of steps whose operands are as large as the box; see `t10.cost.model.WholeCosts`."""
        if not self.is_least:
            return self.sub_task_cycles_many(spec, boxes)
        steps = LeastSteps(self.chip.launch_cycles, is_whole=True)
        return self.chip.launch_cycles + steps.sub_task(spec, boxes)

    def chunk_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints, n_members: Ints) -> Ints:
        """Return the cycles in which accumulators become results; see `t10.cost.model.ChunkCosts`."""
        if not self.is_least:
            return self.epilogue_cycles_many(spec, n_slots, runs)
        cycles = self.chip.launch_cycles + self._steps.epilogue(spec, n_slots, runs, n_members)
        if spec.epilogue is None and spec.acc_dtype == spec.output.dtype:
            return np.where(n_members > 1, cycles, 0)
        return cycles

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
        if spec.combine == "none":
            return n_members * 0
        rounds = n_members - 1
        item_bytes = size_bytes(spec.acc_dtype)
        buffer_slots = self.chip.shift_buffer_bytes // item_bytes
        piece = np.maximum(np.minimum(n_slots, buffer_slots), 1)
        at_once = np.maximum(buffer_slots // even_slots(piece, spec.acc_dtype), 1)
        n_pieces = -(-n_slots // piece)
        last = n_slots - (n_pieces - 1) * piece
        full, rest = np.divmod(rounds, at_once)
        # Nothing is asked of pieces and phases that there are not: an answer may take counting.
        pieces = np.minimum(n_pieces - 1, 1) * piece
        total = (n_pieces - 1) * self._scatter_rounds(spec, pieces, at_once, full, rest)
        total = total + self._scatter_rounds(spec, last, at_once, full, rest)
        return np.where(rounds > 0, total, 0)

    def _scatter_rounds(
        self, spec: OperatorSpec, n_slots: Ints, at_once: Ints, full: Ints, rest: Ints
    ) -> Ints:
        """Return the cycles in which pieces of `n_slots` come: `at_once` in `full` phases, `rest` in a further one."""
        total = full * self._combined(spec, n_slots, at_once, np.minimum(full, 1) * at_once)
        return total + np.where(rest > 0, self._combined(spec, n_slots, rest, rest), 0)

    def _combined(self, spec: OperatorSpec, n_slots: Ints, n_received: Ints, n_parts: Ints) -> Ints:
        """Return the cycles of a phase that brings every core parts of `n_slots` elements, and of combining them."""
        moved = self._moved(spec, n_slots, n_received, n_received)
        return moved + self.combine_cycles_many(spec, n_parts, n_slots)

    def _moved(self, spec: OperatorSpec, n_slots: Ints, n_received: Ints, n_sent: Ints | int) -> Ints:
        """Return the cycles of a phase that brings every core `n_received` parts of `n_slots` elements.

        Where the shift buffer and the accumulators share memory elements, cores send theirs one after the other.
        """
        is_apart = self.lies is None or bool(self.lies.combine.apart)
        n_bytes = n_slots * size_bytes(spec.acc_dtype)
        return parts_cycles(self.chip, n_bytes, n_received, 0 if is_apart else n_sent)

    def combine_cycles_many(
        self, spec: OperatorSpec, n_parts: Ints, n_slots: Ints, *, is_whole: bool = False
    ) -> Ints:
        """Return the cycles in which a core combines parts, launch included; see `t10.cost.steps.Steps`."""
        return self.chip.launch_cycles + self._steps.combine(spec, n_parts, n_slots, is_whole=is_whole)

    def all_reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of an all-reduce for every candidate; 0 where it has one member.

        In a phase every core takes the same elements of all others, as many as fit the shift buffer, and combines them
        with its own; of more than two members, its own part is copied among the others'. What many cores want of one
        is sent to all of them at once, so receiving takes the time.
        """
        if spec.combine == "none":
            return n_members * 0
        others = n_members - 1
        item_bytes = size_bytes(spec.acc_dtype)
        n_parts = np.where(others > 1, n_members, 1)
        room = self.chip.shift_buffer_bytes // item_bytes // n_parts
        at_once = np.maximum(room - room % even_slots(1, spec.acc_dtype), 1)
        full, rest = np.divmod(n_slots, at_once)
        total = full * self._all_combined(spec, np.minimum(full, 1) * at_once, n_parts, others)
        total = total + np.where(rest > 0, self._all_combined(spec, rest, n_parts, others), 0)
        return np.where(others > 0, total, 0)

    def _all_combined(self, spec: OperatorSpec, n_slots: Ints, n_parts: Ints, others: Ints) -> Ints:
        """Return the cycles of one phase of an all-reduce."""
        n_bytes = n_slots * size_bytes(spec.acc_dtype)
        own = np.where(others > 1, own_part_cycles(self.chip, n_bytes), 0)
        combined = self.combine_cycles_many(spec, n_parts, n_slots, is_whole=True)
        return own + self._moved(spec, n_slots, others, 1) + combined

    def _phase_cycles(self, neighbour: bool) -> int:
        chip = self.chip
        latency = chip.latency_neighbour_cycles if neighbour else chip.latency_any_cycles
        return chip.sync_cycles + chip.setup_cycles + latency

    def _round_cycles(self, n_bytes: Ints) -> Ints:
        """Return the cycles of one round of a shift: exchange into the shift buffer, copy to where it belongs."""
        chip = self.chip
        words = -(-n_bytes // chip.exchange_bytes_per_cycle)
        if self.lies is not None and not self.lies.is_shift_apart:
            words = 2 * words + chip.fragment_cycles
        return self._phase_cycles(True) + words + own_part_cycles(chip, n_bytes)
