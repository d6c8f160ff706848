"""One module written by one exporter at one opset, or what the exporter says when it does not."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from torch_exports.sample import Computed, Sample, torch

TORCHSCRIPT, DYNAMO = "torchscript", "dynamo"
OPSETS = {TORCHSCRIPT: range(7, 21), DYNAMO: range(18, 24)}
"""What each exporter offers."""
BATCH = "batch"

_onnx: Any = onnx  # typed in part only
_LONGEST = 160


@dataclass(frozen=True, slots=True)
class Export:
    """A file, the inputs it was written with, and what the module makes of them; or why there is none.

    `inputs` and `outputs` are in the order of the model's.
    """

    sample: str
    exporter: str
    opset: int
    path: Path
    inputs: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()
    refusal: str = ""


def export(sample: Sample, exporter: str, opset: int, folder: Path) -> Export:
    """Return a module as a file in `folder`; inputs are named x0, x1, ... and outputs y0, y1, ..."""
    made = Export(sample.name, exporter, opset, folder / f"{sample.name}_{exporter}_{opset}.onnx")
    try:
        module, inputs = sample.build()
        with torch.no_grad():
            found = module(*inputs)
        outputs = (found,) if torch.is_tensor(found) else tuple(found)
        with _quiet():
            _write(module, inputs, len(outputs), sample, made)
        refusal = _other_opset(made)
    except Exception as error:  # exporters raise whatever they meet
        refusal = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return Export(sample.name, exporter, opset, made.path, refusal=refusal[:_LONGEST])
    arrays = tuple(x.numpy() for x in inputs)
    wanted = tuple(y.detach().numpy() for y in outputs)
    return Export(sample.name, exporter, opset, made.path, arrays, wanted, refusal)


def _write(module: Any, inputs: tuple[Any, ...], n_outputs: int, sample: Sample, made: Export) -> None:
    names = [f"x{i}" for i in range(len(inputs))]
    options: dict[str, Any] = {
        "input_names": names,
        "output_names": [f"y{i}" for i in range(n_outputs)],
        "opset_version": made.opset,
    }
    if made.exporter == TORCHSCRIPT:
        open_axes = {names[i]: {axis: BATCH} for i, axis in sample.open_axes.items()}
        torch.onnx.export(
            module, inputs, str(made.path), dynamo=False, dynamic_axes=open_axes or None, **options
        )
        return
    if sample.open_axes:
        batch = torch.export.Dim(BATCH)
        each = tuple(
            {sample.open_axes[i]: batch} if i in sample.open_axes else None for i in range(len(inputs))
        )
        options["dynamic_shapes"] = (
            (each,) if isinstance(module, Computed) else each
        )  # its inputs are one argument
    program = torch.onnx.export(module, inputs, dynamo=True, verbose=False, **options)
    program.save(str(made.path), external_data=False)


def _other_opset(made: Export) -> str:
    """Return what is said of a file of another opset: the exporter warns, and writes the one it can."""
    model = _onnx.load(str(made.path))
    found = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    return "" if found == made.opset else f"written in opset {found}"


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Keep what exporters print, native code included, from standard output and standard error."""
    kept = {number: os.dup(number) for number in (1, 2)}
    sys.stdout.flush()
    logging.disable(logging.ERROR)
    with open(os.devnull, "w", encoding="utf-8") as nothing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in kept:
            os.dup2(nothing.fileno(), number)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, copy in kept.items():
                os.dup2(copy, number)
                os.close(copy)
            logging.disable(logging.NOTSET)
