"""The command `t10`."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; what it needs is imported now, see `t10.start`."""
    from t10.cli import entry

    return entry.main(argv)
