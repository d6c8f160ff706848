"""A digest of what writes code and counts its cycles: prices counted by other sources are other prices."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

COST_PARTS = ("chip", "codelets", "core", "cost", "errors.py", "isa", "version.py")
"""All packages and modules of `t10` that `t10.cost` imports, directly or not; a test compares them with the imports."""
SUFFIXES = (".py", ".so", ".pyd", ".json", ".yaml")


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return a text that differs whenever a source of generators, assembler, counter or bounds does."""
    return digest_of(COST_PARTS)[:16]


def digest_of(parts: tuple[str, ...]) -> str:
    """Return the SHA-256 in hex of all sources, native modules and data of packages and modules of `t10`."""
    digest = sha256()
    for part in parts:
        for name, file in sorted(_sources(files("t10") / part, part)):
            digest.update(name.encode() + b"\0" + sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _sources(place: Traversable, name: str) -> list[tuple[str, Traversable]]:
    if place.is_dir():
        return [found for each in place.iterdir() for found in _sources(each, f"{name}/{each.name}")]
    return [(name, place)] if name.endswith(SUFFIXES) else []
