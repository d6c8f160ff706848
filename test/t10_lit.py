"""A lit test format that runs our own commands by forking instead of starting Python anew.

Starting `t10-opt` costs some 150 ms, nearly all of it imports; forking a process that has done them costs 2 ms. So each
lit worker imports the tools once and forks per command. RUN lines made of our commands, FileCheck and a few plain
programs, joined by `|`, `&&`, `;`, `not` and the usual redirections, are run that way. Anything else (`env`,
here-documents, globs) goes to lit's own shell, where the commands are found on PATH and start as real processes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import lit.formats
import lit.ShUtil
import lit.Test
import lit.TestRunner

# lit has no types.
_RUNNER: Any = lit.TestRunner
_SHELL_FORMAT: Any = lit.formats.ShTest

OWN_TOOLS = {
    "t10": "t10.cli",
    "t10-opt": "t10.opt.main",
    "t10-translate": "t10.translate",
    "filecheck": "filecheck.main",
}
"""Commands run by forking: command name to the module whose `main()` it is."""

PLAIN_PROGRAMS = frozenset(
    {
        "cat",
        "cmp",
        "cp",
        "diff",
        "echo",
        "grep",
        "head",
        "mkdir",
        "rm",
        "sed",
        "sort",
        "tail",
        "test",
        "touch",
        "wc",
    }
)
"""Programs that read nothing but their arguments and streams; run directly, without a shell."""

_tried: set[str] = set()
_DEBUG_PREFIX = re.compile(r"%dbg\(([^)]*)\)(.*)", re.DOTALL)


class NeedsShellError(Exception):
    """The RUN line uses something only a shell understands."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One command of a pipeline: words, whether its status is inverted, and its redirections (operator, file)."""

    words: tuple[str, ...]
    inverted: bool
    redirects: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Run:
    """Where and how the commands of one test run; `timeout_seconds` 0 means no limit."""

    folder: str
    environment: dict[str, str]
    llvm_filecheck: str
    programs: dict[str, str]
    timeout_seconds: int


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Exit status of a pipeline (negative: ended by that signal) and what reached the terminal."""

    status: int
    output: str


class ForkingShTest(lit.formats.ShTest):
    """The format: lit's own `ShTest`, with the common RUN lines executed in forked children.

    `llvm_filecheck` is the path of LLVM's FileCheck, or empty for the Python one; `programs` maps further command
    names to paths (`mlir-opt`).
    """

    def __init__(self, *, llvm_filecheck: str, programs: dict[str, str]) -> None:
        _SHELL_FORMAT.__init__(self, execute_external=False)
        self.llvm_filecheck = llvm_filecheck
        self.programs = programs

    def execute(self, test: Any, litConfig: Any) -> Any:  # noqa: N803 - the name lit calls it by
        """Return lit's result for one test file."""
        if test.config.unsupported:
            return lit.Test.Result(lit.Test.UNSUPPORTED, "Test is unsupported")
        script: Any = _RUNNER.parseIntegratedTestScript(test)
        if not isinstance(script, list):
            return cast(object, script)
        if litConfig.noExecute:
            return lit.Test.Result(lit.Test.PASS)
        try:
            lines = [_parse(text, number) for text, number in _expanded(test, cast(list[str], script))]
            for _, tree in lines:
                for step in _steps(tree):
                    self._check_runnable(step)
        except NeedsShellError:
            return _SHELL_FORMAT.execute(self, test, litConfig)
        run = Run(
            folder=os.path.dirname(test.getExecPath()),
            environment=dict(test.config.environment),
            llvm_filecheck=self.llvm_filecheck,
            programs=self.programs,
            timeout_seconds=int(test.config.maxIndividualTestTime or 0),
        )
        return _run_lines(lines, run)

    def _check_runnable(self, step: Step) -> None:
        name = step.words[0]
        if name not in OWN_TOOLS and name not in PLAIN_PROGRAMS and name not in self.programs:
            raise NeedsShellError(name)


def _expanded(test: Any, script: list[str]) -> Iterator[tuple[str, str]]:
    """Yield every RUN line with its substitutions made, and which line of the test it is."""
    folder, base = _RUNNER.getTempPaths(test)
    Path(base).parent.mkdir(parents=True, exist_ok=True)
    conditions = dict.fromkeys(test.config.available_features, True)
    lines = _RUNNER.applySubstitutions(
        script,
        _RUNNER.getDefaultSubstitutions(test, folder, base),
        conditions,
        recursion_limit=test.config.recursiveExpansionLimit,
    )
    for line in lines:
        found = _DEBUG_PREFIX.fullmatch(line)
        yield (found.group(2).strip(), found.group(1)) if found else (line, "RUN line")


def _parse(text: str, where: str) -> tuple[str, Any]:
    """Return the line's label and its tree of pipelines; raises NeedsShellError for what lit's parser cannot read."""
    if any(mark in text for mark in ("$(", "`", "%{readfile")):
        raise NeedsShellError(text)
    try:
        tree = lit.ShUtil.ShParser(text, False, True).parse()
    except (ValueError, AssertionError) as error:
        raise NeedsShellError(str(error)) from error
    return f"{where}: {text}", _simplify(tree)


def _simplify(tree: Any) -> Any:
    """Turn lit's tree into nested tuples `(operator, left, right)` with tuples of `Step` as leaves."""
    if type(tree) is lit.ShUtil.Seq:
        if tree.op not in ("&&", "||", ";"):
            raise NeedsShellError(tree.op)
        return (tree.op, _simplify(tree.lhs), _simplify(tree.rhs))
    return tuple(_step(command) for command in tree.commands)


def _step(command: Any) -> Step:
    words: list[Any] = list(command.args)
    inverted = False
    while words and words[0] in ("not", "!"):
        inverted = not inverted
        words = words[1:]
    if not words or not all(isinstance(word, str) for word in words):
        raise NeedsShellError("glob or empty command")
    redirects = tuple((f"{op[1] if len(op) > 1 else ''}{op[0]}", target) for op, target in command.redirects)
    if not all(isinstance(target, str) for _, target in redirects):
        raise NeedsShellError("glob in redirection")
    if any(op not in ("<", ">", "1>", ">>", "2>", "2>&", "&>") for op, _ in redirects):
        raise NeedsShellError("unusual redirection")
    if any(op == "2>&" and target != "1" for op, target in redirects):
        raise NeedsShellError("unusual redirection")
    return Step(tuple(words), inverted, redirects)


def _steps(tree: Any) -> Iterator[Step]:
    if tree and isinstance(tree[0], str):
        yield from _steps(tree[1])
        yield from _steps(tree[2])
    else:
        yield from tree


def _run_lines(lines: list[tuple[str, Any]], run: Run) -> Any:
    log: list[str] = []
    for label, tree in lines:
        outcome = _run_tree(tree, run)
        log.append(f"# {label}\n{outcome.output}")
        if outcome.status == -signal.SIGALRM:
            return lit.Test.Result(lit.Test.TIMEOUT, "\n".join([*log, f"# over {run.timeout_seconds} s"]))
        if outcome.status != 0:
            return lit.Test.Result(lit.Test.FAIL, "\n".join([*log, f"# exit status {outcome.status}"]))
    return lit.Test.Result(lit.Test.PASS, "\n".join(log))


def _run_tree(tree: Any, run: Run) -> Outcome:
    if not isinstance(tree[0], str):
        return _run_pipeline(tree, run)
    operator, left, right = tree
    first = _run_tree(left, run)
    if (operator == "&&" and first.status != 0) or (operator == "||" and first.status == 0):
        return first
    second = _run_tree(right, run)
    return Outcome(second.status, first.output + second.output)


def _run_pipeline(steps: tuple[Step, ...], run: Run) -> Outcome:
    """Run the steps one after the other, each reading what the one before wrote; fails if any of them fails."""
    status = 0
    with contextlib.ExitStack() as files:
        terminal = files.enter_context(tempfile.TemporaryFile())
        piped: IO[bytes] = files.enter_context(open(os.devnull, "rb"))
        for step in steps:
            out = terminal if step is steps[-1] else files.enter_context(tempfile.TemporaryFile())
            code = _run_step(step, run, {0: piped, 1: out, 2: terminal})
            if code < 0 or (code != 0) != step.inverted:
                status = code or 1
            out.seek(0)
            piped = out
        return Outcome(status, terminal.read().decode("utf-8", "replace"))


def _run_step(step: Step, run: Run, streams: dict[int, IO[bytes]]) -> int:
    """Run one command with its redirections applied; returns its exit status, negative when a signal ended it."""
    with contextlib.ExitStack() as files:
        for operator, target in step.redirects:
            if operator == "2>&":
                streams[2] = streams[1]
                continue
            mode = {"<": "rb", ">>": "ab"}.get(operator, "wb")
            stream = files.enter_context(Path(run.folder, target).open(mode))
            streams[{"<": 0, "2>": 2}.get(operator, 1)] = stream
            if operator == "&>":
                streams[2] = stream
        return _start(step.words, run, streams)


def _start(words: tuple[str, ...], run: Run, streams: dict[int, IO[bytes]]) -> int:
    name = words[0]
    if name == "filecheck" and run.llvm_filecheck:
        return _spawn((run.llvm_filecheck, *words[1:]), run, streams)
    if name in OWN_TOOLS:
        return _fork(_preloaded(OWN_TOOLS[name]), words, run, streams)
    return _spawn((run.programs.get(name, name), *words[1:]), run, streams)


def _spawn(words: tuple[str, ...], run: Run, streams: dict[int, IO[bytes]]) -> int:
    try:
        return subprocess.run(
            words,
            cwd=run.folder,
            env=run.environment,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            timeout=run.timeout_seconds or None,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return -signal.SIGALRM


def _preloaded(module: str) -> Callable[[], object]:
    """Return a callable for the child that runs `module.main()`; imports here, once per worker, what it will need."""
    _try_import(module)
    if module == "t10.opt.main":
        for folder in ("dialect", "passes"):
            for path in sorted((Path(__file__).parent.parent / folder).glob("*.py")):
                _try_import(f"t10.{folder}.{path.stem}")
    return lambda: importlib.import_module(module).main()


def _try_import(module: str) -> None:
    """Import a module if that works; where it does not, the child tries again and shows its traceback."""
    if module not in _tried:
        _tried.add(module)
        with contextlib.suppress(Exception):
            importlib.import_module(module)


def _fork(main: Callable[[], object], words: tuple[str, ...], run: Run, streams: dict[int, IO[bytes]]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os._exit(_in_child(main, words, run, streams))
    _, wait_status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(wait_status)


def _in_child(
    main: Callable[[], object], words: tuple[str, ...], run: Run, streams: dict[int, IO[bytes]]
) -> int:
    """Become the command: its folder, environment, streams and arguments; returns the exit status."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(run.timeout_seconds)
    os.chdir(run.folder)
    os.environ.clear()
    os.environ.update(run.environment)
    for number, stream in streams.items():
        os.dup2(stream.fileno(), number)
    # What was imported before the fork may hold the old stream objects; they write to the same descriptors.
    inherited = (sys.stdout, sys.stderr)
    sys.stdin, sys.stdout, sys.stderr = (
        open(0, closefd=False, encoding="utf-8"),  # noqa: SIM115 - these live as long as the process
        open(1, "w", closefd=False, encoding="utf-8"),  # noqa: SIM115 - as above
        open(2, "w", closefd=False, encoding="utf-8"),  # noqa: SIM115 - as above
    )
    sys.argv = list(words)
    try:
        status = _exit_status(main())
    except SystemExit as stop:
        status = _exit_status(stop.code)
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (*inherited, sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = status or 1
    return status


def _exit_status(code: object) -> int:
    """Return what Python's own start-up would exit with for this value of `main()` or `SystemExit`."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1
