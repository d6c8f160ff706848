"""Cases of the grid: compiled, executed by every engine with every class of values, and compared."""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.backend import lowered, run_on_host, run_on_tiles, write_program
from t10.conformance.grid.cases import GridCase, GridPack, build, inputs_of, merged, prefix, with_outputs
from t10.conformance.grid.due import Due
from t10.conformance.grid.finding import Finding, Outcome, worst_of
from t10.conformance.grid.references import References
from t10.conformance.grid.values import VALUE_CLASSES, ValueClass
from t10.conformance.verdict import Status, Verdict
from t10.driver import compile
from t10.errors import InputError, T10Error, UnsupportedOpError
from t10.plan.options import PlanOptions
from t10.tolerances import Tolerance, tolerance_of

CHIP = "test-16"
_OPTIONS = PlanOptions(reconcile="greedy", max_front=8)

Run = Callable[[Mapping[str, Any]], Mapping[str, NDArray[Any]]]


def pack_verdict(pack: GridPack) -> Verdict:
    """Return a verdict with one part per case of a pack; defects are verdicts too."""
    started = time.perf_counter()
    parts = tuple(
        _verdict(case, findings)
        for case, findings in zip(pack.cases, judge_cases(pack.cases, on_host=pack.is_on_host), strict=True)
    )
    return Verdict(pack.name, pack.operator, "pass", seconds=time.perf_counter() - started, parts=parts)


def _verdict(case: GridCase, findings: Sequence[Finding]) -> Verdict:
    """Return what a case gives on each engine: the worst of all classes of values."""

    def on(engine: str) -> tuple[Status, str]:
        return worst_of([each for each in findings if each.engine in (engine, "compile")])

    (plan, plan_reason), (tiles, tiles_reason), (host, host_reason) = on("plan"), on("iss"), on("poplar-host")
    is_on_host = any(each.engine == "poplar-host" for each in findings)
    n = sum(each.engine == "plan" for each in findings)
    return Verdict(
        case.name, case.operator, plan, plan_reason, tiles=tiles, tiles_reason=tiles_reason, n_inputs=n,
        host=host if is_on_host else "", host_reason=host_reason if is_on_host else "",
    )  # fmt: skip


def judge_cases(cases: Sequence[GridCase], *, on_host: bool = False) -> list[tuple[Finding, ...]]:
    """Return the findings of every case: compiled as one model, or one by one where that gives anything but numbers."""
    if len(cases) > 1:
        with contextlib.suppress(Exception):  # told case by case below
            return _judge_together(cases, on_host=on_host)
        return [judge_cases((case,), on_host=on_host)[0] for case in cases]
    try:
        return _judge_together(cases, on_host=on_host)
    except _NoReferenceError:
        return [(Finding("compile", "", "no reference", "neither reference has a kernel"),)]
    except (UnsupportedOpError, InputError) as error:
        return [(Finding("compile", "", "unsupported", _stated(error)),)]
    except Exception as error:
        return [(Finding("compile", "", "crash", f"{type(error).__name__}: {error}"),)]


class _NoReferenceError(Exception):
    """Nothing tells what the outputs of a model are."""


def _stated(error: T10Error) -> str:
    """Return what an error says first, without the file."""
    details = error.details if isinstance(error, UnsupportedOpError) else ()
    first = details[0] if details else error.message
    return re.sub(r"\S*model\.onnx: |operator 'c0_\w+': ", "", first).replace("'c0_", "'")


def _judge_together(cases: Sequence[GridCase], *, on_host: bool) -> list[tuple[Finding, ...]]:
    """Return the findings of cases in one model; raises what compiling raises, and of several what running raises."""
    model = merged([_declared(case) for case in cases])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        try:
            executable = compile(path, CHIP, options=_OPTIONS, program=True)
        except UnsupportedOpError as error:
            if len(cases) > 1:
                raise
            refusal = _stated(error)
            executable = compile(path, CHIP, options=_OPTIONS)
            engines: dict[str, Run] = {"plan": executable.run, "iss": _refusing(refusal)}
        else:
            engines = {"plan": executable.run, "iss": lambda given: run_on_tiles(executable, given).outputs}
            if on_host:
                write_program(executable, lowered(executable), folder)
                engines["poplar-host"] = lambda given: run_on_host(executable, folder, given)
        return _executed(cases, engines, frozenset(value.name for value in executable.inputs))


def _refusing(refusal: str) -> Run:
    """Return an engine that runs nothing."""

    def run(given: Mapping[str, Any]) -> Mapping[str, NDArray[Any]]:
        del given
        raise UnsupportedOpError(refusal)

    return run


def _declared(case: GridCase) -> Any:
    """Return the model with typed outputs; raises `_NoReferenceError` where nothing tells what they are."""
    model = build(case)
    try:
        return with_outputs(model, None)
    except Exception:  # what inference gives up on, the references may still compute
        references = References(case, Tolerance("exact"))
        inputs = inputs_of(case, "small")
        outputs = references.evaluator(inputs) or references.runtime(inputs)
        if outputs is None:
            raise _NoReferenceError from None
        return with_outputs(model, outputs)


def value_classes(case: GridCase, tolerance: Tolerance) -> Iterator[ValueClass]:
    """Yield the classes of values that a case is tried with.

    Sums of floats over their whole range depend on the order of summation as a whole: they are tried with small
    numbers, and with specials among small numbers. Variations of attributes move numbers: small ones tell.
    """
    if case.structure.is_variation:
        yield "small"
        return
    has_float = any("float" in name or name == "double" for name in case.types.values())
    in_order = tolerance.kind in ("summed", "composed") and has_float
    for kind in VALUE_CLASSES:
        if kind == "sparse" and not in_order:
            continue
        if kind in ("extreme", "full") and in_order:
            continue
        yield kind


def _executed(
    cases: Sequence[GridCase], engines: Mapping[str, Run], taken: frozenset[str]
) -> list[tuple[Finding, ...]]:
    """Return what engines give for every class of values; raises what ends a run of several cases."""
    tolerance = tolerance_of(cases[0].structure.operator)
    references = [References(case, tolerance) for case in cases]
    found: list[list[Finding]] = [[] for _ in cases]
    for kind in value_classes(cases[0], tolerance):
        inputs = [inputs_of(case, kind) for case in cases]
        due = [
            Due.of(case, each, given, tolerance_of(case.structure.operator, _reduction(case)), kind)
            for case, each, given in zip(cases, references, inputs, strict=True)
        ]
        given = {prefix(i) + name: array for i, each in enumerate(inputs) for name, array in each.items()}
        given = {name: array for name, array in given.items() if name in taken}
        first: Mapping[str, NDArray[Any]] = {}
        for engine, run in engines.items():
            try:
                with np.errstate(all="ignore"):
                    outputs = run(given)
            except Exception as error:
                if len(cases) > 1:
                    raise
                found[0].append(_ended(engine, kind, error))
                continue
            first = first or outputs
            for i, each in enumerate(due):
                outcome: Outcome = "no reference"
                text = "neither reference has a kernel"
                if each is not None:
                    outcome, text = each.compared(_of_case(outputs, i), inputs[i], _of_case(first, i), engine)
                found[i].append(Finding(engine, kind, outcome, text))
    return [tuple(each) for each in found]


def _reduction(case: GridCase) -> str:
    """Return how a scatter combines what hits one place, empty for other operators."""
    value = case.structure.attributes.get("reduction", b"")
    return value.decode() if isinstance(value, bytes) else str(value)


def _ended(engine: str, kind: str, error: Exception) -> Finding:
    if isinstance(error, UnsupportedOpError):
        return Finding(engine, kind, "unsupported", _stated(error))
    return Finding(engine, kind, "crash", f"{type(error).__name__}: {error}")


def _of_case(outputs: Mapping[str, NDArray[Any]], number: int) -> dict[str, NDArray[Any]]:
    """Return the outputs of the n-th model of a merged one."""
    begin = prefix(number)
    return {name.removeprefix(begin): y for name, y in outputs.items() if name.startswith(begin)}
