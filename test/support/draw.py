"""A part of a long list of cases, drawn by the commit: every commit runs another one, `make exhaustive` all of them.

A checkout without git draws the same part every time.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

ALL = "T10_ALL_CASES"
"""The variable of the environment that says that all cases are wanted."""

T = TypeVar("T")


@cache
def commit() -> str:
    """Return the hash of the commit that is checked out, nothing where git does not know it."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--verify", "--quiet", "HEAD"]
    with contextlib.suppress(FileNotFoundError):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return ""


def seed_of_commit() -> int:
    """Return a number for generators of cases."""
    return int(commit() or "0", 16)


def so_many(every: int, n: int) -> int:
    """Return how many of `every` case of a generator to make: `n`, all where all are wanted."""
    return every if os.environ.get(ALL) else n


def drawn(cases: Sequence[T], n: int, seed: str | None = None, name: Callable[[T], str] = str) -> list[T]:
    """Return `n` of the cases in their order, drawn by a seed (the commit) and by their names."""
    if os.environ.get(ALL):
        return list(cases)
    seed = commit() if seed is None else seed
    names = [name(case) for case in cases]
    assert len(set(names)) == len(names), "cases of one name are drawn together"
    first = sorted(range(len(cases)), key=lambda number: sha256(f"{seed} {names[number]}".encode()).digest())
    return [cases[number] for number in sorted(first[:n])]


def one_of_each(groups: Sequence[Sequence[T]], seed: str | None = None) -> list[T]:
    """Return one case of every group, drawn by a seed (the commit)."""
    return [case for group in groups for case in drawn(group, 1, seed)]


def dealt(groups: Sequence[Sequence[T]]) -> tuple[list[T], list[T]]:
    """Return one case of every group, drawn by the commit, and the others; both are all where all are wanted."""
    every, first = [case for group in groups for case in group], one_of_each(groups)
    return first, every if os.environ.get(ALL) else [case for case in every if case not in first]
