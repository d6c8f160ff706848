"""How products run on the matrix engine (`t10.codelets.matrix`): directly, with inputs copied, or turned.

```
for groups and blocks of columns:                      `sums` begin, from zero
    for window positions and blocks of the inner axis:
        load a block of weights, launch                six workers: rows through the engine
```

Blocks that are left over are whole ones that reach back. Rows lie in lines where they are not evenly spaced; a line of
few rows goes row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np

from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.tile import N_WORKERS
from t10.cost.kernel_variants import Boxes, Column, KernelVariant, always, both, chosen, never
from t10.cost.product_sizes import WORD_BYTES, Product, Rows, product_sizes

BLOCK_WORDS = 4
MOST_SKIPPED = 5
"""Words between two columns' weights up to which they are loaded as well."""
ADDRESS_CYCLES = 6
LEAST_ROWS = {"begin": 2, "add": 3}
"""Rows from which on a loop is pipelined."""
Blocks = tuple[int, int]
Sizes = Callable[[], Product]
"""A product's sizes, found once they are asked for."""

BLOCKS: Mapping[tuple[str, str], Blocks] = {
    ("f16", "f32"): (16, 8),
    ("f16", "f16"): (16, 16),
    ("f32", "f32"): (8, 16),
}
"""Depth and columns of a block of weights by input and output type (ISA reference §10)."""
GUESS = {
    "one": 150.0, "outs": 140.0, "sums": 20.0, "load": 1.0, "even": 20.0, "backs": 10.0, "adds": 160.0, "second": 40.0,
    "begin rows": 24.0, "add rows": 24.0, "begin loops": 40.0, "add loops": 40.0,
    "few begin rows": 70.0, "few add rows": 90.0, "few begin loops": 20.0, "few add loops": 20.0,
    "far begin rows": 10.0, "far add rows": 20.0, "mixed begin": 20.0, "mixed add": 20.0,
    "begin odd": 8.0, "add odd": 24.0, "add pairs": 6.0,
    "x lines": 180.0, "x words": 21.0, "w copies": 100.0, "w lines": 180.0, "w words": 21.0, 
    "x left": 10.0, "w left": 10.0,
}  # fmt: skip


def matrix_variants(spec: OperatorSpec, boxes: Boxes) -> list[KernelVariant]:
    """Return the variants of a product on the matrix engine, either input streaming past the other."""
    first, second = spec.inputs
    columns = [axis for dim in spec.output.dims for axis in dim.axes if axis not in first.axes & second.axes]
    x, w = (second, first) if columns[-1:] and columns[-1] in first.axes else (first, second)
    whole_words = 16 // size_bytes(spec.acc_dtype)
    one, other = (
        cache(partial(product_sizes, spec, boxes, x, w)),
        cache(partial(product_sizes, spec, boxes, w, x)),
    )

    def variant(name: str, sizes: Sizes, when: Callable[[Product], Column]) -> KernelVariant:
        def can() -> Column:
            return both(sizes().lies, sizes().fits, when(sizes()))

        return KernelVariant(name, can, partial(_engine, name, sizes, spec), GUESS)

    return [
        variant("direct", one, lambda sizes: sizes.columns % whole_words == 0),
        variant("direct, odd", one, lambda sizes: sizes.columns % whole_words != 0),
        variant("turned, odd", other, lambda sizes: always(sizes.columns)),
        *_copied("", one, spec),
        *_copied("turned, ", other, spec),
    ]


def _copied(prefix: str, sizes: Sizes, spec: OperatorSpec) -> list[KernelVariant]:
    """Return the variants of a product whose inputs are copied to whole words, or whole blocks."""
    per_word = WORD_BYTES // size_bytes(spec.inputs[0].dtype)

    def when() -> Column:
        return both(np.logical_not(sizes().lies), sizes().fits)

    def features(name: str, unit: int) -> dict[str, Column]:
        one = sizes()
        pitch = -(-one.inner // unit) * unit
        staged = replace(one, inner=pitch * one.near, stride=pitch * one.sums, sums=one.sums // one.near)
        return {**_engine(name, lambda: staged, spec), **_copies(one, spec)}

    units = ((f"{prefix}copied to words", per_word), (f"{prefix}copied to blocks", BLOCK_WORDS * per_word))
    return [KernelVariant(name, when, partial(features, name, unit), GUESS) for name, unit in units]


def _load(n_words: Column, stride: Column, columns: Column, *, can_be_wide: bool) -> Column:
    """Return the cycles of loading `n_words` words for every column of a block."""
    wide = both(stride % 2 == 0, n_words > 1) if can_be_wide else never(stride)
    own = chosen(wide, -(-n_words // 2), n_words)
    skip = stride - n_words
    most = chosen(wide, 2 * MOST_SKIPPED, MOST_SKIPPED)
    skips = both(skip >= 0, skip <= most)
    between = chosen(skips, chosen(wide, -(-skip // 2), skip), ADDRESS_CYCLES)
    return columns * (own + between) - between


def _engine(name: str, sizes: Sizes, spec: OperatorSpec) -> dict[str, Column]:
    """Return the features of a product whose operands lie as the engine needs them."""
    one = sizes()
    rows, per_word = one.rows, WORD_BYTES // size_bytes(spec.inputs[0].dtype)
    block = np.minimum(one.columns, BLOCKS[(spec.inputs[0].dtype, spec.acc_dtype)][1])
    n_wide = one.outs * -(-one.columns // block)
    words, stride = -(-one.inner // per_word), one.stride // per_word
    depth, left = words // BLOCK_WORDS, words % BLOCK_WORDS
    second = chosen(both(depth > 0, left > 0), 1, 0)
    n_deep = one.sums * (np.maximum(depth, 1) + second)
    can_be_wide = "copied" not in name
    first_load = _load(np.minimum(words, BLOCK_WORDS), stride, block, can_be_wide=can_be_wide)
    second_load = _load(left, stride, block, can_be_wide=can_be_wide)
    adds = n_wide * (n_deep - 1)
    features: dict[str, Column] = {
        "one": rows.n * 0 + 1,
        "outs": n_wide,
        "sums": n_wide * one.sums,
        "second": n_wide * second,
        "load": n_wide * one.sums * (np.maximum(depth, 1) * first_load + second * second_load),
        "adds": adds,
        "even": chosen(rows.even, n_wide + adds, 0),
        "backs": chosen(one.columns % block > 0, n_wide, 0),
    }
    pair = WORD_BYTES // size_bytes(spec.acc_dtype)
    stores = -(-block // pair)
    for kind, count in (("begin", n_wide), ("add", adds)):
        features |= _launches(kind, count, rows)
        if name != "direct":
            each = count * rows.share * stores
            features[f"{kind} pairs"] = chosen(one.columns % (2 * pair) == pair, each, 0)
            features[f"{kind} odd"] = chosen(one.columns % pair != 0, each, 0)
    return features


def _launches(kind: str, count: Column, rows: Rows) -> dict[str, Column]:
    """Return features of so many launches: rows in pipelines, or row by row where a loop has few."""
    least = LEAST_ROWS[kind]
    # Beside a worker whose rows just make a pipeline, those with one row less are slower.
    mixed = both(rows.length == least, rows.loops == 1, rows.n < N_WORKERS * least)
    few = rows.length < least
    n_rows, loops = count * rows.share, count * rows.loops
    return {
        f"{kind} rows": chosen(few, 0, n_rows),
        f"{kind} loops": chosen(few, 0, loops),
        f"few {kind} rows": chosen(few, n_rows, 0),
        f"few {kind} loops": chosen(few, loops, 0),
        f"mixed {kind}": chosen(mixed, count, 0),
        f"far {kind} rows": chosen(rows.is_far, n_rows, 0),
    }


def _copies(one: Product, spec: OperatorSpec) -> dict[str, Column]:
    """Return the features of copying inputs to whole words: all lines of the input, weights block by block."""
    item = spec.inputs[0].dtype
    width, per_word = BLOCKS[(item, spec.acc_dtype)][1], WORD_BYTES // size_bytes(item)
    words, left = -(-one.inner // per_word), one.inner % per_word
    share = -(-one.lines // N_WORKERS)
    blocks = one.outs * -(-one.columns // width)
    w_share = blocks * -(-(np.minimum(one.columns, width) * one.sums) // N_WORKERS)
    return {
        "x lines": share,
        "x words": share * words,
        "x left": share * left,
        "w copies": blocks,
        "w lines": w_share,
        "w words": w_share * words,
        "w left": w_share * left,
    }
