"""Programs and data in one memory: planned beside each other, at the same addresses in plan, module and program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.device_ir import plain
from support.draw import drawn
from support.random_cases import planned_case, random_case

from t10.backend import Lowered, lowered
from t10.chip import load_chip
from t10.core.device import DeviceProgram
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel
from t10.driver import Executable, compile
from t10.emit.link import buffer_of, linked
from t10.errors import InfeasiblePlanError
from t10.passes.program_room import ProgramRoom
from t10.plan.memory.room import DataRoom
from t10.plan.verify import verify_module
from t10.random_inputs import random_inputs
from t10.sim.plan_level import simulate

MODELS = Path(__file__).parents[2] / "examples" / "models"
TIGHT = load_chip("test-4:reserved_bytes=768")


def check_one_memory(plan: ModulePlan, program: DeviceProgram) -> None:
    """The plan keeps what the program takes, and both have every buffer at the same address."""
    memory = program.memory
    assert memory.program_bytes <= plan.reserved_bytes == memory.data - memory.base
    addresses = {buffer.name: buffer.address_bytes for buffer in plan.buffers}
    found = {v.name: v.address_bytes - memory.base for v in program.variables if v.role != "scratch"}
    assert found
    assert found == {name: addresses[buffer_of(name)] for name in found}


def equal(one: Lowered, other: Lowered) -> bool:
    return plain(one.program) == plain(other.program) and np.array_equal(one.image.words, other.image.words)


def test_data_moves_up_to_make_room_for_the_program() -> None:
    alone, beside = compile(MODELS / "mlp.onnx", TIGHT), compile(MODELS / "mlp.onnx", TIGHT, program=True)
    assert alone.plan.reserved_bytes == TIGHT.reserved_bytes < beside.plan.reserved_bytes
    check_one_memory(beside.plan, lowered(beside).program)
    assert not verify_module(beside.plan, TIGHT)
    with pytest.raises(InfeasiblePlanError, match="the chip reserves 768"):
        lowered(alone)
    inputs = random_inputs(beside.plan.graph, seed=0)
    before = alone.run(inputs)
    for name, value in beside.run(inputs).items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.slow
@pytest.mark.parametrize("is_measured", [False, True])
@pytest.mark.parametrize("name", ["mlp", "conv", "bert_fp16"])
def test_a_saved_model_is_lowered_to_the_same_program(
    name: str, tmp_path: Path, *, is_measured: bool
) -> None:
    executable = compile(MODELS / f"{name}.onnx", "test-16:reserved_bytes=1024", program=True)
    if is_measured:
        executable = executable.with_measured_steps()
        assert executable.measured
    made = lowered(executable)
    check_one_memory(executable.plan, made.program)
    executable.save(tmp_path / "out")
    again = Executable.load(tmp_path / "out")
    assert again.plan.buffers == executable.plan.buffers
    assert again.plan.reserved_bytes == executable.plan.reserved_bytes
    assert equal(lowered(again), made)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", drawn(range(12), 6))
def test_random_plans_and_their_programs_share_one_memory(seed: int) -> None:
    for case in (random_case(seed), planned_case(seed)):
        cost = IpuCostModel(case.chip)
        room = ProgramRoom(case.chip, cost)
        plan = room(DataRoom(case.chip)(case.plan))
        check_one_memory(plan, linked(room.parts(plan), plan, case.chip))
        assert not verify_module(plan, case.chip)
        arrays = case.arrays
        assert simulate(plan, case.chip, cost, arrays, arrays).peak_bytes == plan.peak_bytes


@pytest.mark.slow
def test_a_program_that_leaves_no_room_is_refused() -> None:
    chip = load_chip("test-4:reserved_bytes=1024,sram_bytes=12288")
    assert compile(MODELS / "mlp.onnx", chip).plan.end_bytes <= chip.data_end_bytes
    with pytest.raises(InfeasiblePlanError, match=r"/fc1/MatMul.*bytes per core"):
        compile(MODELS / "mlp.onnx", chip, program=True)
