"""Output folders: read only where every file is as its manifest says, replaced as a whole."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from t10.artefact.manifest import (
    MANIFEST_FILE,
    Description,
    FileRecord,
    Manifest,
    digest_of,
    manifest_text,
    read_manifest,
    remake_hint,
)
from t10.core.atomic import STAGING_PREFIX, staging_folder, swap_in, write_text
from t10.core.trust.files import MODEL_BYTES, read_text
from t10.errors import InputError

BUILD_FOLDER = "program/build"
"""Where program/README.md has CMake build: what is made there is not part of the artefact."""


@dataclass(frozen=True, slots=True)
class Folder:
    """An output folder whose files were all found to be those that its manifest lists.

    Other files in it are their owner's: they are neither read nor replaced.
    """

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path | str) -> Folder:
        """Return a folder, every file checked against the manifest.

        Raises `InputError` for what is no folder or has no manifest, and names the first file that is missing or is
        not the one that was written.
        """
        where = Path(path)
        if not where.is_dir():
            raise InputError(f"{where} is not a folder", hint="make one with `t10 compile MODEL -o FOLDER`")
        manifest = read_manifest(where)
        for name, record in manifest.files.items():
            _check(where, name, record)
        return cls(where, manifest)

    def has(self, name: str) -> bool:
        """Return whether the folder holds a file, by its path in it; raises `InputError` where it is not T10's."""
        if name in self.manifest.files:
            return True
        if (self.path / name).exists():
            raise InputError(
                f"{self.path / name} is not in {MANIFEST_FILE}: T10 did not write it",
                hint=f"delete it, or add it with `t10 manifest {self.path}`",
            )
        return False

    def checked(self, name: str) -> Path:
        """Return where a file is, by its path in the folder; raises `InputError` where the folder holds none such."""
        if not self.has(name):
            raise InputError(f"{self.path} has no {name}", hint="compile the model again")
        return self.path / name

    def text(self, name: str) -> str:
        """Return the text of a file; raises `InputError` where there is none."""
        return read_text(self.checked(name), MODEL_BYTES, hint="compile the model again")

    def names(self, under: str) -> tuple[str, ...]:
        """Return the files of a folder in it, like `program`, by their paths in the whole; none: it has no such."""
        return tuple(name for name in self.manifest.files if name.startswith(f"{under}/"))


@contextmanager
def written(path: Path | str, about: Description) -> Generator[Path]:
    """Yield an empty folder; its files, and a manifest of them, replace the output folder `path` when the block ends.

    All files that the manifest of the former folder lists go; others stay, unless a new one has their name. Where
    `path` is a link to a folder, the folder is replaced. After an error or an interrupt the former folder is as it was.
    Raises `InputError` as `check_replaceable` does, and where a file cannot be written.
    """
    target = Path(path).resolve()
    former = check_replaceable(target)
    with staging_folder(target) as new:
        yield new
        _write_manifest(new, about, {name: digest_of(new / name) for name in files_of(new)})
        swap_in(new, target, former, last=MANIFEST_FILE)


@contextmanager
def amended(folder: Folder) -> Generator[Path]:
    """Yield an empty folder; its files join the output folder, or replace files of the same names, at once.

    Raises what `written` raises.
    """
    target = folder.path.resolve()
    with staging_folder(target) as new:
        yield new
        added = {name: digest_of(new / name) for name in files_of(new)}
        _write_manifest(new, folder.manifest.about, {**folder.manifest.files, **added})
        swap_in(new, target, (), last=MANIFEST_FILE)


def check_replaceable(path: Path | str) -> tuple[str, ...]:
    """Return the files that go when an output folder is replaced, by their paths in it; none for a new folder.

    Raises `InputError` for what is no folder, and for one that holds files but no manifest: they may be anybody's.
    """
    target = Path(path)
    if not target.exists():
        return ()
    if not target.is_dir():
        raise InputError(f"cannot write folder {target}: it is a file")
    if all(path.name.startswith(STAGING_PREFIX) for path in target.iterdir()):
        return ()
    if not (target / MANIFEST_FILE).is_file():
        raise InputError(
            f"{target} is not empty and has no {MANIFEST_FILE}: only folders that T10 wrote are replaced",
            hint="give another folder, or delete this one",
        )
    try:
        names = (MANIFEST_FILE, *read_manifest(target, check_seal=False).files)
        refuse_links(target, names)
    except InputError as error:
        raise InputError(error.message, hint="give another folder, or delete this one") from None
    return names


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Raise `InputError` where the way to a file inside of a folder leads through a symbolic link: out of it."""
    for name in names:
        for path in (folder / name, *(folder / parent for parent in Path(name).parents if parent.name)):
            if path.is_symlink():
                raise InputError(
                    f"{path} is a link: an output folder holds its files itself",
                    hint="put the file there, or take the link out of the folder",
                )


def remade(folder: Path, about: Description) -> dict[str, FileRecord]:
    """Write the manifest of a folder for the files that lie there, all of them; return their records.

    Raises `InputError` for a link in it, which the manifest could not stand for.
    """
    links = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_symlink())
    refuse_links(folder, (name for name in links if not name.startswith(f"{BUILD_FOLDER}/")))
    files = {name: digest_of(folder / name) for name in files_of(folder)}
    write_text(folder / MANIFEST_FILE, manifest_text(about, files))
    return files


def files_of(folder: Path) -> tuple[str, ...]:
    """Return the files that lie in a folder, by their paths in it, sorted; not the manifest, nor what was built."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return tuple(
        name
        for name in names
        if name != MANIFEST_FILE and not name.startswith((f"{BUILD_FOLDER}/", STAGING_PREFIX))
    )


def _write_manifest(folder: Path, about: Description, files: dict[str, FileRecord]) -> None:
    (folder / MANIFEST_FILE).write_text(manifest_text(about, files), encoding="utf-8")


def _check(folder: Path, name: str, record: FileRecord) -> None:
    """Raise `InputError` unless a file is there and is the one of the record."""
    path = folder / name
    refuse_links(folder, (name,))
    if not path.is_file():
        raise InputError(f"{path} is missing: {MANIFEST_FILE} lists it", hint=remake_hint(folder))
    if path.stat().st_size != record.bytes or digest_of(path) != record:
        raise InputError(
            f"{path} is not the file that was written: its digest is not the one in {MANIFEST_FILE}",
            hint=remake_hint(folder),
        )
