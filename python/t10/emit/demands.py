"""What the fastest code for a model demands of where its buffers lie, and what is at stake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from t10.core.device import Execute, Repeat, Step
from t10.core.schedule import Wish
from t10.emit.link import Parts, buffer_of


def demands(parts: Parts) -> tuple[Wish, ...]:
    """Return a wish per demand of a job; it weighs the modelled cycles of all executions of the job.

    Those of combining partial sums are charged with the exchange before it, so that they are counted here.
    """
    builder = parts.builder
    executions = Counter(name for each in parts.operators for name in _executed(each.steps))
    result: list[Wish] = []
    for name, job in builder.jobs.items():
        compiled = builder.kept.compiled
        cycles = compiled.cycles(job.number) if job.kind == "combine" else job.cycles
        weight = (1 + cycles) * executions[name]
        best = compiled.demands(job.number)
        buffers = tuple(buffer_of(variable) for variable in job.names)
        result += (Wish((buffers[one],), weight) for one in sorted(best.interleaved))
        result += (Wish((buffers[one], buffers[other]), weight) for one, other in sorted(best.apart))
    return tuple(result)


def _executed(steps: tuple[Step, ...]) -> Iterator[str]:
    """Yield the job of every execution; steps are not rolled into loops yet."""
    for step in steps:
        match step:
            case Execute(name):
                yield name
            case Repeat(count, body):
                yield from (name for name in _executed(body) for _ in range(count))
            case _:
                pass
