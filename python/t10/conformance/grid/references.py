"""The two references: ONNX's reference evaluator, in double where results are rounded, and ONNX Runtime."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from t10.conformance.grid.cases import GridCase, build, newest_schemas
from t10.tolerances import Tolerance

Arrays = dict[str, NDArray[Any]]

_evaluator: Any = ReferenceEvaluator


class References:
    """What both references give for one model; either may have no kernel for it."""

    def __init__(self, case: GridCase, tolerance: Tolerance) -> None:
        """Prepare both; a session is made once per model."""
        is_rounded = tolerance.kind != "exact" or "float16" in case.types.values()
        self.is_promoted = is_rounded and _takes_double(case)
        self._is_cast_to_half = case.structure.operator in ("Cast", "CastLike") and case.name.split("/")[
            2
        ].endswith("-float16")
        self._masks = {f"x{i}" for i, e in enumerate(case.structure.inputs) if e and e.formal == "attn_mask"}
        self._model = build(case, promoted=self.is_promoted)
        self._session: Any = None
        self._plain = build(case)

    def evaluator(self, inputs: Mapping[str, NDArray[Any]], *, absolute: bool = False) -> Arrays | None:
        """Return what the reference evaluator gives; `absolute` gives it magnitudes of inputs."""
        if self._is_cast_to_half:
            return {"y0": inputs["x0"].astype(np.float64)}
        wide = {name: self._widened(array, absolute=absolute) for name, array in inputs.items()}
        for name in self._masks & wide.keys():  # the evaluator makes an integer of -infinity
            if wide[name].dtype.kind in "iu":
                wide[name] = wide[name].astype(np.float64)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = _evaluator(self._model).run(None, wide)
        except Exception:  # numpy, and whatever an operator's reference is written with
            return None
        if any(isinstance(value, list) for value in found):  # a sequence is no tensor
            return None
        names = [value.name for value in self._model.graph.output]
        return {name: np.asarray(value) for name, value in zip(names, found, strict=True)}

    def _widened(self, array: NDArray[Any], *, absolute: bool) -> NDArray[Any]:
        is_float = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
        wide = array.astype(np.float64) if self.is_promoted and is_float else array
        return np.abs(wide) if absolute and is_float else wide

    @property
    def is_double(self) -> bool:
        """Return whether results of the evaluator are double, to be narrowed to the type of the model."""
        return self.is_promoted or self._is_cast_to_half

    def runtime(self, inputs: Mapping[str, NDArray[Any]]) -> Arrays | None:
        """Return what ONNX Runtime gives."""
        runtime: Any = importlib.import_module("onnxruntime")
        try:
            if self._session is None:
                options = runtime.SessionOptions()
                options.log_severity_level = 4
                options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
                options.intra_op_num_threads = 1
                self._session = runtime.InferenceSession(
                    self._plain.SerializeToString(), options, providers=["CPUExecutionProvider"]
                )
            found = self._session.run(None, dict(inputs))
        except Exception:  # onnxruntime raises classes of its own without a common base
            return None
        if any(isinstance(value, list) for value in found):  # a sequence is no tensor
            return None
        names = [value.name for value in self._plain.graph.output]
        return {name: np.asarray(value) for name, value in zip(names, found, strict=True)}


def _takes_double(case: GridCase) -> bool:
    """Return whether every input of floating point could be double."""
    schema = newest_schemas()[case.structure.operator]
    floats = [v for v, name in case.types.items() if name in ("float16", "float", "bfloat16")]
    taken = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    return bool(floats) and all("tensor(double)" in taken.get(v, ()) for v in floats)
