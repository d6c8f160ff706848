"""Inputs as wild as the comparison bears: what overflows in the model itself, or is noise of its own, says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays
from t10.errors import InputError
from t10.random_inputs import LARGE, MIXED, NORMAL, SMALL, Reach
from t10.reference import LARGEST_F16, OnnxRuntime, relative_error
from t10.tolerances import RELATIVE

_LADDERS = ((NORMAL, SMALL), (*MIXED, NORMAL, SMALL), (*LARGE, NORMAL, SMALL))
"""What is tried for the first seed, the second, the third; and again."""
_NOISE = 0.25
"""Most part of the tolerance that may come from a last bit of the inputs."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Inputs that were drawn; `reach` says how, `refused` what was tried before and why not."""

    seed: int
    reach: Reach | None
    inputs: Arrays
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return where the inputs come from, in words."""
        if self.reach is None:
            return "the given inputs"
        refused = f" ({'; '.join(self.refused)})" if self.refused else ""
        return f"seed {self.seed}: {self.reach}{refused}"


def trials(
    draw: Callable[[int, Reach], Arrays], seeds: range, model: OnnxRuntime, tolerance: float
) -> Iterator[Trial]:
    """Yield inputs of every seed: standard normal, of mixed scales, large, and so on in turn."""
    for number, seed in enumerate(seeds):
        refused: dict[str, list[str]] = {}
        for reach in _LADDERS[number % len(_LADDERS)]:
            inputs = draw(seed, reach)
            reason = "" if reach == SMALL else _objection(model, inputs, reach, draw(seed, NORMAL), tolerance)
            if not reason:
                texts = tuple(f"{', '.join(each)}: {why}" for why, each in refused.items())
                yield Trial(seed, reach, inputs, texts)
                break
            refused.setdefault(reason, []).append(str(reach))


def _objection(model: OnnxRuntime, inputs: Arrays, reach: Reach, usual: Arrays, tolerance: float) -> str:
    """Return why a comparison on these inputs would say nothing, or nothing."""
    try:
        exact = model.outputs(inputs)
        if reach == NORMAL:
            return ""
        values, normal = model.values(inputs), model.values(usual)
    except InputError:
        return "ONNX Runtime refuses them"
    limit = LARGEST_F16 if tolerance >= RELATIVE["f16"] else np.inf
    for name, value in values.items():
        if value.dtype.kind != "f" or name not in normal or not (np.abs(normal[name]) < limit).all():
            continue
        if not (np.abs(value) < limit).all():
            return "the model overflows"
    shaken = model.outputs({name: _next(array) for name, array in inputs.items()})
    is_steady = all(relative_error(shaken[name], exact[name]) <= _NOISE * tolerance for name in exact)
    return "" if is_steady else "the last bit of an input decides"


def _next(array: NDArray[Any]) -> NDArray[Any]:
    """Return an input with the last bit of every float changed."""
    with np.errstate(over="ignore"):
        is_float = array.dtype.kind == "f"
        return np.asarray(np.nextafter(array, array.dtype.type(np.inf))) if is_float else array
