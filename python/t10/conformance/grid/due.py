"""What is due of a case: what both references give, and how near a result must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from t10.conformance.grid.cases import GridCase, build, with_outputs
from t10.conformance.grid.choices import choice_for
from t10.conformance.grid.decided import decided
from t10.conformance.grid.finding import Outcome
from t10.conformance.grid.references import Arrays, References
from t10.conformance.grid.undefined import may_be_nan, undefined
from t10.conformance.grid.values import ValueClass, float_limits, held_in, is_float
from t10.tolerances import Tolerance


@dataclass(frozen=True, slots=True)
class Due:
    """What both references give, and for every output what may differ."""

    reference: Arrays | None
    runtime: Arrays | None
    dtypes: Mapping[str, np.dtype[Any]]
    tolerance: Tolerance
    slack: Mapping[str, NDArray[Any]]
    """Most difference, by output, element by element."""
    undefined: NDArray[np.bool_] | None = None
    """Elements that ONNX leaves undefined: engines have the same bits there."""
    unable: NDArray[np.bool_] | None = None
    """Elements where a tile may give NaN."""
    is_double: bool = False
    """Whether the reference was computed in double: finite numbers of ONNX Runtime are approximations of it."""
    disagree: bool = False
    choice: str = ""

    @classmethod
    def of(
        cls,
        case: GridCase,
        references: References,
        inputs: Mapping[str, NDArray[Any]],
        tolerance: Tolerance,
        kind: ValueClass,
    ) -> Due | None:
        """Return it, None if neither reference computes the case."""
        runtime, reference = references.runtime(inputs), references.evaluator(inputs)
        if (
            reference is not None
            and runtime is not None
            and any(reference[name].shape != runtime[name].shape for name in runtime)
        ):
            reference = None if _choice_side(case, kind) in ("runtime", "skip") else reference
            runtime = runtime if reference is None else None
        first = reference if reference is not None else runtime
        if first is None:
            return None
        plain = _types_of_outputs(case, runtime, inputs)
        is_double = references.is_double and reference is not None
        own = None
        if _choice_side(case, kind) == "decided":
            own = decided(case, inputs, next(iter(first.values())).shape)
        if own is not None:
            first, reference, runtime, is_double = own, own, None, False
        dtypes = {name: held_in(plain.get(name, array.dtype)) for name, array in first.items()}
        magnitudes = references.evaluator(inputs, absolute=True) if tolerance.kind == "summed" else None
        slack = {
            name: _slack(array, dtypes[name], tolerance, None if magnitudes is None else magnitudes[name])
            for name, array in first.items()
        }
        due = cls(
            reference,
            runtime,
            dtypes,
            tolerance,
            slack,
            undefined(case, inputs),
            may_be_nan(case, inputs),
            is_double,
            choice=_choice_side(case, kind),
        )
        if reference is None or runtime is None:
            return due
        differ = any(
            not (due.near(name, runtime[name], reference[name]) | due.approximated(name)).all()
            for name in runtime
        )
        return replace(due, disagree=differ)

    def near(self, name: str, y: NDArray[Any], reference: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which elements of an output are right by a reference."""
        return near(y, reference, self.dtypes[name], self.tolerance, self.slack[name])

    def approximated(self, name: str) -> NDArray[np.bool_] | bool:
        """Return where ONNX Runtime is taken to approximate the reference: both are finite, that one is in double."""
        if self.reference is None or self.runtime is None or not self.is_double:
            return False
        reference, runtime = (side[name].astype(np.float64) for side in (self.reference, self.runtime))
        is_near = np.isfinite(reference) & np.isfinite(runtime)
        if self.dtypes[name] != np.float16:
            return is_near
        return is_near | (np.isfinite(reference) & (np.abs(reference) > float(np.finfo(np.float16).max)))

    def compared(
        self,
        outputs: Mapping[str, NDArray[Any]],
        inputs: Mapping[str, NDArray[Any]],
        first: Mapping[str, NDArray[Any]],
        engine: str,
    ) -> tuple[Outcome, str]:
        """Return what outputs of an engine are; `first` are those of the plan."""
        sides = [each for each in (self.reference, self.runtime) if each is not None]
        for name in sides[0]:
            y = np.asarray(outputs[name])
            if y.shape != sides[0][name].shape or y.dtype != self.dtypes[name]:
                return "wrong", (
                    f"{name} is {y.dtype}{list(y.shape)}, expected {self.dtypes[name]}{list(sides[0][name].shape)}"
                )
            right = [self.near(name, y, each[name]) for each in sides]
            fine = self._chosen(right, self.approximated(name))
            if self.undefined is not None and self.undefined.shape == fine.shape:
                same = near(
                    y, np.asarray(first[name]), self.dtypes[name], Tolerance("exact"), np.zeros(y.shape)
                )
                fine = np.where(self.undefined, same, fine)
            if engine == "iss" and self.unable is not None and self.unable.shape == fine.shape:
                fine = fine | (self.unable & np.isnan(y))
            if fine.all():
                continue
            undecided = self.disagree and not self.choice and bool((right[0] | right[-1]).all())
            told = "the references disagree: " if undecided else ""
            due = [each[name] for each in sides]
            return "undecided" if undecided else "wrong", told + _worst(name, y, fine, due, inputs)
        return "pass", ""

    def _chosen(
        self, right: list[NDArray[np.bool_]], approximated: NDArray[np.bool_] | bool
    ) -> NDArray[np.bool_]:
        """Return which elements are right, from which are by either reference."""
        match self.choice:
            case "skip":
                return np.ones_like(right[0])
            case "either":
                return right[0] | right[-1]
            case "reference":
                return right[0]
            case "runtime":
                return right[-1]
            case _:
                return right[0] & (right[-1] | approximated)


def _choice_side(case: GridCase, kind: str) -> str:
    """Return the side that is chosen for a case, empty for none."""
    choice = choice_for(case.name.partition("/")[2], kind)
    return "" if choice is None else choice.side


def _types_of_outputs(
    case: GridCase, runtime: Arrays | None, inputs: Mapping[str, NDArray[Any]]
) -> dict[str, np.dtype[Any]]:
    """Return the types of outputs as the model has them, by name; else what ONNX Runtime gives."""
    try:
        model = with_outputs(build(case), None)
    except Exception:
        outputs = runtime or References(case, Tolerance("exact")).evaluator(inputs) or {}
        return {name: array.dtype for name, array in outputs.items()}
    return {
        value.name: np.dtype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
        for value in model.graph.output
    }


def _slack(
    reference: NDArray[Any], dtype: np.dtype[Any], tolerance: Tolerance, magnitude: NDArray[Any] | None
) -> NDArray[Any]:
    """Return the most difference of every element, in its own unit."""
    ulps = tolerance.ulps(dtype.name)
    if not is_float(dtype) or not ulps:
        return np.zeros(reference.shape)
    size = np.abs(reference.astype(np.float64))
    if magnitude is not None and magnitude.shape == size.shape:
        size = np.abs(magnitude.astype(np.float64))
        # What a reference makes NaN the other may not: it has the slack of the largest.
        size = np.where(np.isnan(size), size[np.isfinite(size)].max(initial=0.0), size)
    elif tolerance.kind != "rounded":
        size = np.full(size.shape, size[np.isfinite(size)].max(initial=0.0))
    limits = float_limits(dtype)
    eps = max(limits.above_one, 2.0**-23) if dtype == np.float64 else limits.above_one
    size = np.minimum(np.nan_to_num(size, nan=0.0, posinf=limits.largest), limits.largest)
    exponent = np.maximum(np.floor(np.log2(np.maximum(size, 1e-320))), np.log2(limits.normal))
    with np.errstate(over="ignore"):
        return ulps * np.exp2(np.minimum(exponent, 1023)) * eps


def narrowed(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return numbers in double in a narrower type; in f16, what f32 still holds is clipped to the largest number."""
    with np.errstate(over="ignore"):
        found = values.astype(dtype)
    if dtype != np.float16:
        return found
    largest, end = float_limits(dtype).largest, float(np.finfo(np.float32).max)
    is_clipped = np.isinf(found) & (np.abs(values) <= end)
    return np.where(is_clipped, np.copysign(largest, values), found).astype(dtype)


def near(
    y: NDArray[Any], reference: NDArray[Any], dtype: np.dtype[Any], tolerance: Tolerance, slack: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return which elements are right; infinity is taken as the number after the largest."""
    if not is_float(dtype):
        # Sums of narrow integers are wider ones in numpy.
        is_wrapped = dtype.kind in "iu" and reference.dtype.kind in "iu"
        return np.asarray(y == (reference.astype(dtype) if is_wrapped else reference))
    a, b = y.astype(np.float64), reference.astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = narrowed(b, dtype).astype(np.float64)
    same = (a == rounded) | (np.isnan(a) & np.isnan(b))
    if tolerance.kind in ("exact", "rounded"):
        same &= (a != 0) | (np.signbit(a) == np.signbit(rounded)) | (b != 0)
    limits = float_limits(dtype)
    end = limits.largest * (1 + limits.above_one / 2) if dtype != np.float64 else np.inf
    with np.errstate(all="ignore"):
        close = np.abs(np.clip(a, -end, end) - np.clip(b, -end, end)) <= slack
    is_zero = (b == 0) & (tolerance.kind in ("exact", "rounded"))
    return np.asarray(same | (close & ~np.isnan(a) & ~np.isnan(b) & ~is_zero & (slack > 0)))


def _worst(
    name: str,
    y: NDArray[Any],
    fine: NDArray[np.bool_],
    sides: list[NDArray[Any]],
    inputs: Mapping[str, NDArray[Any]],
) -> str:
    place = tuple(int(i) for i in np.argwhere(~fine)[0])
    at = ", ".join(f"{n}={a[place]!s}" for n, a in inputs.items() if a.shape == y.shape)
    due = " / ".join(str(side[place]) for side in sides)
    return f"{name}: {np.count_nonzero(~fine)} of {fine.size}, at {list(place)} {y[place]!s} for {due} ({at})"
