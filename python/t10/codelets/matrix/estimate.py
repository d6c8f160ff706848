"""Cycles of a product's codelet, counted from its loops: which of several ways to take, and whether to take any.

Supervisor and workers are counted as the simulator times them; what is rough are levels and copies.
"""

from __future__ import annotations

from functools import lru_cache

from t10.codelets.matrix.code import WorkerCode
from t10.codelets.matrix.direct import Direct, Pass, is_w_aligned, is_x_aligned
from t10.codelets.matrix.engine import Engine
from t10.codelets.matrix.product import Product
from t10.codelets.matrix.shape import N_WORKERS
from t10.codelets.matrix.stream import Access, Kit, Registers, Stream

ADDRESS_CYCLES = 7
LAUNCH_CYCLES = 20
LEVEL_CYCLES = 30
VERTEX_CYCLES = 40
SETUP_CYCLES = 110
COPY_CYCLES = 60
SEGMENT_SLOTS = 12
ENTRY_SLOTS = 5

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
    total = VERTEX_CYCLES + SETUP_CYCLES * len(found.passes)
    copies = found.copies
    if copies.x:
        total += COPY_CYCLES + N_WORKERS * copies.x.slots(found.product.engine)
    return total + sum(_pass_cycles(found, one) for one in found.passes)


def _pass_cycles(found: Direct, one: Pass) -> float:
    kind, engine = one.kind, found.product.engine
    outs = sums = 1
    for level, loop in enumerate(one.levels):
        if level < kind.outs:
            outs *= loop.extent
        else:
            sums *= loop.extent
    load = kind.kit.columns(engine) * _channel_cycles(one)
    begin = _launch_cycles(found, one, accumulates=False) if kind.begins else 0.0
    add = _launch_cycles(found, one, accumulates=True)
    adding = sums - (1 if kind.begins else 0)
    total = outs * (sums * (load + LAUNCH_CYCLES) + begin + adding * add)
    if kind.sums:
        total += outs * LEVEL_CYCLES
    if one.w_lines:
        total += outs * (COPY_CYCLES + SETUP_CYCLES + N_WORKERS * one.w_lines.slots(engine))
    return total


def _channel_cycles(one: Pass) -> float:
    """Return the cycles to load one channel's words."""
    load, words = one.kind.load, one.kind.kit.words
    if load.skip_words is None:
        return ADDRESS_CYCLES - 1 + words * 8 / load.width_bytes
    return (words + load.skip_words) * 8 / load.width_bytes


def _launch_cycles(found: Direct, one: Pass, *, accumulates: bool) -> float:
    kind, engine = one.kind, found.product.engine
    access = kind.sum_access if accumulates else kind.begin_access
    slots = 0
    for loops in found.sharing.worker_loops():
        own = sum(loop_slots(engine, kind.kit, accumulates, access, rows) for rows in loops)
        if found.structure.has_segments:
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
