"""Print what pyproject.toml requires, one line each: the dependencies of T10, or of an extra.

The Makefile gives them to pip beside the build of the native modules, and leaves the tools of the suite out where only
T10 runs. Needs a Python with pip, which has a reader of TOML where the standard library has none (Python 3.10).

    python tools/requirements.py        # what T10 imports
    python tools/requirements.py dev    # what the suite needs besides
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def main() -> int:
    """Print the requirements of the extra on the command line, or of T10 itself; returns 0."""
    print("\n".join(requirements(*sys.argv[1:2])))
    return 0


def requirements(extra: str = "") -> list[str]:
    """Return the requirements of T10, or of one of its extras without those of T10."""
    project: dict[str, Any] = _toml().loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return project["optional-dependencies"][extra] if extra else project["dependencies"]


def _toml() -> Any:
    name = "tomllib" if sys.version_info >= (3, 11) else "pip._vendor.tomli"
    return importlib.import_module(name)


if __name__ == "__main__":
    sys.exit(main())
