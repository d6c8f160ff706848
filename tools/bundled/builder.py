"""A small ONNX graph builder: values are names, weights are drawn from a seeded generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

ELEMENT_TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "int64": TensorProto.INT64}
ABSENT_FILE = "weights_are_not_written.bin"


class Builder:
    """Collects nodes; `dtype` is the type of every float in the model. Weights are drawn in f64 and then rounded.

    A `weight_free` model says that its weights lie in a file, which is never written: it can be planned, not run.
    """

    def __init__(
        self, name: str, dtype: str, *, seed: int = 0, opset: int = 18, weight_free: bool = False
    ) -> None:
        """Start an empty graph."""
        self.name = name
        self.dtype = dtype
        self.opset = opset
        self.weight_free = weight_free
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.samples: dict[str, NDArray[np.generic]] = {}
        self.count = 0

    def input(self, name: str, *shape: int | str, scale: float = 1.0) -> str:
        """Add a float input; a sample of it is drawn if its shape is static."""
        self.inputs.append(helper.make_tensor_value_info(name, ELEMENT_TYPES[self.dtype], list(shape)))
        extents = [n for n in shape if isinstance(n, int)]
        if len(extents) == len(shape) and not self.weight_free:
            self.samples[name] = (self.random.standard_normal(extents) * scale).astype(self.dtype)
        return name

    def indices(self, name: str, *shape: int, below: int) -> str:
        """Add an int64 input with a sample in [0, below)."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, list(shape)))
        if not self.weight_free:
            self.samples[name] = self.random.integers(0, below, shape, dtype=np.int64)
        return name

    def output(self, name: str, value: str, *shape: int | str) -> None:
        """Name a value as an output of the model."""
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"output_{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, ELEMENT_TYPES[self.dtype], list(shape)))

    def weight(self, name: str, *shape: int, scale: float | None = None, offset: float = 0.0) -> str:
        """Add a weight, by default scaled to keep the size of activations."""
        if self.weight_free:
            return self._absent(name, shape)
        spread = scale if scale is not None else shape[-2 if len(shape) == 2 else 0] ** -0.5
        values = offset + self.random.standard_normal(shape) * spread
        return self.constant(values.astype(self.dtype), name)

    def constant(self, values: Any, name: str = "") -> str:
        """Add a constant array."""
        made = name or self._fresh("const")
        self.initializers.append(numpy_helper.from_array(np.asarray(values), made))
        return made

    def scalar(self, value: float) -> str:
        """Add a scalar of the model's float type."""
        return self.constant(np.array(value, self.dtype))

    def ints(self, *values: int) -> str:
        """Add an int64 vector."""
        return self.constant(np.array(values, np.int64))

    def op(self, kind: str, *operands: str, name: str = "", n_outputs: int = 1, **attributes: Any) -> Any:
        """Add a node and return its output's name (a list of names if there are several)."""
        label = name or self._fresh(kind)
        results = [label if i == 0 else f"{label}.{i}" for i in range(n_outputs)]
        self.nodes.append(helper.make_node(kind, list(operands), results, name=label, **attributes))
        return results[0] if n_outputs == 1 else results

    def linear(self, x: str, name: str, n_in: int, n_out: int, *, bias: bool = True) -> str:
        """Add x @ W (+ b) as exporters write it for inputs of rank 3."""
        made = self.op("MatMul", x, self.weight(f"{name}.weight", n_in, n_out), name=f"{name}/MatMul")
        return (
            self.op("Add", made, self.weight(f"{name}.bias", n_out, scale=0.1), name=f"{name}/Add")
            if bias
            else made
        )

    def heads(self, x: str, name: str, batch: int, length: int, n_heads: int, size: int) -> str:
        """Split the last dim into heads: [b, s, h * d] -> [b, h, s, d]."""
        split = self.op("Reshape", x, self.ints(batch, length, n_heads, size), name=f"{name}/Reshape")
        return self.op("Transpose", split, name=f"{name}/Transpose", perm=[0, 2, 1, 3])

    def merged(self, x: str, name: str, batch: int, length: int, width: int) -> str:
        """Undo `heads`."""
        moved = self.op("Transpose", x, name=f"{name}/Transpose_1", perm=[0, 2, 1, 3])
        return self.op("Reshape", moved, self.ints(batch, length, width), name=f"{name}/Reshape_1")

    def layer_norm(self, x: str, name: str, width: int) -> str:
        """Add a layer normalisation over the last dim."""
        scale = self.weight(f"{name}.weight", width, scale=0.1, offset=1.0)
        shift = self.weight(f"{name}.bias", width, scale=0.1)
        return self.op("LayerNormalization", x, scale, shift, name=name, axis=-1, epsilon=1e-5)

    def rms_norm(self, x: str, name: str, width: int) -> str:
        """Add an RMS normalisation written out, in f32 as exporters do for f16 models."""
        wide = self.op("Cast", x, name=f"{name}/Cast", to=TensorProto.FLOAT) if self.dtype == "float16" else x
        two = self.constant(np.array(2.0, np.float32))
        epsilon = self.constant(np.array(1e-6, np.float32))
        square = self.op("Pow", wide, two, name=f"{name}/Pow")
        mean = self.op("ReduceMean", square, self.ints(-1), name=f"{name}/ReduceMean", keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, epsilon, name=f"{name}/Add"), name=f"{name}/Sqrt")
        scaled = self.op(
            "Mul", wide, self.op("Reciprocal", root, name=f"{name}/Reciprocal"), name=f"{name}/Mul"
        )
        if self.dtype == "float16":
            scaled = self.op("Cast", scaled, name=f"{name}/Cast_1", to=TensorProto.FLOAT16)
        return self.op(
            "Mul", self.weight(f"{name}.weight", width, scale=0.1, offset=1.0), scaled, name=f"{name}/Mul_1"
        )

    def gelu(self, x: str, name: str) -> str:
        """Add x * (erf(x / sqrt 2) + 1) / 2."""
        erf = self.op("Erf", self.op("Div", x, self.scalar(2.0**0.5), name=f"{name}/Div"), name=f"{name}/Erf")
        gate = self.op("Add", erf, self.scalar(1.0), name=f"{name}/Add")
        return self.op(
            "Mul", self.op("Mul", x, gate, name=f"{name}/Mul"), self.scalar(0.5), name=f"{name}/Mul_1"
        )

    def attention(self, q: str, k: str, v: str, mask: str, name: str, size: int) -> str:
        """Add softmax(q k^T / sqrt d + mask) v over [b, h, s, d] operands."""
        keys = self.op("Transpose", k, name=f"{name}/Transpose", perm=[0, 1, 3, 2])
        scores = self.op("MatMul", q, keys, name=f"{name}/MatMul")
        scores = self.op("Mul", scores, self.scalar(size**-0.5), name=f"{name}/Mul")
        if mask:
            scores = self.op("Add", scores, mask, name=f"{name}/Add")
        shares = self.op("Softmax", scores, name=f"{name}/Softmax", axis=-1)
        return self.op("MatMul", shares, v, name=f"{name}/MatMul_1")

    def model(self) -> Any:
        """Return the finished `onnx.ModelProto`."""
        graph = helper.make_graph(
            self.nodes, self.name, self.inputs, self.outputs, initializer=self.initializers
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], producer_name="t10"
        )
        model.ir_version = 10
        if not self.weight_free:
            checker: Any = onnx.checker
            checker.check_model(model, full_check=True)
        return model

    def _absent(self, name: str, shape: tuple[int, ...]) -> str:
        """Add a weight whose values lie in a file that does not exist."""
        tensor = TensorProto(name=name, data_type=ELEMENT_TYPES[self.dtype], dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=ABSENT_FILE)
        self.initializers.append(tensor)
        return name

    def _fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}_{self.count}"
