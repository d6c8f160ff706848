"""Routes of elements between layouts as runs; native."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def runs(
    wanted: Sequence[NDArray[np.int64]],
    n_cores: int,
    ids: NDArray[np.int64] | None,
    sources: list[tuple[NDArray[np.int32], NDArray[np.int64], int]],
    n_constants: int,
    is_padded: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return moves and fills, both (n, 6): source, core, slot there, target core, slot there, elements.

    `wanted` (cores, extent) per dim add up to the element numbers of the slots, a negative sum is none; `ids` turns
    them into numbers of elements of the sources laid end to end (None: they are those already), -1 - k for constant k.
    A source is its element map (cores, slots), which copy each of its cores belongs to, and its number of elements. A
    fill's first entry is the constant's number, `n_constants` for slots outside the tensor, which only `is_padded`
    asks for.
    """

def series(rows: NDArray[np.int32], item_bytes: int) -> NDArray[np.int32]:
    """Return runs of elements, (n, 6), as rows of `core.device.RUN_COLUMNS`; those that step evenly become one.

    That is: same variable, tiles and length, equal distances.
    """
