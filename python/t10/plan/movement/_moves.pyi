"""Types of the native module `t10.plan.movement._moves` (sources: `_moves.cpp`, `moves_*.h`)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

class PartitionCells:
    """How an operand lies on the cores of a plan; see `t10.plan.movement.partition_cells`. Never changes once made."""

    def __init__(
        self,
        dims: Sequence[tuple[int, int, Sequence[tuple[int, int]]]],
        f_op: Sequence[int],
        lengths: Sequence[int],
        windows: Sequence[int],
        core_order: Sequence[int],
        phases: Sequence[Sequence[tuple[Sequence[int], int, int, int]]],
        shift: Sequence[int],
        rotates: Sequence[bool],
        chunks: Sequence[Sequence[tuple[Sequence[int], Sequence[int]]]] = (),
    ) -> None:
        """Make cells from a plan's rows, one entry per axis.

        `dims` are (extent, offset, terms as (axis, coefficient)) per dim; `phases` are the fields of `PhaseTerm`;
        `shift` is how far windows have moved along an axis and `rotates` whether they move along it. Where there are
        `chunks`, the core of rank k among those of one window takes the slots of chunk k only, boxes of first slots
        and extents per dim. Raises ValueError where rows disagree.
        """

    @property
    def n_cores(self) -> int:
        """Return on how many cores it lies."""

    @property
    def n_slots(self) -> int:
        """Return how many slots a core has for it."""

class ElementLocator:
    """Where the elements of a value lie: cells whose replicas may have a chunk each. Never changes once made."""

    @property
    def n_slots(self) -> int:
        """Return how many slots a core keeps."""

    @property
    def n_copies(self) -> int:
        """Return how many copies of the value the cores hold together."""

class View:
    """A value read through views, as runs of elements. Never changes once made."""

def make_locator(cells: PartitionCells, scatter: int) -> ElementLocator:
    """Return where elements lie when the core of replica rank k keeps chunk `k % scatter` of its slots."""

def make_view(ids: NDArray[np.int32 | np.int64], sizes: Sequence[int]) -> View:
    """Return the view whose element e is element `ids[e]` of its sources laid end to end, a constant if negative.

    `sizes` are the elements of the sources. Raises ValueError for ids beyond them, and
    for 2^31 elements and more.
    """

def count(
    wanted: PartitionCells,
    homes: Sequence[ElementLocator],
    view: View | None,
    rates: Sequence[int],
    item_bytes: int,
    is_padded: bool,
    places: Sequence[int] = (),
) -> list[int]:
    """Return received, sent, fragments, total and copied elements, and three loads.

    Most of any core, and the sum of all received. The loads (cycles until the last transfer ends, before and behind the
    exchange: `t10.core.loads.Loads`) are 0 where `rates` is empty; else it has the numbers of `MoveRates`. `is_padded`:
    slots outside the tensor are filled. `places` are the numbers of `t10.core.loads.Places`, if any. Raises ValueError
    where the value has more elements than its homes.
    """

def bounds(
    wanted: Sequence[PartitionCells],
    is_padded: Sequence[bool],
    homes: Sequence[Sequence[ElementLocator]],
    pairs: NDArray[np.int64],
    view: View | None,
    budget: int,
    most_pieces: int,
    rates: Sequence[int],
    item_bytes: int,
) -> NDArray[np.int64]:
    """Return the eight numbers of `count` for `pairs` (n, 2) of what is wanted and where it lies, or less, as (n, 8).

    Transfers are not scheduled, and counting stops after about `budget` pieces (runs of elements that lie in a row).
    Of what one core takes, about `most_pieces` count, or the budget if that is more.
    """

def lie_in_place(
    wanted: Sequence[PartitionCells], homes: Sequence[ElementLocator], pairs: NDArray[np.int64]
) -> list[bool]:
    """Return whether every core wants exactly the slots it has, for `pairs` (n, 2) of what is wanted and where."""
