"""What users say of a model on a command line: values of inputs, `name=1,2` or `name=FILE.npy`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.trust.arrays import SUFFIX, read_array
from t10.errors import InputError

_FORM = "expected NAME=1,2 or NAME=FILE.npy"


def parse_constants(texts: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return the inputs fixed by texts `name=values`: the values of a .npy file, or int64 or float64 numbers.

    Raises `InputError` for a text that is malformed, a name that is given twice, and a file that cannot be read.
    """
    constants: dict[str, NDArray[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name or name in constants:
            raise InputError(f"--constant {text!r} is malformed or repeated ({_FORM})")
        constants[name] = read_array(values) if is_file(text) else _numbers(values, text)
    return constants


def is_file(text: str) -> bool:
    """Return whether a text gives the values of an input by a file."""
    return text.endswith(SUFFIX)


def _numbers(values: str, text: str) -> NDArray[Any]:
    """Return comma-separated numbers; one number without a comma has no dims."""
    parts = [part for part in values.split(",") if part]
    try:
        numbers = [int(part) if part.lstrip("+-").isdigit() else float(part) for part in parts]
    except ValueError:
        raise InputError(f"--constant {text!r} is malformed ({_FORM})") from None
    return np.array(numbers if "," in values or not parts else numbers[0])
