"""Room for programs: a model is planned again with what its program needs, and told so where it does not fit then."""

from __future__ import annotations

from pathlib import Path

import pytest

from t10.backend import compile_with_room
from t10.chip import ChipSpec, load_chip
from t10.driver import Executable, compile
from t10.errors import InfeasiblePlanError

MLP = Path(__file__).parents[2] / "examples" / "models" / "mlp.onnx"
TIGHT = load_chip("test-4:reserved_bytes=1024")


def test_a_program_gets_the_room_it_needs() -> None:
    executable, made = compile_with_room(lambda chip: compile(MLP, chip), TIGHT)
    assert executable.chip.reserved_bytes > TIGHT.reserved_bytes
    assert made.program.memory.program_bytes <= executable.chip.reserved_bytes


def test_where_the_model_does_not_fit_beside_its_program_the_error_says_so() -> None:
    def compile_for(chip: ChipSpec) -> Executable:
        if chip.reserved_bytes > TIGHT.reserved_bytes:
            raise InfeasiblePlanError("needs too much", operator="fc1")
        return compile(MLP, chip)

    with pytest.raises(InfeasiblePlanError, match=r"kept for its program.*--no-program") as caught:
        compile_with_room(compile_for, TIGHT)
    assert caught.value.operator == "fc1"
