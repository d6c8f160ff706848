"""A folder of cached results, shared by models, processes and machines.

One file per entry, named by its key (a SHA-256 in hex) under a folder per kind of entry:

    FOLDER/front/3f/3f9a...c2      one line: t10-cache 1 front 3f9a...c2 <SHA-256 of the rest> <bytes of the rest>
                                   then the payload

A file is written under another name and renamed, so readers and writers need no locks. Anything else (cut off,
changed, of another version, a pipe) is not an entry, and is replaced when its key is written again; a folder stays. A
folder that cannot be used is reported once, and compilation goes on.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from re import fullmatch

from t10.core.atomic import replaced_file
from t10.core.trust.files import read_entry
from t10.errors import T10Error

VERSION = 2
MAX_BYTES = 256 << 20
MAX_ENTRY_BYTES = 64 << 20
FILL_AFTER_PRUNING = 0.8
PUTS_BETWEEN_PRUNINGS = 64
SECONDS_BETWEEN_TOUCHES = 3600.0
LEFTOVER_SECONDS = 24 * 3600.0
"""A temporary file this old belongs to a writer that was killed."""

_HEADER_BYTES = 256
_KEY = r"[0-9a-f]{64}"
_KIND = r"[a-z][a-z-]{0,31}"


class CacheWarning(UserWarning):
    """The plan cache cannot be used; plans are searched anew."""


def _warn(message: str) -> None:
    warnings.warn(message, CacheWarning, stacklevel=3)


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What is in a cache: entries and their bytes, by kind."""

    folder: Path
    max_bytes: int
    entries_by_kind: dict[str, int]
    bytes_by_kind: dict[str, int]

    @property
    def n_entries(self) -> int:
        """Return the number of entries of all kinds."""
        return sum(self.entries_by_kind.values())

    @property
    def n_bytes(self) -> int:
        """Return the bytes of all entries."""
        return sum(self.bytes_by_kind.values())


@dataclass(slots=True)
class PlanCache:
    """Entries of a folder, by key and kind; the least recently used go when they take more than `max_bytes`.

    `warn` is called at most once, with a sentence, if the folder cannot be read or written.
    """

    folder: Path
    max_bytes: int = MAX_BYTES
    warn: Callable[[str], None] = _warn
    hits: int = field(default=0, init=False)
    misses: int = field(default=0, init=False)
    _puts: int = field(default=0, init=False)
    _has_warned: bool = field(default=False, init=False)

    def get(self, key: str, kind: str) -> bytes | None:
        """Return the payload of an entry, None where there is none that is whole."""
        path = self._path(key, kind)
        try:
            text = read_entry(path, MAX_ENTRY_BYTES)
        except FileNotFoundError:
            text = None
        except OSError as error:
            self._report("read", error)
            text = None
        payload = None if text is None else _payload(text, key, kind)
        if payload is None:
            self.misses += 1
            return None
        self.hits += 1
        _touch(path)
        return payload

    def put(self, key: str, kind: str, payload: bytes) -> None:
        """Write an entry, over what was there; an entry that is too large for the cache is left out."""
        header = _header(key, kind, payload)
        if len(header) + len(payload) > min(self.max_bytes, MAX_ENTRY_BYTES):
            return
        path = self._path(key, kind)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _clear(path)
            with replaced_file(path) as temporary:
                temporary.write_bytes(header + payload)
        except (OSError, T10Error) as error:
            self._report("write", error)
            return
        if self._puts % PUTS_BETWEEN_PRUNINGS == 0:
            self.prune()
        self._puts += 1

    def prune(self) -> int:
        """Delete what is used least if there is too much, and what killed writers left; return how many files."""
        files: list[tuple[float, str, int]] = []
        n_deleted = 0
        now = time.time()
        for path, found in self._files():
            if path.name.startswith("."):
                if now - found.st_mtime > LEFTOVER_SECONDS:
                    n_deleted += _delete(path)
                continue
            files.append((found.st_mtime, str(path), found.st_size))
        total = sum(size for _, _, size in files)
        if total <= self.max_bytes:
            return n_deleted
        for _, name, size in sorted(files):
            if total <= self.max_bytes * FILL_AFTER_PRUNING:
                break
            n_deleted += _delete(Path(name))
            total -= size
        return n_deleted

    def clear(self) -> int:
        """Delete every entry, and what killed writers left; return how many files that were."""
        return sum(_delete(path) for path, _ in self._files())

    def info(self) -> CacheInfo:
        """Return what is in the cache."""
        entries: dict[str, int] = {}
        n_bytes: dict[str, int] = {}
        for path, found in self._files():
            if not path.name.startswith("."):
                kind = path.parent.parent.name
                entries[kind] = entries.get(kind, 0) + 1
                n_bytes[kind] = n_bytes.get(kind, 0) + found.st_size
        return CacheInfo(
            self.folder, self.max_bytes, dict(sorted(entries.items())), dict(sorted(n_bytes.items()))
        )

    def _path(self, key: str, kind: str) -> Path:
        if not fullmatch(_KEY, key) or not fullmatch(_KIND, kind):
            raise T10Error(
                f"cache entry {kind!r}/{key!r} (expected a kind in small letters and a SHA-256 in hex)"
            )
        return self.folder / kind / key[:2] / key

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Yield the files of the cache, entries and leftovers, and nothing that somebody else put into the folder."""
        for path in self.folder.glob("*/[0-9a-f][0-9a-f]/*"):
            name = path.name.removeprefix(".")[:64]
            if not fullmatch(_KIND, path.parent.parent.name) or not fullmatch(_KEY, name):
                continue
            with contextlib.suppress(OSError):
                found = path.lstat()
                if stat.S_ISREG(found.st_mode):
                    yield path, found

    def _report(self, action: str, error: OSError | T10Error) -> None:
        if not self._has_warned:
            self._has_warned = True
            cause = error if isinstance(error, OSError) else error.__cause__
            reason = cause.strerror if isinstance(cause, OSError) else str(error)
            self.warn(f"plan cache {self.folder}: cannot {action} entries: {reason}; plans are searched anew")


def _header(key: str, kind: str, payload: bytes) -> bytes:
    return f"t10-cache {VERSION} {kind} {key} {sha256(payload).hexdigest()} {len(payload)}\n".encode("ascii")


def _payload(text: bytes, key: str, kind: str) -> bytes | None:
    """Return what follows the header of a file, None if it is not the header of just that."""
    header, separator, payload = text[:_HEADER_BYTES].partition(b"\n")
    payload = text[len(header) + 1 :]
    is_whole = bool(separator) and header + b"\n" == _header(key, kind, payload)
    return payload if is_whole else None


def _clear(path: Path) -> None:
    """Delete what is neither a file nor a folder: a pipe would be written into, and wait for a reader."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            path.unlink()


def _touch(path: Path) -> None:
    """Note that an entry was used: not at every use, since a cache on a network is written by many."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > SECONDS_BETWEEN_TOUCHES:
            os.utime(path)


def _delete(path: Path) -> int:
    """Delete a file if it is still there; return how many were deleted."""
    try:
        path.unlink()
    except OSError:
        return 0
    return 1
