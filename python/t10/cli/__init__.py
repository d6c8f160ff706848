"""The command `t10`."""

from t10.cli.entry import main

__all__ = ["main"]
