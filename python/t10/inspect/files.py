"""A model file read for its facts, whatever its form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from t10.core.guard import reading
from t10.errors import InputError
from t10.inspect.facts import ModelFacts


def model_facts(path: str | Path, *, shapes: Mapping[str, Sequence[int] | int] | None = None) -> ModelFacts:
    """Return what a file holds: ONNX, MLIR text or bytecode of onnx-mlir or linalg.

    `shapes` gives extents by input name or symbolic dim (ONNX only). Raises `InputError` for a file that cannot be read
    as a model; rules that a readable one breaks are its `problems`. It works on models that cannot be compiled.
    """
    with reading(str(path)):
        return _facts(Path(path), shapes or {})


def _facts(file: Path, shapes: Mapping[str, Sequence[int] | int]) -> ModelFacts:
    if file.suffix in (".mlir", ".mlirbc") and file.is_file():
        from t10.inspect.mlir_facts import mlir_facts

        if shapes:
            raise InputError(f"{file}: --shape needs an ONNX model (MLIR text states its shapes)")
        return mlir_facts(file)
    from t10.inspect.onnx_facts import onnx_facts

    return onnx_facts(file, shapes)
