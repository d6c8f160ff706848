#!/usr/bin/env python3
"""Import the onnx package's operator tests as onnx-mlir would write them; count what is refused and why.

    python benchmarks/onnx_mlir_nodes.py [--only attention] [--every 10] [--refused]

Texts are those of `onnx_mlir_text.py`. What a text asks for is given, as its error says it: `--constant` with the
values of the test's inputs, `--shape` with their extents, `--bf16 f32`. Models that onnx-mlir refuses (4-bit floats,
2-bit integers) are left out. Prints one line per cause, then how many texts import; beside it, how many of the models
do so as ONNX.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import onnx_mlir_text

from t10.arrays import Arrays
from t10.conformance.cases import Case, load_cases
from t10.errors import InputError, MissingConstantError, T10Error
from t10.frontend.importer import import_model

_onnx: Any = onnx  # some of its functions are typed in part only
_BF16 = "--bf16 f32"
_QUOTED = re.compile(r"'[^']*'|\[[^]]*\]|\d+")


@dataclass(frozen=True, slots=True)
class Row:
    """What becomes of a test: as text and as ONNX, empty where it imports, otherwise the error."""

    name: str
    text: str
    direct: str
    given: tuple[str, ...]


def main() -> int:
    arguments = _arguments()
    cases = [case for case in load_cases(("node",)) if arguments.only in case.name][:: arguments.every]
    rows: list[Row] = []
    with TemporaryDirectory() as folder:
        for case in cases:
            row = measured(case, Path(folder))
            if row is not None:
                rows.append(row)
                _print(row, arguments)
    counts = Counter(_cause(row.text) for row in rows if row.text)
    for cause, count in counts.most_common():
        print(f"{count:>5}  {cause}")
    for what, n_good in (
        ("texts", sum(not row.text for row in rows)),
        ("models", sum(not row.direct for row in rows)),
    ):
        print(f"{len(rows)} {what}: {n_good} imported ({100 * n_good / max(len(rows), 1):.1f} %)")
    return 0


def measured(case: Case, folder: Path) -> Row | None:
    """Return what becomes of a test; None if onnx-mlir does not read its model."""
    name = case.name.replace("/", "_")
    try:
        text = onnx_mlir_text.emitted(case.model, name)
    except onnx_mlir_text.NotWritten:
        return None
    given = given_inputs(case)
    file, source = folder / f"{name}.onnx.mlir", folder / f"{name}.onnx"
    file.write_text(text, encoding="utf-8")
    _onnx.save(case.model, str(source))
    error, needed = imported(file, given)
    return Row(case.name, error, imported(source, given)[0], needed)


def given_inputs(case: Case) -> Arrays:
    """Return the inputs of a test's first run."""
    if not case.data_sets:
        return {}
    pairs = zip(case.model.graph.input, case.data_sets[0].inputs, strict=False)
    return {value.name: array for value, array in pairs if array is not None}


def imported(file: Path, given: Arrays) -> tuple[str, tuple[str, ...]]:
    """Return the error, empty if there is none, and what had to be given: constants by name, extents as `name=1x2`."""
    constants: Arrays = {}
    shapes: dict[str, tuple[int, ...]] = {}
    dtype: str | None = None
    while True:
        told = (*constants, *(f"{name}={'x'.join(map(str, shape))}" for name, shape in shapes.items()))
        try:
            import_model(file, shapes=shapes, constants=constants, dtype=dtype)
        except MissingConstantError as error:
            more = {name: given[name] for name in error.inputs if name in given and name not in constants}
            if not more:
                return _line(error), told
            constants |= more
            shapes = {name: shape for name, shape in shapes.items() if name not in constants}
        except InputError as error:
            found = re.search(r"--shape ([^ =]+)=", error.hint or "")
            name = found[1] if found else ""
            if name not in given or name in shapes:
                return _line(error), told
            shapes[name] = given[name].shape
        except T10Error as error:
            if dtype is not None or not any(_BF16 in text for text in (error.hint or "", *error.details)):
                return _line(error), told
            dtype = "bf16=f32"
        except Exception as error:  # a defect is a row like any other
            return f"DEFECT {type(error).__name__}: {error}", told
        else:
            return "", told


def _line(error: T10Error) -> str:
    return error.message if not error.details else error.details[0].partition("': ")[2] or error.details[0]


def _cause(text: str) -> str:
    """Return an error without the names and numbers in it."""
    return _QUOTED.sub("..", " ".join(text.split()))[:110]


def _print(row: Row, arguments: Any) -> None:
    if row.text and (arguments.refused or not row.direct):
        print(f"{row.name:<60} {'' if row.direct else '(ONNX imports) '}{row.text[:200]}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="tests whose name holds this")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every n-th test")
    parser.add_argument("--refused", action="store_true", help="print every text that is refused, and why")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
