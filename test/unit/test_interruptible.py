"""Native calls on a thread of their own: results, errors, and interruptions that stop them."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Callable

import pytest
from ortools.sat.python import cp_model
from support.random_selections import random_selection

from t10.core.interruptible import interruptible
from t10.plan.joint.polish import polish
from t10.plan.memory.blocks import Block
from t10.plan.memory.packing_solver import least_starts


def _handler() -> int | None:
    """Return the address that the system calls at SIGINT: `signal.getsignal` says what Python believes."""
    action = (ctypes.c_void_p * 32)()
    assert ctypes.CDLL(None).sigaction(signal.SIGINT, None, action) == 0
    return action[0]


def test_results_and_errors_are_those_of_the_call() -> None:
    def fail() -> None:
        raise ValueError("of the call")

    assert interruptible(lambda: 3, fail) == 3
    with pytest.raises(ValueError, match="of the call"):
        interruptible(fail, lambda: None)


def test_an_interruption_stops_the_call_and_waits_for_its_end() -> None:
    stopped, ended = threading.Event(), threading.Event()

    def call() -> None:
        # A real signal, not `_thread.interrupt_main`: the main thread waits on a lock, which only a signal ends.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        stopped.wait(20)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        interruptible(call, stopped.set)
    assert stopped.is_set()
    assert ended.is_set()


def test_a_running_solver_is_interrupted() -> None:
    # Whether 16 pigeons have 15 holes: a solver without symmetries takes minutes.
    model = cp_model.CpModel()
    nests = [[model.new_bool_var("") for _ in range(15)] for _ in range(16)]
    for own in nests:
        model.add_bool_or(own)
    for hole in range(15):
        for one in range(16):
            for other in range(one):
                model.add_bool_or([~nests[one][hole], ~nests[other][hole]])
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.symmetry_level = 0
    solver.parameters.cp_model_presolve = False
    solver.parameters.max_time_in_seconds = 60
    solver.parameters.catch_sigint_signal = False
    timer = threading.Timer(
        0.3, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    )
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: solver.solve(model), solver.stop_search)
    assert time.monotonic() - start < 20


def _pack() -> None:
    blocks = [Block(i, i + 2, 32 * (i + 1)) for i in range(4)]
    least_starts(blocks, [0, 32, 96, 192], 32, 0.1)


def _choose() -> None:
    selection = random_selection(1)
    polish(selection, None, range(selection.n_operators), 0.1, 0.0)


@pytest.mark.parametrize("solve", [_pack, _choose])
def test_solvers_leave_the_handling_of_interruptions_alone(solve: Callable[[], None]) -> None:
    before = _handler()
    assert before
    solve()
    assert _handler() == before
