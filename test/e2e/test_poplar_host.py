"""Bundled models as Poplar programs, built with g++ and run: C++ bodies and assembly, against the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.draw import drawn

from t10.arrays import read_arrays
from t10.backend import lowered, write_program
from t10.driver import compile
from t10.reference import compare, default_tolerance, run_onnx_runtime, split_reference
from t10.sim.poplar_host import VertexCode, run_program

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
QUICK = ("mlp", "gather", "softmax", "bert_fp16")
ARCHITECTURES = sorted({path.stem for path in MODELS.glob("*_fp[13]*.onnx")} - set(QUICK))
N_DRAWN = 5
"""How many are run on 64 cores; on 16 test_device_models runs every architecture."""
VERTICES: tuple[VertexCode, ...] = ("cpp", "assembly")


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for object files: what two programs share is compiled once."""
    return tmp_path_factory.mktemp("objects")


def check(name: str, chip: str, folder: Path, objects: Path) -> None:
    path = MODELS / f"{name}.onnx"
    executable = compile(path, chip, program=True)
    inputs, references = split_reference(read_arrays(path.with_suffix(".npz")))
    due = references or run_onnx_runtime(path, inputs)
    write_program(executable, lowered(executable), folder)
    for vertices in VERTICES:
        result = run_program(folder, inputs, vertices=vertices, build_folder=objects)
        found = compare(result.outputs, due, default_tolerance(executable.plan.graph))
        assert found
        assert [each for each in found if not each.is_within] == [], vertices
        assert result.cycles > 0


@pytest.mark.parametrize("name", QUICK)
def test_emitted_programs_of_models_compute_them(name: str, tmp_path: Path, objects: Path) -> None:
    check(name, "test-16", tmp_path, objects)


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn(ARCHITECTURES, N_DRAWN))
def test_emitted_programs_of_all_architectures_compute_them(name: str, tmp_path: Path, objects: Path) -> None:
    check(name, "test-64", tmp_path, objects)
