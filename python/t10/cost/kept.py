"""What was found out about code, kept between runs: counts of steps and formulas of bounds, as entries of a store.

An entry belongs to the sources that made it: its key has their digest. What a store returns is read as data.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Protocol, cast

from t10.chip import ChipSpec
from t10.cost.code_digest import code_digest
from t10.cost.model import chip_fingerprint


class Store(Protocol):
    """Payloads by key (a SHA-256 in hex) and kind, as `t10.plan.fronts.cache.PlanCache` keeps them."""

    def get(self, key: str, kind: str) -> bytes | None:
        """Return the payload of an entry, None where there is none."""
        ...

    def put(self, key: str, kind: str, payload: bytes) -> None:
        """Write an entry, over what was there."""
        ...


_stores: list[tuple[Store | None]] = []


def current_store() -> Store | None:
    """Return the store of the innermost block."""
    return _stores[-1][0] if _stores else None


@contextmanager
def current(store: Store | None) -> Generator[None]:
    """Let `store`, or none, be the current one in the block."""
    block = (store,)
    _stores.append(block)
    try:
        yield
    finally:
        _stores[:] = [each for each in _stores if each is not block]


def key_of(*known: object) -> str:
    """Return the key of what follows from values and the sources that count and bound."""
    return sha256(f"{code_digest()} {_text(known)}".encode()).hexdigest()


def _text(value: object) -> str:
    """Return a text of a frozen value that is the same in every process; different values have different texts."""
    kind = type(value)
    if kind is tuple:
        return f"({','.join(map(_text, cast('tuple[object, ...]', value)))})"
    if kind is frozenset:
        return f"{{{','.join(sorted(map(_text, cast('frozenset[object]', value))))}}}"
    if isinstance(value, ChipSpec):
        return f"chip {chip_fingerprint(value)}"
    if is_dataclass(value):
        parts = ",".join(_text(getattr(value, field.name)) for field in fields(value))
        return f"{kind.__module__}.{kind.__qualname__}({parts})"
    if kind not in (bool, int, float, str, bytes, type(None)):
        raise TypeError(f"{kind.__qualname__} is no part of a key: it has no text of its own")
    return repr(value)
