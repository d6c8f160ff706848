"""The device simulator: bytes move as patterns say, vertices see their words, wrong programs are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.small_device import (
    ADD,
    BASE,
    CYCLES,
    IMAGE,
    N_TILES,
    N,
    PythonMachine,
    VertexFunction,
    add,
    host,
    pattern,
    ring_program,
    run_row,
)

from t10.chip import load_chip
from t10.core.device import DeviceProgram, Exchange, Execute, OperatorProgram, Pattern, Reference
from t10.errors import InputError, SimTrap, VerifyError
from t10.report.device_trace import tile_tracks
from t10.sim.device import DeviceResult, run_device

CHIP = load_chip("test-4")
X = np.arange(N_TILES * N, dtype=np.float32).reshape(N_TILES, N)


def execute(program: DeviceProgram, until: str | None = None, code: VertexFunction = add) -> DeviceResult:
    machine = PythonMachine(N_TILES, {BASE: code})
    return run_device(program, CHIP, IMAGE, {}, {"in": X}, machine=machine, until=until)


def with_pattern(key: str, rows: list[list[int]]) -> DeviceProgram:
    program = ring_program()
    return replace(
        program, patterns=tuple(pattern(key, rows) if p.key == key else p for p in program.patterns)
    )


def test_a_ring_brings_every_vector_to_every_tile():
    result = execute(ring_program())
    np.testing.assert_array_equal(result.outputs["out"], np.tile(X.sum(axis=0), (N_TILES, 1)))


def test_phases_follow_each_other_and_add_up():
    result = execute(ring_program())
    assert [phase.kind for phase in result.timeline] == ["relayout", *["shift", "shift", "compute"] * 3]
    now = 0
    for phase in result.timeline:
        assert phase.start_cycle == now
        now += phase.cycles
    assert result.cycles == now == result.operators[0].cycles.total
    # The slowest vertex is that of the last tile.
    assert result.operators[0].cycles.compute == 3 * (CYCLES + N_TILES - 1 + CHIP.launch_cycles)
    assert result.bytes_by_kind["shift"] == 3 * N_TILES * 4 * N
    assert result.bytes_by_kind["relayout"] == 0


def test_vertices_are_recorded_by_codelet():
    (record,) = execute(ring_program()).vertices
    assert (record.codelet, record.n_vertices, record.max_cycles) == ("Add", 12, CYCLES + 3)
    assert record.total_cycles == 3 * (4 * CYCLES + 6)


def test_a_run_that_stops_returns_variables():
    result = execute(ring_program(), until="ring")
    np.testing.assert_array_equal(result.outputs["y"], np.tile(X.sum(axis=0), (N_TILES, 1)))
    assert set(result.outputs) == {"buffer", "x", "y"}
    with pytest.raises(InputError, match="no operator 'other'"):
        execute(ring_program(), until="other")


def test_reads_come_before_writes():
    # Every tile's y moves one tile on in one phase, in place: no order of single moves would do.
    program = ring_program()
    rows = [run_row((tile + 1) % N_TILES, tile, 4 * N) for tile in range(N_TILES)]
    shift = replace(program.copies[1], name="turn", sources=("y",), target="buffer", pattern="ring")
    back = replace(program.copies[2], name="back", target="y")
    steps = (Exchange("start"), Exchange("turn"), Exchange("back"))
    program = replace(
        program, copies=(*program.copies, shift, back), operators=(OperatorProgram("ring", steps),)
    )
    assert len(rows) == N_TILES
    np.testing.assert_array_equal(execute(program).outputs["out"], np.roll(X, -1, axis=0))


def test_steps_and_pieces_of_a_run():
    # Columns of a 2 x 3 matrix on tile 0 become rows on tile 1: three runs of two pieces each.
    rows = [[0, 0, 4 * j, 1, 8 * j, 4, 2, 12, 4] for j in range(3)]
    program = with_pattern("stay", rows)
    program = replace(program, operators=(OperatorProgram("ring", (Exchange("start"),)),))
    y = execute(program, until="ring").outputs["y"]
    np.testing.assert_array_equal(y[1], X[0].reshape(2, 3).T.reshape(-1))
    assert np.isnan(y[2]).all()


def test_constants_fill_what_their_rows_name():
    fills = np.array([[2, 4, 8, 2, 12]], np.int32)
    start = Pattern("stay", np.zeros((0, 9), np.int32), fills, np.array([1], np.int32), ("0.5", "-inf"))
    program = ring_program()
    program = replace(
        program,
        patterns=(program.patterns[0], start),
        operators=(OperatorProgram("ring", (Exchange("start"),)),),
    )
    y = execute(program, until="ring").outputs["y"]
    inf = -np.inf
    np.testing.assert_array_equal(y[2], np.array([np.nan, inf, inf, np.nan, inf, inf], np.float32))


def test_reading_what_nobody_wrote_is_a_trap():
    program = ring_program()
    copy_out = replace(program.copies[2], kind="relayout")
    program = replace(
        program,
        copies=(*program.copies[:2], copy_out),
        operators=(OperatorProgram("ring", (Exchange("copy_out"),)),),
    )
    with pytest.raises(
        SimTrap, match=r"copy 'copy_out' reads poisoned bytes of 'buffer' on tile 0 at address 0x70000"
    ):
        execute(program)


def test_shifts_move_padding_that_nobody_wrote():
    # `copy_out` brings what nobody wrote to x: no trap before x is an output.
    program = ring_program()
    program = replace(program, operators=(OperatorProgram("ring", (Exchange("copy_out"),)),))
    assert np.isnan(execute(program, until="ring").outputs["x"]).all()
    with pytest.raises(SimTrap, match="element 0 of output 'out' was written on no tile"):
        execute(replace(program, outputs=(host("out", "x", (N_TILES, N)),)))


def test_an_output_that_nobody_wrote_is_a_trap():
    program = replace(ring_program(), operators=())
    with pytest.raises(SimTrap, match="element 0 of output 'out' was written on no tile"):
        execute(program)


def test_writing_twice_or_what_is_read_is_refused():
    twice = with_pattern("ring", [run_row(1, 0, 8), run_row(2, 0, 8, to=4)])
    with pytest.raises(VerifyError, match="writes byte 4 of 'buffer' on tile 0 twice"):
        execute(twice)
    program = ring_program()
    shift = replace(program.copies[1], target="x")
    with pytest.raises(VerifyError, match="or also reads it"):
        execute(replace(program, copies=(program.copies[0], shift, program.copies[2])))


def test_runs_stay_inside_their_variables():
    with pytest.raises(VerifyError, match=r"reads bytes \[4, 28\) of 'x', which has 24"):
        execute(with_pattern("ring", [run_row(1, 0, 24, at=4)]))
    with pytest.raises(VerifyError, match=r"writes bytes \[8, 32\) of 'buffer'"):
        execute(with_pattern("ring", [run_row(1, 0, 24, to=8)]))


def test_a_trap_names_operator_compute_set_and_codelet():
    def broken(*_: object) -> int:
        return 1 // 0

    with pytest.raises(SimTrap) as caught:
        execute(ring_program(), code=broken)
    assert caught.value.operator == "ring"
    assert str(caught.value).startswith(
        "operator 'ring': compute set 'add', codelet Add: no such instruction on tile 0"
    )


def test_wrong_programs_are_refused():
    program = ring_program()
    group = program.compute_sets[0].groups[0]

    def with_group(**changes: object) -> DeviceProgram:
        changed = replace(program.compute_sets[0], groups=(replace(group, **changes),))  # pyright: ignore[reportArgumentType]  # fields by name
        return replace(program, compute_sets=(changed,))

    cases = (
        (with_group(codelet="Sub"), "names codelet 'Sub', which is not there"),
        (with_group(words=(N,)), "gives 1 words to codelet 'Add' of 3 fields"),
        (with_group(words=(Reference("z", 0), Reference("y", 0), N)), "names variable 'z'"),
        (with_group(words=(Reference("x", 26), Reference("y", 0), N)), "points 'x' outside variable 'x'"),
        (with_group(words=(Reference("x", 2), Reference("y", 0), N)), "no multiple of 4"),
        (with_group(words=(0, 0, Reference("y", 0))), r"points field 'n' \(u32\) at 'y'"),
        (with_group(tiles=(0, 1, 1, 2)), "has 2 vertices on tile 1"),
        (with_group(tiles=(0, 9)), "has a vertex on tile 9 of 4"),
        (replace(program, operators=(OperatorProgram("ring", (Execute("sub"),)),)), "compute set 'sub'"),
        (replace(program, codelets=(replace(ADD, name="Other"),)), "names codelet 'Add'"),
        (replace(program, variables=(replace(program.variables[0], address_bytes=0),)), "outside the memory"),
    )
    for wrong, message in cases:
        with pytest.raises(VerifyError, match=message):
            execute(wrong)


def test_inputs_are_checked():
    machine = PythonMachine(N_TILES, {BASE: add})
    with pytest.raises(InputError, match="input 'in' is missing"):
        run_device(ring_program(), CHIP, IMAGE, {}, {}, machine=machine)
    with pytest.raises(InputError, match="float64 of shape"):
        run_device(ring_program(), CHIP, IMAGE, {}, {"in": X.astype(np.float64)}, machine=machine)


def test_the_sample_of_tiles_follows_the_timeline():
    result = execute(ring_program())
    assert result.sample.tiles == (0, 1, 2, 3)
    assert result.sample.busy_cycles.shape == (len(result.timeline), 4)
    for phase, busy in zip(result.timeline, result.sample.busy_cycles, strict=True):
        assert busy.max() <= phase.cycles


def test_tracks_of_tiles_show_codelets_and_exchanges():
    result = execute(ring_program())
    events = tile_tracks(result, CHIP)
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"tile 0", "tile 3"} <= names
    on_tile_2 = [event["name"] for event in events if event["ph"] == "X" and event["tid"] == 2]
    assert on_tile_2 == ["relayout", *["shift", "shift", "Add"] * 3]
    ends = [event["ts"] + event["dur"] for event in events if event["ph"] == "X"]
    assert max(ends) <= result.cycles / CHIP.clock_hz * 1e6 + 1e-6
