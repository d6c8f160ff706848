"""Files and folders that appear complete or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

from t10.errors import InputError

DEFAULT_FILE_MODE = 0o666
DEFAULT_FOLDER_MODE = 0o777


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


def _umask() -> int:
    """Return the process's file mode mask (which can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
