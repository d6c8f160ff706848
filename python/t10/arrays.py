"""Named arrays in .npz files: written with the same bytes for the same arrays, read within `t10.core.trust`."""

from __future__ import annotations

import mmap
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.atomic import replaced_file
from t10.core.trust.arrays import SUFFIX, Arrays, member_name, read_arrays

__all__ = ["Arrays", "read_arrays", "release", "write_arrays"]


def write_arrays(path: Path | str, arrays: Mapping[str, NDArray[Any]], *, as_named: bool = False) -> None:
    """Write arrays to an uncompressed .npz file, at once or not at all.

    Unlike `numpy.savez` it stamps no time, so that equal arrays give equal files, and takes every name: one that would
    lead out of the folder that somebody unpacks the file in is coded, unless the file is to be read `as_named`.
    """
    with replaced_file(path) as temporary, zipfile.ZipFile(temporary, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(
                zipfile.ZipInfo(name + SUFFIX if as_named else member_name(name)), "w", force_zip64=True
            ) as member:
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
