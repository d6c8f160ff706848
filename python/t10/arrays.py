"""Named arrays in .npz files: read with clear errors, written with the same bytes for the same arrays."""

from __future__ import annotations

import mmap
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.atomic import replaced_file
from t10.errors import InputError

Arrays = dict[str, NDArray[Any]]
SUFFIX = ".npy"


def read_arrays(path: Path | str) -> Arrays:
    """Return the arrays of an .npz file by name; raises `InputError` when it cannot be read as one."""
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError(f"{path} holds one array without a name (expected an .npz archive)")
        with archive:
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is not an .npz archive of arrays: {error}") from None


def write_arrays(path: Path | str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to an uncompressed .npz file, at once or not at all.

    Unlike `numpy.savez` it stamps no time and takes every name, so that equal arrays give equal files.
    """
    with replaced_file(path) as temporary, zipfile.ZipFile(temporary, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(name + SUFFIX), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
            release(array)


def release(array: NDArray[Any]) -> None:
    """Give back the memory of what was read of a mapped file; it is read again if it is asked for again."""
    base: Any = array
    while isinstance(base, np.ndarray) and isinstance(base.base, np.ndarray):
        base = base.base
    mapped = base.base if isinstance(base, np.memmap) else None
    if isinstance(mapped, mmap.mmap) and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)
