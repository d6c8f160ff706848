"""Products whose operands the engine can read and write where they lie: structure and words of their codelet.

The inner axis is contiguous in both inputs and the columns are in the output; addresses and strides are multiples of 8
bytes, and what is left over along inner axis and columns is a whole number of 8-byte words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from t10.codelets.matrix.copying import Copies, Lines
from t10.codelets.matrix.engine import BLOCK_WORDS, WORD_BYTES, Engine
from t10.codelets.matrix.first import QUAD
from t10.codelets.matrix.product import Product, ProductLoop
from t10.codelets.matrix.shape import LINE_WORDS, Load, PassKind, Stage, Structure
from t10.codelets.matrix.share import Sharing, sharing
from t10.codelets.matrix.stream import STEPPING, Access, Kit, Registers, Stream, jump_words, pace_word
from t10.codelets.matrix.weights import load_bytes
from t10.core.tile import N_WORKERS, WIDE_BYTES

NO_COPIES = Copies(Stage(x=False, w=False, in_runs=False), None, None)
NO_REGISTERS = Registers("", "", "", "", "", "", "", "")
ONE_COLUMN, TWIN = Kit(BLOCK_WORDS, 1, ends_half=True), Kit(BLOCK_WORDS, 1, is_twin=True)
FEW_ROWS = 4
"""Rows of the longest loop up to which accesses one by one may be the fastest."""
MOST_SKIPPED = 5
"""Loads of words in between that take less time than a new address for the next channel."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass with its numbers: byte offsets of its first block, and its levels, those that move the output first.

    Where weights are copied, `w_within` is where in the copy the pass begins. `adds` tells whether its sums begin by
    adding.
    """

    kind: PassKind
    x_at: int
    w_at: int
    w_within: int
    levels: tuple[ProductLoop, ...]
    adds: bool


@dataclass(frozen=True, slots=True)
class Direct:
    """A product as passes; `w_lines` are those of a block of weights that is copied.

    `columns_back` is how many columns the last block reaches back over the one before.
    """

    product: Product
    structure: Structure
    passes: tuple[Pass, ...]
    sharing: Sharing
    columns_back: int
    w_lines: Lines | None

    def numbers(self) -> dict[str, int]:
        """Return every word that is no pointer, by name."""
        product, structure = self.product, self.structure
        row = product.rows[-1] if product.rows else ProductLoop(1, 0, 0, 0)
        shared, n = self.sharing, 2 if structure.kit.is_twin else 1
        share, rest = divmod(shared.n // shared.unit, N_WORKERS)
        words = {"w_row": product.columns.w, "share": share, "rest": rest}
        words |= {"x_row": n * row.x, "out_row": n * row.out}
        # Rows of the input may lie further apart than a stride reaches: loops may pace the output alone.
        per_store = product.engine.words_per_store
        paces = [pace_word(structure.kit, x, n * row.out, per_store) for x in (row.x, 0)]
        pace = paces[0] or paces[1] or 0
        words |= {"pace": pace}
        quads = divmod(product.columns.extent // QUAD, N_WORKERS)
        words |= {"first_share": quads[0], "first_rest": quads[1]}
        words |= {
            "adds": int(not product.task.initial),
            "out_back": self.columns_back * product.engine.out_bytes,
        }
        if structure.has_segments:
            outer, inner = product.rows
            words |= {"unit": shared.unit, "reciprocal": shared.reciprocal or 0}
            words |= {"segment_rows": inner.extent, "x_segment": outer.x, "out_segment": outer.out}
            jumps = jump_words(structure.kit, row.x, row.out, per_store, by_words=structure.is_by_words)
            words |= {"x_jump": jumps[0], "out_jump": jumps[1]}
        for name, lines in (("x", self.copies.x), ("w", self.w_lines)):
            if lines is not None:
                numbers = lines.words(product.engine)
                words |= {f"{name}_{word}": n for word, n in zip(LINE_WORDS, numbers, strict=True)}
        words |= {"w_copy_at": self.w_copy_at, "w_skip": self.columns_back * product.columns.w}
        for number, one in enumerate(self.passes):
            words |= self._pass_numbers(number, one)
        return words

    def _pass_numbers(self, number: int, one: Pass) -> dict[str, int]:
        words = {f"x_at{number}": one.x_at, f"w_at{number}": one.w_at, f"w_within{number}": one.w_within}
        back = self.columns_back
        channel = self.copies.w.column_step if self.copies.w else self.product.columns.w
        # A block that adds leaves out the weights of columns that are done; copies hold them nevertheless.
        reaches = not one.adds or self.copies.w is not None
        words |= {f"w_back{number}": back * channel if reaches else 0}
        load = load_bytes(self.product.engine, self.structure.kit, one.kind.load, back) if one.adds else 0
        words |= {f"load_at{number}": load}
        for level, (loop, step) in enumerate(zip(one.levels, self._steps(number, one), strict=True)):
            n = f"{number}_{level}"
            ahead = self.structure.channels_ahead(one.kind, level) * self.product.columns.w
            words |= {
                f"count{n}": loop.extent,
                f"x_step{n}": step.x,
                f"w_step{n}": step.w - ahead,
                f"out_step{n}": step.out,
            }
        return words

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
        first = self.product.columns.extent * self.product.engine.sum_bytes
        return self.first_at + (first if self.structure.has_first else 0)

    @property
    def first_at(self) -> int:
        """Return where in scratch memory first partials are brought to."""
        return self.w_copy_at + (self.w_lines.size_bytes if self.w_lines else 0)

    def _steps(self, number: int, one: Pass) -> tuple[ProductLoop, ...]:
        """Return the steps of levels: each takes back what the level inside has moved on.

        The last block of columns has reached back; copied weights begin anew in every sum.
        """
        result: list[ProductLoop] = []
        columns = one.kind.outs - 1
        channel = self.copies.w.column_step if self.copies.w else self.product.columns.w
        reaches = not one.adds or self.copies.w is not None
        for level, loop in enumerate(one.levels):
            inside = one.levels[level + 1] if level + 1 < len(one.levels) else ProductLoop(0, 0, 0, 0)
            n = inside.extent
            w = 0 if self.copies.w and level == columns else n * inside.w
            out = n * inside.out
            if level == columns - 1:
                out -= self.columns_back * self.product.engine.out_bytes
                w -= self.columns_back * channel if reaches else 0
            result.append(ProductLoop(loop.extent, loop.x - n * inside.x, loop.w - w, loop.out - out))
        return tuple(result)


def directs(product: Product) -> Iterator[Direct]:
    """Yield the ways to do a product as passes, none where its operands do not lie as the engine needs them."""
    if not _is_direct(product):
        return
    engine, initial = product.engine, product.task.initial
    width = min(product.columns.extent, engine.columns)
    n_blocks = -(-product.columns.extent // width)
    stores, half = divmod(width, engine.store_columns)
    depth, left = divmod(product.inner.extent, engine.depth)
    kit = Kit(BLOCK_WORDS if depth else left // engine.word_elements, stores + (half > 0), half > 0)
    if engine.rounding:
        yield from _rounding(product, kit)
        return
    lines = product.copies.w.block(width) if product.copies and product.copies.w else None
    passes = [_pass(product, kit, n_blocks, max(depth, 1), kit.words, adds=not initial)]
    if depth and left:
        passes.append(_pass(product, kit, n_blocks, 1, left // engine.word_elements, adds=True))
    many = any(one.kind.sums for one in passes) or len(passes) > 1
    shared = sharing(product.rows, 2 * engine.phases)
    if len(product.rows) > 1 and shared.reciprocal is None:
        return
    back = n_blocks * width - product.columns.extent
    least_rows = shared.least_rows
    has_first = product.task.first is not None
    if has_first and product.copies and product.copies.w and len(passes) > 1:
        # Copying takes the registers of workers, whose setup goes on with the beginning of sums.
        return
    for begin, add in _worth_trying(engine, kit, shared, *_accesses(product, kit, passes[0].levels)):
        begins, adds = begin if initial or many else None, add if many or not initial else None
        structure = Structure(
            engine,
            kit,
            has_segments=len(product.rows) > 1,
            has_few=least_rows < _least_rows(engine, kit, begins, adds, has_first=has_first),
            overlaps=back > 0,
            begin=begins,
            add=adds,
            passes=tuple(one.kind for one in passes),
            stage=product.copies.stage if product.copies else None,
            has_first=has_first,
        )
        if _is_wide(product, structure, tuple(passes), back):
            structure = replace(structure, is_wide=True)
        yield Direct(product, structure, tuple(passes), shared, back, lines)
    pairs = Sharing(product.n_rows // 2, product.n_rows // 2, 1)
    if (
        kit == ONE_COLUMN
        and not has_first
        and len(passes) == 1
        and pairs.least_rows > 1
        and _are_twins(product)
    ):
        twin = Structure(
            engine, TWIN, has_segments=False, has_few=False, overlaps=False,
            begin="pair" if initial or many else None, add="pair" if many or not initial else None,
            passes=(passes[0].kind,),
        )  # fmt: skip
        yield Direct(product, twin, tuple(passes), pairs, 0, None)


def _are_twins(product: Product) -> bool:
    """Return whether rows of one column may go by twos (see `twin`): their sums are neighbours, in whole words."""
    if product.copies or len(product.rows) != 1 or product.engine.phases != BLOCK_WORDS:
        return False
    (row,), output = product.rows, product.task.output
    return (
        row.extent % 2 == 0
        and row.out == WORD_BYTES // 2
        and output.align_bytes >= WORD_BYTES
        and all(loop.out % WORD_BYTES == 0 for loop in product.outs)
        and product.task.are_apart(product.x, len(product.task.inputs))
        and pace_word(TWIN, row.x, WORD_BYTES) is not None
    )


def _rounding(product: Product, kit: Kit) -> Iterator[Direct]:
    """Yield the way to do a product whose sums are rounded by their last block.

    All blocks of the inner axis are of as many words: as many as there may be without words left over.
    """
    engine, width = product.engine, min(product.columns.extent, product.engine.columns)
    n_blocks = -(-product.columns.extent // width)
    n_words = product.inner.extent // engine.word_elements
    kit = replace(kit, words=max(n for n in range(1, BLOCK_WORDS + 1) if n_words % n == 0))
    only = _pass(product, kit, n_blocks, n_words // kit.words, kit.words, adds=not product.task.initial)
    is_many = prod(loop.extent for loop in only.levels[only.kind.outs :]) > 1
    shared = sharing(product.rows, 2 * engine.phases)
    if len(product.rows) > 1 and shared.reciprocal is None:
        return
    initial, has_first = product.task.initial, product.task.first is not None
    if has_first and (not is_many or product.copies or len(product.rows) > 1):
        return
    begin, add, end = rounding_accesses(product, kit, is_many=is_many)
    if has_first and begin == "pair":
        begin = "triple" if product.x_operand.is_interleaved else "single"
    begins, adds = begin if initial else None, add if is_many else None
    ends = end if is_many or not initial else None
    loops: tuple[tuple[Access | None, bool, bool], ...] = (
        (begins, has_first, not is_many),
        (adds, True, False),
        (ends, True, True),
    )
    least = max(
        Stream(engine, kit, is_adding, access, NO_REGISTERS, rounds).least_rows
        for access, is_adding, rounds in loops
        if access is not None
    )
    back = n_blocks * width - product.columns.extent
    lines = product.copies.w.block(width) if product.copies and product.copies.w else None
    structure = Structure(
        engine,
        kit,
        has_segments=len(product.rows) > 1,
        has_few=shared.least_rows < least,
        overlaps=back > 0,
        begin=begins,
        add=adds,
        passes=(only.kind,),
        stage=product.copies.stage if product.copies else None,
        end=ends,
        has_first=has_first,
    )
    is_triple = {adds, ends} - {None} == {"triple"}
    is_wide = is_triple and not structure.needs_jumps and kit.stores == engine.phases
    is_wide = is_wide and not structure.has_segments
    yield Direct(product, replace(structure, is_wide=is_wide), (only,), shared, back, lines)


def rounding_accesses(product: Product, kit: Kit, *, is_many: bool) -> tuple[Access, Access, Access]:
    """Return which accesses may share a bundle in loops that begin, add to, and round sums.

    Sums of one block are rounded as they begin.
    """
    task, row = product.task, product.rows[-1] if product.rows else ProductLoop(1, 0, 0, 0)
    sums, out = len(task.inputs) - 1, len(task.inputs)
    if pace_word(kit, row.x, row.out, product.engine.words_per_store) is None:
        return "single", "single", "single"
    is_copied = product.copies is not None and product.copies.x is not None

    def is_apart(number: int) -> bool:
        """Return whether the streaming input lies apart from an operand; a copy of it is not interleaved."""
        return task.operands[number].is_interleaved if is_copied else task.are_apart(product.x, number)

    is_begun = is_apart(sums) and task.inputs[sums].is_interleaved
    is_ended = is_begun and is_apart(out) and task.are_apart(sums, out)
    if task.initial and not is_many:
        is_begun = is_apart(out)
    return (
        ("pair" if is_begun else "single"),
        ("triple" if is_begun else "single"),
        ("triple" if is_ended else "single"),
    )


def _worth_trying(
    engine: Engine, kit: Kit, shared: Sharing, begin: Access, add: Access
) -> Iterator[tuple[Access, Access]]:
    """Yield accesses that begin and that add: those granted, and with fewer in a bundle those that may take less time.

    Loops with fewer begin and end sooner, which counts where rows take no longer, or where there are few.
    """
    yield begin, add
    if add == "triple" and _adding_slots(engine, kit, "pair") == _adding_slots(engine, kit, "triple"):
        yield begin, "pair"
    if shared.most_rows <= FEW_ROWS and not {begin, add} <= STEPPING:
        yield "single", "single"


@lru_cache(maxsize=256)
def _adding_slots(engine: Engine, kit: Kit, access: Access) -> int:
    """Return the slots of a row in the loop that adds."""
    return Stream(engine, kit, accumulates=True, access=access, registers=NO_REGISTERS).row_bundles


def _is_wide(product: Product, structure: Structure, passes: tuple[Pass, ...], back: int) -> bool:
    """Return whether the first partials of every row and block of columns can be loaded 16 bytes at a time, and are."""
    output, size = product.task.output, product.engine.out_bytes
    levels, n_outs = passes[0].levels, passes[0].kind.outs
    adds = structure.begin is None or len(passes) > 1 or prod(loop.extent for loop in levels[n_outs:]) > 1
    is_whole = structure.kit.stores == product.engine.phases and back * size % WIDE_BYTES == 0
    is_even = output.align_bytes >= WIDE_BYTES and all(loop.out % WIDE_BYTES == 0 for loop in levels)
    return (
        adds
        and structure.add == "triple"
        and not structure.needs_jumps
        and not structure.has_segments
        and is_whole
        and is_even
    )


@lru_cache(maxsize=256)
def _least_rows(
    engine: Engine, kit: Kit, begin: Access | None, add: Access | None, *, has_first: bool = False
) -> int:
    """Return the fewest rows that all row loops can do."""
    loops: tuple[tuple[Access | None, bool], ...] = ((begin, has_first), (add, True))
    return max(
        Stream(engine, kit, adds, access, NO_REGISTERS).least_rows
        for access, adds in loops
        if access is not None
    )


def _pass(product: Product, kit: Kit, n_blocks: int, n_deep: int, words: int, *, adds: bool) -> Pass:
    """Return the pass over whole blocks, or the one over the last `words` words, as a block that reaches back."""
    engine, copies = product.engine, product.copies or NO_COPIES
    w_column = copies.w.column_step if copies.w else product.columns.w
    deep = kit.words * WORD_BYTES
    outs = [
        *product.outs,
        ProductLoop(n_blocks, 0, engine.columns * w_column, engine.columns * engine.out_bytes),
    ]
    sums = [*product.sums, ProductLoop(n_deep, deep, deep, 0)]
    # A level of one point is written where it makes codelets alike; it costs nothing, or a few cycles once.
    outs = [loop for loop in outs if loop.extent > 1] or [ProductLoop(1, 0, 0, 0)]
    sums = [loop for loop in sums if loop.extent > 1]
    if copies.w:
        sums = sums or [ProductLoop(1, 0, 0, 0)]
    first = kit.words - words
    end = product.inner.extent * engine.in_bytes
    x_at = end - kit.words * WORD_BYTES if first else 0
    w_at = end - words * WORD_BYTES if first else 0
    kind = PassKind(len(outs), len(sums), _load(product, first, kit.words, [*outs, *sums]))
    return Pass(kind, x_at, 0 if copies.w else w_at, w_at if copies.w else 0, (*outs, *sums), adds)


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
        and product.columns.extent * product.engine.out_bytes % WORD_BYTES == 0
        and all(loop.out % WORD_BYTES == 0 for loop in loops)
    )


def is_by_words(product: Product) -> bool:
    """Return whether the output is accessed by words of 32 bits: one element each."""
    return product.engine.out_bytes == WORD_BYTES // 2 and not _is_aligned_output(product)


def _accesses(product: Product, kit: Kit, levels: tuple[ProductLoop, ...]) -> tuple[Access, Access]:
    """Return which accesses may share a bundle in the loops that begin from zero and that add."""
    task, engine = product.task, product.engine
    if is_by_words(product):
        return "word", "word"
    row = product.rows[-1] if product.rows else ProductLoop(1, 0, 0, 0)
    copies = product.copies or NO_COPIES
    # Scratch memory is demanded apart from the output where that can be had: from an interleaved one.
    is_apart = task.output.is_interleaved if copies.x else task.are_apart(product.x, len(task.inputs))
    paced = pace_word(kit, row.x, row.out) is not None
    output_paced = pace_word(kit, 0, row.out) is not None
    out_banks = task.output.is_interleaved and row.out % WIDE_BYTES == 0
    levels = (*product.rows, *levels)
    both = (product.x_operand, task.output)
    is_cross = (
        not copies.x
        and all(o.is_interleaved and o.align_bytes >= WIDE_BYTES for o in both)
        and all(loop.x % WIDE_BYTES == 0 and loop.out % WIDE_BYTES == 0 for loop in levels)
    )
    begin: Access = "pair" if is_apart and paced else "cross" if is_cross and paced else "single"
    if task.first is not None:
        begin = _first_access(product, is_apart=is_apart) if paced else "single"
    add: Access = "single"
    if is_apart and paced:
        add = "pair"
    if out_banks and output_paced and kit.stores == engine.phases:
        add = "packed"
    if is_apart and paced and out_banks:
        add = "triple"
    return begin, add


def _first_access(product: Product, *, is_apart: bool) -> Access:
    """Return which accesses may share a bundle where sums begin with partials from scratch memory.

    That is demanded apart from operands where it can be had: from interleaved ones.
    """
    if not is_apart or product.copies or not product.x_operand.is_interleaved:
        return "single"
    return "triple" if product.task.output.is_interleaved else "pair"


def _load(product: Product, first: int, last: int, levels: list[ProductLoop]) -> Load:
    """Return how weights are loaded; what lies between channels is skipped where a new address takes longer."""
    w = product.w_operand
    steps = [product.columns.w, first * WORD_BYTES, *(loop.w for loop in levels)]
    steps += [product.inner.extent * product.engine.in_bytes] if first else []
    is_copied = product.copies is not None and product.copies.w is not None
    is_wide = not is_copied and w.is_interleaved and w.align_bytes >= WIDE_BYTES
    is_wide = is_wide and all(step % WIDE_BYTES == 0 for step in steps)
    skip = product.columns.w // WORD_BYTES - (last - first)
    most = MOST_SKIPPED * (2 if is_wide else 1)
    return Load(16 if is_wide else 8, skip if 0 <= skip <= most else None, first, last)
