"""The parser of the command line: errors of one line, and the version with the commit that it was built from."""

from __future__ import annotations

import argparse
import subprocess
import sys
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from t10.errors import printable
from t10.version import VERSION

COMMIT_FILE = "commit.txt"
"""Written into a source distribution, and into a wheel when it is built from a checkout."""
ROOT = Path(__file__).parents[3]
GIT_SECONDS = 5


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line: usage has a dozen, of which the wrong value is none."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise the error of a value that is none of the choices, with the choice that was meant."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = get_close_matches(str(value), [str(each) for each in action.choices or ()], n=1)
            if near:
                error.message = error.message.replace("(choose", f"(did you mean {near[0]!r}? choose", 1)
            raise

    def error(self, message: str) -> NoReturn:
        """Exit (2) with what is wrong and where to read on."""
        self.exit(2, printable(f"{self.prog}: error: {message} (see {self.prog} --help)") + "\n")

    def print_help(self, file: Any = None) -> None:
        """Write the help; raises `OSError` where it cannot be written, which argparse would not tell anybody."""
        (file or sys.stdout).write(self.format_help())


def new_parser(prog: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Return a parser with such errors, whose commands have them, too, and with `--version`."""
    parser = _Parser(prog=prog, description=description, epilog=epilog)
    parser.add_argument("--version", action=_Version, help="print version and commit, and exit")
    return parser


class _Version(argparse.Action):
    """`--version`: the commit is looked up only when it is asked for."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:
        """Take no value."""
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print and exit."""
        commit = commit_of()
        print(f"{parser.prog} {VERSION}" + (f" (commit {commit})" if commit else ""))
        parser.exit()


def commit_of() -> str:
    """Return the commit that a wheel was built from, or that a checkout is at; empty where neither is known."""
    built = files("t10").joinpath(COMMIT_FILE)
    if built.is_file():
        return built.read_text(encoding="utf-8").strip()
    if not (ROOT / ".git").exists():
        return ""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
