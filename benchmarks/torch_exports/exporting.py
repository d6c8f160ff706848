"""One module written by one exporter at one opset, or what the exporter says when it does not."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from t10.arrays import write_arrays
from t10.reference import INPUT_PREFIX, REFERENCE_PREFIX
from torch_exports.sample import Computed, Sample, torch

TORCHSCRIPT, DYNAMO = "torchscript", "dynamo"
OPSETS = {TORCHSCRIPT: range(7, 21), DYNAMO: range(18, 26)}
"""What each exporter offers."""
BATCH = "batch"

_onnx: Any = onnx  # typed in part only
_LONGEST = 200


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
    """Return a module as a file in `folder`; inputs are named x0, x1, ... and outputs y0, y1, ...

    Inputs and PyTorch's outputs are written beside it, as `t10 verify --inputs` reads them. What the folder has
    already is not exported again: a file, or the text of why there is none.
    """
    made = Export(sample.name, exporter, opset, folder / f"{sample.name}_{exporter}_{opset}.onnx")
    told = made.path.with_suffix(".txt")
    if told.exists():
        return replace(made, refusal=told.read_text(encoding="utf-8"))
    module, inputs = sample.build()
    with torch.no_grad():
        found = module(*inputs)
    outputs = (found,) if torch.is_tensor(found) else tuple(found)
    try:
        if not made.path.exists():
            with _quiet():
                _write(module, inputs, len(outputs), sample, made)
        refusal = _other_meaning(made)
    except Exception as error:  # exporters raise whatever they meet
        refusal = _told(error)
    if refusal:
        told.write_text(refusal, encoding="utf-8")
        return replace(made, refusal=refusal)
    given, wanted = tuple(x.numpy() for x in inputs), tuple(y.detach().numpy() for y in outputs)
    arrays = {f"{INPUT_PREFIX}x{i}": x for i, x in enumerate(given)}
    arrays |= {f"{REFERENCE_PREFIX}y{i}": y for i, y in enumerate(wanted)}
    write_arrays(made.path.with_suffix(".npz"), arrays)
    return replace(made, inputs=given, outputs=wanted)


def _told(error: BaseException) -> str:
    """Return what an exporter stumbled over: its own errors are pages of advice around it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:_LONGEST]


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


def _other_meaning(made: Export) -> str:
    """Return what is wrong with a file: another opset than asked for, or operators that its opset has not."""
    model = _onnx.load(str(made.path))
    found = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    if found != made.opset:
        return f"writes opset {found}"
    functions = {(function.domain, function.name) for function in model.functions}
    unknown = {
        node.op_type
        for node in model.graph.node
        if (node.domain, node.op_type) not in functions
        and not onnx.defs.has(node.op_type, found, node.domain)
    }
    return f"writes {', '.join(sorted(unknown))}, which opset {found} has not" if unknown else ""


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
