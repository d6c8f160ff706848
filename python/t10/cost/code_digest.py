"""A digest of what writes code and counts its cycles: prices counted by other sources are other prices."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

PACKAGES = ("t10.codelets", "t10.cost", "t10.isa")
SUFFIXES = (".py", ".so", ".json")


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return a text that differs whenever a source of generators, assembler, counter or bounds does."""
    digest = sha256()
    for package in PACKAGES:
        for name, file in sorted(_sources(files(package), package)):
            digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _sources(folder: Traversable, name: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _sources(each, f"{name}.{each.name}")
        elif each.name.endswith(SUFFIXES):
            found.append((f"{name}.{each.name}", each))
    return found
