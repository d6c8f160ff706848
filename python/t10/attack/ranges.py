"""Inputs as wild as the comparison bears: what overflows in the model itself, or is noise of its own, says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from t10.arrays import Arrays
from t10.attack.partials import Allowance
from t10.attack.shaking import Shaken
from t10.attack.written_out import written_out
from t10.errors import InputError
from t10.random_inputs import LARGE, MIXED, NORMAL, SMALL, Reach
from t10.reference import LARGEST_F16, OnnxRuntime, relative_error
from t10.tolerances import RELATIVE

_LADDERS = ((NORMAL, SMALL), (*MIXED, NORMAL, SMALL), (*LARGE, NORMAL, SMALL))
"""What is tried for the first seed, the second, the third; and again."""
_NOISE = 0.25
"""Most part of the tolerance that may come from last bits on the way."""
_MOST_PARTIALS = 2
"""How many times as far off as on standard normal inputs sums in f16 may bring outputs."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Inputs that were drawn; `reach` says how, `refused` what was tried before and why not."""

    seed: int
    reach: Reach | None
    inputs: Arrays
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return where the inputs come from, in words."""
        return "the given inputs" if self.reach is None else f"seed {self.seed}: {self.reach}"

    @property
    def story(self) -> str:
        """Return the same, and what was tried before it."""
        return f"{self} ({'; '.join(self.refused)})" if self.refused else str(self)


def trials(
    draw: Callable[[int, Reach, bool], Arrays],
    seeds: range,
    model: OnnxRuntime,
    tolerance: float,
    *,
    specials: bool,
    allowance: Allowance | None = None,
) -> Iterator[Trial]:
    """Yield inputs of every seed: standard normal, of mixed scales, large, and so on in turn.

    `draw` takes the seed, the reach, and whether there are special numbers: what the model bears is seen without.
    `allowance` says what sums in f16 make of them.
    """
    steadiness = _Steadiness(model, tolerance, allowance)
    for number, seed in enumerate(seeds):
        refused: dict[str, list[str]] = {}
        for reach in _LADDERS[number % len(_LADDERS)]:
            inputs = draw(seed, reach, False)
            reason = "" if reach == SMALL else steadiness.objection(inputs, reach, draw(seed, NORMAL, False))
            if not reason:
                if specials:
                    wilder = draw(seed, reach, True)
                    if steadiness.is_cast_whole(wilder):
                        inputs = wilder
                    else:
                        refused["no integer holds them"] = ["special numbers"]
                texts = tuple(f"{', '.join(each)}: {why}" for why, each in refused.items())
                yield Trial(seed, reach, inputs, texts)
                break
            refused.setdefault(reason, []).append(str(reach))


class _Steadiness:
    """Whether a comparison on some inputs says something."""

    def __init__(self, model: OnnxRuntime, tolerance: float, allowance: Allowance | None) -> None:
        self._model, self._tolerance, self._allowance = model, tolerance, allowance
        self._is_half = tolerance >= RELATIVE["f16"]
        self._inner: OnnxRuntime | None = None
        self._shaken: Shaken | None = None

    def objection(self, inputs: Arrays, reach: Reach, usual: Arrays) -> str:
        """Return why a comparison on these inputs would say nothing, or nothing."""
        try:
            self._model.outputs(inputs)
            if reach == NORMAL:
                return ""
            model = self._inner = self._inner or written_out(self._model, inputs)
            exact = model.outputs(inputs)
            values, normal = model.values(inputs), model.values(usual)
        except InputError:
            return "ONNX Runtime refuses them"
        limit = LARGEST_F16 if self._is_half else np.inf
        for name, value in values.items():
            if value.dtype.kind != "f" or name not in normal or not (np.abs(normal[name]) < limit).all():
                continue
            if not (np.abs(value) < limit).all():
                return "the model overflows"
        all_values = {**inputs, **values}
        if not _are_cast_whole(model, all_values):
            return "no integer holds them"
        self._shaken = self._shaken or Shaken(model, all_values, is_half=self._is_half)
        is_steady = all(
            shaken[name].shape == array.shape  # a last bit may decide how long a result is
            and relative_error(shaken[name], array)
            <= (_NOISE * self._tolerance if array.dtype.kind == "f" else 0)
            for shaken in self._shaken.outputs(inputs, all_values)
            for name, array in exact.items()
        )
        return self._objection_to_partials(inputs, usual) if is_steady else "a last bit on the way decides"

    def _objection_to_partials(self, inputs: Arrays, usual: Arrays) -> str:
        """Return why sums in f16 say nothing on these inputs, or nothing."""
        if self._allowance is None or not self._allowance.is_needed:
            return ""
        if self._allowance.overflows(inputs):
            return "a sum in f16 may overflow"
        try:
            normal, here = self._allowance.of(usual), self._allowance.of(inputs)
        except InputError:
            return "roundings of sums in f16 decide"
        is_near = all(
            error <= self._tolerance + _MOST_PARTIALS * normal[name] for name, error in here.items()
        )
        return "" if is_near else "roundings of sums in f16 decide"

    def is_cast_whole(self, inputs: Arrays) -> bool:
        """Return whether integers hold all floats that are cast to them: of others, nothing says what they become."""
        try:
            return _are_cast_whole(self._model, {**inputs, **self._model.values(inputs)})
        except InputError:
            return False


def _are_cast_whole(model: OnnxRuntime, values: Arrays) -> bool:
    for node in model.model.graph.node:
        if node.op_type not in ("Cast", "CastLike") or node.input[0] not in values:
            continue
        before, after = values[node.input[0]], values[node.output[0]]
        if before.dtype.kind == "f" and after.dtype.kind in "iu":
            limits, whole = np.iinfo(after.dtype), np.trunc(before)
            if not ((whole >= float(limits.min)) & (whole < float(limits.max) + 1)).all():
                return False
    return True
