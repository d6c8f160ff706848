"""How many of the first cores of a chip with links lie close to each other: chips, rows of a mesh, part of a row."""

from __future__ import annotations

from collections.abc import Iterator

from t10.core.links import LinkLevel, Links


def fewer_cores(links: Links) -> Iterator[int]:
    """Yield numbers of first cores, falling: of groups of the outermost level, of rows, of one row; then inside one.

    Each is about half of the one before.
    """
    for level in reversed(links.levels):
        if not level.n_links:
            continue
        rows = _rows(level)
        while len(rows) > 1:
            rows = rows[: len(rows) // 2]
            if sum(rows):
                yield sum(rows) * level.stride
        count = rows[0]
        while count > 1:
            count //= 2
            yield count * level.stride


def _rows(level: LinkLevel) -> list[int]:
    """Return how many groups there are in every row of a level; in one row where it is no grid."""
    if level.topology not in ("mesh", "torus"):
        return [level.count]
    there = set(range(level.count + len(level.missing))) - set(level.missing)
    n_rows = -(-(level.count + len(level.missing)) // level.width)
    rows = [sum(place // level.width == row for place in there) for row in range(n_rows)]
    # Cores of a first row in which all are missing are none.
    return [count for count in rows if count]
