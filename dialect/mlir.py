"""The seam: the only module that knows which package holds MLIR's Python bindings.

    from t10.dialect.mlir import ir, passmanager, new_context

`torch_mlir` (the PyPI wheel `torch-mlir`) and `mlir` (the official wheel) are the same sources under two names. The
first is preferred: only it brings the ONNX importer. The bindings carry no types, so everything here is `Any`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

from t10.core import plugins
from t10.errors import InputError

_CANDIDATES = ("torch_mlir", "mlir")

LOADED_DIALECTS = ("func", "arith", "math", "tensor", "linalg", "scf", "irdl")
"""Loaded when a context is made. The rest load when a parser or pass meets them: all at once takes six times longer."""


def _find_package() -> str:
    """Return the import name of the bindings; raises `ImportError` with what to install."""
    for name in _CANDIDATES:
        try:
            if importlib.util.find_spec(f"{name}._mlir_libs._mlir") is not None:
                return name
        except ModuleNotFoundError:
            continue
    raise ImportError("t10 needs MLIR's Python bindings: pip install torch-mlir (or the official mlir wheel)")


def _import_without_numpy(names: tuple[str, ...]) -> list[Any]:
    """Import modules while numpy is held back: `ir` imports it eagerly but works, and starts faster, without."""
    hold_back = "numpy" not in sys.modules
    if hold_back:
        sys.modules["numpy"] = None  # pyright: ignore[reportArgumentType] - None is how an import is held back
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        if hold_back:
            del sys.modules["numpy"]


package: str = _find_package()
"""Import name of the package that holds the bindings: `mlir` or `torch_mlir`."""

ir: Any
passmanager: Any
ir, passmanager = _import_without_numpy((f"{package}.ir", f"{package}.passmanager"))


def dialect(name: str) -> Any:
    """Return the bindings' module of an upstream dialect, e.g. `dialect("linalg")`."""
    return importlib.import_module(f"{package}.dialects.{name}")


def extras(name: str) -> Any:
    """Return a module of the bindings' `extras`, such as `onnx_importer`; raises `InputError` if they lack it."""
    try:
        return importlib.import_module(f"{package}.extras.{name}")
    except ModuleNotFoundError:
        raise InputError(f"MLIR's bindings {package} have no {name}", hint="pip install torch-mlir") from None


def __getattr__(name: str) -> Any:
    """Load `rewrite` on first use: most tools never need it."""
    if name == "rewrite":
        return importlib.import_module(f"{package}.rewrite")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_LOADING = threading.Lock()
"""The bindings note what they load in classes that all contexts share: two threads at once crash."""


def new_context(*, allow_unregistered: bool = False) -> Any:
    """Return a fresh `ir.Context` with the t10 dialects loaded and threads off.

    Verifiers and passes written in Python hold the interpreter lock while MLIR's threads wait for it: with threads on,
    the process deadlocks. `allow_unregistered` accepts operations of unknown dialects (such as `onnx`).
    """
    from t10.dialect import ipu, rtensor

    for own in (rtensor, ipu):
        _announce(own)
    context = ir.Context(load_on_create_dialects=[])
    context.enable_multithreading(False)
    for name in LOADED_DIALECTS:
        # Not `context.dialects[name]`, which imports the Python module too: linalg's takes 150 ms (numpy).
        context.get_dialect_descriptor(name)
    context.allow_unregistered_dialects = allow_unregistered
    with _LOADING, context, ir.Location.unknown():
        rtensor.RTensor.load()
        ipu.Ipu.load()
        for name in plugins.names(plugins.DIALECTS, ("rtensor", "ipu")):
            plugins.load(plugins.DIALECTS, name, ("rtensor", "ipu"))()
    return context


def _announce(module: ModuleType) -> None:
    """Let the bindings find a dialect of ours where they look for upstream ones.

    For every operation whose dialect they do not find there they search the whole import path, again and again.
    """
    sys.modules.setdefault(f"{package}.dialects.{module.__name__.rpartition('.')[2]}", module)


def linalg_indexing_maps(op: Any) -> list[Any]:
    """Return the affine maps of a linalg operation, operands in order; empty for what has none (`linalg.yield`)."""
    native = importlib.import_module(f"{package}._mlir_libs._mlirDialectsLinalg")
    maps = native.get_indexing_maps(op.operation)
    return [] if maps is None else [attr.value for attr in maps]


def captured(op: Any) -> list[Any]:
    """Return what the regions of an operation use from outside it, in order of use, with repeats."""
    inner = [each.operation for each in walk(op)[1:]]
    inside = {result for each in inner for result in each.results}
    for each in (op.operation, *inner):
        inside.update(
            argument for region in each.regions for block in region.blocks for argument in block.arguments
        )
    return [value for each in inner for value in each.operands if value not in inside]


def walk(op: Any) -> list[Any]:
    """Return `op` and all operations inside it, outermost first.

    Collected before use: `Operation.walk` turns exceptions of its callback into `RuntimeError`, and editing while
    walking leaves dangling wrappers.
    """
    found: list[Any] = []

    def visit(inner: Any) -> Any:
        found.append(inner)
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def signature_attributes(function: Any, key: str, count: int) -> list[dict[str, Any]]:
    """Return the attributes by name of each of a function's arguments (`arg_attrs`) or results (`res_attrs`)."""
    if key not in function.attributes:
        return [{} for _ in range(count)]
    return [{e.name: e.attr for e in ir.DictAttr(row)} for row in ir.ArrayAttr(function.attributes[key])]
