"""Facts of a chip stand in one place: other chips are placed and simulated with their own, or refused by name."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from t10.backend import Lowered, lowered
from t10.chip import load_chip
from t10.core.tile import IPU_MEMORY, N_WORKERS, TileMemory
from t10.driver import Executable, compile
from t10.errors import InputError, SimTrap, VerifyError
from t10.isa.assembler import assemble
from t10.isa.tile import Machine
from t10.random_inputs import random_inputs
from t10.sim.device import DeviceResult, run_device

ROOT = Path(__file__).parents[2]
MLP = ROOT / "examples" / "models" / "mlp.onnx"

FACTS = {
    "an address of the memory map": re.compile(
        r"(?i)\b0x(4c000|80000|e8000|34000)\b|\b(311296|524288|638976)\b"
    ),
    "bytes of a memory element": re.compile(r"(?i)\b0x4000\b|\b16384\b"),
    "the longest transfer": re.compile(r"\b4148\b"),
    "the number of workers": re.compile(
        r"(?i)workers?\b[^\n]{0,16}[=<] *6\b|\b6 *\* *\w*workers?\b|\b6u? *\* *share\b"
    ),
}
SOURCES = ("python/t10", "passes", "dialect", "tools")
LINKS = ("python/t10/passes/", "python/t10/dialect/")
SUFFIXES = (".py", ".pyi", ".h", ".hpp", ".cpp")
ALLOWED = {
    "python/t10/core/tile.py": "the one place",
    "python/t10/chip/spec.py": "the one place of what only a chip file says",
    "dialect/ipu.py": "examples in docstrings",
}


def sources() -> list[Path]:
    """Return the source files of the compiler; `python/t10/passes` and `dialect` are links."""
    files = [
        path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES
    ]
    return [path for path in files if not path.relative_to(ROOT).as_posix().startswith(LINKS)]


def test_facts_of_the_chip_stand_in_one_place() -> None:
    found: list[str] = []
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        lines = [] if name in ALLOWED else path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            found += [f"{name}:{number}: {fact}: {line}" for fact, at in FACTS.items() if at.search(line)]
    assert not found, "\n".join(["take these from the chip (t10.chip, t10.core.tile):", *found])


def test_an_ipu_has_the_memory_that_the_instruction_set_assumes() -> None:
    chip = load_chip("ipu-mk2")
    assert chip.tile_memory == IPU_MEMORY
    assert chip.n_workers == N_WORKERS


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("element_bytes=12288", r"element_bytes = 12288 must be a power of two"),
        ("memory_base=8", r"memory_base = 0x8 must be a positive multiple of 16"),
        ("memory_base=0", r"memory_base = 0x0 must be a positive"),
        (
            "interleaved_base=528384",
            r"interleaved_base = 0x81000 must be whole memory elements \(16384 bytes each\)",
        ),
        ("interleaved_base=16384", r"interleaved_base = 0x4000 must be .* above memory_base = 0x4c000"),
    ],
)
def test_a_memory_map_that_is_none_is_refused(changes: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_chip(f"test-16:{changes}")


def compiled(chip: str) -> tuple[Executable, Lowered]:
    executable = compile(MLP, chip, program=True)
    return executable, lowered(executable)


def run(made: tuple[Executable, Lowered]) -> DeviceResult:
    executable, program = made
    inputs = random_inputs(executable.plan.graph, 0)
    return run_device(program.program, executable.chip, program.image, executable.weights, inputs)


def test_a_memory_that_begins_elsewhere_moves_every_address_and_nothing_else() -> None:
    here, there = compiled("test-16"), compiled("test-16:memory_base=327680,interleaved_base=540672")
    moved_by = 0x50000 - IPU_MEMORY.base
    first, second = here[1].program, there[1].program
    assert [v.address_bytes + moved_by for v in first.variables] == [
        v.address_bytes for v in second.variables
    ]
    assert (second.memory.base, second.memory.end) == (0x50000, 0x50000 + 638976)
    assert {name: at + moved_by for name, at in here[1].image.symbols.items()} == there[1].image.symbols
    expected, found = run(here), run(there)
    assert found.cycles == expected.cycles
    for name, output in expected.outputs.items():
        np.testing.assert_array_equal(found.outputs[name], output)


def test_memory_elements_of_another_size_are_placed_and_simulated() -> None:
    small, large = compiled("test-16"), compiled("test-16:element_bytes=32768,interleaved_base=507904")
    variables = large[1].program.variables
    assert large[0].chip.tile_memory.interleaved_bytes == 0x10000
    assert [v.address_bytes for v in variables] != [v.address_bytes for v in small[1].program.variables]
    expected = run(small)
    for name, output in run(large).outputs.items():
        np.testing.assert_array_equal(output, expected.outputs[name])


def test_code_for_one_memory_is_not_run_on_another() -> None:
    executable, made = compiled("test-16:memory_base=327680,interleaved_base=540672")
    with pytest.raises(VerifyError, match=r"begins at 0x50000 .* of its chip begins at 0x4c000"):
        run((replace(executable, chip=load_chip("test-16")), made))


TWO_LOADS = """.worker
ENTRY: setzi $m2, {first}
setzi $m3, {second}
tapack $m4:5, $m2, $m3, $mzero
ld2x64pace $a0:1, $a2:3, $m4:5+=, $mzero, 0
exitz $mzero
"""


@pytest.mark.parametrize(("element_bytes", "second", "is_conflict"), [
    (0x1000, 0x11000, False), (0x2000, 0x11000, True), (0x2000, 0x12000, False), (0x2000, 0x20000, False),
])  # fmt: skip
def test_the_simulator_takes_its_banks_from_the_map(
    element_bytes: int, second: int, *, is_conflict: bool
) -> None:
    memory = TileMemory(base=0x10000, interleaved_base=0x20000, end=0x30000, element_bytes=element_bytes)
    image = assemble(TWO_LOADS.format(first=0x10800, second=second), memory=memory)
    assert image.base_address == memory.base
    machine = Machine(1, image, memory)
    if not is_conflict:
        machine.run_vertex(0, image.symbols["ENTRY"], memory.base)
        return
    with pytest.raises(SimTrap, match="in one memory bank"):
        machine.run_vertex(0, image.symbols["ENTRY"], memory.base)


def test_the_assembler_knows_the_map_by_name() -> None:
    memory = TileMemory(base=0x10000, interleaved_base=0x20000, end=0x30000, element_bytes=0x1000)
    text = '#include "poplar/TileConstants.hpp"\n.long TMEM_REGION0_BASE_ADDR, TMEM_REGION1_SIZE, TMEM_ELEMSIZE\n'
    assert assemble(text, memory=memory).words[:, 2].tolist() == [0x10000, 0x10000, 0x1000]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("n_workers=4", r"no code for chip 'test-16:n_workers=4': n_workers: found 4, expected 6"),
        ("vector_width_f16=8", r"vector_width_f16: found 8, expected 4"),
        ("element_bytes=4096", r"element_bytes: found 156 memory elements, expected at most 64"),
        ("sram_bytes=1048576", r"memory_base \+ sram_bytes: found 0x14c000, expected at most 0x100000"),
    ],
)
def test_a_chip_that_codelets_cannot_run_on_is_planned_but_not_lowered(changes: str, message: str) -> None:
    executable = compile(MLP, f"test-16:{changes}")
    assert executable.plan.operators
    with pytest.raises(InputError, match=message) as caught:
        lowered(executable)
    assert "--no-program" in str(caught.value)


def test_a_matrix_unit_that_the_instruction_set_has_not_is_named() -> None:
    chip = load_chip("test-16")
    units = (chip.matrix_units[0].model_copy(update={"row_cycles": 2}), *chip.matrix_units[1:])
    with pytest.raises(
        InputError, match=r"found f16 -> f16 with 16 x 16 blocks in 2 .*expected 16 x 16 blocks in 4"
    ):
        compile(MLP, chip.model_copy(update={"matrix_units": units}), program=True)
