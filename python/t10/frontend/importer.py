"""From a model file to linalg on tensors.

imported = import_model("bert.onnx", shapes={"batch": 1})
imported.module            # one func.func; arguments are the inputs, then the weights
imported.weights["fc.w"]   # their values, where the file had them
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from t10.core.guard import reading
from t10.core.trust.files import MODEL_BYTES, read_bytes
from t10.dialect.mlir import new_context
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.double_islands import narrow_islands
from t10.frontend.imported import ImportedModel
from t10.frontend.lower import lower
from t10.frontend.mlir_text import mlir_text, parse_module
from t10.frontend.module_weights import lift_constants
from t10.frontend.onnx_file import LoadedModel, ShapeOverride, load_onnx, prepare


def import_model(
    path: str | Path,
    *,
    shapes: Mapping[str, ShapeOverride] | None = None,
    dtype: str | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    bounds: Mapping[str, int] | None = None,
    keep_f64: bool = False,
    context: Any = None,
    source: str | None = None,
) -> ImportedModel:
    """Return the model of a file: ONNX (`.onnx`), or MLIR text or bytecode of onnx-mlir or linalg (`.mlir`, `.mlirbc`).

    `shapes` gives extents by input name or dim parameter, `dtype` fp16 turns wide floats into f16, bf16=f32 and
    bf16=f16 bf16 alone, `constants` fixes inputs, which are inputs no longer, `bounds` gives results of which data
    decide the extent one (`t10.frontend.bounds`; all of them ONNX only); `keep_f64` leaves islands of f64 as they are
    (`t10.frontend.double_islands`); errors name the file `source`, which is its path by default. The module lives in
    `context`, a new one by default. Raises `InputError` for a file that cannot be read as a model and for dims that
    stay dynamic, and `UnsupportedOpError` naming every node that cannot be lowered.
    """
    context = context if context is not None else new_context()
    file = Path(path)
    shown = source or str(path)
    with reading(shown):
        if file.suffix in (".mlir", ".mlirbc") and file.is_file():
            if bounds:
                raise InputError(f"{shown}: --bound needs an ONNX model")
            model = _import_mlir(file, shown, shapes, dtype, constants, context)
        else:
            loaded = load_onnx(file, shapes=shapes, dtype=dtype, constants=constants, bounds=bounds)
            model = lift_constants(_lowered(loaded, context, function_name(file.stem)))
        return model if keep_f64 else narrow_islands(model)


def import_proto(
    model: Any,
    *,
    source: str,
    folder: Path | None = None,
    shapes: Mapping[str, ShapeOverride] | None = None,
    dtype: str | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    bounds: Mapping[str, int] | None = None,
    context: Any = None,
) -> ImportedModel:
    """Return an `onnx.ModelProto` in memory as `import_model` does; external data is looked for in `folder`.

    Long constants stay in the module.
    """
    context = context if context is not None else new_context()
    loaded = prepare(
        model,
        source=source,
        folder=folder or Path(),
        shapes=shapes,
        dtype=dtype,
        constants=constants,
        bounds=bounds,
    )
    return _lowered(loaded, context, function_name(model.graph.name or "main_graph"))


def function_name(stem: str) -> str:
    """Return a name for the function of a model: letters, digits and underscores."""
    name = re.sub(r"\W+", "_", stem).strip("_") or "main"
    return f"model_{name}" if name[0].isdigit() else name


def _lowered(loaded: LoadedModel, context: Any, name: str) -> ImportedModel:
    module = lower(
        loaded.model,
        context=context,
        weight_names=frozenset(loaded.weight_names),
        name=name,
        declared=loaded.declared,
        source=loaded.source,
        refused=loaded.refused,
    )
    return ImportedModel(
        module=module,
        weights=loaded.weights,
        input_names=loaded.input_names,
        output_names=loaded.output_names,
        weight_names=loaded.weight_names,
        source=loaded.source,
    )


def _model_of(text: str, source: str) -> Any:
    """Return the `onnx.ModelProto` of text in generic form."""
    from t10.frontend.onnx_dialect import to_onnx

    with new_context(allow_unregistered=True):
        module = parse_module(text, source)
        del text
        return to_onnx(module)


def _import_mlir(
    file: Path,
    source: str,
    shapes: Mapping[str, ShapeOverride] | None,
    dtype: str | None,
    constants: Mapping[str, ArrayLike] | None,
    context: Any,
) -> ImportedModel:
    from t10.frontend.linalg_file import read_linalg
    from t10.frontend.onnx_text import holds_onnx, normalize, refuse_krnl
    from t10.frontend.stablehlo_file import holds_stablehlo, read_stablehlo
    from t10.frontend.tosa_file import holds_tosa, read_tosa

    data = read_bytes(file, MODEL_BYTES)
    text = mlir_text(data, source)
    has_tosa = holds_tosa(text)
    if has_tosa or not holds_onnx(text):
        refuse_krnl(text, source)
        if shapes:
            raise InputError(
                f"{source}: --shape needs an ONNX model (linalg and StableHLO state their shapes)"
            )
        if constants:
            raise InputError(f"{source}: --constant needs an ONNX model")
        if dtype:
            raise InputError(
                f"{source}: --dtype needs an ONNX model (linalg and StableHLO state their types)"
            )
        if has_tosa:
            return read_tosa(text, source, context)
        read = read_stablehlo if holds_stablehlo(data) else read_linalg
        return read(data, source, context)
    del data  # weights are in the text, whose forms must not all be held at once
    text = normalize(text)
    imported = import_proto(
        _model_of(text, source),
        source=source,
        folder=file.parent,
        shapes=shapes,
        dtype=dtype,
        constants=constants,
        context=context,
    )
    if not imported.output_names:
        raise UnsupportedOpError(f"{source}: the entry point returns nothing")
    return lift_constants(imported)
