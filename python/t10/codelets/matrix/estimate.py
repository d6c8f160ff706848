"""Cycles of a product's codelet, counted from its loops: which of several ways to take, and whether to take any.

Supervisor and workers are counted as the simulator times them; what is rough are levels and copies.
"""

from __future__ import annotations

from functools import lru_cache

from t10.codelets.matrix.code import WorkerCode
from t10.codelets.matrix.direct import Direct, is_w_aligned, is_x_aligned
from t10.codelets.matrix.engine import Engine
from t10.codelets.matrix.product import Product
from t10.codelets.matrix.stream import Access, Kit, Registers, Stream
from t10.codelets.matrix.weights import load_cycles
from t10.core.tile import N_WORKERS

ADDRESS_CYCLES = 6
LAUNCH_CYCLES = 16
LEVEL_CYCLES = 20
VERTEX_CYCLES = 40
SETUP_CYCLES = 110
COPY_CYCLES = 60
SEGMENT_SLOTS = 12
ENTRY_SLOTS = 7
WIDE_SLOTS = 2
"""Slots that loading the first partials 16 bytes at a time saves."""

DOT_CYCLES = 100
DOT_SLOTS = 16
DOT_SLOTS_PER_WORD = 2
DOT_SLOTS_PER_ELEMENT = 4


@lru_cache(maxsize=4096)
def loop_slots(engine: Engine, kit: Kit, accumulates: bool, access: Access, rows: int) -> int:
    """Return the slots of a loop over rows: pipelined where there are enough, else row by row."""
    stream = Stream(engine, kit, accumulates, access, Registers(*("$m0",) * 8))
    least = stream.least_rows
    code = WorkerCode()
    if rows < least:
        stream.write_row(code)
        return ENTRY_SLOTS + rows * (len(code.items) + 1)
    stream.write(code)
    per_row = next(int(item.aux) for item in code.items if item.kind == "repeat")
    return len(code.items) - per_row + (rows - least) * per_row


def cycles(found: Direct) -> float:
    """Return about how many cycles the vertex takes."""
    total = float(VERTEX_CYCLES + SETUP_CYCLES)
    stage = found.structure.stage
    if found.copies.x and stage:
        total += COPY_CYCLES + N_WORKERS * found.copies.x.slots(found.product.engine, stage)
    return total + sum(_pass_cycles(found, number) for number in range(len(found.passes)))


def _pass_cycles(found: Direct, number: int) -> float:
    one = found.passes[number]
    kind, engine, structure = one.kind, found.product.engine, found.structure
    outs = sums = 1
    for level, loop in enumerate(one.levels):
        if level < kind.outs:
            outs *= loop.extent
        else:
            sums *= loop.extent
    load = load_cycles(engine, structure.kit, kind.load, ADDRESS_CYCLES)
    opening = 0 if one.adds else 1
    total = outs * sums * (load + LAUNCH_CYCLES)
    if opening:
        total += outs * _launch_cycles(found, accumulates=False)
    if sums > opening:
        total += outs * (sums - opening) * _launch_cycles(found, accumulates=True)
    if kind.sums:
        total += outs * LEVEL_CYCLES
    if found.w_lines and structure.stage:
        copy = COPY_CYCLES + SETUP_CYCLES + N_WORKERS * found.w_lines.slots(engine, structure.stage)
        total += outs * copy
    return total


def _launch_cycles(found: Direct, *, accumulates: bool) -> float:
    structure = found.structure
    access = (structure.add if accumulates else structure.begin) or "single"
    slots = 0
    for loops in found.sharing.worker_loops():
        own = sum(loop_slots(structure.engine, structure.kit, accumulates, access, rows) for rows in loops)
        own -= WIDE_SLOTS if accumulates and structure.is_wide else 0
        if structure.has_segments:
            own += ENTRY_SLOTS + SEGMENT_SLOTS * len(loops)
        slots = max(slots, own + ENTRY_SLOTS)
    return N_WORKERS * slots


def dot_cycles(product: Product) -> float:
    """Return about how many cycles the vector unit takes for the same, output by output.

    Where a line begins anywhere it takes element by element.
    """
    outputs = product.n_rows * product.columns.extent
    for loop in product.outs:
        outputs *= loop.extent
    inner, engine = product.inner, product.engine
    is_contiguous = inner.x == inner.w == engine.in_bytes
    is_aligned = is_x_aligned(product) and is_w_aligned(product)
    slots = DOT_SLOTS_PER_WORD * -(-inner.extent // engine.word_elements)
    if is_contiguous and not is_aligned:
        slots = DOT_SLOTS_PER_ELEMENT * inner.extent
    for loop in product.sums:
        slots *= loop.extent
    slots = -(-outputs // N_WORKERS) * (DOT_SLOTS + slots)
    return DOT_CYCLES + N_WORKERS * slots
