"""Tests in processes of their own: a test that crashes, hangs or takes all memory ends its process, not the run."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from t10.conformance.cases import Case
from t10.conformance.grid.cases import GridPack
from t10.conformance.verdict import Verdict

_WALL_FACTOR = 10
"""A process may be without a core for most of the time; what sleeps longer than this is stopped too."""
_POLL_SECONDS = 1.0
_MOST_JUDGED = 100
"""Tests that a process runs before another one takes its place: address space of simulated tiles is not given back."""

AnyCase = Case | GridPack
Progress = Callable[[Verdict, int, int], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one model of a test may use: processor time of all its threads, and address space."""

    cpu_seconds: int = 30
    memory_bytes: int = 8 << 30
    network_cpu_seconds: int = 1800


@dataclass(slots=True)
class _Worker:
    process: Any
    pipe: Any
    case: AnyCase | None = None
    started: float = 0.0
    seconds: int = field(default=0)
    n_judged: int = field(default=0)


def run_cases(
    cases: Sequence[AnyCase], limits: Limits, jobs: int, progress: Progress | None = None
) -> tuple[Verdict, ...]:
    """Return the verdict of every case, in their order, from `jobs` processes at a time."""
    waiting = list(reversed(cases))
    verdicts: dict[str, Verdict] = {}
    workers = [_start(cases, limits) for _ in range(min(jobs, len(cases)))]
    for worker in workers:
        _give(worker, waiting, limits)
    while len(verdicts) < len(cases):
        wait([worker.pipe for worker in workers if worker.case], timeout=_POLL_SECONDS)
        for place, worker in enumerate(workers):
            if worker.case is None:
                continue
            verdict = _answer(worker)
            if verdict is None:
                continue
            verdicts[verdict.name] = verdict
            if progress:
                progress(verdict, len(verdicts), len(cases))
            worker.n_judged += 1
            if worker.n_judged == _MOST_JUDGED and worker.process.is_alive():
                _stop(worker)
            if not worker.process.is_alive():
                workers[place] = worker = _start(cases, limits)
            _give(worker, waiting, limits)
    for worker in workers:
        _stop(worker)
    return tuple(verdicts[case.name] for case in cases)


def _start(cases: Sequence[AnyCase], limits: Limits) -> _Worker:
    """Return a process that knows the cases already, because it is a copy of this one."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, cases, limits), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _give(worker: _Worker, waiting: list[AnyCase], limits: Limits) -> None:
    worker.case = waiting.pop() if waiting else None
    if worker.case is None:
        return
    worker.started = time.monotonic()
    n_models = len(worker.case.cases) if isinstance(worker.case, GridPack) else 1
    worker.seconds = (
        limits.network_cpu_seconds if worker.case.kind == "light" else limits.cpu_seconds * n_models
    )
    worker.pipe.send((worker.case.name, worker.seconds))


def _answer(worker: _Worker) -> Verdict | None:
    """Return what a worker found or died of, None while it is busy."""
    case = worker.case
    assert case is not None
    if worker.pipe.poll():
        try:
            return worker.pipe.recv()
        except EOFError:
            worker.process.join()
    elif worker.process.is_alive():
        if time.monotonic() - worker.started < worker.seconds * _WALL_FACTOR:
            return None
        worker.process.kill()
        worker.process.join()
    return _died(case, worker.process.exitcode, worker.seconds)


def _died(case: AnyCase, code: int, seconds: int) -> Verdict:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Verdict(
            case.name, case.operator, "time limit", f"more than {seconds} s", seconds=float(seconds)
        )
    cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return Verdict(case.name, case.operator, "crash", f"the process ended with {cause}")


def _stop(worker: _Worker) -> None:
    worker.pipe.send(None)
    worker.process.join()
    worker.pipe.close()


def _serve(pipe: Any, cases: Sequence[AnyCase], limits: Limits) -> None:
    """Judge cases by name until there are no more."""
    from t10.conformance.judge import judge

    case_by_name = {case.name: case for case in cases}
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    while (request := _request(pipe)) is not None:
        name, seconds = request
        used = resource.getrusage(resource.RUSAGE_SELF)
        end = int(used.ru_utime + used.ru_stime) + 1 + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
        pipe.send(judge(case_by_name[name]))


def _request(pipe: Any) -> tuple[str, int] | None:
    """Return the name and time limit of the next case, None where there is none, or nobody to ask for one.

    This process and others hold copies of the pipe's other end, so that it stays open when the parent is killed.
    """
    parent = multiprocessing.parent_process()
    while not pipe.poll(_POLL_SECONDS):
        if parent is not None and not parent.is_alive():
            return None
    return pipe.recv()
