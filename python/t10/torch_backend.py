"""T10 behind `torch.compile`: traced graphs are planned, and executed core by core on the plan simulator.

    compiled = torch.compile(module.eval(), backend="t10", options={"chip": "test-16"}, dynamic=False)
    with torch.no_grad():
        y = compiled(x)

It is there to see a PyTorch model as a plan and to check its numbers; the simulator is not fast. `executables()`
returns what was compiled, in order.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from t10.dialect.mlir import extras
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.torch_program import Argument, as_array, import_graph

if TYPE_CHECKING:
    from t10.driver import Executable

OPTIONS = ("chip", "cost_model", "partials")
STATE = "_dynamo_static_input_type"
"""Attribute that tracing gives tensors which belong to a module."""
_PATH = re.compile(r"^l_(?:self_(?:modules_)?)?|_$")

_compiled: list[Executable] = []


def executables() -> tuple[Executable, ...]:
    """Return the executable of every graph that was compiled in this process, the first one first."""
    return tuple(_compiled)


def backend(graph_module: Any, example_inputs: Sequence[Any], **given: Any) -> Callable[..., Any]:
    """Return a function that computes a traced graph on the simulator: what `torch.compile(backend="t10")` calls.

    `options` may name a chip, a cost model and the type of partials, as `t10.compile` takes them. A graph is compiled
    when it is called for the first time; parameters are weights, with the values they have then. Raises `InputError`
    for unknown options and dynamic shapes, `UnsupportedOpError` for graphs that are not lowered (those of training
    among them).
    """
    aot_autograd = _torch("torch._dynamo.backends.common").aot_autograd
    make_boxed_func = _torch("torch._functorch.aot_autograd").make_boxed_func
    parameter = _torch("torch.nn").Parameter
    options: Mapping[str, Any] = given.get("options") or {}
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise InputError(f"unknown options {', '.join(unknown)} (expected {', '.join(OPTIONS)})")
    held = tuple(
        isinstance(value, parameter) or getattr(value, STATE, None) is not None for value in example_inputs
    )
    names = tuple(plain_name(node.name) for node in graph_module.graph.nodes if node.op == "placeholder")

    def compile_forward(traced: Any, inputs: Sequence[Any]) -> Any:
        # Tracing may merge inputs that share memory; then it is not known which of them are parameters.
        if len(inputs) != len(held) or len(set(names)) != len(held):
            numbered = tuple(f"input{i}" for i in range(len(inputs)))
            return make_boxed_func(_Graph(traced, numbered, (False,) * len(inputs), options))
        return make_boxed_func(_Graph(traced, names, held, options))

    def refuse_training(traced: Any, inputs: Sequence[Any]) -> Any:
        raise UnsupportedOpError("gradients are not compiled", hint="call the module under torch.no_grad()")

    table = extras("fx_decomp_util").get_decomposition_table()
    compiler = aot_autograd(
        fw_compiler=compile_forward,
        inference_compiler=compile_forward,
        bw_compiler=refuse_training,
        decompositions=table,
    )
    return compiler(graph_module, example_inputs)


def _torch(name: str) -> Any:
    """Return a module of PyTorch, which is optional and, to those who check types here, unknown."""
    return importlib.import_module(name)


def plain_name(name: str) -> str:
    """Return the name tracing gave a placeholder without what it adds: `l_self_modules_fc_parameters_weight_`."""
    return _PATH.sub("", name).replace("_modules_", "_").replace("parameters_", "").replace("buffers_", "")


class _Graph:
    """A traced graph, compiled when it is called for the first time."""

    def __init__(
        self, traced: Any, names: tuple[str, ...], held: tuple[bool, ...], options: Mapping[str, Any]
    ) -> None:
        self.traced = traced
        self.names = names
        self.held = held
        self.options = options
        self.executable: Executable | None = None

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """Return the graph's outputs as tensors."""
        if self.executable is None:
            self.executable = self._compile(values)
            _compiled.append(self.executable)
        given = {
            name: as_array(value, name)
            for name, value, is_weight in zip(self.names, values, self.held, strict=True)
            if not is_weight
        }
        results = self.executable.run(given)
        from_numpy = _torch("torch").from_numpy
        return tuple(from_numpy(results[name].copy()) for name in self.executable.output_names)

    def _compile(self, values: Sequence[Any]) -> Executable:
        from t10.driver import compile

        arguments = tuple(
            Argument(name, as_array(value, name) if is_weight else None)
            for name, value, is_weight in zip(self.names, values, self.held, strict=True)
        )
        imported = import_graph(self.traced.graph, arguments, name="torch_graph")
        return compile(imported, **self.options)
