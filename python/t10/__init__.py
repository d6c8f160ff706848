"""T10: an open compiler for inter-core connected AI chips (compute-shift plans on rotating tensors).

`t10.compile(model, chip=...)` returns a `t10.Executable` with `.run(inputs)`, `.plan`, `.report()` and `.save(folder)`.
Both names are looked up on first use, so that importing a small part of the package (a dialect, a chip, an error)
does not import the whole compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from t10.version import VERSION

if TYPE_CHECKING:
    from t10.driver import Executable, compile

__all__ = ["Executable", "__version__", "compile"]
__version__ = VERSION

_FROM_DRIVER = frozenset({"compile", "Executable"})


def __getattr__(name: str) -> Any:
    """Return `compile` or `Executable` from `t10.driver`; raises AttributeError for any other name."""
    if name not in _FROM_DRIVER:
        raise AttributeError(f"module 't10' has no attribute {name!r}")
    from t10 import driver

    return getattr(driver, name)


def __dir__() -> list[str]:
    """Return the public names, including those not loaded yet."""
    return sorted(__all__)
