"""What moving takes between the plans of two operators, the least by classes of plans that are alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t10.core.arrays import Ints
from t10.core.geometry import partition_elements
from t10.core.movement import operand_of
from t10.core.part_lengths import whole_lengths
from t10.core.view_boxes import Piece
from t10.plan.context import Context
from t10.plan.joint.candidates import Candidates, Reading, arrival_cycles
from t10.plan.joint.view_pairs import most_received

MOST_CLASSES = 256
"""Classes of candidates of either operator whose pairs are looked at."""
MOST_VIEWED = 128
"""Candidates of either operator whose pairs are looked at through views."""
LEADING_BITS = (12, 6, 4, 3, 2, 1)


def moved_directly(
    context: Context, producer: Candidates, reader: Candidates, reading: Reading
) -> tuple[Ints, Ints, Ints]:
    """Return which candidates of both are alike, and the least cycles between these (producer's, reader's)."""
    made, of_producer = _classes(
        (
            producer.cores,
            producer.stored,
            producer.listed.is_whole.astype(np.int64),
            producer.is_grid.astype(np.int64),
        ),
        (producer.least_cores,),
    )
    read, of_reader = _classes(
        (reading.most_cores,),
        (reading.least_cores, reading.wanted, reading.mean, reading.runs, reading.together),
    )
    cores, stored, is_whole, is_grid, least_cores = made[:, :, None]
    needed_most, needed_least, wanted, mean, runs, together = read[:, None, :]
    # Sums that are whole on all their cores are there several times.
    moves = (needed_least > cores) | ((needed_most < least_cores) & (is_whole == 0)) | (is_grid == 0)
    received = np.maximum(np.maximum(wanted - stored, np.where(is_whole, 0, mean)), moves)
    return of_producer, of_reader, arrival_cycles(context, received // together, reading, runs)


def moved_through_views(
    context: Context,
    producer: Candidates,
    reader: Candidates,
    numbers: tuple[int, int],
    pieces: Sequence[Piece],
) -> tuple[Ints, Ints, Ints]:
    """Return what `moved_directly` does for boxes of operand (or result) `numbers[0]` read as operand `numbers[1]`.

    Those that take least alone are looked at; with all others, a reader receives what it needs.
    """
    made, made_rows = operand_of(producer.listed.spec, numbers[0]), _fastest_alone(producer)
    read, read_rows = operand_of(reader.listed.spec, numbers[1]), _fastest_alone(reader)
    reading, rows = reader.readings[numbers[1]], producer.listed.rows[made_rows]
    stored = producer.stored[made_rows]
    if numbers[0] < len(producer.listed.spec.operands):
        # Replicas share the parts of an input.
        replicas = rows.prod(axis=1) // rows[:, sorted(made.axes)].prod(axis=1)
        stored = -(-partition_elements(made, whole_lengths(producer.listed.spec, rows)) // replicas)
    most = most_received(
        pieces,
        (producer.listed.spec, made, rows, stored),
        (reader.listed.spec, read, reader.listed.rows[read_rows]),
    )
    together = reading.together
    cycles = arrival_cycles(context, most // together[read_rows], reading, reading.runs[read_rows])
    whole = arrival_cycles(context, reading.wanted // together, reading, reading.runs)
    of_producer = np.full(len(producer.listed.rows), len(made_rows))
    of_producer[made_rows] = np.arange(len(made_rows))
    # Those that were not looked at are classes by what they need.
    values, of_reader = np.unique(whole, return_inverse=True)
    of_reader = of_reader.reshape(-1) + len(read_rows)
    of_reader[read_rows] = np.arange(len(read_rows))
    table = np.empty((len(made_rows) + 1, len(read_rows) + len(values)), np.int64)
    table[:, : len(read_rows)] = whole[read_rows]
    table[:, len(read_rows) :] = values
    table[:-1, : len(read_rows)] = cycles
    return of_producer, of_reader, table


def _fastest_alone(candidates: Candidates) -> Ints:
    """Return the candidates of which pairs are looked at through views."""
    return np.sort(np.argsort(candidates.cycles, kind="stable")[:MOST_VIEWED])


def _classes(at_most: Sequence[Ints], at_least: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return numbers of classes (numbers, classes), and of which class each candidate is.

    Where there are too many, numbers keep fewer leading bits: those at most are rounded up, those at least down.
    """
    columns = [*((each, 1) for each in at_most), *((each, 0) for each in at_least)]
    classes = of_candidate = np.zeros(0, np.int64)
    for bits in LEADING_BITS:
        classes = np.stack([_rounded(numbers, bits, up) for numbers, up in columns])
        code = np.zeros(classes.shape[1], np.int64)
        for row in classes:
            values, which = np.unique(row, return_inverse=True)
            code = np.unique(code * len(values) + which, return_inverse=True)[1]
        first, of_candidate = np.unique(code, return_index=True, return_inverse=True)[1:]
        classes = classes[:, first]
        if len(first) <= MOST_CLASSES:
            break
    return classes, of_candidate


def _rounded(numbers: Ints, bits: int, up: int) -> Ints:
    """Return numbers with so many leading bits, rounded up or down."""
    unit = np.int64(1) << np.maximum(np.frexp(numbers.astype(np.float64))[1] - bits, 0)
    return (numbers + up * (unit - 1)) // unit * unit
