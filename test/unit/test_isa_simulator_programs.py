"""Programs of several instructions: control, repetition, control registers, weights, transposition, traps."""

from __future__ import annotations

import numpy as np
import pytest
from support.isa_forms import form_number, image_of, row
from support.isa_programs import STATE, Array, Bench, slots

from t10.errors import InputError
from t10.isa import INSTRUCTIONS
from t10.isa.assembler import assemble
from t10.isa.constants import FLAGS
from t10.isa.image import AUX, MAIN, SOLO, Image
from t10.isa.tile import Machine

A, B, C = 0x50000, 0x54000, 0x58000

ADD_VECTORS = """
ENTRY:
  ld32      $m0, $mvertex_base, $mzero, 0
  ld32      $m1, $mvertex_base, $mzero, 1
  ld32      $m2, $mvertex_base, $mzero, 2
  ld32      $m3, $mvertex_base, $mzero, 3
  shr       $m4, $m3, 1
  brz       $m4, 3f
  ld64step  $a0:1, $mzero, $m0+=, 1
  ld64step  $a2:3, $mzero, $m1+=, 1
  add       $m4, $m4, -1
  rpt       $m4, (2f-1f)/8-1
1:
  { ld64step $a0:1, $mzero, $m0+=, 1
    f32v2add $a4:5, $a0:1, $a2:3 }
  { ld64step $a2:3, $mzero, $m1+=, 1
    fnop }
  { st64step $a4:5, $mzero, $m2+=, 1
    fnop }
2:
  f32v2add  $a4:5, $a0:1, $a2:3
  st64step  $a4:5, $mzero, $m2+=, 1
3:
  and       $m3, $m3, 1
  brz       $m3, 4f
  ld32      $a0, $m0, $mzero, 0
  ld32      $a2, $m1, $mzero, 0
  f32add    $a4, $a0, $a2
  st32      $a4, $m2, $mzero, 0
4:
  exitz     $mzero
"""

ROWS_TIMES_WEIGHTS = """
ENTRY:
  ld32      $m0, $mvertex_base, $mzero, 0
  ld32      $m1, $mvertex_base, $mzero, 1
  { ld32    $m2, $mvertex_base, $mzero, 2
    setzi   $a2, 8 }
  { add     $m2, $m2, -1
    uput    $FP_CLR, $a2 }
  ld64step  $a0:1, $mzero, $m0+=, 1
  .macro STEP out, phase
  { ld64step $a0:1, $mzero, $m0+=, 1
    f16v4sisoamp \\out, $a0:1, $azeros, TAMP_F16V4_E4_P\\phase }
  .endm
  STEP $azeros, 0
  STEP $azeros, 1
  STEP $azeros, 2
  STEP $azeros, 3
  STEP $a2:3, 0
  tapack    $m4:5, $m0, $mzero, $m1
  { rpt     $m2, 3
    fnop }
  .irp phase, 1, 2, 3, 0
  { ldst64pace $a0:1, $a2:3, $m4:5+=, $mzero, 0b0000
    f16v4sisoamp $a2:3, $a0:1, $azeros, TAMP_F16V4_E4_P\\phase }
  .endr
  .irp phase, 1, 2, 3
  { st64pace $a2:3, $m4:5+=, $mzero, 0b00
    f16v4sisoamp $a2:3, $azeros, $azeros, TAMP_F16V4_E4_P\\phase }
  .endr
  st64pace  $a2:3, $m4:5+=, $mzero, 0b00
  exitz     $mzero
.align 8
LOAD:
  put $CCCSLOAD, $m0
"""


@pytest.mark.parametrize("n", range(20))
def test_vectors_are_added(n: int) -> None:
    random = np.random.default_rng(n)
    a, b = random.standard_normal((2, n)).astype(np.float32)
    bench = Bench(ADD_VECTORS)
    bench.put(A, a)
    bench.put(B, b)
    bench.run(A, B, C, n)
    assert np.array_equal(bench.get(C, n, np.float32), a + b)


@pytest.mark.parametrize("n", range(1, 9))
def test_rows_times_weights_in_four_slots_a_row(n: int) -> None:
    random = np.random.default_rng(n)
    x = random.integers(-4, 5, (n, 16)).astype(np.float16)
    weights = random.integers(-4, 5, (8, 16)).astype(np.float16)
    loads = "".join(f"  ld64putcs {word}\n" for word in range(32))
    bench = Bench(f"{ROWS_TIMES_WEIGHTS}{loads}  br $lr\n")
    bench.put(A, x)
    bench.put(STATE, weights)
    load_cycles = bench.machine.run_vertex(0, bench.machine.image.symbols["LOAD"], STATE, "supervisor")
    assert load_cycles == 6 + 32 + 6
    assert slots(bench.run(A, B, n)) == 17 + 4 * (n - 1)
    expected = x.astype(np.float32) @ weights.T.astype(np.float32)
    assert np.array_equal(bench.get(B, 8 * n, np.float32).reshape(n, 8), expected)


def test_sixteen_units_emit_channels_in_order_with_the_weights_loaded_in_quarters() -> None:
    random = np.random.default_rng(0)
    x = random.integers(-3, 4, 16).astype(np.float16)
    weights = random.integers(-3, 4, (16, 16)).astype(np.float16)
    order = [*range(4), *range(4, 8), *range(32, 40), *range(8, 16), *range(40, 48), *range(16, 24)]
    order += [*range(48, 56), *range(24, 32), *range(56, 64)]
    loads = "".join(f"  ld128putcs {n}\n" for n in order[::2])
    steps = "".join(
        f"  ld64step $a0:1, $mzero, $m0+=, 1\n  f16v4hihov4amp $azeros, $a0:1, $azeros, TAMP_F16V4_E4_P{p}\n"
        for p in range(4)
    )
    drain = "".join(
        f"  f16v4hihov4amp $a2:3, $azeros, $azeros, TAMP_F16V4_E4_P{p}\n  st64step $a2:3, $mzero, $m1+=, 1\n"
        for p in range(4)
    )
    bench = Bench(
        f"""
ENTRY:
  ld32 $m0, $mvertex_base, 0
  ld32 $m1, $mvertex_base, 1
  setzi $a0, 8
  uput $FP_CLR, $a0
{steps}{drain}  exitz $mzero
LOAD:
  put $CCCSLOAD, $m0
{loads}  br $lr
"""
    )
    bench.put(A, x)
    bench.put(0x80000, weights)
    bench.machine.run_vertex(0, bench.machine.image.symbols["LOAD"], 0x80000, "supervisor")
    bench.run(A, B)
    assert np.array_equal(bench.get(B, 16, np.float16), (weights.astype(np.float32) @ x).astype(np.float16))


def test_branches_are_taken_as_their_names_say() -> None:
    cases = {
        "brz": (0,),
        "brnz": (1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF),
        "brneg": (0x80000000, 0xFFFFFFFF),
        "brpos": (0, 1, 0x7FFFFFFF),
    }
    for name, taken in cases.items():
        for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
            bench = Bench(
                f"ENTRY: ld32 $m0, $mvertex_base, 0\n setzi $m1, 1\n {name} $m0, 9f\n setzi $m1, 2\n9: exitz $mzero\n"
            )
            bench.run(value)
            assert bench.worker().m[1] == (1 if value in taken else 2), (name, value)


def test_brnzdec_at_the_bottom_runs_once_more_than_its_count() -> None:
    bench = Bench("ENTRY: setzi $m0, 5\n zero $m1\n1: add $m1, $m1, 1\n brnzdec $m0, 1b\n exitz $mzero\n")
    assert slots(bench.run()) == 2 + 2 * 6 + 1
    assert bench.worker().m[:2] == (0, 6)


def test_call_keeps_the_address_behind_its_bundle() -> None:
    bench = Bench(
        """
ENTRY:
  { call $m10, 1f ; setzi $a0, 3 }
  setzi $m1, 7
  bri 2f
1: setzi $m2, 9
  br $m10
2: exitnz $mzero
"""
    )
    bench.run()
    assert bench.worker().m[1:3] == (7, 9)
    assert bench.worker().a[0] == 3
    assert bench.worker().m[10] == bench.machine.image.symbols["ENTRY"] + 8


@pytest.mark.parametrize("mnemonic", ["exitz", "exitnz", "exitneg", "exitpos"])
def test_exits_end_the_worker(mnemonic: str) -> None:
    assert slots(Bench(f"ENTRY: {mnemonic} $mzero\n").run()) == 1


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_rpt_repeats_its_body_and_what_is_beside_it_runs_once(count: int) -> None:
    bench = Bench(
        """
ENTRY:
  ld32 $m0, $mvertex_base, 0
  { zero $m1 ; fnop }
  zero $m2
  { rpt $m0, 1 ; setzi $a0, 4 }
  { add $m1, $m1, 1 ; fnop }
  { add $m2, $m2, $m1 ; fnop }
  exitz $mzero
"""
    )
    assert slots(bench.run(count + (5 << 16))) == 4 + 2 * count + 1
    assert bench.worker().m[1:3] == (count, count * (count + 1) // 2)
    assert bench.worker().a[0] == 4


def test_both_halves_of_a_bundle_read_before_either_writes() -> None:
    bench = Bench(
        """
ENTRY:
  ld32 $m0, $mvertex_base, 0
  setzi $a0, 5
  setzi $a1, 6
  { ld32 $a0, $m0, 0 ; or $a2, $a0, $a1 }
  { st32 $a2, $m0, 1 ; and $a2, $a2, $azero }
  exitz $mzero
"""
    )
    bench.put(A, np.array([9, 0], np.uint32))
    bench.run(A)
    assert bench.worker().a[0] == 9
    assert bench.get(A, 2, np.uint32).tolist() == [9, 5 | 6]


def test_workers_know_their_numbers_and_bases() -> None:
    bench = Bench(
        "ENTRY: get $m0, $WSR\n and $m0, $m0, 7\n get $m1, $VERTEX_BASE\n get $m2, $COUNT_L\n exitz $mzero\n"
    )
    bench.machine.set_options(stack_top=0x7F000, worker_stack_bytes=64)
    bench.run()
    for worker in range(6):
        assert bench.worker(worker).m[:2] == (worker, STATE)
        assert bench.worker(worker).m[12:14] == (0x7F000 - 64 * worker, STATE)


def test_the_scales_of_axpy_and_the_overflow_of_f16_are_control_registers() -> None:
    bench = Bench(
        """
ENTRY:
  ld32 $a0, $mvertex_base, 0
  uput $TAS, $a0
  uget $a1, $TAS
  ld32 $a2, $mvertex_base, 1
  f16v2add $a3, $a2, $a2
  or $a4, $azero, 0x00100000
  uput $FP_CTL, $a4
  f16v2add $a5, $a2, $a2
  get $a6, $FP_CTL
  uget $a7, $FP_STS
  exitz $mzero
"""
    )
    bench.run(0x12345678, 0x7BFFFBFF)
    assert bench.worker().a[1] == 0x12345678
    assert bench.worker().a[3] == 0x7BFFFBFF
    assert bench.worker().a[5] == 0x7E007E00
    assert bench.worker().a[6:8] == (1 << 20, 0)


def test_accumulators_are_stale_until_cleared() -> None:
    bench = Bench("ENTRY: f32v2gina $a0:1, $azeros, 0\n setzi $a2, 8\n uput $FP_CLR, $a2\n exitz $mzero\n")
    assert np.isnan(np.array(bench.worker().accumulators, np.uint32).view(np.float32)).all()
    bench.run()
    assert bench.worker().a[0] == 0x7FC00000
    assert bench.worker().accumulators == (0,) * 32


def test_four_steps_transpose_a_block_of_halves() -> None:
    blocks = np.arange(48, dtype=np.float16).reshape(3, 4, 4)
    text = "ENTRY:\n  ld32 $m0, $mvertex_base, 0\n  ld32 $m1, $mvertex_base, 1\n"
    for _ in range(3):
        for phase in range(2):
            text += "  ld64step $a0:1, $mzero, $m0+=, 1\n  ld64step $a2:3, $mzero, $m0+=, 1\n"
            text += (
                f"  f16v4istacc $a4:5, $a0:1, $a2:3, TISTACC_P{phase}\n  st64step $a4:5, $mzero, $m1+=, 1\n"
            )
        for phase in range(2):
            text += f"  f16v4stacc $a4:5, TSTACC_P{phase}\n  st64step $a4:5, $mzero, $m1+=, 1\n"
    bench = Bench(text + "  exitz $mzero\n")
    bench.put(A, blocks)
    bench.run(A, B)
    columns = bench.get(B, 48, np.float16).reshape(3, 4, 4)
    for block in range(2):
        transposed = np.concatenate([columns[block, 2:], columns[block + 1, :2]])
        assert np.array_equal(transposed, blocks[block].T)


def test_random_bits_are_those_of_xoroshiro128aox() -> None:
    mask = (1 << 64) - 1
    seed = 12345

    def turned(x: int, by: int) -> int:
        return (x << by | x >> (64 - by)) & mask

    inverse = ~seed & 0xFFFFFFFF
    low = seed | inverse << 32
    high = (seed << 13 | inverse >> 19) & 0xFFFFFFFF | ((inverse << 13 | seed >> 19) & 0xFFFFFFFF) << 32
    expected: list[int] = []
    for _ in range(3):
        sx, sa = low ^ high, low & high
        expected.append(sx ^ (turned(sa, 1) | turned(sa, 2)))
        low, high = turned(low, 55) ^ sx ^ (sx << 14) & mask, turned(sx, 36)
    bench = Bench(
        "ENTRY: ld32 $a0, $mvertex_base, 0\n uput $PRNG_SEED, $a0\n urand64 $a0:1\n urand32 $a2\n urand64 $a4:5\n"
        " uget $a6, $PRNG_0_0\n exitz $mzero\n"
    )
    bench.run(seed)
    a = bench.worker().a
    assert a[0] | a[1] << 32 == expected[0]
    assert a[2] == expected[1] & 0xFFFFFFFF
    assert a[4] | a[5] << 32 == expected[2]
    assert a[6] == low & 0xFFFFFFFF


def test_workers_in_turns_give_the_same_results_and_cycles() -> None:
    found: list[tuple[int, Array]] = []
    for round_robin in (False, True):
        bench = Bench(ADD_VECTORS)
        bench.machine.set_options(round_robin=round_robin)
        bench.put(A, np.arange(32, dtype=np.float32))
        bench.put(B, np.arange(32, dtype=np.float32))
        found.append((bench.run(A, B, C, 13), bench.memory.copy()))
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1], found[1][1])


def test_a_trace_has_one_line_per_bundle() -> None:
    bench = Bench(
        "ENTRY: setzi $m0, 2\n setzi $m1, 1\n { rpt 2, 0 ; fnop }\n"
        " { add $m0, $m0, 1 ; f32add $a0, $a1, $a2 }\n exitz $mzero\n"
    )
    lines: list[str] = []
    bench.machine.set_trace(lines.append)
    bench.run()
    mine = [line for line in lines if " w3 " in line]
    assert len(lines) == 6 * 6
    assert mine[0] == "0 tile 0 w3 0x4c000 setzi $m0, 2 | $m0=0x2"
    assert (
        mine[3] == "18 tile 0 w3 0x4c010 { add $m0, $m0, 1 ; f32add $a0, $a1, $a2 } | $m0=0x3 $a0=0x7fc00000"
    )


@pytest.mark.parametrize(
    ("text", "cause", "words"),
    [
        ("ld32 $m1, $m0, 0", "INVALID_ADDR", "access of 4 bytes at 0x4"),
        ("add $m0, $m0, 2\n ld32 $m1, $m0, $m2, 0", "INVALID_ADDR", "not aligned"),
        ("ld128 $a0:3, $m2, 0", "INVALID_ADDR", "interleaved"),
        ("st64 $a0:1, $m3, 0", "INVALID_ADDR", "outside the memory"),
        (
            "tapack $m4:5, $m2, $m2, $m2\n ld2x64pace $a0:1, $a2:3, $m4:5+=, $mzero, 0",
            "CONFLICT",
            "one memory bank",
        ),
        ("trap 3", "PBRK", "trap 3"),
        ("br $m2", "INVALID_PC", "no instruction begins at 0x5c000"),
        ("f32v2grand $a0:1", "INVALID_INSTR", "f32v2grand is not simulated"),
        ("f32int $a0, $a1, 4", "INVALID_OP", "rounding mode 4"),
        ("setzi $a0, 1\n uput $FP_CTL, $a0", "INVALID_OP", "exceptions"),
        ("get $m0, $DBG_BRK_ID", "INVALID_OP", "control register 0x71"),
        ("f32v2gina $a0:1, $azeros, 2", "INVALID_OP", "chains 0 and 1"),
        ("f16v4sisoamp $a0:1, $a2:3, $azeros, 4", "INVALID_INSTR", "number 4"),
    ],
)
def test_what_cannot_be_executed_traps_and_says_where(text: str, cause: str, words: str) -> None:
    bench = Bench(
        f"ENTRY: setzi $m0, 4\n mov $m2, $mvertex_base\n ldconst $m3, 0xE8000\n {text}\n exitz $mzero\n"
    )
    trap = bench.trap()
    assert trap.cause == cause
    assert words in str(trap)
    assert text.split("\n")[-1].strip() in str(trap)
    assert (trap.tile, trap.worker, trap.exit_code) == (0, 0, 6)
    assert trap.pc == bench.machine.image.base_address + 12 + 4 * text.count("\n")


@pytest.mark.parametrize("is_counting", [False, True])
@pytest.mark.parametrize("last", ["nop", "{ nop ; fnop }", "add $m0, $m0, 1", "bri .Lon\n.Lon: fnop"])
@pytest.mark.parametrize("behind", ["", ".long 7\n"])
def test_code_that_runs_on_into_what_is_none_traps(last: str, behind: str, *, is_counting: bool) -> None:
    bench = Bench(f"ENTRY: setzi $m0, 4\n {last}\n{behind}", is_counting=is_counting)
    trap = bench.trap()
    assert (trap.cause, trap.exit_code) == ("INVALID_PC", 6)
    assert "control runs on into what is no instruction" in str(trap)


def test_a_supervisor_and_traced_workers_that_run_on_trap() -> None:
    traced = Bench("ENTRY: setzi $m0, 4\n nop\n")
    traced.machine.set_trace(lambda _: None)
    supervisor = Bench(".supervisor\nENTRY: setzi $m0, 4\n")
    assert traced.trap().cause == "INVALID_PC"
    assert supervisor.trap(kind="supervisor").cause == "INVALID_PC"


def test_an_endless_loop_ends_at_the_limit() -> None:
    bench = Bench("ENTRY: bri ENTRY\n")
    bench.machine.set_options(cycle_limit=1000)
    assert bench.trap().cause == "CYCLE_LIMIT"


def test_two_workers_that_write_into_one_word_are_found() -> None:
    text = "ENTRY: get $m0, $WSR\n and $m0, $m0, 7\n {} stm32 $m0, $mvertex_base, $m0\n exitz $mzero\n"
    apart, together = Bench(text.format("")), Bench(text.format("shr $m0, $m0, 1\n"))
    for bench in (apart, together):
        bench.machine.set_options(watch_writes=True)
    apart.run()
    trap = together.trap()
    assert (trap.cause, trap.address, trap.worker) == ("SHARED_WORD", STATE, 1)


def test_a_repeated_body_of_solo_words_is_refused() -> None:
    rpt, add, exit_ = form_number("rpt"), form_number("add"), form_number("exitz")
    solo_body = [
        row(SOLO, form_number("nop")),
        row(SOLO, rpt, 2, 0),
        row(SOLO, add, 1, 1, 1),
        row(SOLO, exit_, 15),
    ]
    machine = Machine(1, image_of([*solo_body, row(SOLO, exit_, 15)]))
    with pytest.raises(Exception, match="INVALID_INSTR: rpt"):
        machine.run_vertex(0, machine.image.base_address, STATE)


def test_halves_of_a_bundle_that_write_one_register_trap() -> None:
    kinds = {
        name: [n for n, record in enumerate(INSTRUCTIONS) if record.mnemonic == name]
        for name in ("setzi", "ld32")
    }
    setzi, load = kinds["setzi"][1], kinds["ld32"][6]
    assert INSTRUCTIONS[setzi].pipe == "aux"
    assert [operand.kind for operand in INSTRUCTIONS[load].operands] == ["areg", "mreg", "mreg", "zimm12"]
    code = [row(MAIN, load, 3, 13, 15, 0), row(AUX, setzi, 3, 1), row(SOLO, form_number("exitz"), 15)]
    machine = Machine(1, image_of(code))
    with pytest.raises(Exception, match=r"INVALID_OP: .* writes one register twice"):
        machine.run_vertex(0, machine.image.base_address, STATE)


def test_code_outside_the_memory_is_refused() -> None:
    with pytest.raises(InputError, match="outside the memory"):
        Machine(1, assemble("ENTRY: exitz $mzero\n", base_address=0x1000))


def test_data_words_lie_in_the_memory_of_every_tile() -> None:
    image: Image = assemble("ENTRY: exitz $mzero\nTABLE: .int 7, -1\n")
    machine = Machine(2, image)
    at = image.symbols["TABLE"] - image.base_address
    for tile in range(2):
        assert machine.memory(tile)[at : at + 8].view(np.int32).tolist() == [7, -1]


def test_flags_of_one_engine_have_different_numbers() -> None:
    engines = ("TAMP_", "TSLIC_")
    numbers = [value for name, value in FLAGS.items() if name.startswith(engines)]
    assert len(numbers) == len(set(numbers))
