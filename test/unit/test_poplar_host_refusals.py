"""The host's Poplar refuses what the SDK may refuse: one broken rule at a time, in a program that keeps the others."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.device_programs import ring

from t10.emit.poplar.write import write_program
from t10.errors import SimTrap
from t10.sim.poplar_host import run_program
from t10.sim.poplar_host.build import build

SOURCES = Path(__file__).resolve().parents[1] / "support" / "poplar_refusals"

REFUSALS = {
    "no codelets": r"no codelets are added before vertex t10::Add",
    "missing codelets": r"cannot read the codelets absent\.cpp",
    "unknown codelet": r"no codelet is named t10::Subtract",
    "unknown field": r"t10::Add has no field place",
    "missing field": r"set: t10::Add\.y on tile 0 is given 0 times",
    "field twice": r"set: t10::Add\.x on tile 0 is given 2 times",
    "missing word": r"set: t10::Add\.n on tile 0 is given 0 times",
    "word of another type": r"t10::Add\.n is given another type than unsigned int",
    "value of an edge": r"t10::Add\.y is an edge",
    "vertex without tile": r"t10::Add on tile -1 has no tile",
    "no estimate": r"t10::Add on tile 0 has no estimate of its cycles",
    "tile of no target": r"tile 2 of a target with 2 tiles",
    "two tiles": r"an element of x is mapped to two tiles",
    "unmapped edge": r"element 0 of x lies on no tile",
    "unmapped copy": r"element 0 of z lies on no tile",
    "unmapped constant": r"element 0 of .* lies on no tile",
    "input over output": r"t10::Add\.y on tile 0 and set: t10::Add\.x on tile 0 overlap, and the vertex writes",
    "scratch over scratch": r"t10::Twice\.b on tile 0 and set: t10::Twice\.a on tile 0 overlap",
    "unaligned edge": r"t10::Add\.y on tile 0 is not aligned to 8 bytes",
    "edge of another type": r"t10::Add\.y is connected to int of rank 1 \(expected a row of float\)",
    "edge of rank two": r"t10::Add\.x is connected to float of rank 2",
    "edge in two pieces": r"t10::Add\.x on tile 0 is connected to 2 pieces",
    "edge on another tile": r"t10::Add\.x on tile 0 is connected to memory of tile 1",
    "edge writes a constant": r"t10::Add\.y on tile 0 writes a constant",
    "two writers": r"t10::Add\.y on tile 1 and .*t10::Add\.y on tile 1 touch the same words",
    "reader and writer": r"t10::Add\.[xy] on tile 1 and .*t10::Add\.[xy] on tile 1 touch the same words",
    "apart but one": r"t10::Apart\.a on tile 0 and b overlap, but their constraint is different memory elements",
    "exceptions": r"floating-point exceptions \(inv, div0, oflo\) are not modelled",
    "stochastic rounding": r"stochastic rounding \(esr\) is not modelled",
    "no floating-point mode": r"compute set set runs before the floating-point mode is set",
    "stream of another size": r"stream in does not fit its tensor",
    "stream twice": r"two streams are named in",
    "stream into a constant": r"stream two writes a constant",
    "stream writes twice": r"copy in writes an element twice",
    "stream backward": r"stream in does not fit its tensor",
    "unknown stream": r"no stream is named inn",
    "unconnected stream": r"stream out is not connected",
    "small buffer": r"stream out has too small a buffer",
    "copy of another type": r"copy  of 16 float to 16 int",
    "copy of another size": r"copy  of 8 float to 4 float",
    "copy over itself": r"copy  reads an element that it writes",
    "copy writes twice": r"copy  writes an element twice",
    "copy to a constant": r"copy  writes a constant",
    "copy to a broadcast": r"copy  writes a repeated element",
    "undefined constant": r"WriteUndef of a constant",
    "not loaded": r"an engine runs before it is loaded",
    "no such program": r"there is no program 1",
}


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program that breaks the rule its argument names."""
    folder = tmp_path_factory.mktemp("refusals")
    shutil.copy(SOURCES / "codelets.cpp", folder)
    text = (SOURCES / "program.cpp").read_text(encoding="utf-8")
    (folder / "program.cpp").write_text(f'#define FOLDER "{folder}"\n{text}', encoding="utf-8")
    (folder / "t10_runtime.cpp").write_text("", encoding="utf-8")
    (folder / "tables.bin").write_bytes(b"")
    return build(folder, folder / "objects")


def said(executable: Path, wrong: str) -> tuple[int, str]:
    done = subprocess.run([str(executable), wrong], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_program_that_keeps_all_rules_is_accepted(executable: Path) -> None:
    assert said(executable, "nothing") == (0, "accepted\n")


@pytest.mark.parametrize("wrong", REFUSALS)
def test_a_broken_rule_is_refused_and_named(wrong: str, executable: Path) -> None:
    code, message = said(executable, wrong)
    assert code == 1
    assert re.search(REFUSALS[wrong], message), message


def test_every_rule_that_the_program_can_break_is_listed() -> None:
    text = (SOURCES / "program.cpp").read_text(encoding="utf-8")
    assert set(re.findall(r'wrong [!=]= "([^"]+)"', text)) == set(REFUSALS)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('edge("x", m.input_x)', 'edge("x", m.accumulator_mix, 8)', r"Test_multiply_add\.x .* overlap"),
        (
            '{edge("out", m.accumulator_mix), ',
            "{",
            r"fill:mix: t10::Test_fill\.out on tile 0 is given 0 times",
        ),
        ("/*esr*/ false", "/*esr*/ true", r"stochastic rounding \(esr\) is not modelled"),
        ('"input:x", FLOAT, 4, 10', '"input:x", FLOAT, 3, 10', r"index 3 of a tensor with 3 rows"),
    ],
)
def test_an_edited_program_is_refused(
    old: str, new: str, message: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    case = ring()
    write_program(case.program, tmp_path, case.weights)
    path = tmp_path / "program.cpp"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    objects = tmp_path_factory.getbasetemp() / "edited"
    with pytest.raises(SimTrap, match=message):
        run_program(tmp_path, case.inputs, build_folder=objects)
