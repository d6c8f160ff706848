"""T10: an open compiler for inter-core connected AI chips (compute-shift plans on rotating tensors).

`t10.compile(model, chip=...)` returns a `t10.Executable` with `.run(inputs)`, `.plan`, `.report()` and `.save(folder)`.
`t10.compile_stages` returns a `t10.StagedExecutable`: a model in stages, on several chips.
These names are looked up on first use, so that importing a small part of the package (a dialect, a chip, an error)
does not import the whole compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from t10.version import VERSION

if TYPE_CHECKING:
    from t10.driver import Executable, compile
    from t10.staged import StagedExecutable, compile_stages

__all__ = ["Executable", "StagedExecutable", "__version__", "compile", "compile_stages"]
__version__ = VERSION

_MODULES = {
    "compile": "t10.driver",
    "Executable": "t10.driver",
    "compile_stages": "t10.staged",
    "StagedExecutable": "t10.staged",
}


def __getattr__(name: str) -> Any:
    """Return one of the public names from its module; raises AttributeError for any other name."""
    if name not in _MODULES:
        raise AttributeError(f"module 't10' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the public names, including those not loaded yet."""
    return sorted(__all__)
