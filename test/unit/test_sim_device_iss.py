"""Device programs executed instruction by instruction: what comes out is what numpy computes."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.device_programs import CASES, MULTIPLY_ADD, Case, ring, with_codelet

from t10.chip import load_chip
from t10.core.device import DeviceProgram
from t10.core.tile import IPU_MEMORY
from t10.errors import SimTrap
from t10.isa.assembler import assemble
from t10.isa.image import Image
from t10.sim.device import DeviceResult, Trace, run_device
from t10.sim.device.machine import instruction_machine

CHIP = load_chip("test-16")


def image_of(program: DeviceProgram) -> Image:
    return assemble("\n".join(c.assembly for c in program.codelets), base_address=program.memory.base)


def execute(case: Case, trace: Trace | None = None) -> DeviceResult:
    program = case.program
    return run_device(program, CHIP, image_of(program), case.weights, case.inputs, trace=trace)


@pytest.mark.parametrize("name", sorted(CASES))
def test_outputs_are_those_of_numpy(name: str):
    case = CASES[name]()
    result = execute(case)
    for output, expected in case.outputs.items():
        np.testing.assert_array_equal(result.outputs[output], expected)


def test_the_same_run_takes_the_same_cycles():
    first, second = execute(ring()), execute(ring())
    assert first.timeline == second.timeline
    assert first.vertices == second.vertices


def test_a_run_gives_its_memory_back():
    def address_space_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    case = ring()
    execute(case)
    before = address_space_bytes()
    for _ in range(8):
        execute(case)
    one_run = case.program.n_tiles * IPU_MEMORY.size_bytes
    assert address_space_bytes() - before < 2 * one_run


def test_longer_vectors_take_longer():
    short, long = execute(ring(n=10)), execute(ring(n=100))
    assert short.operators[0].cycles.compute < long.operators[0].cycles.compute
    # Six workers share the elements: 90 more are 15 more turns of every worker's loop, 6 cycles per instruction.
    by_codelet = [{r.codelet: r.max_cycles for r in run.vertices} for run in (short, long)]
    assert by_codelet[1]["Test_fill"] > by_codelet[0]["Test_fill"]


def test_a_trap_says_where():
    case = ring()
    broken = replace(
        MULTIPLY_ADD,
        assembly=MULTIPLY_ADD.assembly.replace(
            "ld32 $a1, $m1, $mzero, $m8", "ld32 $a1, $m1, $mzero, 1"
        ).replace("ld32 $a2, $m2, $mzero, $m8", "add $m2, $m2, 2\n  ld32 $a2, $m2, $mzero, $m8"),
    )
    program = with_codelet(case.program, broken)
    with pytest.raises(SimTrap) as caught:
        execute(replace(case, program=program))
    text = str(caught.value)
    assert "operator 'mix'" in text
    assert "compute set 'sub_task:mix', codelet Test_multiply_add" in text
    assert "tile 0 worker 0" in text
    assert "ld32 $a2, $m2, $mzero, $m8" in text


def test_a_trace_has_a_line_per_bundle_of_the_compute_sets_it_names():
    lines: list[str] = []
    execute(ring(), Trace(lines.append, frozenset({"epilogue:mix"})))
    assert lines[0].startswith("# compute set epilogue:mix at cycle ")
    assert sum("exitz" in line for line in lines) == 4 * 6
    assert not any("f32add" in line for line in lines)
    everything: list[str] = []
    execute(ring(), Trace(everything.append))
    assert sum(line.startswith("#") for line in everything) == 6


def test_memory_that_begins_elsewhere_is_refused():
    program = ring().program
    moved = replace(program, memory=replace(program.memory, base=0x50000))
    with pytest.raises(Exception, match="begins at 0x50000"):
        instruction_machine(moved, image_of(program), IPU_MEMORY)
