"""A case: a task, what poplibs' published formula says for the same work, and what the work is at least."""

from __future__ import annotations

from dataclasses import dataclass

from t10.core.task import Task


@dataclass(frozen=True, slots=True)
class Case:
    """A task to measure.

    `formula_cycles` is poplibs' published estimate for the same work on one tile (timing reference §5), None where
    there is none. `least_cycles` is what the engine, or loads and stores, take at least. `inner` is the share of that
    bound which the inner loop reaches, None where it is not known without running.
    """

    name: str
    task: Task
    formula_cycles: float | None = None
    least_cycles: float | None = None
    inner: float | None = None
