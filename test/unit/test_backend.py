"""Room for programs: data moves up or a model is planned again, and the user is told where it does not fit then."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from t10.backend import Lowered, compile_with_room
from t10.chip import ChipSpec, load_chip
from t10.driver import Executable, compile
from t10.errors import InfeasiblePlanError
from t10.passes.pipeline import replaced_module
from t10.plan.verify import verify_module
from t10.random_inputs import random_inputs

MLP = Path(__file__).parents[2] / "examples" / "models" / "mlp.onnx"
TIGHT = load_chip("test-4:reserved_bytes=1024")


@cache
def planned() -> Executable:
    """Return the model compiled for the chip."""
    return compile(MLP, TIGHT)


class Planned:
    """Compiles the model once; as often as asked it has that plan, `peak_bytes` high, on a chip of its own."""

    def __init__(self, needs: dict[int, int], largest_bytes: int, peak_bytes: int) -> None:
        """Programs need `needs` bytes by what is reserved; from `largest_bytes` on no plan is found."""
        self.needs, self.largest_bytes, self.peak_bytes = needs, largest_bytes, peak_bytes
        self.executable = planned()
        self.asked: list[int] = []

    def compile_for(self, chip: ChipSpec) -> Executable:
        self.asked.append(chip.reserved_bytes)
        if chip.reserved_bytes >= self.largest_bytes:
            raise InfeasiblePlanError("needs too much", operator="fc1")
        plan = replace(self.executable.plan, peak_bytes=self.peak_bytes)
        module = replaced_module(self.executable.module, chip)
        return replace(self.executable, chip=chip, plan=plan, module=module)

    def lowered(self, executable: Executable) -> Lowered:
        made = self.real(executable)
        memory = made.program.memory
        needed = self.needs[executable.chip.reserved_bytes]
        return replace(made, program=replace(made.program, memory=replace(memory, free=memory.base + needed)))

    def room(self, monkeypatch: pytest.MonkeyPatch) -> tuple[Executable, Lowered]:
        from t10 import backend

        self.real = backend.lowered
        monkeypatch.setattr(backend, "lowered", self.lowered)
        return compile_with_room(self.compile_for, TIGHT)


def test_data_moves_up_to_make_room_for_the_program() -> None:
    asked: list[ChipSpec] = []

    def compile_for(chip: ChipSpec) -> Executable:
        asked.append(chip)
        return compile(MLP, chip)

    executable, made = compile_with_room(compile_for, TIGHT)
    assert asked == [TIGHT]
    assert executable.chip.reserved_bytes > TIGHT.reserved_bytes
    assert made.program.memory.program_bytes <= executable.chip.reserved_bytes
    assert min(b.address_bytes for b in executable.plan.buffers) >= executable.chip.reserved_bytes
    assert not verify_module(executable.plan, executable.chip)
    inputs = random_inputs(executable.plan.graph, seed=0)
    before = planned().run(inputs)
    for name, value in executable.run(inputs).items():
        np.testing.assert_array_equal(value, before[name])


def test_a_full_memory_is_planned_again_with_what_the_program_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Planned({1024: 5000, 5120: 5100}, largest_bytes=1 << 20, peak_bytes=TIGHT.sram_bytes)
    executable, _ = full.room(monkeypatch)
    assert full.asked == [1024, 5120]
    assert executable.chip.reserved_bytes == 5120


def test_between_too_little_and_too_much_another_reserve_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1,024 reserved is too little for 9,000; 9,216 leaves no room for the data; the plan in the middle needs less.
    full = Planned({1024: 9000, 5120: 4000}, largest_bytes=9000, peak_bytes=TIGHT.sram_bytes)
    executable, _ = full.room(monkeypatch)
    assert full.asked == [1024, 9216, 5120]
    assert executable.chip.reserved_bytes == 5120


def test_a_plan_that_needs_more_again_gets_as_much_more(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Planned({1024: 5000, 5120: 7000, 9216: 9000}, largest_bytes=1 << 20, peak_bytes=TIGHT.sram_bytes)
    full.room(monkeypatch)
    # 7,000 + (7,000 - 5,120) = 8,880
    assert full.asked == [1024, 5120, 9216]


def test_a_program_that_fills_the_memory_is_told_with_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = dict.fromkeys(range(1024, TIGHT.sram_bytes, 1024), TIGHT.sram_bytes)
    full = Planned(needs, largest_bytes=1 << 20, peak_bytes=TIGHT.sram_bytes)
    with pytest.raises(
        InfeasiblePlanError, match=rf"needs {TIGHT.sram_bytes:,} bytes of every core"
    ) as caught:
        full.room(monkeypatch)
    assert "--no-program" in str(caught.value.hint)


def test_where_the_model_does_not_fit_beside_its_program_the_error_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = Planned({1024: 9000}, largest_bytes=2048, peak_bytes=TIGHT.sram_bytes)
    with pytest.raises(
        InfeasiblePlanError, match=r"2,048 bytes per core kept for its program.*needs 9,000.*--no-program"
    ) as caught:
        full.room(monkeypatch)
    assert caught.value.operator == "fc1"
    assert len(full.asked) <= 1 + 6
