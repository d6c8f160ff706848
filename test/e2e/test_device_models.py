"""Every bundled architecture down to the chip: planned, lowered, assembled and executed instruction by instruction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.compiled import FIRST, MODELS, SECOND, compiled
from support.device_ir import plain, through_ir
from support.draw import commit, drawn

from t10.arrays import read_arrays
from t10.backend import Lowered, lowered, write_program
from t10.codelets.image import ASSEMBLY_HEADER
from t10.driver import Executable
from t10.emit.link import check_fits
from t10.emit.poplar.program_text import program_text
from t10.emit.poplar.tables import Tables
from t10.isa.assembler import assemble
from t10.reference import compare, default_tolerance, run_onnx_runtime, split_reference
from t10.sim.device import DeviceResult, run_device
from t10.sim.poplar_host import run_program

Array = NDArray[Any]


def files_of(name: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return a bundled model's inputs and its outputs, as ONNX Runtime computes them."""
    path = MODELS / f"{name}.onnx"
    inputs, references = split_reference(read_arrays(path.with_suffix(".npz")))
    return dict(inputs), dict(references or run_onnx_runtime(path, inputs))


def check_outputs(executable: Executable, outputs: Any, references: dict[str, Array]) -> None:
    """Compare outputs within the tolerance that the model's types allow."""
    comparisons = compare(outputs, references, default_tolerance(executable.plan.graph))
    assert comparisons
    assert [each for each in comparisons if not each.is_within] == []


def check(executable: Executable, made: Lowered, name: str) -> DeviceResult:
    """Execute a model on the tiles' simulator, compare and return what it gives."""
    inputs, references = files_of(name)
    check_fits(made.program, executable.chip.tile_memory)
    result = run_device(made.program, executable.chip, made.image, executable.weights, inputs)
    check_outputs(executable, result.outputs, references)
    assert [each.name for each in result.operators] == [each.name for each in executable.plan.operators]
    # The device program is charged what the plan is: only its measured cycles differ.
    assert result.modelled_cycles == executable.report().total_cycles
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", SECOND)
def test_its_assembly_computes_what_onnx_runtime_does_on_64_tiles(name: str) -> None:
    executable = compiled(name, "test-64", program=True)
    check(executable, lowered(executable), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST)
def test_its_assembly_and_its_poplar_program_do_on_16_tiles(name: str, tmp_path: Path, objects: Path) -> None:
    """With C++ bodies within the tolerance, with the assembly bit for bit what the device simulator computes."""
    executable = compiled(name, "test-16", program=True)
    made = lowered(executable)
    executed = check(executable, made, name)
    inputs, references = files_of(name)
    write_program(executable, made, tmp_path / "program")
    by_cpp = run_program(tmp_path / "program", inputs, build_folder=objects)
    check_outputs(executable, by_cpp.outputs, references)
    by_code = run_program(tmp_path / "program", inputs, vertices="assembly", build_folder=objects)
    for output, due in executed.outputs.items():
        np.testing.assert_array_equal(by_code.outputs[output], due)


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn(FIRST, 3, f"{commit()} codelets"))
def test_every_codelet_assembles_alone(name: str) -> None:
    """No codelet leans on another's labels or symbols: a vertex can be taken out and run on a sampled tile."""
    made = lowered(compiled(name, "test-16", program=True))
    for codelet in made.program.codelets:
        image = assemble(ASSEMBLY_HEADER + codelet.assembly, source=codelet.name)
        assert codelet.entry in image.symbols


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn(FIRST, 3, f"{commit()} graphs"))
def test_its_graph_says_all_of_the_program(name: str) -> None:
    """Written as IR, printed, parsed and read again it is the same program, and the same C++ comes of it."""
    program = lowered(compiled(name, "test-16", program=True)).program
    again = through_ir(program)
    assert plain(again) == plain(program)
    assert program_text(again, Tables(), {}) == program_text(program, Tables(), {})
