"""Products whose operands the engine can read and write where they lie: structure and words of their codelet.

The inner axis is contiguous in both inputs and the columns are in the output; addresses and strides are multiples of 8
bytes, and what is left over along inner axis and columns is a whole number of 8-byte words.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.codelets.matrix.engine import WORD_BYTES
from t10.codelets.matrix.product import Loop, Product
from t10.codelets.matrix.shape import N_WORKERS, Load, PassKind, Structure
from t10.codelets.matrix.share import Sharing, sharing
from t10.codelets.matrix.stream import Access, Kit, Registers, Stream, jump_words, pace_word

WIDE_BYTES = 16
MOST_SKIPPED = 5
"""Loads of words in between that take less time than a new address for the next channel."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass with its numbers: byte offsets of its first block, and its levels, those that move the output first."""

    kind: PassKind
    x_at: int
    w_at: int
    out_at: int
    levels: tuple[Loop, ...]


@dataclass(frozen=True, slots=True)
class Direct:
    """A product as passes over operands in place."""

    product: Product
    structure: Structure
    passes: tuple[Pass, ...]
    sharing: Sharing

    def numbers(self) -> dict[str, int]:
        """Return every word that is no pointer, by name."""
        product = self.product
        row = product.rows[-1] if product.rows else Loop(1, 0, 0, 0)
        shared = self.sharing
        share, rest = divmod(shared.n // shared.unit, N_WORKERS)
        words = {"w_row": product.columns.w, "share": share, "rest": rest, "x_row": row.x, "out_row": row.out}
        if self.structure.has_segments:
            outer, inner = product.rows
            words |= {"unit": shared.unit, "reciprocal": shared.reciprocal or 0}
            words |= {"segment_rows": inner.extent, "x_segment": outer.x, "out_segment": outer.out}
        for number, one in enumerate(self.passes):
            jumps = jump_words(product.engine, one.kind.kit, row.x, row.out)
            words |= {f"x_jump{number}": jumps[0], f"out_jump{number}": jumps[1]}
            words |= {f"pace{number}": pace_word(product.engine, one.kind.kit, row.x, row.out) or 0}
            words |= {f"x_at{number}": one.x_at, f"w_at{number}": one.w_at, f"out_at{number}": one.out_at}
            for level, (loop, step) in enumerate(zip(one.levels, relative(one.levels), strict=True)):
                n = f"{number}_{level}"
                words |= {f"count{n}": loop.extent, f"x_step{n}": step.x, f"w_step{n}": step.w}
                words |= {f"out_step{n}": step.out}
        return words


def relative(levels: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Return levels whose steps take back what the level inside has moved on."""
    result: list[Loop] = []
    for level, loop in enumerate(levels):
        inside = levels[level + 1] if level + 1 < len(levels) else Loop(0, 0, 0, 0)
        n = inside.extent
        result.append(
            Loop(loop.extent, loop.x - n * inside.x, loop.w - n * inside.w, loop.out - n * inside.out)
        )
    return tuple(result)


def direct(product: Product) -> Direct | None:
    """Return the product as passes, None where its operands do not lie as the engine needs them."""
    if not _is_direct(product):
        return None
    engine, task = product.engine, product.task
    full_blocks, left_columns = divmod(product.columns.extent, engine.columns)
    full_depth, left_depth = divmod(product.inner.extent, engine.depth)
    passes: list[Pass] = []
    for columns, n_blocks, column_at in (
        (engine.columns, full_blocks, 0),
        (left_columns, 1, full_blocks * engine.columns),
    ):
        begins = task.initial
        for depth, n_deep, depth_at in (
            (engine.depth, full_depth, 0),
            (left_depth, 1, full_depth * engine.depth),
        ):
            if not columns * n_blocks * depth * n_deep:
                continue
            kit = Kit(depth // engine.word_elements, columns // engine.store_columns)
            outs = [
                *product.outs,
                Loop(n_blocks, 0, engine.columns * product.columns.w, engine.columns * engine.out_bytes),
            ]
            deep = engine.depth * engine.in_bytes
            sums = [*product.sums, Loop(n_deep, deep, deep, 0)]
            at = (depth_at * engine.in_bytes, column_at * product.columns.w + depth_at * engine.in_bytes)
            passes.append(_pass(product, kit, begins, outs, sums, (*at, column_at * engine.out_bytes)))
            begins = False
    shared = sharing(product.rows, 2 * engine.phases)
    has_few = shared.least_rows < max(_least_rows(product, one.kind) for one in passes)
    if len(product.rows) > 1 and shared.reciprocal is None:
        return None
    structure = Structure(engine, len(product.rows) > 1, has_few, tuple(one.kind for one in passes))
    return Direct(product, structure, tuple(passes), shared)


def _least_rows(product: Product, kind: PassKind) -> int:
    """Return the fewest rows that all loops of a pass can do."""
    registers = Registers("", "", "", "", "", "", "", "")
    begin = Stream(product.engine, kind.kit, False, kind.begin_access, registers)
    add = Stream(product.engine, kind.kit, True, kind.sum_access, registers)
    return max(begin.least_rows if kind.begins else 0, add.least_rows if kind.adds else 0)


def _pass(
    product: Product, kit: Kit, begins: bool, outs: list[Loop], sums: list[Loop], at: tuple[int, int, int]
) -> Pass:
    outs = [loop for loop in outs if loop.extent > 1]
    sums = [loop for loop in sums if loop.extent > 1]
    begin, add = _accesses(product, kit, outs, sums)
    # A level of one point is written where it makes codelets alike; it costs nothing, or a few cycles once.
    outs = outs or [Loop(1, 0, 0, 0)]
    kind = PassKind(kit, len(outs), len(sums), begins, _load(product, kit, [*outs, *sums]), begin, add)
    return Pass(kind, *at, (*outs, *sums))


def _is_direct(product: Product) -> bool:
    """Return whether operands lie as the engine needs them."""
    engine, task = product.engine, product.task
    inner, columns = product.inner, product.columns
    if inner.x != engine.in_bytes or inner.w != engine.in_bytes or columns.out != engine.out_bytes:
        return False
    if inner.extent % engine.word_elements or columns.extent % engine.store_columns:
        return False
    if any(operand.align_bytes < WORD_BYTES for operand in task.operands):
        return False
    loops = (*product.rows, *product.outs, *product.sums)
    strides = [stride for loop in loops for stride in (loop.x, loop.w, loop.out)]
    return all(stride % WORD_BYTES == 0 for stride in (*strides, columns.w))


def _accesses(product: Product, kit: Kit, outs: list[Loop], sums: list[Loop]) -> tuple[Access, Access]:
    """Return which accesses may share a bundle in the loops that begin from zero and that add."""
    task, engine = product.task, product.engine
    row = product.rows[-1] if product.rows else Loop(1, 0, 0, 0)
    is_apart = task.are_apart(product.x, len(task.inputs))
    paced = pace_word(engine, kit, row.x, row.out) is not None
    output_paced = pace_word(engine, kit, 0, row.out) is not None
    out_banks = task.output.is_interleaved and row.out % WIDE_BYTES == 0
    levels = (*product.rows, *outs, *sums)
    both = (product.x_operand, task.output)
    is_cross = all(o.is_interleaved and o.align_bytes >= WIDE_BYTES for o in both) and all(
        loop.x % WIDE_BYTES == 0 and loop.out % WIDE_BYTES == 0 for loop in levels
    )
    begin: Access = "pair" if is_apart and paced else "cross" if is_cross and paced else "single"
    add: Access = "single"
    if is_apart and paced:
        add = "pair"
    if out_banks and output_paced and kit.stores == engine.phases:
        add = "packed"
    if is_apart and paced and out_banks:
        add = "triple"
    return begin, add


def _load(product: Product, kit: Kit, levels: list[Loop]) -> Load:
    """Return how weights are loaded; what lies between channels is skipped where a new address takes longer."""
    w = product.w_operand
    steps = [product.columns.w, *(loop.w for loop in levels)]
    is_wide = w.is_interleaved and w.align_bytes >= WIDE_BYTES and all(s % WIDE_BYTES == 0 for s in steps)
    skip = product.columns.w // WORD_BYTES - kit.words
    most = MOST_SKIPPED * (2 if is_wide else 1)
    return Load(16 if is_wide else 8, skip if 0 <= skip <= most else None)
