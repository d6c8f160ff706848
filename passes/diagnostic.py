"""Warnings and remarks from passes: MLIR's bindings only let Python emit errors.

A driver takes them with `reporting_to`; without one they go to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from t10.dialect.location import location_text

Sink = Callable[[str, Any, str], None]
"""Takes severity, MLIR location and message."""


def _to_stderr(severity: str, location: Any, message: str) -> None:
    """Print one message."""
    print(f"{location_text(location)}: {severity}: {message}", file=sys.stderr)


_sink: ContextVar[Sink] = ContextVar("t10_diagnostic_sink", default=_to_stderr)
_input: ContextVar[str] = ContextVar("t10_input_name", default="module")


def input_name() -> str:
    """Return what errors call the input that a pass works on: its file, where a driver says so."""
    return _input.get()


def emit_warning(op: Any, message: str) -> None:
    """Report something that is probably not meant, at an operation."""
    _sink.get()("warning", op.operation.location, f"'{op.operation.name}' op {message}")


def emit_remark(op: Any, message: str) -> None:
    """Report something worth knowing, at an operation."""
    _sink.get()("remark", op.operation.location, f"'{op.operation.name}' op {message}")


def without_repeats(sink: Sink) -> Sink:
    """Return a sink that hands on every message once: passes that run as prerequisites have the same options."""
    seen: set[tuple[str, str, str]] = set()

    def once(severity: str, location: Any, message: str) -> None:
        key = (severity, str(location), message)
        if key not in seen:
            seen.add(key)
            sink(severity, location, message)

    return once


@contextmanager
def reporting_to(sink: Sink, name: str = "module") -> Generator[None]:
    """Send warnings and remarks to `sink` while inside, where errors call the input `name`."""
    tokens = _sink.set(sink), _input.set(name)
    try:
        yield
    finally:
        _sink.reset(tokens[0])
        _input.reset(tokens[1])
