"""Judging many cases in child processes: each within limits of time and memory; one that ends its child is named."""

from __future__ import annotations

import argparse
import os
import resource
import signal
import struct
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from t10.core.guard import ended_clearly
from t10.errors import InputError

CPU_SECONDS_PER_CASE = 20
ENDED = "the process ended"
KINDS = ("taken", "refused", "defect")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one case: `kind` is taken, refused, stopped or defect; `text` the error.

    Stopped is what native code gave up on and `t10.core.guard` told so: of text, for MLIR's own parsers and passes are
    what they are; of an ONNX model it is a defect, as the rules of form come first.
    """

    kind: str
    text: str


Judge = Callable[[int], Verdict]


def case_options(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what all tools say about their cases: how many, from which on, of which seed, or one alone."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000, help="cases (default: %(default)s)")
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run one case and print what becomes of it")
    parser.add_argument("--save", type=Path, help="with --only: keep its file there")
    return parser


def judged(
    numbers: Sequence[int], judge: Judge, *, memory_bytes: int, is_stopped_told: bool
) -> list[tuple[int, Verdict]]:
    """Return the verdicts of cases, judged in child processes; a case that ends its child is a defect."""
    found: list[tuple[int, Verdict]] = []
    todo = list(numbers)
    while todo:
        done = _in_child(todo, judge, memory_bytes, is_stopped_told=is_stopped_told)
        found += done
        todo = todo[len(done) :]
    return found


def _in_child(
    todo: list[int], judge: Judge, memory_bytes: int, *, is_stopped_told: bool
) -> list[tuple[int, Verdict]]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            with ended_clearly("fuzz"):
                _judge_all(todo, judge, memory_bytes, writing)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    _, status = os.waitpid(child, 0)
    verdicts: list[tuple[int, Verdict]] = []
    position = 0
    while position + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, position)
        text = data[position + 8 : position + 8 + size].decode(errors="replace")
        verdicts.append((todo[len(verdicts)], Verdict(KINDS[kind], text)))
        position += 8 + size
    if len(verdicts) < len(todo):
        cause = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
        is_told = is_stopped_told and cause == f"exit {InputError.exit_code}"
        verdicts.append(
            (todo[len(verdicts)], Verdict("stopped" if is_told else "defect", f"{ENDED}: {cause}"))
        )
    return verdicts


def _judge_all(todo: list[int], judge: Judge, memory_bytes: int, writing: int) -> None:
    """Judge cases and write each verdict; the alarms, which end the process, are the time limits."""
    limit = _mapped_bytes() + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in todo:
        signal.alarm(15 * CPU_SECONDS_PER_CASE)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS_PER_CASE)
        verdict = judge(number)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        text = verdict.text.encode()
        os.write(writing, struct.pack("<II", KINDS.index(verdict.kind), len(text)) + text)


def _mapped_bytes() -> int:
    """Return the bytes that this process has mapped by now: a fork of a test run that went on for long has many."""
    try:
        n_pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return n_pages * resource.getpagesize()
