#!/usr/bin/env python3
"""Measure time and peak memory of importing and planning large models.

usage: benchmarks/large_models.py [--case NAME] [--layers N]

A stack of decoder layers of the dimensions of Llama 2 7B (hidden 4,096, 32 heads, 11,008 wide, f16) is written with its
weights in a file beside it: a sparse one, which takes no room on the disk and reads as zeros, or none at all. The chip
is as large as such a model needs: 40,960 cores. Peak memory is that of the process, pages of mapped files included.

| case | what it does | bound |
|---|---|---|
| absent | import and plan, no file of weights | 1 GB |
| mapped | import, 13 GB of weights in a sparse file | 1 GB |
| inline | import, 0.8 GB of weights (two layers) inside the .onnx file | 1.5 x the weights |
| written | import, plan and write what `t10 compile --no-program` writes, 0.8 GB in a file | 1.5 x the weights |
| small-chip | import and plan for ipu-mk2, where it does not fit: ends with exit code 4 | 1 GB |
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import onnx as untyped_onnx
from onnx import TensorProto, helper

onnx: Any = untyped_onnx

GIGABYTE = 10**9
HIDDEN, HEADS, WIDE, BATCH, KEYS = 4096, 32, 11_008, 1, 512
CHIP = "ipu-mk2:n_cores=40960"
CASES = ("absent", "mapped", "inline", "written", "small-chip")


@dataclass
class Stack:
    """Writes decoder layers node by node; `size` counts the bytes of the weights so far."""

    hidden: int = HIDDEN
    heads: int = HEADS
    wide: int = WIDE
    location: str = "weights.bin"
    size: int = 0
    nodes: list[Any] = field(default_factory=list[Any])
    tensors: list[Any] = field(default_factory=list[Any])
    inputs: list[Any] = field(default_factory=list[Any])
    outputs: list[Any] = field(default_factory=list[Any])

    def weight(self, name: str, *shape: int) -> str:
        """Add a weight whose values lie in the external file, and return its name."""
        n_bytes = 2
        for extent in shape:
            n_bytes *= extent
        tensor = TensorProto(
            name=name, data_type=TensorProto.FLOAT16, dims=shape, data_location=TensorProto.EXTERNAL
        )
        for key, value in (("location", self.location), ("offset", str(self.size)), ("length", str(n_bytes))):
            tensor.external_data.add(key=key, value=value)
        self.size += n_bytes
        self.tensors.append(tensor)
        return name

    def constant(self, name: str, values: list[float], kind: int, *shape: int) -> str:
        """Add a small constant, once."""
        if all(tensor.name != name for tensor in self.tensors):
            self.tensors.append(helper.make_tensor(name, kind, shape, values))
        return name

    def node(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """Add a node of one result, named as the node, and return it."""
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def normalized(self, x: str, scope: str) -> str:
        """Return x / rms(x) * weight."""
        two = self.constant("two", [2.0], TensorProto.FLOAT)
        epsilon = self.constant("epsilon", [1e-5], TensorProto.FLOAT)
        last = self.constant("last", [-1], TensorProto.INT64, 1)
        wide = self.node("Cast", [x], f"{scope}/Cast", to=TensorProto.FLOAT)
        square = self.node("Pow", [wide, two], f"{scope}/Pow")
        mean = self.node("ReduceMean", [square, last], f"{scope}/ReduceMean", keepdims=1)
        root = self.node("Sqrt", [self.node("Add", [mean, epsilon], f"{scope}/Add")], f"{scope}/Sqrt")
        scaled = self.node("Div", [wide, root], f"{scope}/Div")
        half = self.node("Cast", [scaled], f"{scope}/Cast_1", to=TensorProto.FLOAT16)
        return self.node("Mul", [half, self.weight(f"{scope}.weight", self.hidden)], f"{scope}/Mul")

    def linear(self, x: str, scope: str, n: int, k: int) -> str:
        """Return x times a weight [n, k]."""
        return self.node("MatMul", [x, self.weight(f"{scope}.weight", n, k)], f"{scope}/MatMul")

    def heads_of(self, x: str, scope: str) -> str:
        """Return [batch, heads, 1, size of a head]."""
        shape = self.constant(
            "split", [BATCH, self.heads, 1, self.hidden // self.heads], TensorProto.INT64, 4
        )
        return self.node("Reshape", [x, shape], f"{scope}/Reshape")

    def port(self, name: str, *shape: int, is_output: bool = False) -> str:
        """Add an input or output."""
        row = self.outputs if is_output else self.inputs
        row.append(helper.make_tensor_value_info(name, TensorProto.FLOAT16, shape))
        return name

    def layer(self, x: str, number: int) -> str:
        """Add a decoder layer for one token: attention over cached keys and values, gated perceptron."""
        scope, size = f"/layers.{number}", self.hidden // self.heads
        normal = self.normalized(x, f"{scope}/norm")
        q, k, v = (
            self.heads_of(self.linear(normal, f"{scope}/{each}", self.hidden, self.hidden), f"{scope}/{each}")
            for each in "qkv"
        )
        keys = self.port(f"keys.{number}", BATCH, self.heads, KEYS, size)
        values = self.port(f"values.{number}", BATCH, self.heads, KEYS, size)
        for name, new in (("new_keys", k), ("new_values", v)):
            made = self.port(f"{name}.{number}", BATCH, self.heads, 1, size, is_output=True)
            self.nodes.append(helper.make_node("Identity", [new], [made], name=f"{scope}/{name}"))
        turned = self.node("Transpose", [keys], f"{scope}/Transpose", perm=[0, 1, 3, 2])
        scale = self.constant("scale", [size**-0.5], TensorProto.FLOAT16)
        scores = self.node(
            "Mul", [self.node("MatMul", [q, turned], f"{scope}/scores"), scale], f"{scope}/scale"
        )
        weights = self.node("Softmax", [scores], f"{scope}/Softmax", axis=-1)
        seen = self.node("MatMul", [weights, values], f"{scope}/seen")
        shape = self.constant("join", [BATCH, 1, self.hidden], TensorProto.INT64, 3)
        joined = self.node("Reshape", [seen, shape], f"{scope}/join")
        x = self.node(
            "Add", [x, self.linear(joined, f"{scope}/o", self.hidden, self.hidden)], f"{scope}/residual"
        )
        normal = self.normalized(x, f"{scope}/norm2")
        gate = self.linear(normal, f"{scope}/gate", self.hidden, self.wide)
        up = self.linear(normal, f"{scope}/up", self.hidden, self.wide)
        silu = self.node("Mul", [gate, self.node("Sigmoid", [gate], f"{scope}/Sigmoid")], f"{scope}/silu")
        gated = self.node("Mul", [silu, up], f"{scope}/gated")
        return self.node(
            "Add", [x, self.linear(gated, f"{scope}/down", self.wide, self.hidden)], f"{scope}/out"
        )

    def model(self, n_layers: int) -> Any:
        """Return the model of a stack of layers."""
        x = self.port("x", BATCH, 1, self.hidden)
        for number in range(n_layers):
            x = self.layer(x, number)
        self.nodes.append(
            helper.make_node(
                "Identity", [x], [self.port("y", BATCH, 1, self.hidden, is_output=True)], name="y"
            )
        )
        graph = helper.make_graph(self.nodes, "decoder", self.inputs, self.outputs, self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def write_stack(folder: Path, n_layers: int, *, with_file: bool) -> tuple[Path, int]:
    """Write a stack; returns its path and the bytes of its weights."""
    stack = Stack()
    path = folder / "stack.onnx"
    path.write_bytes(stack.model(n_layers).SerializeToString())
    if with_file:
        with (folder / stack.location).open("wb") as file:
            file.truncate(stack.size)
    return path, stack.size


def write_inline(folder: Path, n_layers: int) -> tuple[Path, int]:
    """Write a stack with its weights inside the file."""
    stack = Stack()
    model = stack.model(n_layers)
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            n_bytes = int(next(entry.value for entry in tensor.external_data if entry.key == "length"))
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]
            tensor.raw_data = bytes(n_bytes)
    path = folder / "inline.onnx"
    path.write_bytes(model.SerializeToString())
    return path, stack.size


def run_import(path: Path) -> dict[str, Any]:
    """Import a model."""
    from t10.frontend.importer import import_model

    imported = import_model(path)
    return {"weights": len(imported.weight_names), "with values": len(imported.weights)}


def run_plan(path: Path, chip: str, folder: Path | None) -> dict[str, Any]:
    """Import and plan a model, and write it to a folder if one is given."""
    from t10.driver import compile
    from t10.errors import InfeasiblePlanError

    try:
        executable = compile(path, chip)
    except InfeasiblePlanError as error:
        return {"does not fit": str(error)[:160]}
    if folder is not None:
        executable.save(folder)
    stages = {name: round(seconds, 2) for name, seconds in executable.planner_seconds.items()}
    return {"operators": len(executable.plan.operators), **stages}


def run_case(name: str, n_layers: int, folder: Path) -> dict[str, Any]:
    """Run one case in this process and return what was measured."""
    if name == "inline":
        # A gigabyte: what a protocol buffer holds is bounded by two.
        path, n_bytes = write_inline(folder, min(n_layers, 2))
    else:
        n_layers = min(n_layers, 2) if name == "written" else n_layers
        path, n_bytes = write_stack(folder, n_layers, with_file=name in ("mapped", "written"))
    return measured(name, path, n_bytes)


def measured(name: str, path: Path, n_bytes: int) -> dict[str, Any]:
    """Return what a case says in a fresh process, with its seconds and peak memory."""
    command = [sys.executable, str(Path(__file__)), "--worker", name, "--model", str(path)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    bound = 3 * n_bytes // 2 if name in ("inline", "written") else GIGABYTE
    return {"case": name, "weights_bytes": n_bytes, "bound_bytes": bound, **found}


def peak_bytes() -> int:
    """Return the most memory this process has had at once; what its parent had does not count (as in `ru_maxrss`)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def worker(name: str, path: Path) -> dict[str, Any]:
    """Import or plan in this process."""
    importlib.import_module("t10.frontend.importer")
    base = peak_bytes()
    started = time.perf_counter()
    chip = {"absent": CHIP, "written": CHIP, "small-chip": "ipu-mk2"}.get(name)
    folder = path.parent / "out" if name == "written" else None
    found = run_import(path) if chip is None else run_plan(path, chip, folder)
    found["seconds"] = round(time.perf_counter() - started, 2)
    found["base_bytes"] = base
    found["peak_bytes"] = peak_bytes()
    return found


def main() -> int:
    """Run the cases; return 1 if one takes more memory than its bound."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", choices=CASES, help="run one (default: all)")
    parser.add_argument("--layers", type=int, default=32, help="decoder layers (default: %(default)s)")
    parser.add_argument("--worker", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(worker(given.worker, given.model)))
        return 0
    is_within = True
    for name in (given.case,) if given.case else CASES:
        with tempfile.TemporaryDirectory() as folder:
            row = run_case(name, given.layers, Path(folder))
        is_within &= row["peak_bytes"] <= row["bound_bytes"]
        print(
            ", ".join(
                f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}"
                for key, value in row.items()
            )
        )
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
