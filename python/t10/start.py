"""Where the programs `t10`, `t10-opt` and `t10-translate` begin, and where interrupting them ends."""

from __future__ import annotations

import sys
from importlib import import_module

from t10.core.interrupts import (
    EXIT_INTERRUPTED,
    end_when_interrupted,
    raise_what_waits,
    raise_when_interrupted,
)


def t10() -> int:
    """Run `t10` on the command line and return its exit code."""
    return _run("t10", "t10.cli.entry")


def t10_opt() -> int:
    """Run `t10-opt` on the command line and return its exit code."""
    return _run("t10-opt", "t10.opt.main")


def t10_translate() -> int:
    """Run `t10-translate` on the command line and return its exit code."""
    return _run("t10-translate", "t10.translate")


def _run(program: str, module: str) -> int:
    """Run the `main` of a module that is imported now, so that interrupting its imports is no traceback."""
    try:
        raise_when_interrupted()
        main = import_module(module).main
        raise_what_waits()
        code = main()
        raise_what_waits()
        return code
    except KeyboardInterrupt:
        print(f"\n{program}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    finally:
        end_when_interrupted()
