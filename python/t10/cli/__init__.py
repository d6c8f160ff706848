"""The command `t10`: compile, run, verify, report, demo, chips."""

from t10.cli.entry import main

__all__ = ["main"]
