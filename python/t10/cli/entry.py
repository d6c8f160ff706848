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
| 130 | interrupted |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from t10.cli.arguments import Arguments, parse
from t10.errors import EXIT_INTERNAL, T10Error

EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; messages go to standard error, results to standard output."""
    arguments = parse(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; what is still buffered must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except T10Error as error:
        if arguments.debug:
            raise
        if error.exit_code == EXIT_INTERNAL:
            return _internal(error)
        print("\n".join((f"t10: error: {error}", *error.details)), file=sys.stderr)
        return error.exit_code
    except Exception as error:
        if arguments.debug:
            raise
        return _internal(error)


def _dispatch(arguments: Arguments) -> int:
    """Run the command; each is imported when it is used, so that `--help` is quick."""
    if arguments.command == "compile":
        from t10.cli.compile import run_compile

        return run_compile(arguments)
    if arguments.command == "run":
        from t10.cli.run import run_run

        return run_run(arguments)
    if arguments.command == "verify":
        from t10.cli.verify import run_verify

        return run_verify(arguments)
    if arguments.command == "report":
        from t10.cli.report import run_report

        return run_report(arguments)
    if arguments.command == "inspect":
        from t10.cli.inspect import run_inspect

        return run_inspect(arguments)
    if arguments.command == "explain":
        from t10.cli.explain import run_explain

        return run_explain(arguments)
    if arguments.command == "pareto":
        from t10.cli.pareto import run_pareto

        return run_pareto(arguments)
    if arguments.command == "demo":
        from t10.cli.demo import run_demo

        return run_demo(arguments)
    if arguments.command == "profile":
        from t10.cli.profile import run_profile

        return run_profile(arguments)
    if arguments.command == "cache":
        from t10.cli.cache import run_cache

        return run_cache(arguments)
    if arguments.command == "conformance":
        from t10.cli.conformance import run_conformance

        return run_conformance(arguments)
    if arguments.command == "asm":
        from t10.cli.asm import run_asm

        return run_asm(arguments)
    from t10.cli.chips import run_chips

    return run_chips(arguments)


def _internal(error: Exception) -> int:
    text = " ".join(str(error).split())
    print(f"t10: internal error: {type(error).__name__}: {text}", file=sys.stderr)
    print(
        "t10: this is a defect of T10: please report it with the command, the model and what --debug prints",
        file=sys.stderr,
    )
    return EXIT_INTERNAL
