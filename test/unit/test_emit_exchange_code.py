"""What exchanges take of a tile's memory: rows stored once, fragments at both ends, phases that differ."""

from __future__ import annotations

import numpy as np

from t10.core.device import Copy, CopyKind, Pattern
from t10.emit.exchange_code import (
    COPY_BYTES,
    PHASE_BYTES,
    RECEIVE_BYTES,
    SEND_BYTES,
    exchange_code_bytes,
    row_bytes,
)
from t10.emit.patterns import NO_FILLS, NO_VALUES

N_TILES = 4


def pattern(*rows: tuple[int, ...]) -> Pattern:
    """Return a pattern of runs, columns as in `RUN_COLUMNS`; its rows are its key."""
    return Pattern(repr(rows), np.array(rows, np.int32), NO_FILLS, NO_VALUES)


def copy(made: Pattern, sources: tuple[str, ...], target: str, kind: CopyKind = "relayout") -> Copy:
    return Copy(f"{sources}>{target}", "op", kind, sources, target, "f16", made.key, 0, 0)


def total(copies: list[Copy], patterns: list[Pattern], **addresses: int) -> list[int]:
    by_kind = exchange_code_bytes(copies, {each.key: each for each in patterns}, addresses, N_TILES, {})
    return sum(by_kind.values(), np.zeros(N_TILES, np.int64)).tolist()


TO_ONE = pattern((0, 1, 0, 0, 0, 8, 1, 0, 0))
ONE_TO_TWO = pattern((0, 2, 0, 0, 0, 8, 1, 0, 0), (0, 2, 0, 1, 0, 8, 1, 0, 0))


def test_a_fragment_takes_code_where_it_is_sent_and_where_it_arrives() -> None:
    assert row_bytes(TO_ONE, N_TILES).tolist() == [RECEIVE_BYTES, SEND_BYTES, 0, 0]


def test_what_several_tiles_want_is_sent_once() -> None:
    assert row_bytes(ONE_TO_TWO, N_TILES).tolist() == [RECEIVE_BYTES, RECEIVE_BYTES, SEND_BYTES, 0]


def test_pieces_that_lie_apart_are_fragments_of_their_own() -> None:
    stepping = pattern((0, 1, 0, 0, 0, 8, 3, 16, 8))
    assert row_bytes(stepping, N_TILES).tolist() == [3 * RECEIVE_BYTES, 3 * SEND_BYTES, 0, 0]


def test_pieces_that_are_no_words_travel_as_one_fragment_and_are_gathered_and_scattered() -> None:
    single = pattern((0, 1, 0, 0, 0, 2, 4, 6, 6))
    assert row_bytes(single, N_TILES).tolist() == [
        RECEIVE_BYTES + COPY_BYTES,
        SEND_BYTES + COPY_BYTES,
        0,
        0,
    ]


def test_what_a_tile_takes_from_itself_is_a_row_of_copies() -> None:
    assert row_bytes(pattern((0, 3, 0, 3, 8, 8, 5, 16, 16)), N_TILES).tolist() == [0, 0, 0, COPY_BYTES]


def test_equal_copies_between_equal_addresses_are_one() -> None:
    once = total([copy(TO_ONE, ("a",), "b")], [TO_ONE], a=0, b=64)
    twice = total([copy(TO_ONE, ("a",), "b"), copy(TO_ONE, ("c",), "d")], [TO_ONE], a=0, b=64, c=0, d=64)
    assert once == twice


def test_the_same_pattern_elsewhere_costs_a_phase_but_no_rows() -> None:
    rows = row_bytes(TO_ONE, N_TILES)
    copies = [copy(TO_ONE, ("a",), "b"), copy(TO_ONE, ("c",), "d")]
    assert total(copies, [TO_ONE], a=0, b=64, c=512, d=8) == (2 * PHASE_BYTES + rows).tolist()


def test_sources_that_lie_otherwise_to_each_other_need_rows_of_their_own() -> None:
    two = pattern((0, 1, 0, 0, 0, 8, 1, 0, 0), (1, 1, 0, 0, 8, 8, 1, 0, 0))
    copies = [copy(two, ("a", "b"), "t"), copy(two, ("c", "d"), "t"), copy(two, ("e", "f"), "t")]
    found = total(copies, [two], a=0, b=64, c=128, d=192, e=256, f=512, t=1024)
    assert found == (3 * PHASE_BYTES + 2 * row_bytes(two, N_TILES)).tolist()


def test_bytes_are_told_by_kind_of_copy() -> None:
    copies = [copy(TO_ONE, ("a",), "b", "setup"), copy(ONE_TO_TWO, ("a",), "b", "reduce")]
    patterns = {each.key: each for each in (TO_ONE, ONE_TO_TWO)}
    found = exchange_code_bytes(copies, patterns, {"a": 0, "b": 64}, N_TILES, {})
    assert found["setup"].tolist() == (PHASE_BYTES + row_bytes(TO_ONE, N_TILES)).tolist()
    assert found["reduce"].tolist() == (PHASE_BYTES + row_bytes(ONE_TO_TWO, N_TILES)).tolist()
