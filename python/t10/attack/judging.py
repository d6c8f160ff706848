"""Which results are right: those of ONNX Runtime, or, where docs/numerics.md decides otherwise, of ONNX's evaluator.

ONNX Runtime loses a NaN in maxima by its place, and saturates sums and powers of integers. What it gives another result
for than the engines is right if ONNX's reference evaluator has that result, and told as that.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays
from t10.attack.shaking import Shaken
from t10.attack.written_out import written_out
from t10.errors import InputError
from t10.frontend.coerced_rows import COERCED
from t10.frontend.opsets import OLDEST
from t10.frontend.schemas import opset_versions
from t10.frontend.unsupported import STANDARD_DOMAINS, any_node
from t10.reference import Comparison, OnnxRuntime, compare, nearer, relative_error
from t10.tolerances import RELATIVE

_SECOND_FACTORS = {
    **dict.fromkeys(("ConvInteger", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat"), 1),
    **dict.fromkeys(("QGemm", "QLinearConv", "QLinearMatMul"), 3),
}
"""By operator, which input is multiplied with the first one and may be int8."""


class Judge:
    """What results of a model are compared with."""

    def __init__(self, model: OnnxRuntime, tolerance: float) -> None:
        """Keep what computes references, and how far results may be off."""
        self._model, self._tolerance = model, tolerance
        self._evaluator: Any = None

    def compared(
        self,
        found: Mapping[str, NDArray[Any]],
        references: Arrays,
        inputs: Arrays,
        more: Mapping[str, float] | None = None,
    ) -> tuple[Comparison, ...]:
        """Return every output against ONNX Runtime's or, element by element, the evaluator's of the same inputs.

        `more` is what outputs may be off by besides the tolerance.
        """
        first = compare(found, references, self._tolerance, more)
        if all(each.is_within for each in first):
            return first
        others = self._evaluated(inputs)
        return tuple(
            each if each.is_within else self._by_both(each, found, references, others, more) for each in first
        )

    def moved_by_roundings(self, inputs: Arrays, name: str) -> float:
        """Return how far an output is off, as `Comparison.error` says it, if values on the way are rounded otherwise.

        In f16, which ONNX Runtime computes in f32, all of them are rounded. 0 where that cannot be found out.
        """
        try:
            model = written_out(self._model, inputs)
            exact, values = model.outputs(inputs), {**inputs, **model.values(inputs)}
            shaken = Shaken(model, values, is_half=self._tolerance >= RELATIVE["f16"])
            moved = [each[name] for each in shaken.outputs(inputs, values) if name in exact]
        except InputError:
            return 0.0
        errors = [relative_error(each, exact[name]) for each in moved if each.shape == exact[name].shape]
        return max(errors, default=0.0)

    def saturated(self) -> str:
        """Return an operator whose sums of uint8 times int8 may saturate in ONNX Runtime on this processor, or nothing.

        Constant operands of int8 do not: the session turns them to uint8.
        """
        graph = self._model.model.graph
        constants = {tensor.name for tensor in graph.initializer}
        for node in graph.node:
            place = _SECOND_FACTORS.get(node.op_type)
            if place is not None and node.input[place] not in constants and _saturates():
                return f"{node.op_type} {node.name or node.output[0]!r}"
        return ""

    def _by_both(
        self,
        wrong: Comparison,
        found: Mapping[str, NDArray[Any]],
        references: Arrays,
        others: Arrays,
        more: Mapping[str, float] | None,
    ) -> Comparison:
        """Return a comparison of which the evaluator has the elements that ONNX Runtime has not, else as it was."""
        name = wrong.name
        if name not in others or others[name].shape != wrong.shape:
            return wrong
        taken = nearer(found[name], references[name], others[name])
        (again,) = compare({name: found[name]}, {name: taken}, self._tolerance, more)
        return replace(again, note=f"{wrong.worst_text} by ONNX Runtime") if again.is_within else wrong

    def _evaluated(self, inputs: Arrays) -> Arrays:
        """Return what the evaluator gives; nothing where it cannot compute the model in its opset."""
        if _reads_rows(self._model.model):
            return {}
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                if self._evaluator is None:
                    self._evaluator = _evaluator(self._model.model)
                results = self._evaluator.run(None, self._model.feeds(inputs))
        except Exception:  # numpy, and whatever an operator's reference is written with
            return {}
        names = (value.name for value in self._model.model.graph.output)
        pairs = zip(names, results, strict=True)
        return {
            name: np.asarray(each) for name, each in pairs if not isinstance(each, (list, dict, type(None)))
        }


def _reads_rows(model: Any) -> bool:
    """Return whether operators of a model coerce their input to rows: the evaluator computes along one axis."""
    return opset_versions(model).get("", OLDEST) < OLDEST and any_node(
        model, lambda node: node.op_type in COERCED and node.domain in STANDARD_DOMAINS
    )


@cache
def _saturates() -> bool:
    """Return whether ONNX Runtime adds products of uint8 and int8 in 16 bits here: on x86 without VNNI."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (uint8[1, 4] a, int8[4, 1] b) => (int32[1, 1] y) { y = MatMulInteger (a, b) }"""
    onnx: Any = importlib.import_module("onnx")
    a, b = np.full((1, 4), 255, np.uint8), np.full((4, 1), 127, np.int8)
    made = OnnxRuntime(onnx.parser.parse_model(text), Path("sums")).outputs({"a": a, "b": b})
    return int(made["y"][0, 0]) != 4 * 255 * 127


def _evaluator(model: Any) -> Any:
    """Return ONNX's evaluator with poolings in which a NaN wins wherever it stands, and powers of integers."""
    onnx_reference: Any = importlib.import_module("onnx.reference")
    pooling: Any = importlib.import_module("onnx.reference.ops.op_max_pool").MaxPool
    power: Any = importlib.import_module("onnx.reference.ops.op_pow").Pow
    operator: Any = importlib.import_module("onnx.reference.op_run").OpRun

    constants = {tensor.name for tensor in model.graph.initializer}
    constants |= {node.output[0] for node in model.graph.node if node.op_type == "Constant"}
    is_computed = any(node.op_type == "Pow" and node.input[1] not in constants for node in model.graph.node)

    def pooled(pool: Any, x: NDArray[Any], *rest: Any, **attributes: Any) -> tuple[NDArray[Any], ...]:
        return pooling._run(pool, x, *rest, **attributes)

    class MaxPool(pooling):
        """The largest of every window, NaN above all."""

        op_domain = ""

        def _run(self, x: NDArray[Any], *rest: Any, **attributes: Any) -> tuple[NDArray[Any], ...]:
            is_nan = np.isnan(x)
            without = np.where(is_nan, -np.inf, x).astype(x.dtype)
            y, *places = pooled(self, without, *rest, **attributes)
            (hit, *_) = pooled(self, is_nan.astype(x.dtype), *rest, **attributes)
            return (np.where(hit > 0, np.nan, y).astype(x.dtype), *places)

    class Pow(power):
        """Integers to the power of integers modulo 2^width, negative powers cut: numpy has none of these.

        Computed exponents above 63, which overflow, are 62 or 63 as in programs.
        """

        op_domain = ""

        def _run(self, a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], ...]:
            if a.dtype.kind not in "iu" or b.dtype.kind not in "iu":
                return power._run(self, a, b)
            wide, exponent = a.astype(np.int64), b.astype(np.int64)
            most = exponent % 2 + 62 if is_computed else exponent
            whole = np.power(wide, np.maximum(np.minimum(exponent, most), 0))
            cut = np.where(np.abs(wide) == 1, np.power(wide, exponent % 2), 0)
            return (np.where(exponent < 0, cut, whole).astype(a.dtype),)

    class GlobalMaxPool(operator):
        """The largest of every channel, NaN above all."""

        op_domain = ""

        def _run(self, x: NDArray[Any]) -> tuple[NDArray[Any]]:
            return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)

    return onnx_reference.ReferenceEvaluator(model, new_ops=[MaxPool, GlobalMaxPool, Pow])
