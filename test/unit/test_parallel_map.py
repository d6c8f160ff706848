"""Calls spread over an executor: every result once, the first call's error, interruptions that keep what is done."""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from math import factorial
from multiprocessing import get_context
from threading import Event, Lock, get_ident
from typing import Any

import pytest
from support import calls

from t10.cost.counts import kept_of
from t10.plan.fronts import helper as helpers
from t10.plan.fronts import parallel_map as module
from t10.plan.fronts.helper import Helper, started
from t10.plan.fronts.parallel_map import CallError, CancelledCall, Work, parallel_map, usable_cores


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "usable_cores", lambda: 2)


def stoppable_factorial(number: int, stop: Event | None = None) -> int:
    return factorial(number)


def thread_of(number: int) -> int:
    return get_ident()


def work(function: Any, n: int, weights: list[float] | None = None) -> Work[Any]:
    return Work(function, [(i,) for i in range(n)], weights or [1.0] * n)


def results(given: Work[Any], executor: Executor | None = None) -> list[tuple[int, Any]]:
    found: list[tuple[int, Any]] = []
    parallel_map(given, lambda number, result: found.append((number, result)), executor)
    return sorted(found)


def test_every_call_is_made_once_here_and_on_executors() -> None:
    expected = [(i, factorial(i)) for i in range(9)]
    assert results(work(stoppable_factorial, 9)) == expected
    with ThreadPoolExecutor(3) as threads:
        assert results(work(factorial, 9), threads) == expected
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert results(work(factorial, 9), processes) == expected


def test_no_call_is_no_work() -> None:
    assert results(work(factorial, 0)) == []


def test_a_single_call_and_a_single_core_need_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    assert results(work(thread_of, 1)) == [(0, get_ident())]
    monkeypatch.setattr(module, "usable_cores", lambda: 1)
    assert results(work(thread_of, 3)) == [(i, get_ident()) for i in range(3)]


def test_the_costliest_call_starts_first() -> None:
    started: list[int] = []
    with ThreadPoolExecutor(1) as one:
        results(work(started.append, 4, [1.0, 3.0, 2.0, 3.0]), one)
    assert started == [1, 3, 2, 0]


def test_results_are_handed_over_in_the_calling_thread(two_cores: None) -> None:
    threads: set[int] = set()
    parallel_map(work(stoppable_factorial, 5), lambda number, result: threads.add(get_ident()))
    assert threads == {get_ident()}


def test_the_error_is_that_of_the_first_call_whichever_fails_first(two_cores: None) -> None:
    later_failed = Event()

    def call(number: int, stop: Event) -> int:
        if number == 2:
            later_failed.set()
            raise ValueError("second to be reported, first to fail")
        if number == 1:
            assert later_failed.wait(10)
            raise KeyError("first to be reported, last to fail")
        return number

    found: list[int] = []
    with pytest.raises(CallError) as caught:
        parallel_map(work(call, 3), lambda number, result: found.append(number))
    assert caught.value.number == 1
    assert isinstance(caught.value.__cause__, KeyError)
    assert found == [0]


def test_an_interruption_stops_the_running_cancels_the_rest_and_keeps_the_finished(two_cores: None) -> None:
    started: list[int] = []
    seen_stop = Event()
    running = Event()
    lock = Lock()

    def call(number: int, stop: Event) -> int:
        with lock:
            started.append(number)
        if number == 1:
            running.set()
            assert stop.wait(10)
            seen_stop.set()
            raise module.Stopped
        assert running.wait(10)
        if number > 1:
            stop.wait(1)
        return number

    kept: list[int] = []

    def done(number: int, result: int) -> None:
        kept.append(number)
        if len(kept) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel_map(work(call, 50), done)
    assert seen_stop.is_set()
    assert len(started) < 50
    assert set(kept) <= set(started) - {1}


def test_what_ended_while_we_were_interrupted_is_kept() -> None:
    class Finished(Executor):
        """Every call has ended when it is handed in."""

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(fn(*args, **kwargs))
            return future

    kept: list[int] = []

    def done(number: int, result: int) -> None:
        kept.append(number)
        if len(kept) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel_map(work(factorial, 6), done, Finished())
    assert sorted(kept) == list(range(6))


def test_calls_that_the_executor_gives_up_are_errors() -> None:
    class Closing(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(CallError) as caught:
        results(work(factorial, 2), Closing())
    assert isinstance(caught.value.__cause__, CancelledCall)


def test_there_is_a_core() -> None:
    assert usable_cores() >= 1


@pytest.fixture
def helpers_at_once(two_cores: None, monkeypatch: pytest.MonkeyPatch) -> list[Helper]:
    """Let helpers start with the first call; the list has those that did."""
    found: list[Helper] = []

    def start() -> Helper | None:
        helper = started()
        assert helper is not None
        found.append(helper)
        return helper

    monkeypatch.setattr(module, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(helpers, "started", start)
    return found


def portable(function: Any, arguments: list[int]) -> Work[Any]:
    return Work(function, [(argument,) for argument in arguments], [1.0] * len(arguments), is_portable=True)


def test_calls_that_take_a_while_are_made_by_another_process_too(helpers_at_once: list[Helper]) -> None:
    found = [process for _, process in results(portable(calls.process_of, list(range(60))))]
    (helper,) = helpers_at_once
    assert set(found) == {os.getpid(), helper.process.pid}
    assert helper.process.poll() is not None


def test_short_calls_and_those_bound_to_this_process_get_no_helper(
    two_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "started", lambda: pytest.fail("a helper was started"))
    assert {p for _, p in results(portable(calls.process_of, [0, 1, 2]))} == {os.getpid()}
    monkeypatch.setattr(module, "SHORT_SECONDS", 0.0)
    assert {p for _, p in results(work(calls.process_of, 5))} == {os.getpid()}


def test_helpers_wait_for_further_calls_in_a_block_and_end_with_it(helpers_at_once: list[Helper]) -> None:
    with helpers.kept_helpers():
        with helpers.kept_helpers():
            first = results(portable(calls.process_of, list(range(20))))
        (helper,) = helpers_at_once
        assert helper.process.poll() is None
        second = results(portable(calls.process_of, list(range(20))))
        assert helpers_at_once == [helper]
    assert helper.process.poll() is not None
    for found in (first, second):
        assert {process for _, process in found} == {os.getpid(), helper.process.pid}


def test_what_helpers_count_is_known_here(helpers_at_once: list[Helper]) -> None:
    made_by = dict(results(portable(calls.counts, list(range(20)))))
    (helper,) = helpers_at_once
    assert set(made_by.values()) == {os.getpid(), helper.process.pid}
    assert kept_of(*calls.STEP) == {(number,): process for number, process in made_by.items()}


def test_what_a_helper_leaves_undone_is_done_here(helpers_at_once: list[Helper]) -> None:
    home = os.getpid()
    assert results(portable(calls.dies_elsewhere, [home] * 40)) == [(i, home) for i in range(40)]
    assert len(helpers_at_once) == 1


def test_an_error_in_a_helper_is_the_error_of_the_call(helpers_at_once: list[Helper]) -> None:
    with pytest.raises(CallError) as caught:
        results(portable(calls.fails, list(range(4))))
    assert repr(caught.value.__cause__) == "ValueError('call 0')"


def test_an_interruption_leaves_no_helper_behind(helpers_at_once: list[Helper]) -> None:
    def done(number: int, result: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel_map(portable(calls.sleeps, [0, 1, 2, 3]), done)
    assert all(helper.process.poll() is not None for helper in helpers_at_once)
