"""What was found out about code, kept between runs: counts of steps and formulas of bounds, as entries of a store.

An entry belongs to the sources that made it: its key has their digest. What a store returns is read as data.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Protocol, cast

from t10.cost.code_digest import code_digest


class Store(Protocol):
    """Payloads by key (a SHA-256 in hex) and kind, as `t10.plan.fronts.cache.PlanCache` keeps them."""

    def get(self, key: str, kind: str) -> bytes | None:
        """Return the payload of an entry, None where there is none."""
        ...

    def put(self, key: str, kind: str, payload: bytes) -> None:
        """Write an entry, over what was there."""
        ...


_stores: list[Store] = []


def current_store() -> Store | None:
    """Return the store of the innermost block that uses one."""
    return _stores[-1] if _stores else None


@contextmanager
def current(store: Store) -> Generator[None]:
    """Let `store` be the current one in the block."""
    _stores.append(store)
    try:
        yield
    finally:
        _stores.remove(store)


def key_of(*known: object) -> str:
    """Return the key of what follows from values and the sources that count and bound."""
    return sha256(f"{code_digest()} {_text(known)}".encode()).hexdigest()


def _text(value: object) -> str:
    """Return a text of a value made of frozen values: equal values have equal texts in every process."""
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(_text, cast('tuple[object, ...]', value)))})"
    if isinstance(value, (set, frozenset)):
        return f"{{{','.join(sorted(map(_text, cast('frozenset[object]', value))))}}}"
    if is_dataclass(value):
        parts = ",".join(_text(getattr(value, field.name)) for field in fields(value))
        return f"{type(value).__name__}({parts})"
    return repr(value)
