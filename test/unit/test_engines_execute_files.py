"""Engines execute the files of a compiled folder: an edit changes what its engine computes, or is an error there."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from support.folders import take_as_it_is
from support.models import save

from t10.cli import main
from t10.errors import InputError, SimTrap, VerifyError

CHIP = "test-16"
ENGINES = ("plan", "iss", "poplar-host")
FILES = {
    "iss": ("program.json", "codelets.S", "tables.bin", "weights.bin"),
    "poplar-host": ("program.cpp", "codelets.cpp", "tables.bin", "weights.bin"),
}
BAD_INPUT, BAD_PLAN, TRAP = InputError.exit_code, VerifyError.exit_code, SimTrap.exit_code
N_EDITS = 40


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product that rotates along k, and a softmax of it, with its program."""
    where = tmp_path_factory.mktemp("compiled")
    w = np.random.default_rng(0).standard_normal((32, 48)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="m"),
        helper.make_node("Softmax", ["m"], ["y"]),
    ]
    shapes = {"x": (TensorProto.FLOAT, [16, 32])}, {"y": (TensorProto.FLOAT, [16, 48])}
    model = save(where / "model.onnx", nodes, *shapes, w=w)
    assert (
        main(["compile", str(model), "-o", str(where / "out"), "--chip", CHIP, "--no-cache", "--quiet"]) == 0
    )
    return where / "out"


@pytest.fixture
def folder(compiled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(compiled, tmp_path / "out")


class Runs:
    """Runs engines and remembers what an untouched folder gives; `said` is what the last run wrote as its error."""

    def __init__(self, compiled: Path, scratch: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.compiled, self.scratch, self.capsys = compiled, scratch, capsys
        self.said = ""

    def __call__(self, folder: Path, engine: str) -> tuple[int, NDArray[np.float32]]:
        """Return the exit code, and the result where that is 0."""
        outputs = self.scratch / "y.npz"
        outputs.unlink(missing_ok=True)
        code = main(["run", str(folder), "--engine", engine, "--outputs", str(outputs), "--quiet"])
        self.said = self.capsys.readouterr().err
        return code, np.load(outputs)["y"] if code == 0 else np.zeros(0, np.float32)

    def edited(self, folder: Path, name: str, edit: Callable[[str], str], engine: str) -> str:
        """Return what an engine says of an edited file: its error, or whether its numbers are others."""
        path = folder / name
        before = path.read_text()
        after = edit(before)
        assert after != before
        path.write_text(after)
        take_as_it_is(folder)
        code, found = self(folder, engine)
        path.write_text(before)
        if code:
            assert "internal error" not in self.said
            return f"{code}: {self.said}"
        _, expected = self(self.compiled, engine)
        return "same" if np.array_equal(found, expected) else "other numbers"


@pytest.fixture
def runs(compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(compiled, tmp_path, capsys)


def replaced(old: str, new: str) -> Callable[[str], str]:
    """Return an edit of the first place that matches."""
    return lambda text: re.sub(old, new, text, count=1)


def test_engines_agree_on_what_was_written(compiled: Path, runs: Runs) -> None:
    results = [runs(compiled, engine) for engine in ENGINES]
    assert [code for code, _ in results] == [0, 0, 0]
    for _, found in results[1:]:
        np.testing.assert_allclose(found, results[0][1], rtol=1e-4, atol=1e-6)


def test_an_instruction_of_codelets_runs_as_it_is_written(folder: Path, runs: Runs) -> None:
    said = runs.edited(folder, "program/codelets.S", replaced(r"f32exp (\$\w+), ", r"f32sigm \1, "), "iss")
    assert said == "other numbers"
    said = runs.edited(folder, "program/codelets.S", replaced(r"f32exp ", "f32expp "), "iss")
    line = (folder / "program" / "codelets.S").read_text().split("f32exp ")[0].count("\n") + 1
    assert said.startswith(f"{BAD_INPUT}: ")
    assert f"program/codelets.S:{line}:" in said


def test_garbage_for_codelets_is_an_error(folder: Path, runs: Runs) -> None:
    said = runs.edited(folder, "program/codelets.S", lambda _: "garbage\n", "iss")
    assert said.startswith(f"{BAD_INPUT}: ")
    assert "program/codelets.S:1:1" in said
    assert "does not define __runCodelet_t10__" in runs.edited(
        folder, "program/codelets.S", lambda _: "", "iss"
    )


def test_code_that_does_not_fit_its_place_is_an_error(folder: Path, runs: Runs) -> None:
    said = runs.edited(folder, "program/codelets.S", lambda text: text + "  nop\n" * 4096, "iss")
    assert re.search(r"codelets.S takes [\d,]+ bytes, program.json has [\d,]+ for code", said)


def test_the_description_is_what_is_followed(folder: Path, runs: Runs) -> None:
    name = "program/program.json"
    assert runs.edited(folder, name, replaced(r'(?s)("outputs".*?"fill": )"0"', r'\1"x"'), "iss").startswith(
        "2: "
    )
    elsewhere = replaced(r'"role": "weight"(.*)"address_bytes": \d+', r'"role": "weight"\1"address_bytes": 7')
    said = runs.edited(folder, name, elsewhere, "iss")
    assert "program.json: variable 'idle:w' lies at [0x7, " in said
    said = runs.edited(folder, name, replaced(r'\{"execute": "sub_task:m[^}]*\}(, )?', ""), "iss")
    assert said == "other numbers" or said.startswith(f"{TRAP}: ")


def test_the_program_is_built_as_it_lies_there(folder: Path, runs: Runs) -> None:
    name = "program/program.cpp"
    said = runs.edited(folder, name, replaced(r"steps.add\(", "steps.ad("), "poplar-host")
    line = (folder / name).read_text().split("steps.add(")[0].count("\n") + 1
    assert said.startswith(f"{BAD_INPUT}: ")
    assert f"program/program.cpp:{line}:" in said
    executes = r"  steps.add\(Execute\(sub_task\)\);\n"
    text = (folder / name).read_text()
    last = list(re.finditer(executes, text))[-1]
    said = runs.edited(folder, name, lambda text: text[: last.start()] + text[last.end() :], "poplar-host")
    assert said == "other numbers" or said.startswith(f"{TRAP}: ")
    said = runs.edited(
        folder, "program/codelets.cpp", replaced(r"std::exp\(|expf?\(", "std::cos("), "poplar-host"
    )
    assert said == "other numbers"


@pytest.mark.slow
def test_files_of_nobody_are_not_built(folder: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files beside program.cpp that are called like headers of the system; all objects are made anew."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
    for name in ("string", "vector", "cstdint", "poplar/Graph.hpp"):
        (folder / "program" / name).parent.mkdir(exist_ok=True)
        (folder / "program" / name).write_text("#error of nobody\n")
    code, found = runs(folder, "poplar-host")
    assert runs.said == ""
    assert code == 0
    np.testing.assert_array_equal(found, runs(runs.compiled, "poplar-host")[1])


def test_the_plan_engine_executes_the_module(folder: Path, runs: Runs) -> None:
    said = runs.edited(folder, "module.mlir", replaced("math.exp", "math.sin"), "plan")
    assert said == "other numbers" or said.startswith((f"{BAD_INPUT}: ", f"{BAD_PLAN}: "))
    said = runs.edited(folder, "module.mlir", lambda _: "garbage", "plan")
    assert said.startswith(f"{BAD_PLAN}: ")
    assert "module.mlir is no module at the compute-shift level: line 1:1" in said


@pytest.mark.parametrize("engine", ["iss", "poplar-host"])
def test_a_plan_alone_has_no_program_to_run(engine: str, compiled: Path, tmp_path: Path, runs: Runs) -> None:
    model = compiled.parent / "model.onnx"
    alone = tmp_path / "alone"
    arguments = [
        "compile",
        str(model),
        "-o",
        str(alone),
        "--chip",
        CHIP,
        "--no-cache",
        "--no-program",
        "--quiet",
    ]
    assert main(arguments) == 0
    code, _ = runs(alone, engine)
    assert code == BAD_INPUT
    assert "holds no program" in runs.said
    assert "without --no-program" in runs.said
    assert runs(alone, "plan")[0] == 0


@pytest.mark.parametrize("engine", ["iss", "poplar-host"])
def test_damaged_files_are_one_clear_error(engine: str, folder: Path, runs: Runs) -> None:
    """A slice of random damage: other bytes, less of them, garbage. Never a traceback, never a crash."""
    rng = random.Random(engine)
    outcomes: set[int] = set()
    for _ in range(N_EDITS if engine == "iss" else N_EDITS // 5):
        name = rng.choice(FILES[engine])
        path = folder / "program" / name
        before = path.read_bytes()
        path.write_bytes(damaged(before, rng))
        take_as_it_is(folder)
        code, _ = runs(folder, engine)
        path.write_bytes(before)
        assert code in (0, BAD_INPUT, TRAP), (name, runs.said)
        assert "signal" not in runs.said
        outcomes.add(code)
    assert BAD_INPUT in outcomes


def damaged(data: bytes, rng: random.Random) -> bytes:
    kind = rng.randrange(4)
    if kind == 0:
        return data[: rng.randrange(len(data))]
    if kind == 1:
        return rng.randbytes(rng.randrange(2000))
    at = rng.randrange(len(data) - 4)
    number = rng.choice([0, 1, -1, 7, 5000, 2**31 - 1, -(2**31)])
    put = rng.randbytes(1) if kind == 2 else number.to_bytes(4, "little", signed=True)
    return data[:at] + put + data[at + len(put) :]


@pytest.mark.parametrize("engine", ["iss", "poplar-host"])
@pytest.mark.parametrize("count", [0, -5])
def test_rows_of_tables_that_name_nothing_are_found(
    runs: Runs, folder: Path, engine: str, count: int
) -> None:
    path = folder / "program/tables.bin"
    kept = path.read_bytes()
    path.write_bytes(kept[:-4] + count.to_bytes(4, "little", signed=True))
    take_as_it_is(folder)
    assert runs(folder, engine)[0] == BAD_INPUT
    assert "slots" in runs.said


@pytest.mark.parametrize("engine", ["iss", "poplar-host"])
def test_weights_lie_as_their_index_says(engine: str, folder: Path, runs: Runs) -> None:
    """program.cpp has their places of its own, which an index that says others would contradict."""
    index = "program/weights.json"
    edits: list[tuple[Callable[[str], str], str]] = [
        (replaced(r'"offset": 0', '"offset": 64'), "weight w begins at byte 64 (expected 0)"),
        (replaced(r'"dtype": "f32"', '"dtype": "f31"'), "weight w is of the unknown type 'f31'"),
        (lambda text: text.replace("]\n", "," + text[1:]), "weight w is listed twice"),
        (lambda _: "[", "weights.json"),
    ]
    for edit, reason in edits:
        said = runs.edited(folder, index, edit, engine)
        assert said.startswith(f"{BAD_INPUT}: ")
        assert reason in said
    weights = folder / "program/weights.bin"
    for change, reason in (
        (b"12345678", "has 6,152 bytes (expected 6,144"),
        (b"", "ends before weight w does"),
    ):
        weights.write_bytes((weights.read_bytes() + change) if change else weights.read_bytes()[:6143])
        take_as_it_is(folder)
        assert runs(folder, engine)[0] == BAD_INPUT
        assert reason in runs.said
