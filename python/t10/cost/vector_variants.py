"""How tasks along rows of vectors run (`t10.codelets.vector`): workers share columns, rows, or all points.

Rows are `run` points long; a turn of the loop along a row takes four points, or two where nothing is below four bytes.
Points left over, and the first of a row that begins within a word, are done one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.tile import N_WORKERS
from t10.cost.kernel_variants import Boxes, Column, KernelVariant, both, busiest, chosen
from t10.cost.walks import axis_order, innermost, united_loops

QUAD, PAIR = 4, 2
GUESS = {"one": 150.0, "rows": 90.0, "turns": 18.0, "singles": 60.0, "outers": 60.0, "points": 12.0}


@dataclass(frozen=True, slots=True)
class Lines:
    """What of a task's types and operands decides how its rows run.

    `lanes` are the points of a turn, `out_bytes` those of an output element. `holds` where rows across the dense axis
    may keep an operand in registers.
    """

    lanes: int
    out_bytes: int
    holds: bool


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of `run` points, around them loops of `groups`, each (n,).

    `is_even` where every operand is contiguous along rows or stands still.
    """

    run: Column
    groups: tuple[Column, ...]
    is_even: Column

    @property
    def n(self) -> Column:
        """Return how many rows there are."""
        result = self.run * 0 + 1
        for group in self.groups:
            result = result * group
        return result


def task_variants(spec: OperatorSpec, boxes: Boxes) -> list[KernelVariant]:
    """Return the variants of a sub-task without sums."""
    operands = (*spec.inputs, spec.output)
    dtypes = [*(operand.dtype for operand in spec.inputs), spec.acc_dtype]
    lines = lines_of(operands, dtypes, frozenset(axis_order(spec.output)[-1:]))
    rows = cache(partial(_task_rows, spec, boxes))
    strided = KernelVariant(
        "strided", lambda: np.logical_not(rows().is_even), lambda: _strided(rows()), GUESS
    )
    return [*vector_variants(lines, rows), strided]


def _task_rows(spec: OperatorSpec, boxes: Boxes) -> Rows:
    loops = united_loops(boxes, axis_order(spec.output), (*spec.inputs, spec.output))
    row, rest = innermost(loops)
    groups = tuple(loop.extent for loop in reversed(rest))
    return Rows(row.extent, groups, both(*(step <= 1 for step in row.steps)))


def lines_of(operands: Sequence[Operand], dtypes: Sequence[str], run: frozenset[int]) -> Lines:
    """Return the lines of a task over operands, the output last; types are theirs and the accumulator's."""
    lanes = QUAD if any(size_bytes(dtype) < QUAD for dtype in dtypes) else PAIR
    varying = [(bool(run & operand.axes), bool(operand.axes - run)) for operand in operands]
    holds = any(along and not across for along, across in varying) and all(
        along or not across for along, across in varying
    )
    return Lines(lanes, size_bytes(dtypes[-1]), holds)


def vector_variants(lines: Lines, rows: Callable[[], Rows]) -> list[KernelVariant]:
    """Return the variants of a task along rows."""

    def variant(
        name: str, when: Callable[[], Column], features: Callable[[], dict[str, Column]], family: str = ""
    ) -> KernelVariant:
        return KernelVariant(name, lambda: both(rows().is_even, when()), features, GUESS, family)

    def one_row(is_whole: Callable[[Column], Column]) -> Callable[[], Column]:
        return lambda: both(rows().n == 1, is_whole(rows().run % lines.lanes))

    one = cache(lambda: _one_row(lines, rows()))
    result = [
        variant("one row", one_row(lambda left: left == 0), one),
        variant("one row, odd", one_row(lambda left: left != 0), one),
    ]
    for name in ("whole", "odd") if lines.lanes == PAIR else ("whole", "pairs", "odd"):

        def when(alignment: str = name) -> Column:
            return both(rows().n > 1, _is_aligned(lines, alignment, rows().run))

        result.append(variant(f"columns, {name}", when, lambda: _columns(lines, rows()), "columns"))
        result.append(variant(f"rows, {name}", when, partial(_made, _rows, lines, name, rows), "rows"))
        if name != "odd" or lines.out_bytes >= QUAD:
            result.append(variant(f"all points, {name}", when, lambda: _flat(lines, rows()), "all points"))
        if name == "whole" and lines.holds:
            result.append(variant("across", when, lambda: _across(lines, rows())))
    return result


def _made(
    features: Callable[[Lines, str, Rows], dict[str, Column]],
    lines: Lines,
    alignment: str,
    rows: Callable[[], Rows],
) -> dict[str, Column]:
    return features(lines, alignment, rows())


def _is_aligned(lines: Lines, alignment: str, run: Column) -> Column:
    """Return where rows begin at whole vectors, at pairs of points, or anywhere."""
    if alignment == "whole":
        return run % lines.lanes == 0
    if alignment == "pairs":
        return both(run % PAIR == 0, run % QUAD != 0)
    return run % PAIR == 1


def _share(run: Column) -> Column:
    """Return the columns of the busiest worker."""
    return np.minimum(-(-run // (N_WORKERS * QUAD)) * QUAD, run)


def _one_row(lines: Lines, rows: Rows) -> dict[str, Column]:
    run = rows.run
    share = np.maximum(_share(run), 1)
    last = run - (-(-run // share) - 1) * share
    features: dict[str, Column] = {
        "one": run * 0 + 1,
        "turns": share // lines.lanes,
        "singles": share % lines.lanes,
    }
    # The last worker has less, but what is left over of its vectors takes longer, point by point.
    for factor in (2, 3, 4):
        beyond = last // lines.lanes + factor * (last % lines.lanes) - share // lines.lanes
        features[f"beyond {factor}"] = np.maximum(beyond, 0)
    return features


def _columns(lines: Lines, rows: Rows) -> dict[str, Column]:
    run, n_rows, groups = rows.run, rows.n, rows.groups
    per_word = max(QUAD // lines.out_bytes, 1)
    share = chosen(run % per_word == 0, _share(run), run)
    return {
        "one": run * 0 + 1,
        "rows": n_rows,
        "turns": n_rows * (share // lines.lanes),
        "singles": n_rows * (share % lines.lanes),
        "outers": n_rows // np.maximum(groups[-1], 1) if groups else n_rows * 0,
    }


def _rows(lines: Lines, alignment: str, rows: Rows) -> dict[str, Column]:
    run, groups = rows.run, rows.groups
    unit = max(QUAD // lines.out_bytes, 1) if alignment == "odd" else 1
    share = busiest(groups, unit) if groups else run * 0 + 1
    features: dict[str, Column] = {
        "one": run * 0 + 1,
        "rows": share,
        "turns": share * (run // lines.lanes),
        "outers": share // np.maximum(groups[-1], 1) if len(groups) > 1 else share * 0,
    }
    if alignment == "odd":
        # Of two rows one begins in the middle of a word.
        singles = run % lines.lanes + 1 + (run - 1) % lines.lanes
        features |= {
            "turns": share * (run // lines.lanes + (run - 1) // lines.lanes),
            "singles": share * singles,
            "points": share * run,
            "pairs": share * (run // PAIR),
        }
    elif alignment == "pairs":
        features |= {"singles": share * (run % lines.lanes), "pairs": share * (run // PAIR)}
    return features


def _flat(lines: Lines, rows: Rows) -> dict[str, Column]:
    run, n_rows = rows.run, rows.n
    padded = -(-run // QUAD) * QUAD
    points = np.minimum(-(-(n_rows * padded) // (N_WORKERS * QUAD)) * QUAD, n_rows * padded)
    crossed = points // np.maximum(padded, 1) + 1
    return {
        "one": run * 0 + 1,
        "rows": crossed,
        "turns": points // lines.lanes,
        "singles": crossed * (run % lines.lanes),
    }


def _across(lines: Lines, rows: Rows) -> dict[str, Column]:
    share = -(-(rows.run // lines.lanes) // N_WORKERS)
    return {"one": rows.run * 0 + 1, "rows": share, "turns": share * rows.n}


def _strided(rows: Rows) -> dict[str, Column]:
    share = busiest([*rows.groups, rows.run])
    return {
        "one": rows.run * 0 + 1,
        "rows": share // np.maximum(rows.run, 1),
        "points": share,
        "turns": share // QUAD,
    }
