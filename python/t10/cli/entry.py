"""Entry point: arguments in, exit code out; every way a command can end is decided here.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | `verify`: an output differs by more than its tolerance; `conformance`: a test gives what is not expected |
| 2 | bad input: arguments, files, shapes |
| 3 | the model holds an operator or type that is not supported |
| 4 | the model does not fit the chip |
| 5 | a checker found a plan or IR to be wrong |
| 6 | the simulated program was stopped |
| 70 | a defect of this compiler |
| 130 | interrupted, by Ctrl-C or SIGTERM |
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence

from t10.cli.arguments import Arguments, parse
from t10.core.garbage import end_without_collection
from t10.core.guard import ended_clearly
from t10.core.streams import exit_code_of_output, hold_closed_streams
from t10.errors import EXIT_INTERNAL, T10Error, printable


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; messages go to standard error, results to standard output."""
    hold_closed_streams()
    if argv is None:
        end_without_collection()
    try:
        arguments = _parsed(sys.argv[1:] if argv is None else argv)
    except OSError as error:
        code = exit_code_of_output(error, "t10")
        if code is None:
            raise
        return code
    try:
        with ended_clearly("t10"):
            code = _dispatch(arguments)
            sys.stdout.flush()
            return code
    except T10Error as error:
        if arguments.debug:
            raise
        if error.exit_code == EXIT_INTERNAL:
            return _internal(error)
        print(printable("\n".join((f"t10: error: {error}", *error.details))), file=sys.stderr)
        return error.exit_code
    except Exception as error:
        code = exit_code_of_output(error, "t10")
        if code is not None:
            return code
        if arguments.debug:
            raise
        return _internal(error)


def _parsed(argv: Sequence[str]) -> Arguments:
    """Return the arguments; what help or a version is asked for is written out before it ends the command."""
    try:
        return parse(argv)
    finally:
        sys.stdout.flush()


def _dispatch(arguments: Arguments) -> int:
    """Run the command, `run_NAME` of the module of its name, which is imported now so that `--help` is quick."""
    module = importlib.import_module(f"t10.cli.{arguments.command}")
    run: Callable[[Arguments], int] = getattr(module, f"run_{arguments.command}")
    return run(arguments)


def _internal(error: Exception) -> int:
    text = printable(" ".join(str(error).split()))
    print(f"t10: internal error: {type(error).__name__}: {text}", file=sys.stderr)
    print(
        "t10: this is a defect of T10: please report it with the command, the model and what --debug prints",
        file=sys.stderr,
    )
    return EXIT_INTERNAL
