#!/usr/bin/env python3
"""Compare every text of onnx-mlir in a folder with ONNX Runtime on its source model.

    python benchmarks/onnx_mlir.py FOLDER [--only bert] [--chips test-16,test-64,ipu-mk2] [--expect FILE] [--json FILE]

The folder holds, at any depth, NAME.basic.mlir (--EmitONNXBasic) and NAME.ir.mlir (--EmitONNXIR) beside the NAME.onnx
they came from. Inputs are random, but for those in NAME.npz (in.x), and for node_X: those of the test X of the onnx
package; what such a model must know when it is compiled (a shape, axes) is fixed to them, and the verdict says so.
Symbolic dims get the extent of --extent. A model that does not fit on the first chip goes to the next one. If weights
make logits above 1,000, so that rounding decides the last Softmax, the logits are compared.

The file of --expect has a line `NAME: refused: part of the message` or `NAME: with constants a, b` for every text that
is not just equal: the exit code is 0 only if exactly these are so, and all others are equal.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from t10.arrays import Arrays, read_arrays
from t10.conformance.cases import Case, load_cases
from t10.driver import Executable, compile
from t10.errors import (
    InfeasiblePlanError,
    InputError,
    MissingConstantError,
    UnsupportedOpError,
)
from t10.frontend.importer import import_model
from t10.random_inputs import random_inputs
from t10.reference import compare, default_tolerance, run_onnx_runtime, split_reference

COLUMNS = f"{'text':<58} {'chip':<8} {'ops':>4} {'import s':>8} {'compile s':>9} {'error':>9} verdict"
MOST_LOGIT = 1e3
_NO_KERNEL = ("NOT_IMPLEMENTED", "Could not find an implementation", "FAIL :", "INVALID_GRAPH")
_onnx: Any = onnx  # typed in part only
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one text; `error` is the largest relative one of its outputs, None where nothing was compared."""

    name: str
    stage: str = "import"
    chip: str = ""
    operators: int = 0
    import_seconds: float = 0.0
    compile_seconds: float = 0.0
    error: float | None = None
    verdict: str = ""
    reason: str = ""
    constants: tuple[str, ...] = ()
    is_expected: bool = False

    @property
    def is_good(self) -> bool:
        """Return whether the text became what it should."""
        return self.is_expected or self.verdict.startswith("equal")


def main() -> int:
    arguments = _arguments()
    expected = expectations(arguments.expect)
    texts = sorted(path for path in arguments.folder.rglob("*.mlir") if arguments.only in str(path))
    if any(path.name.startswith("node_") for path in texts):
        node_cases()  # once, for all the processes below
    print(COLUMNS)
    rows: list[Row] = []
    for path in texts:
        row = judged(_apart(path, arguments), expected, arguments.expect is not None)
        rows.append(row)
        _print(row)
    missing = sorted(set(expected) - {row.name for row in rows}) if not arguments.only else []
    for name in missing:
        print(f"{name}: in the list of --expect, not in the folder")
    print_counts(rows)
    if arguments.json:
        arguments.json.write_text(
            json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8"
        )
    return 0 if rows and not missing and all(row.is_good for row in rows) else 1


def _apart(path: Path, arguments: Any) -> Row:
    """Return `measure` of a text, taken in a process of its own: a crash or a hang is a verdict too."""
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=lambda: sender.send(measure(path, arguments)))
    process.start()
    sender.close()
    try:
        if receiver.poll(arguments.seconds):
            return receiver.recv()
        verdict, reason = "HANGS", f"no result after {arguments.seconds} s"
    except EOFError:
        process.join()
        verdict, reason = "CRASH", f"exit code {process.exitcode}"
    finally:
        process.kill()
        process.join()
    return Row(path.name.removesuffix(".mlir"), verdict=verdict, reason=reason)


def measure(path: Path, arguments: Any) -> Row:
    """Return what becomes of a text; errors become the verdict."""
    row = Row(path.name.removesuffix(".mlir"))
    source = path.parent / f"{path.name.split('.')[0]}.onnx"
    with TemporaryDirectory() as folder:
        if rounding_decides(source, arguments.extent):
            path, source = without_last_softmax(path, source, Path(folder))
        return _measured(path, source, row, arguments)


def rounding_decides(source: Path, extent: int) -> bool:
    """Return whether a model ends in a Softmax of logits so large that their rounding errors decide what it makes."""
    model = _onnx.load(source, load_external_data=False)
    last = model.graph.node[-1]
    if last.op_type != "Softmax" or len(model.graph.output) != 1 or symbolic_dims(source, extent):
        return False
    feeds = {name: array + 1 for name, array in source_inputs(source, {}).items()}
    with TemporaryDirectory() as folder:
        cut = _cut(model, Path(folder) / source.name)
        logits = run_onnx_runtime(cut, feeds)[last.input[0]]
    return float(np.abs(logits).max()) > MOST_LOGIT


def without_last_softmax(path: Path, source: Path, folder: Path) -> tuple[Path, Path]:
    """Return a text and its source model without their last Softmax, in another folder."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r'(%\w+) = "onnx\.Softmax\w*"\((%\w+)\)', text)
    made, logits = found[-1]
    text = re.sub(rf"((?:onnx\.Return|return) ){made}\b", rf"\g<1>{logits}", text)
    model = _onnx.load(source)
    text = text.replace(
        f'onnx.name = "{model.graph.output[0].name}"', f'onnx.name = "{model.graph.node[-1].input[0]}"'
    )
    cut = folder / path.name
    cut.write_text(text, encoding="utf-8")
    return cut, _cut(model, folder / source.name)


def _cut(model: Any, file: Path) -> Path:
    """Write a model without its last node to a file."""
    logits = model.graph.node[-1].input[0]
    del model.graph.node[-1]
    model.graph.output[0].name = logits
    _onnx.save(model, file)
    return file


def _measured(path: Path, source: Path, row: Row, arguments: Any) -> Row:
    """Return what becomes of a text; errors become the verdict."""
    try:
        given = test_inputs(row.name, source)
        shapes = symbolic_dims(source, arguments.extent)
        start = time.perf_counter()
        constants = _imported(path, shapes, given)
        row = replace(row, stage="compile", import_seconds=round(time.perf_counter() - start, 2))
        start = time.perf_counter()
        executable, chip = _compiled(path, shapes, constants, arguments.chips.split(","))
        row = replace(
            row,
            stage="run",
            chip=chip,
            operators=len(executable.plan.graph.operators),
            compile_seconds=round(time.perf_counter() - start, 2),
            constants=tuple(sorted(constants)),
        )
        return _executed(executable, source, path, given, row)
    except (InputError, UnsupportedOpError, InfeasiblePlanError) as error:
        return replace(row, verdict="refused", reason=f"{type(error).__name__}: {error}")
    except Exception as error:  # one defect must not cost the other rows
        return replace(row, verdict="DEFECT", reason=f"{type(error).__name__}: {error}")


def test_inputs(name: str, source: Path) -> Arrays:
    """Return the inputs in the NAME.npz beside a model, or of the test of the onnx package that it is; else none."""
    beside = source.with_suffix(".npz")
    if beside.exists():
        return split_reference(read_arrays(beside))[0]
    if not name.startswith("node_"):
        return {}
    case = node_cases().get(f"node/test_{name.partition('.')[0].removeprefix('node_')}")
    if case is None:
        return {}
    model = _onnx.load(source, load_external_data=False)
    names = [value.name for value in model.graph.input]
    found = zip(names, case.data_sets[0].inputs, strict=False)
    return {name: array for name, array in found if array is not None}


@cache
def node_cases() -> dict[str, Case]:
    """Return the tests of single operators that come with the onnx package, by name."""
    return {case.name: case for case in load_cases(("node",))}


def _imported(path: Path, shapes: dict[str, int], given: Arrays) -> Arrays:
    """Import a text; return the inputs that had to be fixed, which are only those that the compiler asks for."""
    try:
        import_model(path, shapes=shapes)
    except MissingConstantError as error:
        constants = {name: given[name] for name in error.inputs if name in given}
        if len(constants) < len(error.inputs) or len(constants) == len(given):
            raise
        import_model(path, shapes=shapes, constants=constants)
        return constants
    return {}


def symbolic_dims(source: Path, extent: int) -> dict[str, int]:
    """Return an extent for every dim parameter among the inputs of a model."""
    model = _onnx.load(source, load_external_data=False)
    dims = (dim for value in model.graph.input for dim in value.type.tensor_type.shape.dim)
    return {dim.dim_param: extent for dim in dims if dim.dim_param}


def _compiled(
    path: Path, shapes: dict[str, int], constants: Arrays, chips: list[str]
) -> tuple[Executable, str]:
    """Return the executable for the first chip that holds the model, and the chip's name."""
    for chip in chips[:-1]:
        try:
            return compile(path, chip, shapes=shapes, constants=constants), chip
        except InfeasiblePlanError:
            continue
    return compile(path, chips[-1], shapes=shapes, constants=constants), chips[-1]


def _executed(executable: Executable, source: Path, path: Path, given: Arrays, row: Row) -> Row:
    """Return the row with what executing the model adds."""
    feeds = source_inputs(source, random_inputs(executable.plan.graph, seed=0) | given)
    taken = {value.name for value in executable.inputs}
    outputs = executable.run({name: array for name, array in feeds.items() if name in taken})
    tolerance = default_tolerance(executable.plan.graph)
    comparisons = compare(outputs, reference(source, path, feeds), tolerance)
    worst = max((each.error for each in comparisons), default=0.0)
    equal = bool(comparisons) and all(each.is_within for each in comparisons)
    return replace(row, error=worst, verdict="equal" if equal else "DIFFERS")


def source_inputs(source: Path, inputs: Arrays) -> Arrays:
    """Return the inputs of a source model in its own types; zeros for what the compiled model does not have."""
    model = _onnx.load(source, load_external_data=False)
    fixed = {tensor.name for tensor in model.graph.initializer}
    return {v.name: _feed(v, inputs) for v in model.graph.input if v.name not in fixed}


def reference(source: Path, text: Path, feeds: Arrays) -> Arrays:
    """Return the outputs of ONNX Runtime on the source model.

    A model whose external data is absent has them in its text, and what ONNX Runtime has no kernel for is computed by
    ONNX's own evaluator.
    """
    try:
        return run_onnx_runtime(source, feeds)
    except InputError as error:
        if "cannot read" in str(error):
            return run_onnx_runtime(text, feeds)
        if not any(cause in str(error) for cause in _NO_KERNEL):
            raise
    from onnx.reference import ReferenceEvaluator

    names = [value.name for value in _onnx.load(source, load_external_data=False).graph.output]
    evaluator: Any = ReferenceEvaluator(str(source))
    return dict(zip(names, evaluator.run(None, feeds), strict=True))


def _feed(value: Any, inputs: Arrays) -> Any:
    """Return the array for an input of the source model, in its type; zeros where the compiled model has no such."""
    kind = value.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if value.name in inputs:
        return inputs[value.name].astype(dtype)
    return np.zeros([dim.dim_value or 1 for dim in kind.shape.dim], dtype)


def expectations(file: Path | None) -> dict[str, str]:
    """Return what is to become of the texts that are not just equal, by name."""
    lines = file.read_text(encoding="utf-8").splitlines() if file else []
    kept = [line for line in lines if line.strip() and not line.startswith("#")]
    return {name.strip(): rest.strip() for name, _, rest in (line.partition(":") for line in kept)}


def judged(row: Row, expected: dict[str, str], is_listed: bool) -> Row:
    """Return the row with its verdict seen in the light of the list of what is to become of it, if there is one."""
    constants = f"with constants {', '.join(row.constants)}" if row.constants else ""
    told = f"{row.verdict} {constants}".strip()
    if not is_listed or row.verdict not in ("equal", "refused"):
        return replace(row, verdict=told)
    wanted = expected.get(row.name, "")
    part = wanted.removeprefix("refused:").strip()
    if row.verdict == "refused":
        good = wanted.startswith("refused:") and part in row.reason
    else:
        good = wanted == constants
    return replace(row, verdict=told if good else f"UNEXPECTED {told}", is_expected=good)


def print_counts(rows: list[Row]) -> None:
    """Print how many texts came how far."""
    imported = sum(row.stage != "import" for row in rows)
    compiled = sum(row.stage == "run" for row in rows)
    counts = Counter(row.verdict.partition(" with constants")[0] for row in rows)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    fixed = sum(row.verdict.startswith("equal with") for row in rows)
    print(f"{len(rows)} texts: {imported} imported, {compiled} compiled; {listed} ({fixed} with constants)")


def _print(row: Row) -> None:
    error = "-" if row.error is None else f"{row.error:.2e}"
    reason = f": {' '.join(row.reason.split())}" if row.reason else ""
    print(
        f"{row.name:<58.58} {row.chip:<8} {row.operators:>4} {row.import_seconds:>8.2f} "
        f"{row.compile_seconds:>9.2f} {error:>9} {row.verdict}{reason}",
        flush=True,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="where the texts and their source models lie, at any depth")
    parser.add_argument("--only", default="", metavar="TEXT", help="texts whose path holds this")
    parser.add_argument(
        "--chips", default="test-16,test-64,ipu-mk2", help="tried in this order (default: %(default)s)"
    )
    parser.add_argument("--extent", type=int, default=2, help="of every symbolic dim (default: %(default)s)")
    parser.add_argument("--expect", type=Path, metavar="FILE", help="what is not just equal, and why")
    parser.add_argument(
        "--seconds", type=float, default=300, help="most time of a text (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
