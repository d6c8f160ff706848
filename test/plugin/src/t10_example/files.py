"""Where the files of this package lie."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def chip() -> Path:
    """Return the description of the chip `example-8`."""
    return _FOLDER / "example-8.yaml"


def codelets() -> Path:
    """Return the declarations of the codelets `example`."""
    return _FOLDER / "codelets.yaml"
