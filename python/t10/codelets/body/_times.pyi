"""Types of the native module `t10.codelets.body._times` (source: `_times.cpp`)."""

from collections.abc import Sequence

Files = tuple[Sequence[int], Sequence[int]]
"""Free physical registers of `a` and `m`."""

class Body:
    """Instructions in an order in which they could run one by one, which must follow which, and by how many bundles."""

    def __init__(
        self,
        rows: Sequence[tuple[bool, Sequence[int], Sequence[int], Sequence[int]]],
        registers: Sequence[tuple[int, int, int]],
        is_pinned: Sequence[bool],
    ) -> None:
        """Take instructions as rows (is of the main pipe, cells read, cells written, streams).

        Registers are (file, width, number); the cells of register `r` are `4 r` and the following, one per width.
        """

    def pipelined(
        self,
        fusions: Sequence[tuple[int, int]],
        is_store: Sequence[bool],
        free: Files,
        least: int,
        extra: int,
        most_stages: int,
    ) -> tuple[int, list[int], list[int]] | None:
        """Return the shortest interval found, times, and the physical register of every register (or -1).

        A fusion is the numbers of a load and a store. Stores lie in the last of fewer than `most_stages` + 1 stages.
        """

    def straight(self, free: Files) -> tuple[int, list[int], list[int]] | None:
        """Return the same of code that runs once: as early as can be, then one by one."""

    def ahead(
        self, windows: Sequence[int], free: Files, live: Sequence[int]
    ) -> tuple[int, list[int], list[int]] | None:
        """Return the same of code that runs once, a window at most ahead of what is before; `live` live behind it."""
