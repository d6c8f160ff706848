"""A model on all engines: what the plan simulator, the instruction-set simulator and the emitted C++ compute."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import t10
from t10.arrays import Arrays
from t10.backend import lowered, run_on_host, run_on_tiles, write_program


def on_every_engine(model: Any, inputs: Arrays, folder: Path, chip: str = "test-16") -> dict[str, Arrays]:
    """Return the outputs by engine."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    executable = t10.compile(path, chip, program=True)
    write_program(executable, lowered(executable), folder / "program")
    return {
        "plan": executable.run(inputs),
        "iss": dict(run_on_tiles(executable, inputs).outputs),
        "poplar-host": run_on_host(executable, folder / "program", inputs),
    }


def on_simulators(model: Any, inputs: Arrays, folder: Path, chip: str = "test-16") -> dict[str, Arrays]:
    """Return the outputs of the plan simulator and of the instruction-set simulator."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    executable = t10.compile(path, chip, program=True)
    return {"plan": executable.run(inputs), "iss": dict(run_on_tiles(executable, inputs).outputs)}


def by_runtime(model: Any, inputs: Arrays) -> Arrays:
    """Return what ONNX Runtime computes as the operators stand: no fusions, which may round elsewhere, one thread.

    Raises what it raises where it has no kernel.
    """
    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


@cache
def saturates() -> bool:
    """Return whether ONNX Runtime's sums of uint8 times int8 are wrong here: so they are on x86 without VNNI."""
    types = {
        "a": (TensorProto.UINT8, (1, 4)),
        "b": (TensorProto.INT8, (4, 1)),
        "y": (TensorProto.INT32, (1, 1)),
    }
    a, b, y = (helper.make_tensor_value_info(name, *kind) for name, kind in types.items())
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "sums", [a, b], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    inputs = {"a": np.full((1, 4), 255, np.uint8), "b": np.full((4, 1), 127, np.int8)}
    return int(by_runtime(model, inputs)["y"][0, 0]) != 4 * 255 * 127


def by_reference(model: Any, inputs: Arrays, opset: int = 0) -> Arrays:
    """Return what ONNX's reference evaluator computes, of another version of the operators where one is given."""
    known = type(model)()
    known.CopyFrom(model)
    for each in known.opset_import:
        each.version = opset if opset and not each.domain else each.version
    evaluator: Any = ReferenceEvaluator(known)
    return dict(zip(evaluator.output_names, evaluator.run(None, inputs), strict=True))
