"""Routes of elements between layouts as runs; native."""

import numpy as np
from numpy.typing import NDArray

def runs(
    wanted: NDArray[np.int32],
    ids: NDArray[np.int64] | None,
    sources: list[tuple[NDArray[np.int32], NDArray[np.int64], int]],
    n_constants: int,
    is_padded: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return moves and fills, both (n, 6): source, core, slot there, target core, slot there, elements.

    `wanted` (cores, slots) are element numbers, -1 for none; `ids` turns them into numbers of elements of the sources
    laid end to end (None: they are those already), -1 - k for constant k. A source is its element map (cores, slots),
    which copy each of its cores belongs to, and its number of elements. A fill's first entry is the constant's number,
    `n_constants` for slots outside the tensor, which only `is_padded` asks for.
    """
