"""The exchange simulator: schedules keep ports busy, cost what the chip's file says, and serialise what must be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from support.small_device import BASE, pattern, run_row

from t10.chip import ChipSpec, load_chip
from t10.chip.levels import Level
from t10.core.device import Copy, CopyKind, Pattern, Variable
from t10.core.loads import phase_loads
from t10.cost.exchange import exchange_rates, phase_cycles
from t10.cost.ipu import IpuCostModel
from t10.errors import VerifyError
from t10.sim.device.exchange import LoadedCopy, check
from t10.sim.device.phase import ExchangeModel, PhaseTime, Relayouts, floor_plan, phase_time

CHIP = load_chip("test-64")
SINGLE = CHIP.model_copy(update={"paired_bytes_per_cycle": 0})
N_TILES = 64
FIXED = CHIP.sync_cycles + CHIP.setup_cycles + CHIP.latency_any_cycles
SOURCE, TARGET = 0x40000, 0x80000


def timed(
    rows: list[list[int]] | Pattern,
    kind: CopyKind = "relayout",
    target: int = TARGET,
    model: ExchangeModel | None = None,
    chip: ChipSpec = CHIP,
) -> PhaseTime:
    moved = pattern("p", rows) if isinstance(rows, list) else rows
    copy = Copy("c", "operator", kind, ("x",), "y", "ui8", "p", 0, 0)
    x = Variable("x", "buffer", "ui8", (0x8000,), N_TILES, BASE + SOURCE)
    y = replace(x, name="y", address_bytes=BASE + target)
    loaded = LoadedCopy(
        copy, moved, (x,), y, np.array([SOURCE], np.int64), target, np.zeros((1, 1), np.uint8)
    )
    return phase_time(loaded, model or ExchangeModel(chip), chip.n_cores)


def test_a_ring_costs_what_the_cost_model_says():
    for n in (4, 64, 4096, 16384):
        time = timed([run_row((t + 1) % N_TILES, t, n) for t in range(N_TILES)], "shift")
        assert time.cycles == IpuCostModel(CHIP).exchange_cycles(n, 1, neighbour=True)
        assert time.transfer_cycles == n // 4
        assert (time.n_bytes, time.max_bytes, time.n_transfers) == (N_TILES * n, n, N_TILES)


def test_relayouts_share_a_phase_from_the_first_on_that_crosses_tiles():
    inside, across = timed([run_row(0, 0, 64)]), timed([run_row(0, 1, 400)])
    relayouts = Relayouts(ExchangeModel(CHIP))
    kinds: list[tuple[CopyKind, PhaseTime]] = [
        ("relayout", inside), ("relayout", across), ("setup", across), ("relayout", across), ("relayout", inside)
    ]  # fmt: skip
    taken = [relayouts.time(kind, time) for kind, time in kinds]
    assert taken[:3] == [inside, across, across]
    assert (taken[3].cycles, taken[3].transfer_cycles) == (100 + CHIP.fragment_cycles,) * 2
    assert taken[4] == inside
    relayouts.end()
    assert relayouts.time("relayout", across) == across


def test_one_transfer_to_all_costs_its_sender_once():
    time = timed([run_row(0, t, 400) for t in range(1, N_TILES)])
    assert time.cycles == FIXED + 100
    assert time.n_transfers == 1
    assert (time.n_bytes, time.max_bytes) == (63 * 400, 400)


def test_a_window_that_two_tiles_share_in_part_is_sent_once():
    # Tile 1 takes bytes 0..400, tile 2 takes 200..600: three segments, 600 bytes leave tile 0.
    time = timed([run_row(0, 1, 400), run_row(0, 2, 400, at=200)])
    assert time.n_transfers == 3
    assert time.max_bytes == 600
    assert time.transfer_cycles == 150 + 2 * CHIP.fragment_cycles


def test_a_receiver_takes_one_transfer_at_a_time():
    rows = [run_row(s, 0, 40, to=40 * s) for s in range(1, 9)]
    time = timed(rows)
    assert time.transfer_cycles == time.bound_cycles == 8 * 10 + 7 * CHIP.fragment_cycles
    assert time.fragments == 8


@pytest.mark.parametrize("size", [4, 16, 64])
def test_all_to_all_keeps_every_port_busy(size: int):
    groups = np.arange(N_TILES).reshape(-1, size)
    rows = [
        run_row(int(s), int(t), 64, at=64 * j, to=64 * i)
        for group in groups
        for i, s in enumerate(group)
        for j, t in enumerate(group)
        if i != j
    ]
    time = timed(rows)
    assert time.transfer_cycles == time.bound_cycles


@pytest.mark.parametrize("seed", range(8))
def test_equal_transfers_take_as_many_rounds_as_the_busiest_port_has(seed: int):
    # Of tiles in any order, each sends to as many as it receives from: taking whoever is free first leaves gaps.
    rng, n_each = np.random.default_rng(seed), 12
    senders, receivers = rng.permutation(N_TILES), rng.permutation(N_TILES)
    places = [0] * N_TILES
    rows: list[list[int]] = []
    for step in rng.choice(N_TILES, n_each, replace=False).tolist():
        for i in range(N_TILES):
            s, t = int(senders[i]), int(receivers[(i + step) % N_TILES])
            if s != t:
                rows.append(run_row(s, t, 8, at=8 * len(rows), to=8 * places[t]))
                places[t] += 1
    time = timed(rows)
    assert time.n_transfers == len(rows)
    assert time.transfer_cycles == time.bound_cycles


def test_all_gather_among_few_is_sent_one_by_one():
    # Four tiles that all multicast to the other three would take turns: four times 100 words instead of three.
    rows = [run_row(s, t, 400, to=400 * s) for s in range(4) for t in range(4) if s != t]
    assert transfer_cycles(rows, SINGLE) == 3 * 100 + 2 * CHIP.fragment_cycles
    # The other pair's two come in double words, the partner's does not.
    assert transfer_cycles(rows) == 100 + 2 * 50 + 2 * CHIP.fragment_cycles


def test_long_transfers_come_in_parts_where_ports_would_wait_for_them():
    """Rows lie 14 to a tile; tiles take a quarter of 64 of them, from five or six others."""
    rows: list[list[int]] = []
    for target in range(56):
        first = target // 4 * 64
        for source in range(first // 14, (first + 63) // 14 + 1):
            begin, end = max(first, source * 14), min(first + 64, source * 14 + 14)
            at, to = (begin - source * 14) * 256 + target % 4 * 64, (begin - first) * 64
            rows.append([0, source, at, target, to, 64, end - begin, 256, 64])
    time = timed(rows)
    own = CHIP.copy_launch_cycles + int(time.inside_cycles[:, 1].max())
    assert time.transfer_cycles + time.copy_cycles <= 1.1 * (time.bound_cycles + own)
    assert time.n_bytes == sum(row[5] * row[6] for row in rows if row[1] != row[3])


def test_random_patterns_take_little_longer_than_their_busiest_port():
    random = np.random.default_rng(7)
    for _ in range(20):
        rows: list[list[int]] = []
        for tile in range(N_TILES):
            to = 0
            for other in random.choice(N_TILES, 4, replace=False):
                if int(other) != tile:
                    n = 4 * int(random.integers(1, 200))
                    rows.append(run_row(int(other), tile, n, at=4 * int(random.integers(0, 64)), to=to))
                    to += n
        time = timed(rows)
        assert time.bound_cycles <= time.transfer_cycles <= 1.2 * time.bound_cycles


def test_sending_and_receiving_in_one_memory_element_take_turns():
    rows = [run_row(1 - t, t, 4096) for t in range(2)]
    apart = timed(rows, "shift")
    together = timed(rows, "shift", target=SOURCE + 0x2000)
    assert together.transfer_cycles == 2 * apart.transfer_cycles + CHIP.fragment_cycles
    free = timed(rows, "shift", SOURCE + 0x2000, ExchangeModel(CHIP, has_elements=False))
    assert free.cycles == apart.cycles
    # Below the interleaved region an element is 16 KiB.
    assert timed(rows, "shift", target=0x4000).cycles == apart.cycles


def test_copies_inside_a_tile_move_eight_bytes_a_cycle():
    time = timed([run_row(t, t, 8000) for t in range(N_TILES)])
    assert time.cycles == CHIP.copy_launch_cycles + 1000 + 4
    assert (time.n_transfers, time.n_bytes, time.transfer_cycles) == (0, 0, 0)


def test_a_tile_copies_when_its_own_transfers_have_ended():
    """Tile 0 has most to copy, and one of two to send to it: its word comes first, and it copies while 2 takes more."""
    constant = np.array([[0, 1000, 8000, 1, 0]], np.int32), np.zeros(1, np.int32), ("0",)
    rows = [[0, 1, 0, 0, 0, 4, 1, 0, 0], [0, 1, 4, 2, 0, 4000, 1, 0, 0]]
    alone = timed(Pattern("p", np.zeros((0, 9), np.int32), *constant))
    exchange = timed(rows)
    both = timed(Pattern("p", np.array(rows, np.int32), *constant))
    assert alone.cycles == CHIP.copy_launch_cycles + 1000 + 4
    assert exchange.transfer_cycles == 1 + 1000 + CHIP.fragment_cycles
    word = 1 + CHIP.fragment_cycles
    assert (
        both.cycles == exchange.cycles - exchange.transfer_cycles + word + alone.cycles - CHIP.fragment_cycles
    )
    runs = np.array([(0, 1, 0, 0, 0, 1), (0, 1, 1, 2, 0, 1000)], np.int32)
    loads = phase_loads(runs, np.array([(0, 0, 250, 2000)], np.int32), N_TILES, 4, exchange_rates(CHIP))
    assert phase_cycles(CHIP, loads) == both.cycles


def test_copies_of_finer_pieces_take_longer():
    cycles = [timed([[0, 0, 0, 0, to, 800, 1, 0, 0]]).copy_cycles for to in (0, 4, 2, 1)]
    assert cycles == sorted(cycles)
    assert len(set(cycles)) == 4


def test_pieces_smaller_than_a_word_travel_packed():
    # 100 elements of two bytes, every second one: 50 words, gathered before and scattered after.
    time = timed([[0, 0, 0, 1, 0, 2, 100, 4, 4]])
    assert time.transfer_cycles in (50, 51)
    assert time.fragments == 1
    assert time.copy_cycles > 2 * CHIP.copy_launch_cycles
    assert timed([[0, 0, 0, 1, 0, 4, 50, 8, 8]]).copy_cycles == 0


def test_what_makes_whole_words_at_the_receiver_is_gathered_in_its_order():
    # Every second element of 100 becomes 50 elements in a row: gathered by the sender, nothing left to scatter.
    in_a_row = timed([[0, 0, 0, 1, 0, 2, 50, 4, 2]])
    assert (in_a_row.transfer_cycles, in_a_row.fragments) == (25, 1)
    spread = timed([[0, 0, 0, 1, 0, 2, 50, 4, 4]])
    assert in_a_row.copy_cycles < spread.copy_cycles - CHIP.copy_launch_cycles
    # The other way round the sender has nothing to gather.
    back = timed([[0, 0, 0, 1, 0, 2, 50, 2, 4]])
    assert back.busy_cycles[0] == 26 + CHIP.fragment_cycles
    assert back.copy_cycles < spread.copy_cycles - CHIP.copy_launch_cycles


def test_millions_of_pieces_are_gathered_in_the_order_of_their_receiver_too():
    """A decoding layer turned in rows of halves, 7.5 million pieces, was timed as if all of them were scattered."""
    n_pieces = 1_200
    rows = [
        [0, source, 0, target, source * n_pieces * 2, 2, n_pieces, 4, 2]
        for target in range(N_TILES)
        for source in range(N_TILES)
        if source != target
    ]
    assert n_pieces * len(rows) > 1 << 22
    alone = timed([row for row in rows if row[1] == 0])
    time = timed(rows)
    assert time.copy_cycles == alone.copy_cycles
    assert time.inside_cycles[:, 1].max() == 0
    assert time.n_transfers == N_TILES
    _, source, _, target, to, *_ = np.array(rows, np.int32).T[:, :, None]
    each = np.arange(n_pieces, dtype=np.int32)
    columns = np.broadcast_arrays(np.int32(0), source, 2 * each, target, to // 2 + each, np.int32(1))
    moves = np.ascontiguousarray(np.stack(columns, axis=-1).reshape(-1, 6))
    loads = phase_loads(moves, np.zeros((0, 4), np.int32), N_TILES, 2, exchange_rates(CHIP))
    assert phase_cycles(CHIP, loads) == time.cycles


def test_a_word_that_a_tile_wants_at_many_places_is_timed_in_a_moment():
    n_places = 100_000  # compared with each other, they would take a minute
    begin = process_time()
    taken = timed([[0, 0, 0, 1, 0, 4, n_places, 0, 4]])
    assert process_time() - begin < 10
    assert taken.n_transfers == 1
    assert taken.transfer_cycles >= n_places * (1 + CHIP.fragment_cycles)


def test_whole_words_within_a_piece_travel_as_words():
    """Rows of 37 f16 become rows of 40: 18 words each as they are, and all that is behind them packed."""
    rows = timed([[0, 0, 0, 1, 0, 74, 16, 80, 80]])
    ends = timed([[0, 0, 72, 1, 72, 2, 16, 80, 80]])
    words = timed([[0, 0, 0, 1, 0, 72, 16, 80, 80]])
    assert rows.copy_cycles == ends.copy_cycles
    assert rows.fragments == words.fragments + ends.fragments == 17
    assert rows.transfer_cycles - words.transfer_cycles == 9 + CHIP.fragment_cycles


@pytest.mark.parametrize("n_bytes", range(1, 20))
@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("to", range(4))
def test_what_is_within_words_is_what_both_sides_have_as_words(n_bytes: int, at: int, to: int):
    within = (at + n_bytes) // 4 * 4 - -(-at // 4) * 4
    is_apart = at == to and within >= 8 and within < n_bytes
    time = timed([[0, 0, at, 1, to, n_bytes, 1, 0, 0]])
    is_words = (at | to | n_bytes) % 4 == 0
    assert time.fragments == (2 if is_apart else 1)
    assert (time.copy_cycles == 0) == is_words


@pytest.mark.parametrize("n_bytes", [16, 32])
@pytest.mark.parametrize("first", [0, 4, 8, 12])
@pytest.mark.parametrize("step", [-8, -4, 4, 8])
@pytest.mark.parametrize("what", ["reads", "writes"])
def test_spans_that_leave_their_variable_are_refused(n_bytes: int, first: int, step: int, what: str):
    inside, span = (16, 4), (first, step)
    at, to = (span, inside) if what == "reads" else (inside, span)
    x = Variable("x", "buffer", "ui8", (n_bytes if what == "reads" else 32,), 2, BASE + SOURCE)
    y = replace(x, name="y", shape=(n_bytes if what == "writes" else 32,), address_bytes=BASE + TARGET)
    loaded = LoadedCopy(
        Copy("c", "operator", "relayout", ("x",), "y", "ui8", "p", 0, 0),
        pattern("p", [[0, 0, at[0], 1, to[0], 4, 3, at[1], to[1]]]),
        (x,),
        y,
        np.array([SOURCE], np.int64),
        TARGET,
        np.zeros((1, 1), np.uint8),
    )
    touched = [first + number * step + byte for number in range(3) for byte in range(4)]
    if min(touched) >= 0 and max(touched) < n_bytes:
        check(loaded, 2)
        return
    low, high = min(touched), max(touched) + 1
    with pytest.raises(VerifyError, match=rf"{what} bytes \[{low}, {high}\) of .*, which has {n_bytes}$"):
        check(loaded, 2)


def test_constants_are_written_by_their_tile():
    fills = np.array([[3, 0, 800, 1, 0]], np.int32)
    time = timed(Pattern("p", np.zeros((0, 9), np.int32), fills, np.zeros(1, np.int32), ("0",)))
    assert time.cycles == CHIP.copy_launch_cycles + 100 + 4
    assert list(np.flatnonzero(time.busy_cycles)) == [3]


@pytest.mark.parametrize("offset", range(0, 8, 2))
def test_constants_take_as_long_wherever_they_begin_but_for_ends_that_are_no_words(offset: int):
    # Nothing is shifted on the way from nowhere: whole words are stored, and what is left at the ends is merged.
    fills = np.array([[3, offset, 80, 10, 104]], np.int32)
    time = timed(Pattern("p", np.zeros((0, 9), np.int32), fills, np.zeros(1, np.int32), ("0",)))
    n_ends = 2 * (offset % 4 > 0)
    assert time.copy_cycles == CHIP.copy_launch_cycles + 4 + 10 * (80 // 8 + 4 * n_ends)
    pieces = np.array([(0, 3, (offset + 104 * number) // 2, 40) for number in range(10)], np.int32)
    loads = phase_loads(np.zeros((0, 6), np.int32), pieces, 4, 2, exchange_rates(CHIP))
    assert loads.settle_cycles == time.copy_cycles


def test_nothing_to_move_takes_no_time():
    assert timed([]).cycles == 0


def test_a_transfer_beyond_the_largest_is_continued():
    words = 5000
    chip = CHIP.model_copy(update={"fragment_cycles": 10})
    time = timed([run_row(0, 1, 4 * words)], chip=chip)
    assert time.transfer_cycles == words + 10


def test_the_floor_plan_bounds_latency():
    places = floor_plan(CHIP.floor_plan, 1472)
    assert len({tuple(place) for place in places.tolist()}) == 23 * 16
    assert (places.max(axis=0) == (22, 15)).all()
    # Neighbours are at most one row or one column apart.
    assert np.abs(np.diff(places, axis=0)).sum(axis=1).max() == 1
    near = timed([run_row(0, 1, 4)], model=ExchangeModel(CHIP, has_floor_plan=True))
    far = timed([run_row(0, 63, 4)], model=ExchangeModel(CHIP, has_floor_plan=True))
    fixed = CHIP.sync_cycles + CHIP.setup_cycles + 1
    assert near.cycles == fixed + 58
    assert 58 < far.cycles - fixed <= 170


def transfer_cycles(rows: list[list[int]], chip: ChipSpec = CHIP) -> int:
    return timed(rows, chip=chip).transfer_cycles


def to_all(source: int, targets: Iterable[int], n_bytes: int, to: int = 0) -> list[list[int]]:
    return [run_row(source, target, n_bytes, to=to) for target in targets]


def test_both_tiles_of_a_pair_take_the_same_in_double_words():
    assert CHIP.pair_rate == 2 * CHIP.exchange_bytes_per_cycle
    assert transfer_cycles(to_all(0, (2, 3), 1024)) == 128
    assert transfer_cycles(to_all(0, range(2, 64), 1024)) == 128
    # Neither 1 and 2 nor 3 and 4 are pairs.
    assert transfer_cycles(to_all(0, (1, 2), 1024)) == 256
    assert transfer_cycles(to_all(0, (3, 4), 1024)) == 256
    assert transfer_cycles(to_all(0, (2, 3), 1024), SINGLE) == 256


@pytest.mark.parametrize(
    ("n_bytes", "offset", "cycles"), [(248, 0, 62), (256, 0, 32), (260, 0, 65), (256, 4, 64)]
)
def test_short_and_ragged_transfers_come_in_single_words(n_bytes: int, offset: int, cycles: int):
    assert transfer_cycles(to_all(0, (2, 3), n_bytes, to=offset)) == cycles


def test_a_transfer_to_a_pair_needs_the_send_port_of_its_partner():
    """Two tiles of a pair that send at once pass no more than two others: then single words take fewer fragments."""
    one_pair = [*to_all(0, (4, 5), 1024), *to_all(1, (6, 7), 1024)]
    assert transfer_cycles(one_pair) == 256
    two_pairs = [*to_all(0, (4, 5), 1024), *to_all(2, (6, 7), 1024)]
    assert transfer_cycles(two_pairs) == 128
    # Tile 1 is sending what only tile 4 takes: tile 0 waits for it.
    busy = [*to_all(0, (6, 7), 1024), *to_all(1, (4,), 400), *to_all(2, (6, 7), 1024, to=1024)]
    assert transfer_cycles(busy) == 128 + CHIP.fragment_cycles + 128


def test_single_tiles_that_want_it_too_get_it_once_more():
    """Eight tiles send to all others, so that receiving takes longest; each sender's own partner is without one."""
    rows = [row for s in range(8) for row in to_all(s, (t for t in range(64) if t != s), 1024, to=1024 * s)]
    cycles = timed(rows).cycles
    alone = timed(rows, chip=SINGLE).cycles
    assert alone >= FIXED + 8 * 256
    assert cycles < 0.7 * alone


def test_tiles_without_a_pair_take_single_words():
    odd = CHIP.model_copy(
        update={
            "levels": (
                Level(name="core", count=3),
                Level(name="chip", count=2, topology="switch", link_bytes_per_cycle=4),
            )
        }
    )
    assert odd.pair_rate == 0
    linked = load_chip("test-mesh")
    assert (linked.paired_bytes_per_cycle, linked.pair_rate) == (8, 0)
    assert CHIP.model_copy(update={"exchange_bytes_per_cycle": 16}).pair_rate == 0


def test_pairs_cost_the_planner_what_they_take():
    """Random multicasts, many of them to whole pairs: the planner's loads are the simulator's schedule."""
    random, n_faster = np.random.default_rng(11), 0
    for _ in range(40):
        rows: list[list[int]] = []
        filled = np.zeros(N_TILES, np.int64)
        for source in random.choice(N_TILES, 12, replace=False).tolist():
            pairs = random.choice(N_TILES // 2, int(random.integers(1, 12)), replace=False)
            targets = {2 * int(pair) + each for pair in pairs for each in (0, 1)} - {source}
            if random.random() < 0.3:
                targets -= {int(random.integers(0, N_TILES))}
            n = 8 * int(random.integers(16, 128))
            to = int(filled[list(targets)].max(initial=0))
            rows += to_all(source, sorted(targets), n, to=to)
            filled[list(targets)] = to + n
        moved = pattern("p", sorted(rows, key=lambda row: (row[3], row[4])))
        runs = np.ascontiguousarray(moved.runs[:, :6])
        for chip in (CHIP, SINGLE):
            loads = phase_loads(runs, np.zeros((0, 4), np.int32), N_TILES, 1, exchange_rates(chip))
            assert loads.port_cycles - chip.fragment_cycles == timed(moved, chip=chip).transfer_cycles
        assert timed(moved).cycles <= timed(moved, chip=SINGLE).cycles
        n_faster += timed(moved).cycles < timed(moved, chip=SINGLE).cycles
    assert n_faster > 20


def _neighbours(seed: int) -> list[list[int]]:
    """Return multicasts of 16 tiles to two to four neighbours each, of which some are pairs."""
    random, rows, filled = np.random.default_rng(seed), list[list[int]](), np.zeros(N_TILES, np.int64)
    for source in random.choice(N_TILES, 16, replace=False).tolist():
        first = int(random.integers(0, 60))
        targets = sorted(set(range(first, first + int(random.integers(2, 5)))) - {source})
        n, to = 8 * int(random.integers(8, 200)), int(filled[targets].max())
        rows += to_all(source, targets, n, to=to)
        filled[targets] = to + n
    return rows


@pytest.mark.parametrize("seed", [46659, *range(40)])
def test_a_phase_takes_no_longer_with_pairs(seed: int):
    """In the first, ports wait so long for each other that single words end sooner."""
    assert transfer_cycles(_neighbours(seed)) <= transfer_cycles(_neighbours(seed), SINGLE)


def test_transfers_to_pairs_are_not_cut():
    """Parts of 256 bytes would be too short for double words."""
    random, rows, filled = np.random.default_rng(16), list[list[int]](), np.zeros(N_TILES, np.int64)
    n_sent = 0
    for source in random.choice(N_TILES, 20, replace=False).tolist():
        first = 2 * int(random.integers(0, N_TILES // 2))
        if source // 2 != first // 2:
            rows += to_all(source, (first, first + 1), 256, to=int(filled[first]))
            filled[first] += 256
            n_sent += 1
    time = timed(rows)
    assert time.transfer_cycles < transfer_cycles(rows, SINGLE)
    assert time.n_transfers == n_sent
