"""One case of the grid: compiled, executed by every engine with every class of values, and compared."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from t10.backend import run_on_tiles
from t10.conformance.grid.cases import GridCase, build, inputs_of, with_outputs
from t10.conformance.grid.choices import choice_for
from t10.conformance.grid.references import Arrays, References
from t10.conformance.grid.values import VALUE_CLASSES, ValueClass, is_float
from t10.conformance.verdict import Status, Verdict
from t10.driver import Executable, compile
from t10.errors import InputError, UnsupportedOpError
from t10.plan.options import PlanOptions
from t10.tolerances import Tolerance, tolerance_of

CHIP = "test-16"
_OPTIONS = PlanOptions(reconcile="greedy", max_front=8)

Outcome = Literal["pass", "unsupported", "wrong", "undecided", "crash", "no reference"]

_STATUS: dict[Outcome, Status] = {
    "crash": "crash",
    "wrong": "wrong",
    "undecided": "wrong",
    "no reference": "unsupported",
    "unsupported": "unsupported",
}
"""From the worst on."""
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Finding:
    """What an engine gave for a class of values; `choice` names the choice that decided, `engine` may be `compile`."""

    engine: str
    values: str
    outcome: Outcome
    text: str = ""
    choice: str = ""


def grid_verdict(case: GridCase) -> Verdict:
    """Return what a case gives on both simulators: the worst of all classes of values."""
    started = time.perf_counter()
    findings = judge_grid(case)
    plan, plan_reason = _worst_of([each for each in findings if each.engine != "iss"])
    tiles, tiles_reason = _worst_of([each for each in findings if each.engine in ("iss", "compile")])
    seconds = time.perf_counter() - started
    return Verdict(case.name, case.operator, plan, plan_reason, (), seconds, tiles, tiles_reason)


def _worst_of(findings: Sequence[Finding]) -> tuple[Status, str]:
    """Return the worst status of findings and its first reason."""
    for outcome, status in _STATUS.items():
        found = [each for each in findings if each.outcome == outcome]
        if found:
            return status, " ".join(f"{found[0].values} {found[0].text}".split())[:_LONGEST]
    return "pass", ""


def judge_grid(case: GridCase) -> tuple[Finding, ...]:
    """Return what every engine gives for every class of values; defects are findings."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        try:
            model = _declared(case)
            if model is None:
                return (Finding("compile", "", "no reference", "neither reference has a kernel"),)
            path.write_bytes(model.SerializeToString())
            executable = compile(path, CHIP, options=_OPTIONS)
        except (UnsupportedOpError, InputError) as error:
            first = error.details[0] if error.details else str(error)
            return (Finding("compile", "", "unsupported", first.replace(f"{path}: ", "")),)
        except Exception as error:
            return (Finding("compile", "", "crash", f"{type(error).__name__}: {error}"),)
        return tuple(_executed(case, executable))


def _declared(case: GridCase) -> Any:
    """Return the model with typed outputs, None where nothing tells what they are."""
    model = build(case)
    try:
        return with_outputs(model, None)
    except Exception:  # what inference gives up on, the references may still compute
        references = References(case, Tolerance("exact"))
        inputs = inputs_of(case, "small")
        outputs = references.evaluator(inputs) or references.runtime(inputs)
        return None if outputs is None else with_outputs(model, outputs)


def value_classes(case: GridCase, tolerance: Tolerance) -> Iterator[ValueClass]:
    """Yield the classes of values that a case is tried with.

    Sums of floats over their whole range depend on the order of summation as a whole: they are tried with small
    numbers, and with specials among small numbers.
    """
    has_float = any("float" in name or name == "double" for name in case.types.values())
    in_order = tolerance.kind in ("summed", "composed") and has_float
    for kind in VALUE_CLASSES:
        if kind == "sparse" and not in_order:
            continue
        if kind in ("extreme", "full") and in_order:
            continue
        yield kind


def _executed(case: GridCase, executable: Executable) -> Iterator[Finding]:
    tolerance = tolerance_of(case.structure.operator)
    references = References(case, tolerance)
    engines: dict[str, Callable[[Mapping[str, Any]], Mapping[str, NDArray[Any]]]] = {
        "plan": executable.run,
        "iss": lambda inputs: run_on_tiles(executable, inputs).outputs,
    }
    taken = {value.name for value in executable.inputs}
    for kind in value_classes(case, tolerance):
        inputs = inputs_of(case, kind)
        due = Due.of(case, references, tolerance, kind, inputs)
        if due is None:
            yield Finding("compile", kind, "no reference", "neither reference has a kernel")
            continue
        for engine, run in engines.items():
            try:
                with np.errstate(all="ignore"):
                    outputs = run({name: array for name, array in inputs.items() if name in taken})
            except UnsupportedOpError as error:
                yield Finding(engine, kind, "unsupported", error.details[0] if error.details else str(error))
                continue
            except Exception as error:
                yield Finding(engine, kind, "crash", f"{type(error).__name__}: {error}")
                continue
            outcome, text = due.compared(outputs, inputs)
            yield Finding(engine, kind, outcome, text, due.choice if due.disagree else "")


@dataclass(frozen=True, slots=True)
class Due:
    """What both references give, and for every output what may differ."""

    reference: Arrays | None
    runtime: Arrays | None
    dtypes: Mapping[str, np.dtype[Any]]
    tolerance: Tolerance
    slack: Mapping[str, NDArray[Any]]
    """Most difference, by output, element by element."""
    disagree: bool = False
    choice: str = ""

    @classmethod
    def of(
        cls,
        case: GridCase,
        references: References,
        tolerance: Tolerance,
        kind: ValueClass,
        inputs: Mapping[str, NDArray[Any]],
    ) -> Due | None:
        """Return it, None if neither reference computes the case."""
        runtime, reference = references.runtime(inputs), references.evaluator(inputs)
        if (
            reference is not None
            and runtime is not None
            and any(reference[name].shape != runtime[name].shape for name in runtime)
        ):
            reference = None if choice_side(case, kind) == "runtime" else reference
            runtime = runtime if reference is None else None
        first = reference if reference is not None else runtime
        if first is None:
            return None
        plain = with_outputs_types(case, runtime)
        dtypes = {name: plain.get(name, array.dtype) for name, array in first.items()}
        magnitudes = references.evaluator(inputs, absolute=True) if tolerance.kind == "summed" else None
        slack = {
            name: _slack(array, dtypes[name], tolerance, None if magnitudes is None else magnitudes[name])
            for name, array in first.items()
        }
        due = cls(reference, runtime, dtypes, tolerance, slack)
        if reference is None or runtime is None:
            return due
        differ = any(not due.near(name, runtime[name], reference[name]).all() for name in runtime)
        if not differ:
            return due
        choice = choice_for(case.structure.operator, case.type_label, kind)
        return cls(reference, runtime, dtypes, tolerance, slack, True, "" if choice is None else choice.side)

    def near(self, name: str, y: NDArray[Any], reference: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which elements of an output are right by a reference."""
        return near(y, reference, self.dtypes[name], self.tolerance, self.slack[name])

    def compared(
        self, outputs: Mapping[str, NDArray[Any]], inputs: Mapping[str, NDArray[Any]]
    ) -> tuple[Outcome, str]:
        """Return what outputs are."""
        sides = [each for each in (self.reference, self.runtime) if each is not None]
        for name in sides[0]:
            y = np.asarray(outputs[name])
            if y.shape != sides[0][name].shape or y.dtype != self.dtypes[name]:
                return "wrong", (
                    f"{name} is {y.dtype}{list(y.shape)}, expected {self.dtypes[name]}{list(sides[0][name].shape)}"
                )
            right = [self.near(name, y, each[name]) for each in sides]
            if len(right) == 1 or self.choice == "reference":
                fine = right[0]
            elif self.choice == "runtime":
                fine = right[1]
            elif self.choice == "either":
                fine = right[0] | right[1]
            else:
                fine = right[0] & right[1]
            if fine.all():
                continue
            undecided = self.disagree and not self.choice and bool((right[0] | right[1]).all())
            told = "the references disagree: " if undecided else ""
            return "undecided" if undecided else "wrong", told + _worst(
                name, y, fine, [e[name] for e in sides], inputs
            )
        return "pass", ""


def choice_side(case: GridCase, kind: str) -> str:
    """Return the side that is chosen for a case, empty for none."""
    choice = choice_for(case.structure.operator, case.type_label, kind)
    return "" if choice is None else choice.side


def with_outputs_types(case: GridCase, runtime: Arrays | None) -> dict[str, np.dtype[Any]]:
    """Return the types of outputs as the model has them, by name; what ONNX Runtime gives where inference gives none."""
    from onnx import helper

    try:
        model = with_outputs(build(case), None)
    except Exception:
        return {} if runtime is None else {name: array.dtype for name, array in runtime.items()}
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
    elif tolerance.kind != "rounded":
        size = np.full(size.shape, size[np.isfinite(size)].max(initial=0.0))
    info: Any = ml_dtypes.finfo(dtype)
    size = np.minimum(np.nan_to_num(size, nan=0.0, posinf=float(info.max)), float(info.max))
    exponent = np.maximum(np.floor(np.log2(np.maximum(size, 1e-320))), np.log2(float(info.smallest_normal)))
    with np.errstate(over="ignore"):
        return ulps * np.exp2(np.minimum(exponent, 1023)) * float(info.eps)


def near(
    y: NDArray[Any], reference: NDArray[Any], dtype: np.dtype[Any], tolerance: Tolerance, slack: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return which elements are right; infinity is taken as the number after the largest."""
    if not is_float(dtype):
        return np.asarray(y == reference)
    a, b = y.astype(np.float64), reference.astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = b.astype(dtype).astype(np.float64)
    same = (a == rounded) | (np.isnan(a) & np.isnan(b))
    if tolerance.kind in ("exact", "rounded"):
        same &= (a != 0) | (np.signbit(a) == np.signbit(rounded)) | (b != 0)
    info: Any = ml_dtypes.finfo(dtype)
    end = float(info.max) * (1 + float(info.eps) / 2) if dtype != np.float64 else np.inf
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
