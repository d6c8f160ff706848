"""program.json and tables.bin: what is read is what was lowered, and runs the same; what does not exist is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray
from support.draw import drawn
from support.random_models import random_model

import t10
from t10.backend import Lowered, lowered, run_on_host, run_on_tiles, shipped, write_program
from t10.chip import load_chip
from t10.core.device import DeviceProgram, HostTensor, Pattern
from t10.emit.poplar.description import program_schema
from t10.errors import InputError

MODELS = Path(__file__).parents[2] / "examples" / "models"
CHIP = "test-16"


@cache
def compiled(name: str) -> tuple[t10.Executable, Lowered]:
    executable = t10.compile(MODELS / f"{name}.onnx", CHIP)
    return executable, lowered(executable)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    executable, made = compiled("mlp")
    write_program(executable, made, tmp_path / "program")
    return tmp_path


@pytest.mark.slow
def test_what_is_read_is_what_was_lowered(tmp_path: Path) -> None:
    for name in ("mlp", "conv", "gather"):
        executable, made = compiled(name)
        write_program(executable, made, tmp_path / name / "program")
        found = shipped(tmp_path / name / "program", executable.chip)
        assert plain(found.program) == plain(made.program)
        assert found.image.symbols == made.image.symbols
        assert np.array_equal(found.image.words, made.image.words)


def plain(program: DeviceProgram) -> dict[str, Any]:
    """Return what executing a program depends on, to compare: no comments, no text of codelets."""
    sets = [replace(each, comment="") for each in program.compute_sets]
    codelets = [(c.name, c.kind, c.fields, c.stack_bytes) for c in program.codelets]
    return {
        "head": (program.name, program.chip, program.n_tiles, program.memory, program.operators),
        "variables": [replace(each, comment="") for each in program.variables],
        "codelets": codelets,
        "sets": sets,
        "patterns": [pattern_of(each) for each in program.patterns],
        "copies": [replace(each, comment="") for each in program.copies],
        "hosts": [host_of(each) for each in (*program.weights, *program.inputs)],
        "outputs": [host_of(each, is_output=True) for each in program.outputs],
    }


def pattern_of(pattern: Pattern) -> tuple[Any, ...]:
    arrays = (pattern.runs, pattern.fills, pattern.fill_values)
    return (pattern.key, *(each.tolist() for each in arrays), pattern.constants)


def host_of(tensor: HostTensor, *, is_output: bool = False) -> tuple[Any, ...]:
    pieces = [
        (each.variable, (first_slots(each.elements) if is_output else each.elements).tolist(), each.fill)
        for each in tensor.pieces
    ]
    return (tensor.name, tensor.dtype, tensor.shape, pieces)


def first_slots(elements: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the elements with -1 where an earlier slot holds the same: an output is read once."""
    flat = elements.reshape(-1)
    found = np.full_like(flat, -1)
    values, first = np.unique(flat, return_index=True)
    found[first] = values
    return found.reshape(elements.shape)


def test_the_file_follows_the_schema(folder: Path) -> None:
    jsonschema.validate(json.loads((folder / "program" / "program.json").read_text()), program_schema())


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"repeat": 0, "body": []}, r"steps\[0\]\.repeat\.repeat: .*expected at least 1, found 0$"),
        ({"execute": 3}, r"steps\[0\]\.execute\.execute: .*found 3$"),
        ({"exchange": "x", "more": 1}, r"steps\[0\]\.exchange\.more: unknown field"),
    ],
)
def test_a_wrong_step_is_one_error_about_its_kind(step: dict[str, Any], message: str, folder: Path) -> None:
    path = folder / "program" / "program.json"
    document = json.loads(path.read_text())
    document["operators"][0]["steps"][0] = step
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=message):
        shipped(folder / "program", load_chip(CHIP))


@pytest.mark.slow
@pytest.mark.parametrize("seed", drawn([0, 1, 3, 4], 2))
def test_description_and_program_agree_on_random_models(seed: int, tmp_path: Path) -> None:
    model, inputs = random_model(seed)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    executable = t10.compile(path, CHIP)
    write_program(executable, lowered(executable), tmp_path / "program")
    here = run_on_tiles(executable, inputs)
    read = run_on_tiles(executable, inputs, tmp_path / "program")
    on_host = run_on_host(executable, tmp_path / "program", inputs)
    assert (read.cycles, read.timeline) == (here.cycles, here.timeline)
    for name, expected in here.outputs.items():
        np.testing.assert_array_equal(read.outputs[name], expected)
        np.testing.assert_allclose(on_host[name], expected, rtol=1e-4, atol=1e-4)
