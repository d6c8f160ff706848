"""Processes of a command end with it: when it fails, is interrupted, or is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from t10.cli.workers import workers
from t10.conformance import workers as judges

SECONDS = 30
"""Much longer than starting and ending takes, much shorter than the calls."""
COMMAND = """
import os, time
from t10.cli.workers import workers
if __name__ == "__main__":
    with workers(2) as pool:
        pool.submit(os.getpid).result()
        calls = [pool.submit(time.sleep, 600) for _ in range(6)]
        print("begun", flush=True)
        calls[0].result()
"""
SLEEPING_MAIN = """
import sys, time
from t10 import start
from t10.cli import entry
def _dispatch(arguments):
    print("begun", flush=True)
    time.sleep(600)
entry._dispatch = _dispatch
sys.argv = ["t10", "chips"]
sys.exit(start.t10())
"""


def _started(program: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_command(number: int) -> None:
    process = _started(COMMAND)
    process.send_signal(number)
    # The output is at its end when the last process that holds it has ended.
    process.communicate(timeout=SECONDS)
    assert process.returncode != 0


def test_an_error_does_not_wait_for_other_calls() -> None:
    def fail() -> None:
        with workers(2) as pool:
            assert pool is not None
            pool.submit(time.sleep, 600)
            pool.submit(divmod, 1, 0).result()

    start = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        fail()
    assert time.monotonic() - start < SECONDS


def test_one_job_needs_no_process() -> None:
    with workers(1) as pool:
        assert pool is None


def test_sigterm_interrupts_a_command() -> None:
    process = _started(SLEEPING_MAIN)
    process.terminate()
    _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (130, b"\nt10: interrupted\n")


def _judging(ours: Any, theirs: Any) -> None:
    """Start a process that judges, tell its number, and wait."""
    worker = judges._start((), judges.Limits())  # pyright: ignore[reportPrivateUsage]: the process is what is tested
    ours.close()
    theirs.send(worker.process.pid)
    time.sleep(600)


def _is_running(process: int) -> bool:
    """Return whether there is such a process that has not ended; nobody may have asked yet how it did."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_processes_that_judge_end_with_the_run() -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    run = context.Process(target=_judging, args=(ours, theirs))
    run.start()
    assert ours.poll(SECONDS)
    worker = ours.recv()
    assert _is_running(worker)
    run.kill()
    run.join()
    end = time.monotonic() + SECONDS
    while _is_running(worker) and time.monotonic() < end:
        time.sleep(0.1)
    assert not _is_running(worker)
