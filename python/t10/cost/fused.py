"""What ends of operators take that do the last additions of a reduction as well (`t10.core.fused_ends`).

Additions and epilogue are one where that takes fewer cycles while all operands lie as well as they can: a program does
not change with where its buffers are put.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

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

KEPT_ENDS = 1 << 14


@dataclass(frozen=True, slots=True)
class FusedEnd:
    """Cycles of ends that add, launches included, and what their reduction does not take any more."""

    cycles: int
    saved: int


@lru_cache(maxsize=KEPT_ENDS)
def fused_end(
    chip: ChipSpec,
    lies: StepLies | None,
    spec: OperatorSpec,
    windows: AxisSizes,
    n_members: int,
    apart_cycles: int,
    own: str,
) -> FusedEnd | None:
    """Return what ends over windows (axes) of the output take that add, None where additions are apart from them.

    `n_members` cores have sums of a window, all of it where the number is negative. `apart_cycles` are those of the end
    alone, as well as operands can lie.
    """
    del own
    mode: ReduceMode = "all" if n_members < 0 else "scatter"
    buffer_slots = chip.shift_buffer_bytes // size_bytes(spec.acc_dtype)
    try:
        found = fused_chunks(spec, windows, mode, abs(n_members), buffer_slots)
        if found is None or may_be_own(identity()) or may_be_own(spec.epilogue or identity()):
            return None
        one, nests = found
        addition = round_nest(spec.acc_dtype, spec.combine, one)

        def costs(lie: Lie, combine: Lie) -> FusedEnd | None:
            alone = slowest(*addition, combine)
            each = [slowest(nest, work, lie_of(nest, lie)) for nest, work in nests]
            known = [cycles for cycles in each if cycles is not None]
            if alone is None or len(known) < len(each):
                return None
            return FusedEnd(len(known) * chip.launch_cycles + sum(known), chip.launch_cycles + alone)

        n_operands, is_wide = len(spec.epilogue_inputs) + 3, chip.has_interleaved_data
        best = Lie.best(n_operands, is_wide=is_wide), Lie.best(2, is_wide=is_wide)
        least = costs(*best)
        if least is None or least.cycles >= least.saved + apart_cycles:
            return None
        return least if lies is None else costs(lies.fused or best[0], lies.combine)
    except UnsupportedOpError:
        return None
