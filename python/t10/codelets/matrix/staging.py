"""Products whose inputs do not lie as the engine needs them: which are copied, and how the product is seen then.

Lines are filled up with zeros: to whole words where the lines of several positions stay contiguous as one (a few
channels of an image, side by side), else to whole blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd

from t10.codelets.matrix.copying import Copies, WeightLines, lines_of
from t10.codelets.matrix.direct import is_w_aligned, is_x_aligned
from t10.codelets.matrix.engine import WORD_BYTES
from t10.codelets.matrix.product import Product, ProductLoop, absorbed
from t10.codelets.matrix.shape import Stage

MOST_SCRATCH_BYTES = 1 << 16


def staged(product: Product) -> Iterator[Product]:
    """Yield the ways to see a product with inputs copied; none where copies would change nothing."""
    engine = product.engine
    size = engine.in_bytes
    copies_x = product.inner.x != size or not is_x_aligned(product)
    copies_w = product.inner.w != size or not is_w_aligned(product)
    is_whole = product.inner.extent % engine.word_elements == 0
    for one in (product, *_split(product)) if copies_x or copies_w or not is_whole else (product,):
        line = one.inner.extent * size
        if (copies_x or copies_w) and line % WORD_BYTES == 0:
            found = [_copied(one, line, copies_x=copies_x, copies_w=copies_w)]
        else:
            found = []
        # Both inputs are filled up with zeros, or none is: 0 times what lies behind a line may be no number.
        filled = {-(-line // unit) * unit for unit in (WORD_BYTES, engine.depth * size)} - {line}
        found += [_copied(one, pitch, copies_x=True, copies_w=True) for pitch in sorted(filled)]
        yield from (each for each in found if each is not None)


def _split(product: Product) -> list[Product]:
    """Return the product with a piece of the inner axis as its own where it spans several positions of the input."""
    size, inner = product.engine.in_bytes, product.inner
    if inner.x != size or inner.w != size:
        return []
    distance = gcd(*(loop.x for loop in (*product.rows, *product.outs, *product.sums))) // size
    if not 0 < distance < inner.extent or inner.extent % distance:
        return []
    position = ProductLoop(inner.extent // distance, distance * size, distance * size, 0)
    return [replace(product, inner=replace(inner, extent=distance), sums=(*product.sums, position))]


def _copied(product: Product, pitch: int, *, copies_x: bool, copies_w: bool) -> Product | None:
    """Return the product over copies with lines of `pitch` bytes; None where lines lie too unevenly to be copied."""
    engine, inner, columns = product.engine, product.inner, product.columns
    rows, outs, sums = list(product.rows), list(product.outs), list(product.sums)
    x_lines = weights = None
    if copies_x:
        loops = [*rows, *outs, *sums]
        x_lines = lines_of([(loop.extent, loop.x) for loop in loops], inner.x, inner.extent, pitch)
        if x_lines is None:
            return None
        moved = [
            ProductLoop(loop.extent, stride, loop.w, loop.out)
            for loop, stride in zip(loops, x_lines.strides, strict=True)
        ]
        rows, outs, sums = (
            moved[: len(rows)],
            moved[len(rows) : len(rows) + len(outs)],
            moved[len(rows) + len(outs) :],
        )
    if copies_w:
        width = min(columns.extent, engine.columns)
        walked = [(width, columns.w), *((loop.extent, loop.w) for loop in sums)]
        lines = lines_of(walked, inner.w, inner.extent, pitch)
        if lines is None:
            return None
        weights = WeightLines(columns.w, tuple(walked[1:]), inner.w, inner.extent, pitch, lines.in_line_chain)
        columns = ProductLoop(columns.extent, columns.x, lines.strides[0], columns.out)
        sums = [
            ProductLoop(loop.extent, loop.x, stride, loop.out)
            for loop, stride in zip(sums, lines.strides[1:], strict=True)
        ]
    copied = ([inner.x] if copies_x else []) + ([inner.w] if copies_w else [])
    stage = Stage(copies_x, copies_w, all(step == engine.in_bytes for step in copied))
    filled, sums = absorbed(ProductLoop(pitch // engine.in_bytes, engine.in_bytes, engine.in_bytes, 0), sums)
    return replace(
        product,
        inner=filled,
        columns=columns,
        rows=tuple(rows),
        outs=tuple(outs),
        sums=tuple(sums),
        copies=Copies(stage, x_lines, weights),
    )
