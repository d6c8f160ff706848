"""The values of weights that passes take out of a module: IR holds none, so a driver that wants them collects them.

with collecting() as weights:      # t10-opt --save-weights
    ...                            # t10-import takes them out; t10-lower-ipu puts them as its program stores them
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from numpy.typing import NDArray

Weights = dict[str, NDArray[Any]]

_collected: ContextVar[Weights | None] = ContextVar("t10_weight_values", default=None)


def taken_out(values: Mapping[str, NDArray[Any]]) -> None:
    """Hand values by name of their weight to who collects them, if anyone does."""
    collected = _collected.get()
    if collected is not None:
        collected.update(values)


def collected() -> Weights | None:
    """Return the values that were taken out so far, None where nobody collects them."""
    return _collected.get()


@contextmanager
def collecting() -> Generator[Weights]:
    """Collect what is taken out of modules while inside."""
    weights: Weights = {}
    token = _collected.set(weights)
    try:
        yield weights
    finally:
        _collected.reset(token)
