"""Which elements of a value lie in which slots of which core under a layout, core by core.

Elements are yielded per core, because all cores together may hold tens of millions of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.schedule import ValueLayout
from t10.plan.verify.windows import (
    Held,
    Ints,
    held_indices,
    numbered_window,
    ranks_of,
    slots_along,
    window_keys,
)


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A value under a layout: `n_slots` per core on `n_cores`, `n_elements` in all, in complete copies.

    `elements(core)` gives the element number in every slot, -1 where the slot holds none; `copies[core]` is the copy
    the core belongs to. `held`, `shape`, `chunks` and `n_whole` describe an operand layout, `chunks` being the part
    of the flattened partition of `n_whole` slots that a core keeps; a linear layout has none of them.
    """

    n_cores: int
    n_slots: int
    n_elements: int
    copies: tuple[int, ...]
    held: Held = ()
    shape: tuple[int, ...] = ()
    chunks: tuple[int, ...] = ()
    n_whole: int = 0

    def elements(self, core: int) -> Ints:
        """Return the element in every slot of a core, shape (slots,); -1 where there is none."""
        if not self.chunks:
            ids = core * self.n_slots + np.arange(self.n_slots)
            return np.where(ids < self.n_elements, ids, -1)
        ids = np.zeros(1, np.int64)
        inside = np.ones(1, np.bool_)
        for dim, extent in zip(self.held, self.shape, strict=True):
            index = dim.rows[dim.row_of_core[core]]
            ids = (ids[:, None] * extent + index).reshape(-1)
            inside = (inside[:, None] & (index >= 0) & (index < extent)).reshape(-1)
        whole = ids if inside.all() else np.where(inside, ids, -1)
        if self.n_slots == self.n_whole and not self.chunks[core]:
            return whole
        first = self.chunks[core] * self.n_slots
        kept = np.full(self.n_slots, -1, np.int64)
        piece = whole[first : first + self.n_slots]
        kept[: len(piece)] = piece
        return kept


def linear_value(n_elements: int, n_cores: int) -> PlacedValue:
    """Return a value laid out by its flattened elements in equal chunks, one after the other."""
    chunk = chunk_of(n_elements, n_cores)
    n_used = -(-n_elements // chunk)
    return PlacedValue(n_used, chunk, n_elements, (0,) * n_used)


def placed_operand(spec: OperatorSpec, plan: OperatorPlan, number: int, scatter: int = 1) -> PlacedValue:
    """Return operand `number` under a plan, its partition cut in `scatter` chunks over cores of equal windows."""
    window = numbered_window(spec, plan, number)
    held = held_indices(window, plan)
    n_whole = prod(dim.n_slots for dim in held)
    ranks = ranks_of(window_keys(window, plan))
    return PlacedValue(
        n_cores=plan.n_cores,
        n_slots=window_chunk_of(n_whole, scatter),
        n_elements=prod(window.operand.shape),
        copies=tuple(rank // scatter for rank in ranks),
        held=held,
        shape=window.operand.shape,
        chunks=tuple(rank % scatter for rank in ranks),
        n_whole=n_whole,
    )


def operand_slots(spec: OperatorSpec, plan: OperatorPlan, number: int) -> int:
    """Return how many slots the partition of operand `number` takes on every core."""
    n_inputs = len(spec.inputs)
    operand = spec.output if number == len(spec.operands) else spec.operands[number]
    row = plan.ft[min(number, n_inputs)]
    widths = tuple(length // t for length, t in zip(plan.lengths, row, strict=True))
    return prod(slots_along(dim, widths) for dim in operand.dims)


def layout_slots(layout: ValueLayout, spec: OperatorSpec | None, n_elements: int) -> int:
    """Return how many slots a value takes on every core under a layout."""
    if layout.plan is None or spec is None:
        return chunk_of(n_elements, layout.n_cores)
    return window_chunk_of(operand_slots(spec, layout.plan, layout.operand), layout.scatter)


def chunk_of(n_slots: int, n_parts: int) -> int:
    """Return the slots of a chunk: an even number where there are several chunks of more than one."""
    chunk = (n_slots + n_parts - 1) // n_parts
    if n_parts > 1 and chunk > 1 and chunk % 2 == 1:
        chunk += 1
    return chunk


def window_chunk_of(n_slots: int, n_parts: int) -> int:
    """Return the slots of a chunk of a window: of all lengths up to an eighth longer than `chunk_of`, the best.

    It has the highest power of two in common with the window, then the largest common divisor of at least a quarter of
    its length, then is shortest. It is the shortest of all if that power is not four times that of the shortest.
    """
    least = chunk_of(n_slots, n_parts)
    if n_parts == 1 or least < 2:
        return least
    found: list[tuple[int, int, int]] = []
    for length in range(least, least * 9 // 8 + 1, 2):
        common = gcd(length, n_slots)
        found.append((-(common & -common), -common if 4 * common >= length else 0, length))
    best = min(found)
    return best[2] if best[0] <= 4 * found[0][0] else least


def placed_layout(layout: ValueLayout, spec: OperatorSpec | None, n_elements: int) -> PlacedValue:
    """Return a value under a layout; `spec` is the operator that an `operand` layout names."""
    if layout.plan is None or spec is None:
        return linear_value(n_elements, layout.n_cores)
    return placed_operand(spec, layout.plan, layout.operand, layout.scatter)


def incomplete_copies(
    value: PlacedValue, most: int, needed: NDArray[np.bool_] | None = None
) -> Iterator[tuple[int, int, int]]:
    """Yield (copy, fewest, most) for copies that do not hold every element between once and `most` times.

    Elements outside `needed` (elements,) may be missing.
    """
    if not value.chunks:
        if value.n_slots * value.n_cores < value.n_elements:
            yield 0, 0, 1
        return
    cores_by_copy: dict[int, list[int]] = {}
    for core, copy in enumerate(value.copies):
        cores_by_copy.setdefault(copy, []).append(core)
    counted: set[frozenset[tuple[int, ...]]] = set()
    for copy, cores in sorted(cores_by_copy.items()):
        # Copies made of the same windows and chunks hold the same elements: count once.
        content = [
            (value.chunks[core], *(int(dim.row_of_core[core]) for dim in value.held)) for core in cores
        ]
        if len(set(content)) == len(content) and frozenset(content) in counted:
            continue
        counted.add(frozenset(content))
        count = np.zeros(value.n_elements, np.int32)
        for core in cores:
            ids = value.elements(core)
            count[ids[ids >= 0]] += 1  # slots of one core hold different elements, so none is lost here
        low = int((count if needed is None else count[needed]).min(initial=1))
        high = int(count.max(initial=1))
        if low < 1 or high > most:
            yield copy, low, high


def same_slots(wanted: PlacedValue, present: PlacedValue, is_padding_read: bool = False) -> bool:
    """Return whether every element that `wanted` has in a slot lies in the same slot of the same core in `present`.

    With `is_padding_read`, slots outside the tensor must be the same too: they hold padding that is read.
    """
    if wanted.n_slots > present.n_slots:
        return False
    for core in range(wanted.n_cores):
        ids = wanted.elements(core)
        if core >= present.n_cores:
            if (ids >= 0).any():
                return False
            continue
        if (((ids >= 0) | is_padding_read) & (ids != present.elements(core)[: wanted.n_slots])).any():
            return False
    return True
