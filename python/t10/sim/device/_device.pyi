"""Types of the native module `t10.sim.device._device` (sources: `_device.cpp`, `device_memory.h`, `exchange_*.h`)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

class Memories:
    """The memories of all tiles, with a record of the bytes that anybody wrote. Offsets count from a memory's begin.

    All methods raise IndexError for accesses outside the memories.
    """

    def __init__(self, tiles: Sequence[NDArray[np.uint8]]) -> None:
        """Use one array of bytes per tile, all of one length, in place."""

    def write_rows(self, tiles: NDArray[np.int32], offset: int, rows: NDArray[np.uint8]) -> None:
        """Write a row of bytes at the same offset of every tile; `rows` is (tiles, bytes)."""

    def read_rows(self, tiles: NDArray[np.int32], offset: int, out: NDArray[np.uint8]) -> None:
        """Read a row of bytes from the same offset of every tile into `out`, (tiles, bytes)."""

    def mark(self, tiles: NDArray[np.int32], offsets: NDArray[np.int64], n_bytes: int) -> None:
        """Record that a vertex wrote `n_bytes` at an offset of every tile."""

    def poison(self, n_tiles: int, offset: int, n_bytes: int) -> None:
        """Overwrite bytes of the first `n_tiles` tiles with 0xFF and record that nobody wrote them."""

    def written_rows(self, tiles: NDArray[np.int32], offset: int, out: NDArray[np.uint8]) -> None:
        """Set `out`, (tiles, bytes), to 1 for bytes that anybody wrote and to 0 for others."""

    def move(
        self,
        runs: NDArray[np.int32],
        source_offsets: NDArray[np.int64],
        target_offset: int,
        refuses_unwritten: bool,
    ) -> tuple[int, int, int]:
        """Do one exchange, all reads before all writes; columns of `runs` are `t10.core.device.RUN_COLUMNS`.

        Bytes that nobody wrote count as unwritten where they arrive. If they are refused: returns (run, tile, offset)
        of the first of them, and nothing is changed. Returns -1s where all is well.
        """

    def fill(
        self,
        fills: NDArray[np.int32],
        values: NDArray[np.int32],
        target_offset: int,
        elements: NDArray[np.uint8],
    ) -> None:
        """Write constants: row i takes element `values[i]` of `elements`, (constants, bytes of one element)."""

def find_race(
    runs: NDArray[np.int32],
    fills: NDArray[np.int32],
    source_offsets: NDArray[np.int64],
    target_offset: int,
    n_tiles: int,
    target_bytes: int,
) -> tuple[int, int, int]:
    """Return (row, tile, offset) of a byte of the target that is written twice or both read and written; -1s for none.

    Rows number the runs, then the fills.
    """

def schedule(
    runs: NDArray[np.int32],
    fills: NDArray[np.int32],
    source_offsets: NDArray[np.int64],
    target_offset: int,
    rates: Sequence[int],
    places: NDArray[np.int64],
    row_eighths: int,
    column_eighths: int,
    table: NDArray[np.int64],
) -> tuple[int, int, int, int, int, int]:
    """Schedule the transfers of one exchange phase; offsets count from the begin of the tiles' memories.

    `rates`: bytes per cycle of the exchange, cycles per fragment, bytes per cycle of copies, words of the largest
    transfer, bytes of a memory element (0: none), offset of the interleaved region, bytes per cycle of pairs (0: none),
    words of the least piece that a pair takes, cycles before copies inside a tile begin. `places` (tiles, 2), row and
    column, may be empty. `table` (tiles, 5) receives cycles of copies before, sending, receiving, and copies after, and
    when the last transfer ends.

    Returns (cycles until the last transfer arrived, most cycles of any port, transfers, most fragments of any receiver,
    bytes that cross tiles, most bytes of any tile). Raises IndexError for tiles or sources that do not exist.
    """
