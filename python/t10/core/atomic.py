"""Files and folders that appear complete or not at all: written beside their place, then renamed into it.

Everything that a command writes goes through here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path

from t10.errors import InputError

DEFAULT_FILE_MODE = 0o666
DEFAULT_FOLDER_MODE = 0o777
STAGING_PREFIX = ".t10-"
KEPT_BYTES = 64
"""Of the name of a file, in that of its successor."""
MOST_LINKS = 40
"""Symbolic links that a path may lead through, as in Linux."""


@contextlib.contextmanager
def replaced_file(path: Path | str) -> Generator[Path]:
    """Yield the path of a new file whose content becomes that of `path` when the block ends without an error.

    A regular file is replaced at once and keeps its mode; one behind symbolic links is replaced there, and the links
    stay. What is not a regular file (a device, a FIFO, an open stream as in `/dev/stdout`) is written into. Raises
    `InputError` for a folder, a socket, and what cannot be written; what was there is then left, and nothing else.
    """
    try:
        target = Path(os.path.realpath(path))
        sink = _sink(path)
        folder = target.parent if sink is None else Path(tempfile.gettempdir())
        begin = os.fsdecode(os.fsencode(target.name)[:KEPT_BYTES])
        suffix = target.suffix if len(target.suffix) <= KEPT_BYTES else ""
        descriptor, name = tempfile.mkstemp(prefix=f".{begin}.", suffix=suffix, dir=folder)
        os.close(descriptor)
    except (OSError, ValueError) as error:
        raise _cannot_write(path, error) from error
    temporary = Path(name)
    try:
        yield temporary
        if sink is None:
            _take_mode(temporary, target)
            temporary.replace(target)
        else:
            _copy(temporary, sink)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(*paths: Path | None) -> None:
    """Raise `InputError` for a path that cannot be written, before work is done for it; None is no path."""
    for path in paths:
        if path is None:
            continue
        try:
            folder = os.path.dirname(os.path.realpath(path))
            if _sink(path) is None and not os.access(folder, os.W_OK | os.X_OK):
                code = errno.EACCES if os.path.isdir(folder) else errno.ENOENT
                raise OSError(code, os.strerror(code))
        except (OSError, ValueError) as error:
            raise _cannot_write(path, error) from error


def write_text(path: Path | str, text: str) -> None:
    """Write a text file as `replaced_file` does; raises `InputError` when that is not possible."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path | str, data: bytes) -> None:
    """Write a file as `replaced_file` does; raises `InputError` when that is not possible."""
    with replaced_file(path) as temporary:
        temporary.write_bytes(data)


def _sink(path: Path | str) -> Path | int | None:
    """Return what to write into where `path` is no place for a regular file: a path, or the number of an open stream.

    Raises `OSError` for what can neither be replaced nor written into.
    """
    stream = _open_stream(path)
    if stream is not None:
        return stream
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if stat.S_ISSOCK(mode):
        raise OSError(errno.ENXIO, "it is a socket")
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return None if stat.S_ISREG(mode) else Path(path)


def _open_stream(path: Path | str) -> int | None:
    """Return the number of the open stream of this process that a path such as `/dev/stdout` or `/dev/fd/3` names.

    Opened anew, a redirected file would lose what others have written to it, and a socket cannot be.
    """
    named = Path(path)
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(named.parent)
        if folder == f"/proc/{os.getpid()}/fd" and named.name.isdigit():
            return int(named.name)
        if not named.is_symlink():
            return None
        named = Path(folder, os.readlink(named))
    return None


def _copy(source: Path, sink: Path | int) -> None:
    """Write a file into a device, a FIFO or an open stream."""
    if isinstance(sink, int):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        descriptor = os.dup(sink)
    else:
        descriptor = os.open(sink, os.O_WRONLY)
    with source.open("rb") as file, open(descriptor, "wb") as out:
        shutil.copyfileobj(file, out)


def _take_mode(temporary: Path, target: Path) -> None:
    """Give a new file the owner and the mode of the file that it replaces, or the default mode."""
    try:
        before = target.stat()
    except FileNotFoundError:
        temporary.chmod(DEFAULT_FILE_MODE & ~_umask())
        return
    with contextlib.suppress(PermissionError):
        os.chown(temporary, before.st_uid, before.st_gid)
    temporary.chmod(stat.S_IMODE(before.st_mode))


def _cannot_write(path: Path | str, error: OSError | ValueError) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else None
    return InputError(f"cannot write {path}: {reason or error}")


def make_folder(path: Path) -> None:
    """Make a folder where there is none; raises `InputError` when that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write folder {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def filled_folder(path: Path | str) -> Generator[Path]:
    """Yield a new folder whose files move into `path` when the block ends without an error.

    `path` is made where needed; files of the same name in it are replaced, others stay. Raises `InputError` when
    that is not possible.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise InputError(f"cannot write folder {target}: {error.strerror}") from error
    try:
        with _as_written_to(temporary, target):
            yield temporary
        if not target.exists():
            temporary.chmod(DEFAULT_FOLDER_MODE & ~_umask())
            temporary.replace(target)
            return
        for file in sorted(temporary.iterdir()):
            file.replace(target / file.name)
    except OSError as error:
        raise InputError(f"cannot write folder {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def _as_written_to(temporary: Path, target: Path) -> Generator[None]:
    """Let errors name the file that would have been there, not the temporary one."""
    try:
        yield
    except InputError as error:
        error.message = error.message.replace(f"{temporary}{os.sep}", f"{target}{os.sep}")
        raise


@contextlib.contextmanager
def staging_folder(target: Path) -> Generator[Path]:
    """Yield a new folder on the file system of the folder `target`, deleted at the end; `swap_in` empties it.

    It is made in `target` where that is there, else beside it. An `OSError` in the block becomes an `InputError`.
    """
    temporary: Path | None = None
    try:
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
        room = target if target.exists() else target.parent
        temporary = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=room))
        new = temporary / "new"
        new.mkdir()
        with _as_written_to(new, target):
            yield new
    except OSError as error:
        raise InputError(f"cannot write folder {target}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def swap_in(new: Path, target: Path, former: Iterable[str], *, last: str) -> None:
    """Move all files of `new`, made by `staging_folder`, into `target`; the files `former` of `target` go.

    File `last` goes first and comes last, so that a reader who finds it finds the others. An error or an interrupt
    moves everything back.
    """
    if not target.exists():
        new.rename(target)
        return
    names = sorted(path.relative_to(new).as_posix() for path in new.rglob("*") if path.is_file())
    gone = [name for name in dict.fromkeys((*former, *names)) if os.path.lexists(target / name)]
    moves = [(target / name, new.parent / "former" / name) for name in sorted(gone, key=lambda n: n != last)]
    moves += [(new / name, target / name) for name in sorted(names, key=lambda n: n == last)]
    begun: list[tuple[Path, Path]] = []
    try:
        for source, place in moves:
            place.parent.mkdir(parents=True, exist_ok=True)
            begun.append((source, place))
            source.rename(place)
    except BaseException:
        for source, place in reversed(begun):
            if not os.path.lexists(source):
                place.rename(source)
        raise
    finally:
        for name in (*gone, *names):
            _remove_empty(target, name)


def _remove_empty(folder: Path, name: str) -> None:
    """Delete the folders on the way to a file, from `folder` on, that hold nothing any more."""
    for parent in list(Path(name).parents)[:-1]:
        with contextlib.suppress(OSError):
            (folder / parent).rmdir()


def _umask() -> int:
    """Return the process's file mode mask (which can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
