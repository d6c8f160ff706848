"""Cycles counted from a codelet's code are those of a run, whatever its operands hold."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from random import Random

import pytest
from support.isa_programs import Bench

from t10.codelets.compile import compile_task
from t10.codelets.count import cycles_of
from t10.core.tile import IPU_MEMORY
from t10.profile.boxes import random_boxes
from t10.profile.operators import made_steps
from t10.profile.sample import samples

STEPS = made_steps()
SAMPLES, PLACED = 6, 3
NONE_APART: frozenset[tuple[int, int]] = frozenset()
OPERANDS = 0x70000
KNOWN = replace(IPU_MEMORY, end=OPERANDS)
"""What counting knows: what lies behind it is data."""


@pytest.mark.sampled(80)
@pytest.mark.parametrize("number", range(len(STEPS)))
def test_what_is_counted_is_what_a_run_takes_and_no_bound_is_above_it(number: int) -> None:
    one = STEPS[number]
    found = samples(one, SAMPLES, seed=11)
    assert len(found) == SAMPLES
    assert [each.fault for each in found if each.fault] == []
    # The others branch on data: what look-ups look up, and scalar code.
    assert one.kind in ("gather", "elementwise", "reduction") or all(each.counted for each in found)


@pytest.mark.parametrize("kind", sorted({one.kind for one in STEPS}))
def test_operands_that_all_lie_well_take_no_longer_than_operands_that_do_not(kind: str) -> None:
    """What operands together or one by one need is there as well where more is granted."""
    rng = Random(5)
    for one in (one for one in STEPS if one.kind == kind):
        for box in islice(random_boxes(one, rng), PLACED):
            well = one.task(box)
            cycles = cycles_of(well)
            for apart, is_interleaved in ((well.apart, False), (NONE_APART, True), (NONE_APART, False)):
                operands = [replace(each, is_interleaved=is_interleaved) for each in well.operands]
                worse = replace(well, inputs=tuple(operands[:-1]), output=operands[-1], apart=apart)
                assert (cycles_of(worse) or 0) >= (cycles or 0), f"{one.title} {box}"


def test_threads_count_as_one_does() -> None:
    rng = Random(5)
    tasks = [one.task(box) for one in STEPS[::9] for box in islice(random_boxes(one, rng), SAMPLES)]
    alone = [cycles_of(task) for task in tasks]
    orders = [rng.sample(range(len(tasks)), len(tasks)) for _ in range(4)]

    def counted(order: list[int]) -> list[int | None]:
        return [cycles_of(tasks[i]) for i in order]

    compile_task.cache_clear()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(orders)) as pool:
            found = list(pool.map(counted, orders))
    finally:
        sys.setswitchinterval(before)
    assert found == [[alone[i] for i in order] for order in orders]


def _bench(text: str, *, is_counting: bool = False) -> Bench:
    """Return a tile whose workers have a few words of stack."""
    bench = Bench(text, KNOWN if is_counting else IPU_MEMORY, is_counting=is_counting)
    bench.machine.set_options(stack_top=OPERANDS, worker_stack_bytes=16)
    return bench


class _Loops:
    """Random nests of loops that step through operands, spill counters, and now and then look at what they count."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.n_labels = 0

    def text(self) -> str:
        """Return a program; pointers are $m0 and $m1, counters from $m4 on."""
        state = (
            "ld32 $m0, $mvertex_base, $mzero, 0\n mov $m1, $m0\n setzi $m2, 0\n add $m8, $mworker_base, -16"
        )
        return f"ENTRY: {state}\n{self.block(0)} exitz $mzero\n"

    def block(self, depth: int) -> str:
        return "".join(self.rng.choice(self.PARTS)(self, depth) for _ in range(self.rng.randint(1, 4)))

    def straight(self, depth: int) -> str:
        del depth
        lines = (
            "ld32step $a0, $mzero, $m0+=, 1",
            "{ st32step $a0, $mzero, $m1+=, 1 ; f32add $a1, $a0, $a0 }",
            "add $m2, $m2, 3",
            "st32 $m2, $m8, $mzero, 0",
            "ld32 $m2, $m8, $mzero, 0",
            "ld32 $m3, $m0, $mzero, 0",
            "atom $m3, $a0",
            "st32 $m3, $m8, $mzero, 1",
            "ld32 $m3, $m8, $mzero, 1",
            "f32sqrt $a2, $a1",
            "and $m2, $m2, 7",
        )
        return "".join(f" {line}\n" for line in self.rng.choices(lines, k=self.rng.randint(1, 3)))

    def loop(self, depth: int) -> str:
        if depth == 3:
            return self.straight(depth)
        label, counter = self.label(), f"$m{4 + depth}"
        masked = f"mov {counter}, $m2\n and {counter}, {counter}, 3"
        trips = self.rng.choice((f"setzi {counter}, {self.rng.randint(0, 5)}", masked))
        looked = f" add $m2, $m2, {counter}\n" if self.rng.random() < 0.3 else ""
        return f" {trips}\n{label}:\n{self.block(depth + 1)}{looked} brnzdec {counter}, {label}\n"

    def repeat(self, depth: int) -> str:
        del depth
        step = self.rng.choice(("add $m2, $m2, 1", "ld32step $a0, $mzero, $m0+=, 1"))
        return f" .align 8\n {{ rpt {self.rng.randint(0, 6)}, 0 ; fnop }}\n {{ {step} ; fnop }}\n"

    def branch(self, depth: int) -> str:
        label = self.label()
        return (
            f" and $m3, $m2, {self.rng.choice((1, 3))}\n brz $m3, {label}\n{self.straight(depth)}{label}:\n"
        )

    def label(self) -> str:
        self.n_labels += 1
        return f"L{self.n_labels}"

    PARTS = (straight, straight, loop, loop, repeat, branch)


@pytest.mark.parametrize("seed", range(300))
def test_loops_are_counted_as_they_run(seed: int) -> None:
    text = _Loops(seed).text()
    assert _bench(text, is_counting=True).run(OPERANDS) == _bench(text).run(OPERANDS)


def test_a_branch_on_what_is_read_from_operands_is_not_counted() -> None:
    load = "ENTRY: ld32 $m0, $mvertex_base, $mzero, 0\n ld32 $m1, $m0, $mzero, 0\n"
    end = " brz $m1, 1f\n nop\n1: exitz $mzero\n"
    for text in (
        load + end,
        load + " add $m1, $m1, 1\n" + end,
        f"ENTRY: f32add $a0, $a0, $a0\n atom $m1, $a0\n{end}",
    ):
        assert "depends on data" in str(_bench(text, is_counting=True).trap(OPERANDS))


def test_data_that_is_spilled_and_decides_is_not_counted() -> None:
    text = (
        "ENTRY: ld32 $m0, $mvertex_base, $mzero, 0\n ld32 $m1, $m0, $mzero, 0\n st32 $m1, $mvertex_base, $mzero, 1\n"
        " ld32 $m2, $mvertex_base, $mzero, 1\n1: brnzdec $m2, 1b\n exitz $mzero\n"
    )
    assert "depends on data" in str(_bench(text, is_counting=True).trap(OPERANDS))


def test_data_that_is_spilled_and_read_back_is_counted() -> None:
    """Words that held data decide again once something else is stored there; data never says where to store."""
    load = "ENTRY: ld32 $m0, $mvertex_base, $mzero, 0\n ld32 $m1, $m0, $mzero, 0\n setzi $m5, 9\n"
    spill = " st32 $m1, $mvertex_base, $mzero, 1\n ld32 $m2, $mvertex_base, $mzero, 1\n"
    kept = " setzi $m3, 7\n st32 $m3, $mvertex_base, $mzero, 1\n ld32 $m2, $mvertex_base, $mzero, 1\n"
    end = "1: brnzdec $m2, 1b\n exitz $mzero\n"
    turns = f"2:{spill} add $m1, $m2, $m1\n brnzdec $m5, 2b\n"
    for text in (f"{load}{spill}{kept}{end}", f"{load}{turns}{kept}{end}"):
        assert _bench(text, is_counting=True).run(OPERANDS) == _bench(text).run(OPERANDS)
    for text in (
        f"{load}{turns}{end}",
        f"{load} and $m1, $m1, 0\n st32 $m5, $mvertex_base, $m1, 0\n{kept}{end}",
    ):
        assert "depends on data" in str(_bench(text, is_counting=True).trap(OPERANDS))
