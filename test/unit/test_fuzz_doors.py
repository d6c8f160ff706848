"""A slice of the fuzzer of every file but models, in child processes; all of it is `make fuzz`."""

from __future__ import annotations

from pathlib import Path

import fuzz_doors
import pytest
from fuzz_doors import Material, doors, prepared, run_batch
from fuzz_runner import Verdict

CASES = 124


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    return Material.build(tmp_path_factory.mktemp("material"))


def test_damaged_files_are_taken_or_refused_at_every_door(material: Material) -> None:
    found = run_batch(range(CASES), 20, material)
    assert [number for number, _ in found] == list(range(CASES))
    assert [f"case {number}: {verdict.text}" for number, verdict in found if verdict.kind == "defect"] == []
    assert {verdict.kind for _, verdict in found} >= {"taken", "refused"}


def test_the_slice_passes_every_door(material: Material, tmp_path: Path) -> None:
    names = [door.name for door in doors(material, tmp_path)]
    assert len(set(names)) == len(names)
    assert 4 * len(names) == CASES


def test_bytecode_is_judged_in_a_process_of_its_own(
    material: Material, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[list[int]] = []

    def judged(numbers: range, *_: object, **__: object) -> list[tuple[int, Verdict]]:
        groups.append(list(numbers))
        return [(number, Verdict("taken", "")) for number in numbers]

    monkeypatch.setattr(fuzz_doors, "judged", judged)
    files = [door.file for door in doors(material, tmp_path)]
    assert [number for number, _ in run_batch(range(7, 7 + len(files)), 0, material)] == list(
        range(7, 7 + len(files))
    )
    alone = [number for number in range(7, 7 + len(files)) if files[number % len(files)].endswith(".mlirbc")]
    assert alone
    assert all([number] in groups for number in alone)


def test_a_number_and_a_seed_give_the_same_bytes(material: Material, tmp_path: Path) -> None:
    for number in range(25):
        places = [tmp_path / f"{number}.{i}" for i in range(2)]
        for at in places:
            at.mkdir()
            prepared(number, 3, material, at, "")
        first, second = (
            {path.relative_to(at): path.read_bytes() for path in at.rglob("*") if path.is_file()}
            for at in places
        )
        assert first == second


def test_files_as_they_were_written_are_taken(material: Material, tmp_path: Path) -> None:
    """What is refused is refused for the damage: the same commands take what is whole."""
    whole = {
        "chip": "python/t10/chip/data/test-4.yaml",
        "plan": str(material.folder / "out" / "plan.json"),
        "opt-module": str(material.folder / "out" / "module.mlir"),
        "opt-placed": str(material.folder / "placed.mlir"),
        "opt-ipu": str(material.folder / "ipu.mlir"),
        "translate": str(material.folder / "ipu.mlir"),
        "translate-bytecode": str(material.folder / "ipu.mlirbc"),
        "asm": str(material.folder / "out" / "program" / "codelets.S"),
    }
    root = Path(__file__).resolve().parents[2]
    for door in doors(material, tmp_path):
        if door.name in whole:
            (tmp_path / door.file).write_bytes((root / whole[door.name]).read_bytes())
            assert [command() for command in door.commands] == [0] * len(door.commands), door.name
