"""Repeated fields of protocol buffers."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any


def replace_all(field: Any, kept: Iterable[Any]) -> None:
    """Make `kept` all that a repeated field of messages holds, in place; they may be of the field itself."""
    copies: list[Any] = [deepcopy(each) for each in kept]
    del field[:]
    field.extend(copies)
