"""Spread independent calls over an executor: results as they come, and the same error whatever the order.

Without an executor, calls run on as many threads as the process may use cores. Calls that take long get helper
processes, which take calls from the other end, because such calls hold the interpreter lock. Helpers of earlier calls
(`helper.kept_helpers`) are used again.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Generic, TypeVar

from t10.plan.fronts.helper import Helper, HelperFailedError, are_waiting, leave, taken

MOST_HELPERS = 3
SHORT_SECONDS, POLL_SECONDS = 0.25, 0.01
"""Calls get no helpers before this process has worked for so long: starting one takes about that, or more."""
T = TypeVar("T")
Arguments = tuple[Any, ...]
Done = Callable[[int, T], None]
"""Called in the calling thread with the number of a call and what it returned."""


class Stopped(Exception):
    """Raised inside a call that notices that its result is not wanted any more."""


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """Calls of one function: `function(*arguments[i])`, the costliest of `weights` first.

    `function` and what it takes and returns must be such that the executor can carry them: for one that uses other
    processes, a function of a module and values that can be pickled. On threads of this process the function is called
    with the keyword `stop`, an event that is set when the result is not wanted any more. With `is_portable` a process
    that knows nothing of this one may make the calls, which hold the interpreter's lock most of the time.
    """

    function: Callable[..., T]
    arguments: Sequence[Arguments]
    weights: Sequence[float]
    is_portable: bool = False

    def order(self) -> list[int]:
        """Return the numbers of the calls in the order in which they start."""
        return sorted(range(len(self.arguments)), key=lambda i: (-self.weights[i], i))


class CallError(Exception):
    """The call `number` failed; the cause is what it raised. Of several that fail it is that of the lowest number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def parallel_map(work: Work[T], done: Done[T], executor: Executor | None = None) -> None:
    """Make all calls and hand every result to `done` as soon as it is there.

    Raises `CallError` if calls fail: later calls are given up, earlier ones are waited for, so that the error does not
    depend on the order in which they end. What interrupts the waiting (KeyboardInterrupt, an error of `done`) cancels
    the calls that have not started, stops those on threads of this process, and hands over what is complete.
    """
    n_threads = min(usable_cores(), len(work.arguments))
    if executor is not None:
        _collect(_started(work, executor), done)
    elif n_threads > 1:
        here = _Here(work, deque(work.order()), [Future() for _ in work.arguments])
        pool = ThreadPoolExecutor(n_threads, thread_name_prefix="t10-search")
        try:
            for number in range(n_threads):
                pool.submit(here.run, is_helped=work.is_portable and 0 < number <= MOST_HELPERS)
            _collect(_Flight({future: number for number, future in enumerate(here.futures)}), done)
        finally:
            here.stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
    else:
        _call_here(work, done)


def make_all(work: Work[T], done: Done[T]) -> None:
    """Make all calls in this process, and by helpers, as `parallel_map` does; errors are raised as they were."""
    try:
        parallel_map(work, done)
    except CallError as failure:
        raise (failure.__cause__ or failure) from None


def _call_here(work: Work[T], done: Done[T]) -> None:
    """Make the calls one after the other in this thread."""
    for number, arguments in enumerate(work.arguments):
        try:
            result = work.function(*arguments)
        except Exception as error:
            raise CallError(number) from error
        done(number, result)


@dataclass(slots=True)
class _Flight(Generic[T]):
    """Calls under way: numbers by future, and the error of the lowest number so far."""

    number_by_future: dict[Future[T], int]
    failed: int | None = None
    error: BaseException | None = field(default=None)

    def pending(self) -> list[Future[T]]:
        """Return the futures that still matter: after a failure, those of lower numbers."""
        return [
            f for f, number in self.number_by_future.items() if self.failed is None or number < self.failed
        ]

    def deliver(self, future: Future[T], done: Done[T]) -> None:
        """Take the result of a finished call, or note its error."""
        number = self.number_by_future.pop(future)
        error = CancelledCall() if future.cancelled() else future.exception()
        if error is None:
            done(number, future.result())
        elif self.failed is None or number < self.failed:
            self.failed, self.error = number, error


@dataclass(frozen=True, slots=True)
class _Here(Generic[T]):
    """Calls that threads of this process make, or see to: what is left of them, costliest first, and their futures."""

    work: Work[T]
    left: deque[int]
    futures: list[Future[T]]
    stop: Event = field(default_factory=Event)
    start: float = field(default_factory=time.process_time)

    def run(self, *, is_helped: bool) -> None:
        """Make calls as long as there are some; where it `is_helped`, let a process make them, from a moment on.

        That takes the other end: calls of about the same cost often have much in common, which one process finds once.
        """
        helper: Helper | None = None
        if is_helped:
            while self.left and not are_waiting() and time.process_time() - self.start < SHORT_SECONDS:
                if self.stop.wait(POLL_SECONDS):
                    return
            helper = taken() if self.left else None
        try:
            while self.left:
                try:
                    number = self.left.popleft() if helper is None else self.left.pop()
                except IndexError:  # another thread was faster
                    return
                if self.futures[number].set_running_or_notify_cancel():
                    helper = self._make(number, helper)
        finally:
            if helper is not None:
                leave(helper)

    def _make(self, number: int, helper: Helper | None) -> Helper | None:
        """Make a call, by the helper if it can; returns the helper, None where there is none any more."""
        work, future = self.work, self.futures[number]
        if helper is not None:
            try:
                future.set_result(helper.call(work.function, work.arguments[number], self.stop))
                return helper
            except HelperFailedError:
                helper.end()
        try:
            future.set_result(work.function(*work.arguments[number], stop=self.stop))
        except BaseException as error:
            future.set_exception(error)
        return None


def _started(work: Work[T], executor: Executor) -> _Flight[T]:
    """Hand all calls to the executor."""
    flight = _Flight[T]({})
    for number in work.order():
        future = executor.submit(work.function, *work.arguments[number])
        flight.number_by_future[future] = number
    return flight


class CancelledCall(Exception):
    """The executor gave a call up (its workers were stopped)."""


def _collect(flight: _Flight[T], done: Done[T]) -> None:
    """Wait for the calls under way and take what they return."""
    try:
        while pending := flight.pending():
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                flight.deliver(future, done)
    finally:
        for future in list(flight.number_by_future):
            # What ended while we were interrupted is worth keeping.
            if not future.cancel() and future.done() and not future.cancelled() and not future.exception():
                done(flight.number_by_future.pop(future), future.result())
    if flight.failed is not None:
        raise CallError(flight.failed) from flight.error
