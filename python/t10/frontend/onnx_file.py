"""An ONNX file made ready for import: checked, static, made of primitive operators, its weights turned into inputs.

    loaded = load_onnx("bert.onnx", shapes={"batch": 1})

The steps, in order: read -> static shapes -> functions expanded -> constants folded -> weights lifted -> checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import ArrayLike, NDArray

from t10.errors import InputError, T10Error
from t10.frontend.batch_norms import fold_batch_norms
from t10.frontend.bounds import bound_results
from t10.frontend.constant_inputs import computed_constants
from t10.frontend.contributed import READ, rewrite_contributed
from t10.frontend.data_dependent import data_dependent
from t10.frontend.declared import use_declared_shapes
from t10.frontend.few_bits import OPSET as MASKS_FROM
from t10.frontend.few_bits import pack_weights
from t10.frontend.fixed_inputs import fix_inputs
from t10.frontend.fold import fold_constants
from t10.frontend.follow_ups import extents_asked, unknown_values
from t10.frontend.functions import expand_functions
from t10.frontend.half import CHANGES, change_floats
from t10.frontend.im2col import use_convolutions
from t10.frontend.legalize import drop_absent_inputs, drop_misread_inputs, legalize
from t10.frontend.limits import beyond_limits
from t10.frontend.nan import refuse_nan
from t10.frontend.narrow_types import widen_types
from t10.frontend.opsets import plain_domain, raise_opset
from t10.frontend.outer_constants import give_constants_to_branches
from t10.frontend.packed_weights import has_packed, widen_weights
from t10.frontend.pool_windows import without_ceil_mode
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.protobuf_reader import without_weights
from t10.frontend.reach import check_reach
from t10.frontend.reversals import expand_reversals
from t10.frontend.rewrites import bounded_loops
from t10.frontend.rewrites.apply import rewrite, rewrite_by
from t10.frontend.rewrites.control import BRANCHES
from t10.frontend.rewrites.quantized_contributed import expand_contributed
from t10.frontend.rules import check_rules, check_sizes
from t10.frontend.selections import expand_selections
from t10.frontend.sequences import expand_sequences
from t10.frontend.shapes import check_static_inputs, check_static_outputs, infer_shapes, one_line, set_shapes
from t10.frontend.sparse import make_dense
from t10.frontend.unsigned_integers import beyond_unsigned, declared_unsigned, expand_unsigned, without_sign
from t10.frontend.unsupported import UnsupportedNode, excise, unknown_operators
from t10.frontend.utf8 import first_not_text
from t10.frontend.weights import Weights, lift_weights, load_external, widen_cast_weights
from t10.frontend.wide_operators import compute_in_single

_onnx: Any = onnx  # some of its functions are typed in part only

ShapeOverride = Sequence[int] | int

HALF = "fp16"
"""The value of `dtype` by which f32 becomes f16 too."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model whose graph inputs are its `input_names`, then its weights, all of static shape.

    `weights` holds the values of `weight_names`, without those whose external file is absent (`missing`): such a
    model can be planned but not run. `model` holds no weight data.
    """

    model: Any
    source: str
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    weight_names: tuple[str, ...]
    weights: dict[str, NDArray[np.generic]]
    missing: tuple[str, ...]
    declared: dict[str, str]
    """Element types of inputs and outputs that are integers without a sign, by name: `ui8`, `ui32`."""
    refused: tuple[UnsupportedNode, ...] = ()
    """Nodes that cannot be compiled and were taken out, so that the others can be looked at; none in a model to use."""

    @property
    def has_all_weights(self) -> bool:
        """Return whether every weight has its values."""
        return not self.missing


def load_onnx(
    path: str | Path,
    *,
    shapes: Mapping[str, ShapeOverride] | None = None,
    dtype: str | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    bounds: Mapping[str, int] | None = None,
) -> LoadedModel:
    """Return the model of an .onnx file, ready for import.

    `shapes` gives extents by input name (`{"input_ids": (1, 128)}`) or by dim parameter (`{"batch": 1}`); `dtype` fp16
    turns wide floats into f16, `bf16=f32` and `bf16=f16` those of bf16 alone (`t10.frontend.half`).
    External data is read from beside the file. Raises `InputError` for a file that is missing, is no ONNX model or
    breaks ONNX's rules, for unknown names in `shapes`, and for dims that stay dynamic.
    """
    file = Path(path)
    model = read_onnx(file)
    folder, source = file.parent, str(path)
    return prepare(
        model,
        source=source,
        folder=folder,
        own=file,
        shapes=shapes,
        dtype=dtype,
        constants=constants,
        bounds=bounds,
    )


def read_onnx(file: Path) -> Any:
    """Return the protobuf of a file; raises `InputError` if it holds no ONNX model.

    External data is not read, and large weights inside the file are told as external data of the file itself. Sparse
    tensors become dense.
    """
    if not file.exists():
        raise InputError(f"model file {file} does not exist (expected an .onnx file)")
    if not file.is_file():
        raise InputError(f"{file} is not a file (expected an .onnx file)")
    try:
        model: Any = onnx.ModelProto.FromString(without_weights(file))
    except (DecodeError, OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{file} is not an ONNX model: {error}", hint="is the file complete?") from error
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise InputError(f"{file} is not an ONNX model: it holds no graph", hint="is the file complete?")
    field = first_not_text(model)
    if field:
        raise InputError(f"{file} is not an ONNX model: a {field} in it is not UTF-8 text")
    make_dense(model, str(file))
    return model


def prepare(
    model: Any,
    *,
    source: str,
    folder: Path,
    own: Path | None = None,
    shapes: Mapping[str, ShapeOverride] | None = None,
    dtype: str | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    bounds: Mapping[str, int] | None = None,
) -> LoadedModel:
    """Return a model in memory ready for import; `folder` is where its external data would lie, `own` its own file.

    Changes `model`. `constants` fixes inputs: they are inputs no longer; `bounds` gives results that data decide an
    extent. Errors say which file they are of.
    """
    try:
        return _prepared(model, source, folder, own, shapes, dtype, constants, bounds or {})
    except T10Error as error:
        if error.location is None and not error.message.startswith(source):
            error.location = source
        raise


def _prepared(
    model: Any,
    source: str,
    folder: Path,
    own: Path | None,
    shapes: Mapping[str, ShapeOverride] | None,
    dtype: str | None,
    constants: Mapping[str, ArrayLike] | None,
    bounds: Mapping[str, int],
) -> LoadedModel:
    if dtype is not None and dtype not in CHANGES:
        raise InputError(f"--dtype is {dtype!r} (expected {', '.join(CHANGES)})")
    check_rules(model, source)
    plain_domain(model)
    weights = Weights()
    set_shapes(model, shapes or {})
    fix_inputs(model, constants or {})
    check_reach(model, source)
    drop_misread_inputs(model)
    use_convolutions(model, source)
    load_external(model, folder, weights, own)
    lift_weights(model, weights)
    model = widen_types(model, weights, source)
    if has_packed(model):
        model = raise_opset(model, MASKS_FROM)
    widen_weights(model, weights)
    if dtype != HALF:  # In f16 the sums of integers would be no integers.
        expand_contributed(model)
    model = raise_opset(model)
    use_declared_shapes(model)
    check_static_inputs(model, frozenset(weights.names), source)
    refused = _taken_out(model, unknown_operators(model, source, READ))
    legalize(model)
    fold_batch_norms(model, weights)
    model = without_ceil_mode(model, source)
    if dtype is not None:
        model = change_floats(model, weights, source, CHANGES[dtype])
    compute_in_single(model)
    model = expand_functions(model)
    if dtype != HALF:
        expand_contributed(model)
    refused += _taken_out(model, unknown_operators(model, source, READ))
    lift_weights(model, weights)
    widen_cast_weights(model, weights)
    model = bound_results(infer_shapes(model, source), bounds, source)
    if pack_weights(model, weights):
        model = infer_shapes(model, source)
    check_sizes(model, source)
    while any(step(model) for step in _STEPS):
        model = infer_shapes(model, source)
        check_sizes(model, source)
    drop_absent_inputs(model)
    refused = _all_refused(model, source, weights, refused)
    declared = declared_unsigned(model)
    model = _as_looked_at(model, source) if refused else _finished(model, source, weights)
    refuse_nan(weights.values, source)
    return _loaded(model, source, weights, refused, declared)


def _all_refused(
    model: Any, source: str, weights: Weights, refused: list[UnsupportedNode]
) -> list[UnsupportedNode]:
    """Take the nodes out of a model that cannot be compiled, and return them behind those that are `refused`."""
    refused = refused + _taken_out(model, data_dependent(model, source, weights.names))
    asked = extents_asked(model, refused)
    refused += _taken_out(model, computed_constants(model, source, weights.names, asked))
    # What still needs constants has them once nodes before it are bounded.
    unlisted = _taken_out(model, computed_constants(model, source, weights.names))
    for beyond in (beyond_limits, beyond_unsigned):
        unknown = unknown_values(model, (*refused, *unlisted))
        refused += _taken_out(model, beyond(model, source, unknown))
    return refused


def _compute_both_branches(model: Any) -> bool:
    """Write both branches of every If that is left, whose condition data decide; return whether there was any."""
    return give_constants_to_branches(model) or rewrite_by(model, BRANCHES)


def _compute_all_steps(model: Any) -> bool:
    """Write all steps that a Loop may take which is left, whose end data decide; return whether there was any."""
    return rewrite_by(model, bounded_loops.RULES)


_STEPS = (
    fold_constants,
    expand_sequences,
    rewrite,
    rewrite_contributed,
    _compute_both_branches,
    _compute_all_steps,
)
"""What is done until there is nothing left to do, the first that changes the model; each returns whether it does."""


def _as_looked_at(model: Any, source: str) -> Any:
    """Return a model of which nodes were taken out, the others as they would be lowered."""
    expand_unsigned(model)
    model = infer_shapes(model, source)
    expand_selections(model)
    return infer_shapes(model, source)


def _finished(model: Any, source: str, weights: Weights) -> Any:
    """Return a model as it is lowered."""
    lift_weights(model, weights)
    expand_unsigned(model)
    model = infer_shapes(model, source)
    expand_reversals(model)
    expand_selections(model)
    lift_weights(model, weights)
    model = infer_shapes(model, source, strict=True)
    check_static_outputs(model)
    _check(model, source)
    return model


def _loaded(
    model: Any, source: str, weights: Weights, refused: list[UnsupportedNode], declared: dict[str, str]
) -> LoadedModel:
    """Return the model with its inputs before its weights."""
    lifted = frozenset(weights.names)
    inputs = tuple(i.name for i in model.graph.input if i.name not in lifted)
    _order_inputs(model, inputs, weights.names)
    return LoadedModel(
        model=model,
        source=source,
        input_names=inputs,
        output_names=tuple(o.name for o in model.graph.output),
        weight_names=tuple(weights.names),
        weights={name: without_sign(values) for name, values in weights.values.items()},
        declared=declared,
        missing=tuple(name for name in weights.names if name not in weights.values),
        refused=tuple(refused),
    )


def _taken_out(model: Any, found: list[UnsupportedNode]) -> list[UnsupportedNode]:
    """Take nodes out of the model, so that the others can be looked at, and return them."""
    if found:
        excise(model, found)
    return found


def _check(model: Any, source: str) -> None:
    """Run ONNX's own checker; raises `InputError` with its first line."""
    try:
        _onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise InputError(f"{source} breaks the rules of ONNX: {one_line(error)}") from error


def _order_inputs(model: Any, inputs: tuple[str, ...], weights: Sequence[str]) -> None:
    """Put the model's inputs before its weights, both in their order, and drop weights that nothing reads."""
    by_name = {value.name: value for value in model.graph.input}
    ordered = [by_name[name] for name in (*inputs, *weights)]
    replace_all(model.graph.input, ordered)
