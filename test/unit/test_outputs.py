"""Output files: replaced at once, through links, and into what is not a regular file.

Devices are made in a temporary folder, never those of the machine.
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from t10.core import atomic
from t10.core.atomic import check_writable, replaced_file, write_text
from t10.errors import InputError
from t10.opt.main import main as opt

ROOT = Path(__file__).resolve().parents[2]
MODEL = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"
ADD = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %c = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}
"""
NULL, FULL = os.makedev(1, 3), os.makedev(1, 7)


def device(path: Path, number: int) -> bool:
    """Make a device node; return whether this process may do so and may open it."""
    with suppress(OSError):
        os.mknod(path, stat.S_IFCHR | 0o666, number)
        os.close(os.open(path, os.O_WRONLY))
        return True
    return False


def read_fifo(path: Path) -> Callable[[], bytes]:
    """Read a FIFO that is made at a path in a thread; return what waits for its content."""
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()

    def content() -> bytes:
        reader.join(timeout=30)
        return found[0]

    return content


def names(folder: Path) -> list[str]:
    """Return what lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    with path.open(encoding="utf-8") as former:
        write_text(path, "new")
        assert former.read() == "old"  # replaced, not overwritten
    assert path.read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(tmp_path) == ["out.txt"]


def test_a_new_file_has_the_mode_of_new_files(tmp_path: Path) -> None:
    (tmp_path / "as_usual").touch()
    write_text(tmp_path / "out.txt", "new")
    assert (tmp_path / "out.txt").stat().st_mode == (tmp_path / "as_usual").stat().st_mode


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "out.txt"
    if is_there:
        target.write_text("old", encoding="utf-8")
    (tmp_path / "second").symlink_to("real/out.txt")
    (tmp_path / "first").symlink_to("second")
    write_text(tmp_path / "first", "new")
    assert os.readlink(tmp_path / "first") == "second"
    assert os.readlink(tmp_path / "second") == "real/out.txt"
    assert target.read_text(encoding="utf-8") == "new"
    assert names(tmp_path / "real") == ["out.txt"]


@pytest.mark.parametrize("by_link", [False, True])
def test_a_fifo_is_written_into(tmp_path: Path, by_link: bool) -> None:
    content = read_fifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    write_text(tmp_path / ("link" if by_link else "fifo"), "new")
    assert content() == b"new"
    assert stat.S_ISFIFO((tmp_path / "fifo").lstat().st_mode)
    assert names(tmp_path) == ["fifo", "link"]


def test_a_terminal_is_written_into() -> None:
    master, slave = os.openpty()
    try:
        write_text(os.ttyname(slave), "new")
        assert os.read(master, 3) == b"new"
        assert stat.S_ISCHR(os.stat(os.ttyname(slave)).st_mode)
    finally:
        os.close(master)
        os.close(slave)


def test_devices_stay_devices(tmp_path: Path) -> None:
    null, full = tmp_path / "null", tmp_path / "full"
    if device(null, NULL):
        write_text(null, "new")
        assert stat.S_ISCHR(null.lstat().st_mode)
    if device(full, FULL):
        (tmp_path / "link").symlink_to("full")
        for path in (full, tmp_path / "link"):
            with pytest.raises(InputError, match=f"cannot write {path}: No space left on device"):
                write_text(path, "new")
        assert stat.S_ISCHR(full.lstat().st_mode)
        assert (tmp_path / "link").is_symlink()


def test_an_open_stream_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("before ", encoding="utf-8")
    (tmp_path / "link").symlink_to("/proc/self/fd/1")
    code = (
        f"from t10.core.atomic import write_text\nprint('one', end=' ')\n"
        f"write_text({str(tmp_path / 'link')!r}, 'two ')\nprint('three')"
    )
    with path.open("a", encoding="utf-8") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert path.read_text(encoding="utf-8") == "before one two three\n"
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert piped.stdout == "one two three\n"


def test_a_folder_a_socket_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (tmp_path, tmp_path / "link"):
        with pytest.raises(InputError, match=f"cannot write {path}: it is a folder"):
            write_text(path, "new")
    with pytest.raises(InputError, match=r"cannot write .*absent/x: No such file or directory"):
        write_text(tmp_path / "absent" / "x", "new")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=r"cannot write .*loop: Too many levels of symbolic links"):
        write_text(tmp_path / "loop", "new")
    with pytest.raises(InputError, match=r"cannot write .*: embedded null byte"):
        write_text(str(tmp_path) + "/a\0b", "new")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        with pytest.raises(InputError, match=r"cannot write .*socket: it is a socket"):
            write_text(tmp_path / "socket", "new")
    assert names(tmp_path) == ["link", "loop", "socket"]


def test_what_cannot_be_written_is_found_before_work_is_done(tmp_path: Path) -> None:
    check_writable(None, tmp_path / "new", tmp_path / "new", Path(os.devnull))
    with pytest.raises(InputError, match=r"cannot write .*absent/x: No such file or directory"):
        check_writable(tmp_path / "x", tmp_path / "absent" / "x")
    with pytest.raises(InputError, match=f"cannot write {tmp_path}: it is a folder"):
        check_writable(tmp_path)
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(atomic.tempfile, "mkstemp", refuse)
    with pytest.raises(InputError, match=r"cannot write .*x: Permission denied"):
        write_text(tmp_path / "x", "new")


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127 + "x")
    write_text(path, "new")
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device"), ValueError])
def test_what_fails_leaves_what_was_there(tmp_path: Path, error: BaseException | type[BaseException]) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old", encoding="utf-8")

    def write_half() -> None:
        with replaced_file(path) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise error

    with pytest.raises((KeyboardInterrupt, InputError, ValueError)):
        write_half()
    assert path.read_text(encoding="utf-8") == "old"
    assert names(tmp_path) == ["out.txt"]


def run(
    *words: str | Path, cwd: Path, limit: int | None = None, stdout: Path | None = None
) -> tuple[int, str]:
    """Return exit code and errors of a command, with files of at most `limit` bytes, its output into a file."""
    setup = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); " if limit else ""
    )
    tool, *arguments = map(str, words)
    code = f"import sys; {setup}from {tool} import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *arguments]
    out = subprocess.DEVNULL if stdout is None else os.open(stdout, os.O_WRONLY)
    try:
        done = subprocess.run(command, cwd=cwd, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        if stdout is not None:
            os.close(out)
    return done.returncode, done.stderr


OPT, T10, TRANSLATE = "t10.opt.main", "t10.cli.entry", "t10.translate"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, its compiled folder and its lowered module."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "add.mlir").write_text(ADD, encoding="utf-8")
    assert run(T10, "compile", "add.mlir", "-o", "out", "--chip", "test-4", cwd=folder)[0] == 0
    assert opt([str(folder / "add.mlir"), "--t10-lower-ipu=chip=test-4", "-o", str(folder / "ipu.mlir")]) == 0
    return folder


COMMANDS: dict[str, tuple[str, ...]] = {
    "t10-opt -o": (OPT, "ipu.mlir", "-o"),
    "t10-opt bytecode": (OPT, "ipu.mlir", "--emit-bytecode", "-o"),
    "t10-opt reproducer": (OPT, "ipu.mlir", "--mlir-pass-pipeline-crash-reproducer"),
    "t10-translate asm": (TRANSLATE, "--ipu-to-asm", "ipu.mlir", "-o"),
    "t10-translate poplar": (TRANSLATE, "--ipu-to-poplar", "ipu.mlir", "-o"),
    "t10 run --outputs": (T10, "run", "out", "--outputs"),
    "t10 run --trace": (T10, "run", "out", "--trace"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_write_into_devices_and_fifos(name: str, made: Path, tmp_path: Path) -> None:
    null, full = tmp_path / "null", tmp_path / "full"
    if device(null, NULL):
        assert run(*COMMANDS[name], null, cwd=made) == (0, "")
        assert stat.S_ISCHR(null.lstat().st_mode)
    if device(full, FULL):
        code, error = run(*COMMANDS[name], full, cwd=made)
        assert code == InputError.exit_code
        assert f"cannot write {full}: No space left on device" in error
        assert len(error.splitlines()) == 1
        assert stat.S_ISCHR(full.lstat().st_mode)
    content = read_fifo(tmp_path / "fifo")
    assert run(*COMMANDS[name], tmp_path / "fifo", cwd=made) == (0, "")
    assert len(content()) > 100
    assert stat.S_ISFIFO((tmp_path / "fifo").lstat().st_mode)


@pytest.mark.parametrize("option", ["--outputs", "--trace"])
def test_a_run_says_first_that_it_cannot_write(option: str, made: Path, tmp_path: Path) -> None:
    code, error = run(T10, "run", "out", "--engine", "iss", option, tmp_path / "absent" / "x", cwd=made)
    assert code == InputError.exit_code
    assert error == f"t10: error: cannot write {tmp_path}/absent/x: No such file or directory\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["t10-opt -o", "t10-translate asm", "t10 run --outputs", "t10 run --trace"])
def test_a_full_disk_leaves_what_was_there(name: str, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.x"
    path.write_text("old", encoding="utf-8")
    code, error = run(*COMMANDS[name], path, cwd=made, limit=64)
    assert (code, error.splitlines()[-1].rpartition(": ")[2]) == (InputError.exit_code, "File too large")
    assert len(error.splitlines()) == 1
    assert path.read_text(encoding="utf-8") == "old"
    assert names(tmp_path) == ["out.x"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "unbuffered"),
    [
        ((OPT, "ipu.mlir"), ""),
        ((OPT, "ipu.mlir"), "1"),
        ((TRANSLATE, "--ipu-to-asm", "ipu.mlir"), ""),
        ((TRANSLATE, "--ipu-to-asm", "ipu.mlir"), "1"),
        ((T10, "chips"), ""),
        ((T10, "inspect", "add.mlir"), ""),
    ],
)
def test_standard_output_that_is_full_or_closed_is_one_clear_end(
    words: tuple[str, ...], unbuffered: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    (tmp_path / "log").touch()
    code, error = run(*words, cwd=made, limit=1, stdout=tmp_path / "log")
    assert code == InputError.exit_code
    assert error.splitlines() == [error.strip()]
    assert error.strip().endswith("cannot write standard output: File too large")
    reading, writing = os.pipe()
    os.close(reading)
    assert run(*words, cwd=made, stdout=Path(f"/proc/self/fd/{writing}")) == (141, "")
    os.close(writing)


def test_a_reproducer_leaves_links_and_devices(made: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    assert run(*COMMANDS["t10-opt reproducer"], tmp_path / "link", cwd=made) == (0, "")
    assert names(tmp_path) == ["link"]
