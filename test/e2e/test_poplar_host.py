"""Bundled models as Poplar programs, built with g++ and run: C++ bodies and assembly, against the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiled import MODELS, SECOND, compiled
from support.draw import drawn

from t10.arrays import read_arrays
from t10.backend import lowered, write_program
from t10.reference import compare, default_tolerance, run_onnx_runtime, split_reference
from t10.sim.poplar_host import VertexCode, run_program

QUICK = ("mlp", "gather", "softmax", "bert_fp16")
N_DRAWN = 4
"""How many are run on 64 cores; on 16 test_device_models runs every architecture."""
VERTICES: tuple[VertexCode, ...] = ("cpp", "assembly")


def check(name: str, chip: str, folder: Path, objects: Path) -> None:
    path = MODELS / f"{name}.onnx"
    executable = compiled(name, chip, program=True)
    inputs, references = split_reference(read_arrays(path.with_suffix(".npz")))
    due = references or run_onnx_runtime(path, inputs)
    write_program(executable, lowered(executable), folder)
    for vertices in VERTICES:
        result = run_program(folder, inputs, vertices=vertices, build_folder=objects)
        found = compare(result.outputs, due, default_tolerance(executable.plan.graph))
        assert found
        assert [each for each in found if not each.is_within] == [], vertices
        assert result.cycles > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_emitted_programs_of_models_compute_them(name: str, tmp_path: Path, objects: Path) -> None:
    check(name, "test-16", tmp_path, objects)


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn(SECOND, N_DRAWN))
def test_emitted_programs_of_all_architectures_compute_them(name: str, tmp_path: Path, objects: Path) -> None:
    check(name, "test-64", tmp_path, objects)
