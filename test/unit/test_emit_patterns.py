"""Patterns: every element that moves is in exactly one piece of a run, and only bytes from other tiles are received."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from t10.core.device import Pattern
from t10.emit.patterns import Moves, pattern, received_bytes

Piece = tuple[int, int, int, int, int]


def bytes_of(made: Pattern) -> list[Piece]:
    """Return (source, source tile, source byte, target tile, target byte) of every byte that moves."""
    found: list[Piece] = []
    for row in made.runs.tolist():
        (
            source,
            source_tile,
            source_offset,
            target_tile,
            target_offset,
            n_bytes,
            count,
            source_step,
            target_step,
        ) = row
        found += [
            (
                source,
                source_tile,
                source_offset + k * source_step + b,
                target_tile,
                target_offset + k * target_step + b,
            )
            for k in range(count)
            for b in range(n_bytes)
        ]
    return sorted(found)


@pytest.mark.parametrize("item_bytes", [1, 2, 4])
@pytest.mark.parametrize("seed", range(20))
def test_runs_are_the_moves(seed: int, item_bytes: int) -> None:
    rng = Random(seed)
    moves: list[Piece] = []
    for tile in range(3):
        slot = 0
        source, source_tile, source_slot = 0, 0, 0
        while slot < 24:
            # Mostly the next element, now and then another in one respect.
            source_slot += 1
            change = rng.randrange(10)
            source = rng.randrange(2) if change == 0 else source
            source_tile = rng.randrange(3) if change == 1 else source_tile
            source_slot = rng.randrange(40) if change == 2 else source_slot
            slot += 2 if change == 3 else 1
            moves.append((source, source_tile, source_slot, tile, slot))
    made = pattern(Moves(*(np.array(column, np.int64) for column in zip(*moves, strict=True))), item_bytes)
    expected = [
        (source, source_tile, source_slot * item_bytes + b, tile, slot * item_bytes + b)
        for source, source_tile, source_slot, tile, slot in moves
        for b in range(item_bytes)
    ]
    assert bytes_of(made) == sorted(expected)
    from_others = [sum(piece[1] != tile == piece[3] for piece in expected) for tile in range(3)]
    assert received_bytes(made.runs, 3) == max(from_others)
