"""Output folders: read only as they were written, replaced as a whole, and no code runs that nobody named."""

from __future__ import annotations

import errno
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support import models
from support.folders import take_as_it_is

import t10
from t10.artefact import MANIFEST_FILE, Folder, files_of, manifest_schema
from t10.cli import main
from t10.core.atomic import STAGING_PREFIX
from t10.driver import Executable
from t10.errors import InputError, VerifyError

READERS = (
    ("run",),
    ("run", "--engine", "iss"),
    ("run", "--engine", "poplar-host"),
    ("report",),
    ("report", "--no-plots"),
    ("explain",),
    ("pareto",),
)
"""Every command that is given a folder."""

MARK = "from pathlib import Path\n\nPath({mark!r}).touch()\n"
PRICES = "from t10.cost import IpuCostModel\n\n\ndef cost_model(chip):\n    return IpuCostModel(chip)\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.mlp(tmp_path_factory.mktemp("models") / "mlp.onnx")


@pytest.fixture(scope="module")
def compiled(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that a folder can hold."""
    folder = tmp_path_factory.mktemp("compiled") / "out"
    assert main(["compile", str(model), "-o", str(folder), "--chip", "test-4", "--quiet"]) == 0
    assert main(["report", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture
def folder(compiled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(compiled, tmp_path / "out")


@pytest.fixture(scope="module")
def executable(model: Path) -> Executable:
    return t10.compile(model, chip="test-4")


def contents(folder: Path) -> dict[str, bytes]:
    """Return what lies in a folder, whatever it is."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refusals(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Yield what each command that reads a folder says when it refuses it."""
    for command, *options in READERS:
        capsys.readouterr()
        assert main([command, str(folder), *options]) == InputError.exit_code, command
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        yield error


def test_the_manifest_lists_every_file(folder: Path) -> None:
    opened = Folder.open(folder)
    assert set(opened.manifest.files) == set(contents(folder)) - {MANIFEST_FILE}
    assert {"module.mlir", "plan.json", "report.html", "weights.npz", "program/codelets.S"} <= set(
        files_of(folder)
    )
    assert opened.manifest.about.source == "mlp.onnx"
    assert opened.names("program") == tuple(name for name in files_of(folder) if name.startswith("program/"))
    assert set(manifest_schema()["properties"]) == set(json.loads((folder / MANIFEST_FILE).read_text()))


def test_a_changed_byte_in_any_file_is_refused_by_every_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = random.Random(0)
    for name, data in contents(folder).items():
        if not data:
            continue
        place = drawn.randrange(len(data))
        changed = bytes([*data[:place], data[place] ^ (1 << drawn.randrange(8)), *data[place + 1 :]])
        (folder / name).write_bytes(changed)
        assert all(str(folder / name) in error for error in refusals(folder, capsys)), name
        (folder / name).write_bytes(data)
    assert main(["run", str(folder), "--quiet"]) == 0


def test_no_byte_of_the_manifest_can_be_changed(folder: Path) -> None:
    data, drawn = (folder / MANIFEST_FILE).read_bytes(), random.Random(1)
    for place in drawn.sample(range(len(data)), 200):
        changed = bytes([*data[:place], data[place] ^ (1 << drawn.randrange(8)), *data[place + 1 :]])
        (folder / MANIFEST_FILE).write_bytes(changed)
        with pytest.raises(InputError, match=MANIFEST_FILE):
            Folder.open(folder)


def test_a_foreign_or_missing_file_is_refused_by_every_command(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, foreign = models.mlp(tmp_path / "half.onnx", "float16"), tmp_path / "foreign"
    assert main(["compile", str(other), "-o", str(foreign), "--chip", "test-16", "--quiet"]) == 0
    for name in ("module.mlir", "plan.json", "report.json", "weights.npz", "program/codelets.S"):
        kept = (folder / name).read_bytes()
        shutil.copyfile(foreign / name, folder / name)
        assert all(str(folder / name) in error for error in refusals(folder, capsys)), name
        (folder / name).unlink()
        assert all(f"{name} is missing" in error for error in refusals(folder, capsys)), name
        (folder / name).write_bytes(kept)


def test_a_file_that_the_manifest_does_not_list_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    t10.compile(models.without_data(tmp_path / "mlp.onnx"), chip="test-4").save(folder)
    (folder / "notes.txt").write_text("mine")
    Executable.load(folder)
    np.savez(folder / "weights.npz", w=np.zeros(3))
    with pytest.raises(InputError, match=r"weights\.npz is not in manifest\.json"):
        Executable.load(folder)


def test_a_folder_without_a_manifest_says_how_to_make_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / MANIFEST_FILE).unlink()
    assert all(f"t10 manifest {folder} --chip" in error for error in refusals(folder, capsys))
    assert main(["manifest", str(folder)]) == InputError.exit_code
    assert "--chip CHIP" in capsys.readouterr().err
    assert main(["manifest", str(folder), "--chip", "test-16"]) == InputError.exit_code
    assert "planned for the chip test-4" in capsys.readouterr().err
    assert main(["manifest", str(folder), "--chip", "test-4"]) == 0
    assert main(["run", str(folder), "--quiet"]) == 0


def test_a_manifest_made_again_keeps_the_description_and_says_what_changed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about = Folder.open(folder).manifest.about
    codelets = folder / "program" / "codelets.S"
    codelets.write_text(codelets.read_text() + "\n")
    (folder / "program" / "mine.S").write_text("")
    (folder / "report.html").unlink()
    (folder / "program" / "build").mkdir()
    (folder / "program" / "build" / "program").write_text("built")
    assert main(["manifest", str(folder)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == ["changed: program/codelets.S", "added: program/mine.S", "gone: report.html"]
    opened = Folder.open(folder)
    assert opened.manifest.about == about
    assert "program/build/program" not in opened.manifest.files


def test_what_is_no_output_folder_gets_no_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["manifest", str(tmp_path)]) == InputError.exit_code
    assert "no module.mlir" in capsys.readouterr().err
    assert not (tmp_path / MANIFEST_FILE).exists()


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "program/../../x", MANIFEST_FILE])
def test_a_manifest_names_only_files_of_its_folder(folder: Path, name: str) -> None:
    fields = json.loads((folder / MANIFEST_FILE).read_text())
    fields["files"][name] = fields["files"]["module.mlir"]
    (folder / MANIFEST_FILE).write_text(json.dumps(fields))
    with pytest.raises(InputError, match="is no path of a file of the folder"):
        Folder.open(folder)


@pytest.mark.parametrize(
    ("old", "new"), [('t10.chip = "test-4"', 't10.chip = "test-16"'), ('"ipu"', '"t10-paper"')]
)
def test_chip_and_cost_model_of_the_module_are_those_of_the_manifest(
    folder: Path, old: str, new: str
) -> None:
    module = folder / "module.mlir"
    text = module.read_text()
    assert old in text
    module.write_text(text.replace(old, new, 1))
    take_as_it_is(folder)
    with pytest.raises(VerifyError, match="the module states t10"):
        Executable.load(folder)


def test_compiling_again_leaves_nothing_of_the_former_model(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "notes.txt").write_text("mine")
    unknown = models.without_data(tmp_path / "other.onnx")
    assert main(["compile", str(unknown), "-o", str(folder), "--chip", "test-4", "--no-program"]) == 0
    assert "wrote" in capsys.readouterr().out
    assert set(contents(folder)) == {MANIFEST_FILE, "module.mlir", "plan.json", "report.json", "notes.txt"}
    assert not (folder / "program").exists()
    Folder.open(folder)


def test_a_link_to_a_folder_stays_a_link(executable: Executable, folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    executable.save(link)
    assert link.is_symlink()
    assert not (folder / "program").exists()
    assert Executable.load(link).plan == Executable.load(folder).plan == executable.plan


def test_the_folder_that_one_works_in_is_replaced(
    executable: Executable, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    executable.save(".")
    assert not Path("program").exists()
    assert Executable.load(".").plan == executable.plan


def test_a_folder_of_somebody_is_not_replaced(
    model: Path, executable: Executable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    before = contents(tmp_path)
    assert main(["compile", str(model), "-o", str(tmp_path), "--chip", "test-4"]) == InputError.exit_code
    assert "only folders that T10 wrote are replaced" in capsys.readouterr().err
    with pytest.raises(InputError, match="it is a file"):
        executable.save(tmp_path / "thesis.tex")
    assert contents(tmp_path) == before


def failing(real: Callable[..., object], error: BaseException, at: int) -> Callable[..., object]:
    """Return a function that fails the time `at` it is called, and otherwise does what the real one does."""
    left = iter(range(at, -1, -1))

    def once(*given: object, **named: object) -> object:
        if next(left, -1) == 0:
            raise error
        return real(*given, **named)

    return once


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", [0, 1, 5, 20, 25])
def test_an_interrupted_swap_leaves_what_was_there(
    executable: Executable, folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, at: int
) -> None:
    before = contents(folder)
    monkeypatch.setattr(Path, "rename", failing(Path.rename, error, at))
    with pytest.raises((InputError, KeyboardInterrupt)):
        executable.save(folder)
    assert contents(folder) == before
    assert not list(folder.glob(f"{STAGING_PREFIX}*"))


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("is_new", [False, True])
def test_an_interrupted_write_leaves_what_was_there(
    executable: Executable, folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, is_new: bool
) -> None:
    place = folder.parent / "new" if is_new else folder
    before = contents(folder.parent)
    monkeypatch.setattr(np.lib.format, "write_array", failing(np.lib.format.write_array, error, 1))
    with pytest.raises((InputError, KeyboardInterrupt)):
        executable.save(place)
    assert contents(folder.parent) == before
    assert place.exists() != is_new


def test_an_interrupted_report_leaves_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(folder)
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(Path, "rename", failing(Path.rename, full, 9))
    assert main(["report", str(folder), "--quiet"]) == InputError.exit_code
    assert "No space left on device" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.fixture(scope="module")
def priced(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `out` that was made with `mine.py`, which lies beside it."""
    where = tmp_path_factory.mktemp("priced")
    (where / "mine.py").write_text(PRICES)
    t10.compile(model, chip="test-4", cost_model=str(where / "mine.py")).save(where / "out")
    return where


def test_a_cost_model_runs_only_if_it_is_named_again(
    priced: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = shutil.copytree(priced, tmp_path / "priced")
    out, mine, mark = where / "out", priced / "mine.py", tmp_path / "ran"
    mine_now = where / "mine.py"
    for error in refusals(out, capsys):
        assert f"made with the cost model {mine} (sha256 " in error
        assert f"add --cost-model {mine}" in error
    for command, *options in READERS[:1] + READERS[3:]:
        assert main([command, str(out), *options, "--cost-model", str(mine_now), "--quiet"]) == 0
    assert Executable.load(out, cost_model=str(mine_now)).plan.operators
    mine_now.write_text(MARK.format(mark=str(mark)) + PRICES)
    capsys.readouterr()
    assert main(["run", str(out), "--cost-model", str(mine_now)]) == InputError.exit_code
    error = capsys.readouterr().err
    assert "mine.py has sha256" in error
    assert f"t10 manifest {out} --cost-model {mine_now}" in error
    with pytest.raises(InputError, match="it is used only if it is named again"):
        Executable.load(out, cost_model="t10-paper")
    with pytest.raises(InputError, match=r"mine\.py:other"):
        Executable.load(out, cost_model=f"{mine}:other")
    assert not mark.exists()
    assert main(["manifest", str(out), "--cost-model", str(mine_now)]) == 0
    assert not mark.exists()
    assert main(["run", str(out), "--cost-model", str(mine_now), "--quiet"]) == 0
    assert mark.exists()


def test_a_folder_saved_again_is_the_same(priced: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copyfile(priced / "mine.py", tmp_path / "moved.py"))
    loaded = Executable.load(priced / "out", cost_model=str(moved))
    loaded.save(tmp_path / "out")
    assert contents(tmp_path / "out") == contents(priced / "out")


def test_a_bundled_cost_model_needs_no_name(folder: Path) -> None:
    assert Executable.load(folder).cost_model == Executable.load(folder, cost_model="ipu").cost_model == "ipu"
    with pytest.raises(InputError, match="made under cost model ipu, not t10-paper"):
        Executable.load(folder, cost_model="t10-paper")


@pytest.mark.parametrize("name", ["program", "module.mlir"])
def test_links_inside_of_a_folder_are_refused_and_lead_nobody_out(
    name: str, model: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a link of the same name leads to is somebody else's: neither read nor deleted."""
    elsewhere = tmp_path / "elsewhere"
    (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    assert all(f"{name} is a link" in error for error in refusals(folder, capsys))
    assert (
        main(["compile", str(model), "-o", str(folder), "--chip", "test-4", "--quiet", "--no-program"]) == 2
    )
    assert main(["manifest", str(folder)]) == 2
    assert f"{name} is a link" in capsys.readouterr().err
    assert elsewhere.exists()
    assert sorted(elsewhere.rglob("*")) == before


def test_no_manifest_is_made_of_a_link_that_the_former_one_does_not_list(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands would refuse the folder; what links below program/build lead to is none of its files."""
    (tmp_path / "notes").write_text("of somebody")
    (folder / "program" / "build").mkdir(parents=True)
    (folder / "program" / "build" / "notes").symlink_to(tmp_path / "notes")
    assert main(["manifest", str(folder), "--quiet"]) == 0
    (folder / "notes").symlink_to(tmp_path / "notes")
    assert main(["manifest", str(folder)]) == 2
    assert "notes is a link" in capsys.readouterr().err
    assert Folder.open(folder).path == folder
