"""What ends of operators take that do the last additions of a reduction as well (`t10.core.fused_ends`).

Additions and epilogue are one where that takes fewer cycles while all operands lie as well as they can: a program does
not change with where its buffers are put.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from t10.chip import ChipSpec
from t10.codelets.compile import may_be_own
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.fused_ends import fused_chunks, lie_of
from t10.core.partial_sums import round_nest
from t10.core.placed_costs import StepLies
from t10.core.program import ReduceMode
from t10.core.scalar import identity
from t10.core.vertex_nest import Lie
from t10.cost.slowest import slowest
from t10.errors import UnsupportedOpError


@dataclass(frozen=True, slots=True)
class FusedEnd:
    """Cycles of ends that add, launches included, and what their reduction does not take any more."""

    cycles: int
    saved: int


def fused_end(
    chip: ChipSpec,
    lies: StepLies | None,
    spec: OperatorSpec,
    windows: AxisSizes,
    n_members: int,
    apart_cycles: int,
) -> FusedEnd | None:
    """Return what ends over windows (axes) of the output take that add, None where additions are apart from them.

    `n_members` cores have sums of a window, all of it where the number is negative. `apart_cycles` are those of the end
    alone, as well as operands can lie.
    """
    mode: ReduceMode = "all" if n_members < 0 else "scatter"
    buffer_slots = chip.shift_buffer_bytes // size_bytes(spec.acc_dtype)
    try:
        found = fused_chunks(spec, windows, mode, abs(n_members), buffer_slots)
        if found is None or may_be_own(identity()) or may_be_own(spec.epilogue or identity()):
            return None
        one, nests = found
        addition = round_nest(spec.acc_dtype, spec.combine, one)

        def costs(lie: Lie, combine: Lie, apart: float = inf) -> FusedEnd | None:
            alone = slowest(*addition, combine)
            if alone is None:
                return None
            total, saved = 0, chip.launch_cycles + alone
            for nest, work in nests:
                cycles = slowest(nest, work, lie_of(nest, lie))
                if cycles is None or (total := total + chip.launch_cycles + cycles) >= saved + apart:
                    return None
            return FusedEnd(total, saved)

        n_operands, is_wide = len(spec.epilogue_inputs) + 3, chip.has_interleaved_data
        best = Lie.best(n_operands, is_wide=is_wide), Lie.best(2, is_wide=is_wide)
        least = costs(*best, apart_cycles)
        if least is None or lies is None:
            return least
        return costs(lies.fused or best[0], lies.combine)
    except UnsupportedOpError:
        return None
