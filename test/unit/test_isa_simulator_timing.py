"""Cycles of workers and of the supervisor (ISA reference §16), and what the supervisor must not do."""

from __future__ import annotations

import numpy as np
import pytest
from support.isa_programs import STATE, Bench, slots

from t10.isa import INSTRUCTIONS


def supervisor(body: str, workers: str = "") -> Bench:
    """Return a tile whose supervisor runs a body and returns."""
    return Bench(f".supervisor\nENTRY:\n{body}\n  br $lr\n.worker\n.align 8\n{workers}")


RETURN = 6
"""A taken branch."""


@pytest.mark.parametrize(
    ("body", "cycles"),
    [
        ("", 0),
        ("setzi $m1, 1\n setzi $m2, 2\n setzi $m3, 3", 3),
        ("setzi $m1, 1\n add $m1, $m1, 1", 7),
        ("setzi $m1, 1\n setzi $m2, 1\n setzi $m3, 1\n add $m1, $m1, 1", 7),
        ("ld32 $m1, $m0, $mzero, 0\n add $m1, $m1, 1", 7),
        ("bri 1f\n1: setzi $m1, 1", 7),
        ("brnz $mzero, 1f\n1: setzi $m1, 1", 2),
        ("setzi $m1, 2\n1: brnzdec $m1, 1b", 6 + 6 + 6 + 1),
        ("put $CCCSLOAD, $m0\n ld64putcs 0\n ld64putcs 1", 8),
    ],
)
def test_a_supervisor_waits_for_operands_and_branches(body: str, cycles: int) -> None:
    assert supervisor(body).run(1, kind="supervisor") == cycles + RETURN


def test_launch_and_sync_take_six_cycles_each_around_the_longest_worker() -> None:
    body = "setzi $m1, WORK\n runall $m1, $m0, 0\n sync TEXCH_SYNCZONE_LOCAL"
    workers = "WORK: get $m2, $WSR\n and $m2, $m2, 7\n1: brnzdec $m2, 1b\n exitz $mzero\n"
    longest = 2 + 6 + 1
    assert supervisor(body, workers).run(kind="supervisor") == 6 + 6 + 6 * longest + 6 + RETURN
    multi = Bench(workers.replace("WORK", "ENTRY"))
    assert slots(multi.run()) == longest


def test_a_supervisor_gives_each_worker_its_state() -> None:
    body = "setzi $m1, WORK\n runall $m1, $m0, 2\n sync TEXCH_SYNCZONE_LOCAL"
    bench = supervisor(body, "WORK: mov $m0, $mvertex_base\n exitz $mzero\n")
    bench.run(kind="supervisor")
    assert [bench.worker(worker).m[0] for worker in range(6)] == [STATE + 8 * worker for worker in range(6)]


def test_functions_of_several_slots_take_them() -> None:
    for record in INSTRUCTIONS:
        if record.slots == 1 or record.pipe == "main":
            continue
        operands = ", ".join(f"$a{n}" for n in range(len(record.operands)))
        bench = Bench(f"ENTRY: {record.mnemonic} {operands}\n exitz $mzero\n")
        assert slots(bench.run()) == record.slots + 1, record.mnemonic


def test_a_constant_of_two_words_takes_two_slots() -> None:
    bench = Bench(
        "ENTRY: ldconst $m0, 0x12345678\n ldconst $m1, 5\n ldconst $a0, 0x3f800000\n exitz $mzero\n"
    )
    assert slots(bench.run()) == 2 + 1 + 2 + 1
    assert bench.worker().m[:2] == (0x12345678, 5)
    assert bench.worker().a[0] == 0x3F800000


def test_the_supervisor_does_not_advance_while_six_workers_run() -> None:
    body = "setzi $m1, WORK\n runall $m1, $m0, 0\n setzi $m2, 1\n sync TEXCH_SYNCZONE_LOCAL"
    workers = "WORK: nop\n nop\n exitz $mzero\n"
    assert supervisor(body, workers).run(kind="supervisor") == 6 + 6 + 18 + 6 + RETURN


def test_weights_are_zeroed_by_a_control_register() -> None:
    text = "WORK: setzi $a0, 8\n uput $FP_CLR, $a0\n setzi $a0, 0x3c00\n zero $a1\n"
    text += " f16v4sisoamp $azeros, $a0:1, $azeros, TAMP_F16V4_E4_P0\n exitz $mzero\n"
    load = ".supervisor\nENTRY:\n put $CCCSLOAD, $m0\n ld64putcs 0\n br $lr\n"
    clear = "CLEAR: setzi $m1, 4\n put $CR, $m1\n br $lr\n"
    bench = Bench(f"{load}{clear}.worker\n{text}")
    bench.put(STATE, np.array([2, 0, 0, 0], np.float16))
    for label, expected in (("ENTRY", 2.0), ("CLEAR", 0.0)):
        bench.machine.run_vertex(0, bench.machine.image.symbols[label], STATE, "supervisor")
        bench.machine.run_vertex(0, bench.machine.image.symbols["WORK"], STATE)
        sums = np.array(bench.worker().accumulators, np.uint32).view(np.float32)
        assert sums[0] == expected


@pytest.mark.parametrize(
    ("body", "cause", "words"),
    [
        ("setzi $m1, WORK\n runall $m1, $m0, 0", "EXERR", "returned before sync"),
        ("setzi $m1, WORK\n runall $m1, $m0, 0\n runall $m1, $m0, 0", "EXERR", "runall before sync"),
        ("setzi $m1, WORK\n runall $m1, $m0, 0\n ld64putcs 0", "EXERR", "weights loaded before sync"),
        ("setzi $m9, 1", "NOT_PRESERVED", "m9"),
        ("add $sp, $sp, -8", "NOT_PRESERVED", "m11"),
        ("sync 4", "INVALID_OP", "local zone"),
        ("put $CCCSLOAD, $mzero\n ld64putcs 0", "INVALID_ADDR", "outside the memory"),
        ("setzi $m1, 1\n put $CR, $m1", "INVALID_OP", "ZCWEI"),
        ("setzi $m1, WORK\n setzi $m2, 2\n runall $m1, $m2, 0", "INVALID_OP", "multiple of 4"),
    ],
)
def test_what_a_supervisor_must_not_do_traps(body: str, cause: str, words: str) -> None:
    trap = supervisor(body, "WORK: exitz $mzero\n").trap(kind="supervisor")
    assert trap.cause == cause
    assert words in str(trap)
    assert trap.worker == -1


def test_a_supervisor_runs_no_code_for_workers() -> None:
    bench = Bench("ENTRY: ld64 $a0:1, $m0, 0\n exitz $mzero\n")
    trap = bench.trap(kind="supervisor")
    assert trap.cause == "INVALID_INSTR"
    assert "not for the supervisor" in str(trap)


def test_a_batch_runs_one_vertex_per_tile_and_names_the_one_that_failed() -> None:
    from t10.isa.assembler import assemble
    from t10.isa.tile import Machine, Trap

    machine = Machine(
        4, assemble(".align 8\nENTRY: ld32 $m0, $mvertex_base, 0\n1: brnzdec $m0, 1b\n exitz $mzero\n")
    )
    for tile in range(4):
        machine.memory(tile)[:4].view(np.uint32)[:] = 0
        machine.memory(tile)[0x1000:0x1004].view(np.uint32)[:] = tile
    entry = machine.image.symbols["ENTRY"]
    states = [0x4C000 + 0x1000] * 4
    cycles = machine.run_vertices(np.arange(4, dtype=np.int32), [entry] * 4, states)
    assert [slots(int(one)) for one in cycles] == [3, 4, 5, 6]
    with pytest.raises(Trap) as caught:
        machine.run_vertices([0, 1, 2], [entry, entry, entry], [states[0], 0, states[2]])
    assert (caught.value.vertex, caught.value.tile) == (1, 1)
