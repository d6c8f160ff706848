"""Types of the native module `t10.plan.memory._places` (source: `_places.cpp`)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

class Blocks:
    """Blocks of bytes in the memory of a core, and what is wished of them. Starts are one per block, -1 for none."""

    def __init__(
        self,
        first: Sequence[int],
        last: Sequence[int],
        size: Sequence[int],
        alone: Sequence[int],
        wishes: Sequence[tuple[int, int, int]],
        memory: Sequence[int],
    ) -> None:
        """Take blocks, alive from moment `first` to `last`, of `size` bytes.

        `alone` is the weight of a block's wish to be interleaved, `wishes` (block, other, weight) those of two blocks
        to share no memory element. `memory` is where blocks may begin and must end, where interleaving begins, the
        bytes of an element and of an interleaved pair, the alignment, and the bytes that reading runs over an end.
        Raises ValueError for lists of other lengths, IndexError for blocks that are not there.
        """

    def fill(self, starts: NDArray[np.int64], order: Sequence[int]) -> bool:
        """Put blocks of `order` without starts where they break least, one after the other; False without room.

        The best start breaks wishes of the least weight; of these it is interleaved, then in the fewest elements, then
        the lowest.
        """

    def move(self, starts: NDArray[np.int64], rounds: int) -> None:
        """Move blocks with broken wishes to where they break less, for so many rounds or as long as that helps."""

    def repack(self, starts: NDArray[np.int64], most_tries: int) -> None:
        """Take each block with broken wishes out with those alive beside it, and put them back where they break least.

        Each goes as low or as high as it can, in as many orders as `most_tries` places allow. The penalty never grows.
        """

    def penalty(self, starts: NDArray[np.int64]) -> int:
        """Return the weight of the broken wishes of blocks that have starts."""

    def broken(self, starts: NDArray[np.int64]) -> list[int]:
        """Return the blocks that have broken wishes; all have starts."""
