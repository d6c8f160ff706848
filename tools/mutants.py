#!/usr/bin/env python3
"""Would the tests notice? Apply the mutants of test/mutants one at a time and run the tests that should kill each.

    python tools/mutants.py                              # all, those in C++ too (they are built)
    python tools/mutants.py --only 'shifts-*'            # some, by name
    python tools/mutants.py --draw HEAD --seconds 75     # Python only, in an order drawn from a commit, for so long

A mutant is a small change of meaning: a sign, a bound, a dropped term. It is applied in a private copy of the tree, so
that the tree is never touched; the copy goes when this ends, and when it is interrupted. A mutant is killed where one
of its tests fails or runs past the limit, and survives where all pass. Tests are first run without the mutant, once
each: they must pass. A mutant that no test can kill is listed with `equivalent`, the reason why.

Every file of test/mutants maps source files to lists of mutants: `name`, `old` (text that occurs exactly once in the
source), `new`, `means` (what goes wrong), `tests` (pytest node ids), and `equivalent`. The exit status is 1 where a
mutant survives or an equivalent one is killed, 2 where the list is stale, 130 after an interrupt (128 + the signal).
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import hashlib
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import yaml

ROOT = Path(__file__).resolve().parent.parent
LIST = Path("test/mutants")
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "__pycache__", ".hypothesis", "Output", ".*_cache"
)
PRELOADED = (
    "pytest",
    "hypothesis",
    "numpy",
    "onnx.reference",
    "pydantic",
    "torch_mlir.ir",
    "ortools.sat.python.cp_model",
)
"""Other people's modules that tests import: loaded once, before the children are forked."""

LIMIT_SECONDS = 120
PASSED, FAILED = 0, 1
NATIVE = (".cpp", ".h")
ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Signals that ask to end. They are blocked, and asked for while children run: nothing is ever left half done."""

POLL_SECONDS = 0.02
GRACE_SECONDS = 2.0
"""How long processes may take to end before they are killed."""


class StaleList(Exception):
    """A mutant that is not one change of the sources, or whose tests do not pass without it."""


class Interrupted(Exception):
    """A signal asks to end; its number is the argument."""

    def __init__(self, number: int) -> None:
        """Remember the number."""
        super().__init__(number)
        self.number = number


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file, and the tests that should fail with it; `equivalent` is why none can, or empty."""

    file: str
    name: str
    old: str
    new: str
    means: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def is_native(self) -> bool:
        """Return whether the native modules must be built again."""
        return self.file.endswith(NATIVE)

    def applied(self, text: str) -> str:
        """Return the text of the file with the change."""
        found = text.count(self.old)
        if found != 1 or self.old == self.new:
            raise StaleList(f"{self.name}: its old text occurs {found} times in {self.file}, expected once")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant: the test that killed it (or `time`), empty where it survived."""

    mutant: Mutant
    killer: str
    seconds: float

    @property
    def is_expected(self) -> bool:
        """Return whether it was killed, or is known to be equivalent and was not."""
        return bool(self.killer) != bool(self.mutant.equivalent)

    def __str__(self) -> str:
        """Return one line, and for a surprise what it means."""
        mutant = self.mutant
        fate = "killed" if self.killer else "equivalent" if mutant.equivalent else "SURVIVED"
        line = f"{fate:10} {self.seconds:6.1f} s  {mutant.name:40} {self.killer}"
        if self.is_expected:
            return line.rstrip()
        if self.killer:
            return f"{line}\n  is listed as equivalent: {mutant.equivalent}"
        return f"{line.rstrip()}\n  {mutant.file}: {mutant.means}\n  - {mutant.old}\n  + {mutant.new}"


def read_mutants(root: Path) -> list[Mutant]:
    """Return the mutants of the list in a tree, checked against its sources."""
    found: list[Mutant] = []
    for path in sorted((root / LIST).glob("*.yaml")):
        for file, entries in yaml.load(path.read_text(), yaml.BaseLoader).items():
            found += [
                Mutant(
                    file,
                    entry["name"],
                    entry["old"],
                    entry["new"],
                    entry["means"],
                    tuple(entry["tests"]),
                    entry.get("equivalent", ""),
                )
                for entry in entries
            ]
    for mutant in found:
        source = root / mutant.file
        if not source.is_file():
            raise StaleList(f"{mutant.name}: there is no file {mutant.file}")
        text = mutant.applied(source.read_text())
        if not mutant.is_native:
            compile(text, mutant.file, "exec")
        gone = [test for test in mutant.tests if not _exists(root, test)]
        if gone or not mutant.tests:
            raise StaleList(f"{mutant.name}: there are no tests {', '.join(gone)}")
    names = [mutant.name for mutant in found]
    if len(set(names)) < len(names):
        raise StaleList(f"two mutants are called {max(names, key=names.count)}")
    return found


def _exists(root: Path, test: str) -> bool:
    """Return whether there is a test of that name, or a file of tests."""
    file, _, function = test.partition("::")
    path = root / file
    return path.is_file() and (not function or f"def {function}(" in path.read_text())


def drawn(mutants: Iterable[Mutant], seed: str) -> list[Mutant]:
    """Return the mutants in Python in the order that a seed gives: the same seed, the same order."""
    python = [mutant for mutant in mutants if not mutant.is_native]
    return sorted(python, key=lambda mutant: hashlib.sha256(f"{seed} {mutant.name}".encode()).digest())


class Copy:
    """A private copy of a tree, in which mutants are applied and tests run."""

    def __init__(self, root: Path, folder: Path, limit_seconds: float = LIMIT_SECONDS) -> None:
        """Copy the tree below `folder`, which is not inside it; tests of a mutant may take `limit_seconds`."""
        self._limit_seconds = limit_seconds
        self._tree = folder / "tree"
        self._log = folder / "log"
        self._passing: set[str] = set()
        self._is_configured = False
        shutil.copytree(root, self._tree, symlinks=True, ignore=LEFT_OUT)

    def outcome(self, mutant: Mutant) -> Outcome:
        """Apply a mutant, run its tests, and take it back."""
        self._prove([test for test in mutant.tests if test not in self._passing])
        path = self._tree / mutant.file
        text = path.read_text()
        path.write_text(mutant.applied(text))
        begin = time.monotonic()
        if mutant.is_native:
            self._build()
        killer = self._killer(mutant.tests)
        path.write_text(text)
        if mutant.is_native:
            self._build()
        return Outcome(mutant, killer, time.monotonic() - begin)

    def _prove(self, tests: list[str]) -> None:
        """Raise unless tests pass as the tree is."""
        if tests and (killer := self._killer(tests)):
            raise StaleList(
                f"{killer} fails without any mutant:\n{self._log.read_text(errors='replace')[-4000:]}"
            )
        self._passing |= set(tests)

    def _killer(self, tests: Sequence[str]) -> str:
        """Return the first test that fails, `time` where they run too long, empty where all pass."""
        status = _status_within(lambda: self._run_tests(tests), self._log, self._limit_seconds)
        if status == PASSED:
            return ""
        if status is None:
            return "time"
        log = self._log.read_text(errors="replace")
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", log, re.MULTILINE)
        # A crash of the interpreter kills as well; what pytest could not run at all does not.
        if status > FAILED:
            raise StaleList(f"pytest could not run {' '.join(tests)}:\n{log[-4000:]}")
        return found[1] if found else "crash"

    def _run_tests(self, tests: Sequence[str]) -> int:
        """Run tests in this process, which is a child; return the exit status of pytest."""
        os.chdir(self._tree)
        sys.path.insert(0, str(self._tree / "python"))
        # An installation in place leads imports to the tree it was made from.
        sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
        os.environ["PYTHONPATH"] = os.pathsep.join([sys.path[0], os.environ.get("PYTHONPATH", "")]).strip(
            os.pathsep
        )
        # Two versions of a file within a second look the same to the cache of compiled modules.
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        # A draw of cases may miss what the whole list finds.
        os.environ["T10_ALL_CASES"] = "1"
        sys.dont_write_bytecode = True
        pytest = importlib.import_module("pytest")
        return int(
            pytest.main(
                ["-x", "-q", "-p", "no:cacheprovider", "--tb=short", f"--rootdir={self._tree}", *tests]
            )
        )

    def _build(self) -> None:
        """Build the native modules of the copy."""
        build = str(self._tree / "build")
        if not self._is_configured:
            python = f"-DPython_EXECUTABLE={sys.executable}"
            self._do(
                "cmake",
                "-S",
                str(self._tree),
                "-B",
                build,
                "-G",
                "Ninja",
                "-DCMAKE_BUILD_TYPE=Release",
                python,
            )
            self._is_configured = True
        self._do("cmake", "--build", build, "-j2")

    def _do(self, *command: str) -> None:
        """Run a command of the build; raise with what it says where it fails."""
        if _status_within(lambda: os.execvp(command[0], command), self._log, float("inf")) != PASSED:
            said = self._log.read_text(errors="replace")[-4000:]
            raise StaleList(f"{' '.join(command)} fails:\n{said}")


def _status_within(work: Callable[[], int], log: Path, seconds: float) -> int | None:
    """Return the exit status of a child (negative: the signal it died of), None if it runs on for so long.

    The child is a process group of its own and writes into a log. Raises `Interrupted`; nothing runs on in any case.
    """
    child = os.fork()
    if not child:
        _run_as_child(work, log)
    # The child does the same: killing the group must work from now on, and from its first moment on.
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            asked = signal.sigtimedwait(ENDING, POLL_SECONDS)
            if asked is not None:
                raise Interrupted(asked.si_signo)
        return None
    finally:
        _end_group(child)


def _run_as_child(work: Callable[[], int], log: Path) -> NoReturn:
    """Run in this process, which is a child, and end it, whatever happens: the rest of the program is its parent's."""
    status = os.EX_SOFTWARE
    try:
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _end_group(group: int) -> None:
    """End what is left of a process group, and wait until it is gone: it might still write into the copy."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-group, os.WNOHANG)
            try:
                os.killpg(group, number)
            except ProcessLookupError:
                return
            time.sleep(POLL_SECONDS)


def outcomes(
    root: Path, mutants: Iterable[Mutant], seconds: float, limit_seconds: float
) -> Iterator[Outcome]:
    """Yield what becomes of mutants, one after the other; begin none after `seconds`."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="t10-mutants-") as folder:
        copy = Copy(root, Path(folder), limit_seconds)
        for mutant in mutants:
            if time.monotonic() >= end:
                return
            yield copy.outcome(mutant)


def _commit(root: Path, name: str) -> str:
    """Return the hash of a commit, or the name itself where git does not know it."""
    command = ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", name]
    with contextlib.suppress(FileNotFoundError):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or name
    return name


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree (default: this one)")
    parser.add_argument("--only", metavar="GLOB", default="*", help="mutants with such a name")
    parser.add_argument(
        "--draw", metavar="COMMIT", help="Python only, in the order that a commit's hash gives"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no mutant later than this")
    parser.add_argument(
        "--limit", type=float, default=LIMIT_SECONDS, help="what runs longer is killed (%(default)s s)"
    )
    return parser.parse_args()


def main() -> int:
    """Run the mutants that the command line asks for; return the exit status."""
    arguments = _arguments()
    root: Path = arguments.root.resolve()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    found: list[Outcome] = []
    try:
        mutants = [mutant for mutant in read_mutants(root) if fnmatch.fnmatch(mutant.name, arguments.only)]
        if arguments.draw:
            mutants = drawn(mutants, _commit(root, arguments.draw))
        for name in PRELOADED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        for outcome in outcomes(root, mutants, arguments.seconds, arguments.limit):
            print(outcome, flush=True)
            found.append(outcome)
    except StaleList as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    except Interrupted as end:
        name = signal.Signals(end.number).name
        print(f"mutants: ended by {name} after {len(found)} mutants", file=sys.stderr)
        return 128 + end.number
    killed = sum(1 for outcome in found if outcome.killer)
    alive = sum(1 for outcome in found if not outcome.killer and not outcome.mutant.equivalent)
    same = len(found) - killed - alive
    print(f"{len(found)} of {len(mutants)} mutants: {killed} killed, {alive} survived, {same} equivalent")
    return 0 if all(outcome.is_expected for outcome in found) else 1


if __name__ == "__main__":
    sys.exit(main())
