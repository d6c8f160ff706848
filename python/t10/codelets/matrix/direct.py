"""Products whose operands the engine can read and write where they lie: structure and words of their codelet.

The inner axis is contiguous in both inputs and the columns are in the output; addresses and strides are multiples of 8
bytes, and what is left over along inner axis and columns is a whole number of 8-byte words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t10.codelets.matrix.copying import Copies, Lines
from t10.codelets.matrix.engine import WORD_BYTES
from t10.codelets.matrix.product import Loop, Product
from t10.codelets.matrix.shape import LINE_WORDS, N_WORKERS, Load, PassKind, Stage, Structure
from t10.codelets.matrix.share import Sharing, sharing
from t10.codelets.matrix.stream import Access, Kit, Registers, Stream, jump_words, pace_word

WIDE_BYTES = 16
NO_COPIES = Copies(Stage(x=False, w=False, rest=0, zero_words=0), None, None)
MOST_SKIPPED = 5
"""Loads of words in between that take less time than a new address for the next channel."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass with its numbers: byte offsets of its first block, and its levels, those that move the output first.

    Where weights are copied, `w_lines` are a block's and `w_within` is where in them the pass begins.
    """

    kind: PassKind
    x_at: int
    w_at: int
    out_at: int
    levels: tuple[Loop, ...]
    w_lines: Lines | None = None
    w_within: int = 0


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
            jumps = jump_words(product.engine, one.kind.kit, row.x, row.out, by_words=one.kind.is_by_words)
            words |= {f"x_jump{number}": jumps[0], f"out_jump{number}": jumps[1]}
            words |= {f"pace{number}": pace_word(product.engine, one.kind.kit, row.x, row.out) or 0}
            words |= {f"x_at{number}": one.x_at, f"w_at{number}": one.w_at, f"out_at{number}": one.out_at}
            words |= self._copied(number, one)
            for level, (loop, step) in enumerate(zip(one.levels, self._steps(one), strict=True)):
                n = f"{number}_{level}"
                words |= {f"count{n}": loop.extent, f"x_step{n}": step.x, f"w_step{n}": step.w}
                words |= {f"out_step{n}": step.out}
        if self.copies.x:
            words |= _line_words("x_{}", self.copies.x.words(product.engine))
        return words | {"w_copy_at": self.w_copy_at}

    @property
    def copies(self) -> Copies:
        """Return what is copied."""
        return self.product.copies or NO_COPIES

    @property
    def w_copy_at(self) -> int:
        """Return where in scratch memory weights are copied to."""
        return self.copies.x.size_bytes if self.copies.x else 0

    @property
    def scratch_bytes(self) -> int:
        """Return the bytes of scratch memory."""
        return self.w_copy_at + max((one.w_lines.size_bytes for one in self.passes if one.w_lines), default=0)

    def _copied(self, number: int, one: Pass) -> dict[str, int]:
        if one.w_lines is None:
            return {}
        words = _line_words(f"w_{{}}{number}", one.w_lines.words(self.product.engine))
        return words | {f"w_within{number}": one.w_within}

    def _steps(self, one: Pass) -> tuple[Loop, ...]:
        """Return the steps of levels; copied weights begin anew in every sum."""
        steps = relative(one.levels)
        last = one.kind.outs - 1
        if one.w_lines is None:
            return steps
        return (*steps[:last], replace(steps[last], w=one.levels[last].w), *steps[last + 1 :])


def _line_words(name: str, numbers: tuple[int, ...]) -> dict[str, int]:
    return {name.format(word): number for word, number in zip(LINE_WORDS, numbers, strict=True)}


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
    engine = product.engine
    passes: list[Pass] = []
    for columns in _blocks(product.columns.extent, engine.columns):
        begins = product.task.initial
        for depth in _blocks(product.inner.extent, engine.depth):
            found = _pass(product, begins, columns, depth)
            if found is None:
                return None
            passes.append(found)
            begins = False
    shared = sharing(product.rows, 2 * engine.phases)
    has_few = shared.least_rows < max(_least_rows(product, one.kind) for one in passes)
    if len(product.rows) > 1 and shared.reciprocal is None:
        return None
    stage = product.copies.stage if product.copies else None
    kinds = tuple(one.kind for one in passes)
    structure = Structure(engine, len(product.rows) > 1, has_few, kinds, stage)
    return Direct(product, structure, tuple(passes), shared)


def _least_rows(product: Product, kind: PassKind) -> int:
    """Return the fewest rows that all loops of a pass can do."""
    registers = Registers("", "", "", "", "", "", "", "")
    begin = Stream(product.engine, kind.kit, False, kind.begin_access, registers)
    add = Stream(product.engine, kind.kit, True, kind.sum_access, registers)
    return max(begin.least_rows if kind.begins else 0, add.least_rows if kind.adds else 0)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks of an axis: elements of each, how many, and the first element."""

    size: int
    n: int
    at: int


def _blocks(extent: int, size: int) -> list[_Blocks]:
    """Return the whole blocks of an axis, and what is left."""
    n, left = divmod(extent, size)
    return [blocks for blocks in (_Blocks(size, n, 0), _Blocks(left, 1, n * size)) if blocks.size * blocks.n]


def _pass(product: Product, begins: bool, columns: _Blocks, depth: _Blocks) -> Pass | None:
    """Return a pass; None where its weights cannot be copied as those of the other passes are."""
    engine, copies = product.engine, product.copies or NO_COPIES
    stores, rest = divmod(columns.size, engine.store_columns)
    kit = Kit(depth.size // engine.word_elements, stores + (rest > 0), rest > 0)
    w_column = copies.w.column_step if copies.w else product.columns.w
    out_block = engine.columns * engine.out_bytes
    deep = engine.depth * engine.in_bytes
    outs = [*product.outs, Loop(columns.n, 0, engine.columns * w_column, out_block)]
    sums = [*product.sums, Loop(depth.n, deep, deep, 0)]
    # A level of one point is written where it makes codelets alike; it costs nothing, or a few cycles once.
    outs = [loop for loop in outs if loop.extent > 1] or [Loop(1, 0, 0, 0)]
    sums = [loop for loop in sums if loop.extent > 1]
    lines = None
    if copies.w:
        sums = sums or [Loop(1, 0, 0, 0)]
        lines = copies.w.block(columns.size)
        if lines is None or (columns.size > 1 and lines.strides[0] != product.columns.w):
            return None
    begin, add = _accesses(product, kit, outs, sums)
    kind = PassKind(kit, len(outs), len(sums), begins, _load(product, kit, [*outs, *sums]), begin, add)
    within = depth.at * engine.in_bytes
    w_at = columns.at * w_column + (0 if lines else within)
    return Pass(
        kind, within, w_at, columns.at * engine.out_bytes, (*outs, *sums), lines, within if lines else 0
    )


def _is_direct(product: Product) -> bool:
    """Return whether operands lie as the engine needs them."""
    engine = product.engine
    inner, columns = product.inner, product.columns
    if inner.x != engine.in_bytes or inner.w != engine.in_bytes or columns.out != engine.out_bytes:
        return False
    if inner.extent % engine.word_elements or not (is_by_words(product) or _is_aligned_output(product)):
        return False
    return is_x_aligned(product) and is_w_aligned(product)


def is_x_aligned(product: Product) -> bool:
    """Return whether every line of the streaming input begins at a multiple of 8 bytes."""
    if product.copies and product.copies.x:
        return True
    loops = (*product.rows, *product.outs, *product.sums)
    return product.x_operand.align_bytes >= WORD_BYTES and all(loop.x % WORD_BYTES == 0 for loop in loops)


def is_w_aligned(product: Product) -> bool:
    """Return whether every line of the weights begins at a multiple of 8 bytes."""
    if product.copies and product.copies.w:
        return True
    loops = (*product.outs, *product.sums, product.columns)
    return product.w_operand.align_bytes >= WORD_BYTES and all(loop.w % WORD_BYTES == 0 for loop in loops)


def _is_aligned_output(product: Product) -> bool:
    """Return whether the output can be accessed by 8 bytes."""
    loops = (*product.rows, *product.outs)
    return (
        product.task.output.align_bytes >= WORD_BYTES
        and product.columns.extent % product.engine.store_columns == 0
        and all(loop.out % WORD_BYTES == 0 for loop in loops)
    )


def is_by_words(product: Product) -> bool:
    """Return whether the output is accessed by words of 32 bits: one element each."""
    return product.engine.out_bytes == WORD_BYTES // 2 and not _is_aligned_output(product)


def _accesses(product: Product, kit: Kit, outs: list[Loop], sums: list[Loop]) -> tuple[Access, Access]:
    """Return which accesses may share a bundle in the loops that begin from zero and that add."""
    task, engine = product.task, product.engine
    if is_by_words(product):
        return "word", "word"
    row = product.rows[-1] if product.rows else Loop(1, 0, 0, 0)
    copies = product.copies or NO_COPIES
    # Scratch memory is demanded apart from the output where that can be had: from an interleaved one.
    is_apart = task.output.is_interleaved if copies.x else task.are_apart(product.x, len(task.inputs))
    paced = pace_word(engine, kit, row.x, row.out) is not None
    output_paced = pace_word(engine, kit, 0, row.out) is not None
    out_banks = task.output.is_interleaved and row.out % WIDE_BYTES == 0
    levels = (*product.rows, *outs, *sums)
    both = (product.x_operand, task.output)
    is_cross = (
        not copies.x
        and all(o.is_interleaved and o.align_bytes >= WIDE_BYTES for o in both)
        and all(loop.x % WIDE_BYTES == 0 and loop.out % WIDE_BYTES == 0 for loop in levels)
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
    is_copied = product.copies is not None and product.copies.w is not None
    is_wide = (
        not is_copied
        and w.is_interleaved
        and w.align_bytes >= WIDE_BYTES
        and all(s % WIDE_BYTES == 0 for s in steps)
    )
    skip = product.columns.w // WORD_BYTES - kit.words
    most = MOST_SKIPPED * (2 if is_wide else 1)
    return Load(16 if is_wide else 8, skip if 0 <= skip <= most else None)
