"""Files and folders that appear complete or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path

from t10.errors import InputError

DEFAULT_FILE_MODE = 0o666
DEFAULT_FOLDER_MODE = 0o777
STAGING_PREFIX = ".t10-"


@contextlib.contextmanager
def replaced_file(path: Path | str) -> Generator[Path]:
    """Yield the path of a new file that takes the place of `path` when the block ends without an error.

    Raises `InputError` when the folder does not exist or cannot be written.
    """
    target = Path(path)
    try:
        descriptor, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent
        )
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from error
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(DEFAULT_FILE_MODE & ~_umask())
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    """Write a text file, at once or not at all; raises `InputError` when that is not possible."""
    with replaced_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


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
