"""One architecture on the GPU: its outputs compared, its runs timed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gpu.networks import BUILDERS, torch

WARM, RUNS = 5, 30
TOLERANCE = 0.05
"""Largest difference from f32, as a part of the largest value of an output."""
WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda model: model,
    "compiled": lambda model: torch.compile(model, dynamic=False),
    "tensorrt": lambda model: torch.compile(model, dynamic=False, backend="torch_tensorrt"),
}
"""What prepares a module to be called."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One model at one batch in one way: `milliseconds` per run, `worst` is the difference from f32."""

    model: str
    batch: int
    way: str
    milliseconds: float
    worst: float


def timed(name: str, batch: int, ways: Sequence[str]) -> list[Timing]:
    """Return the timings of a model at a batch, each of the `WAYS` that runs; a line per way is printed."""
    found: list[Timing] = []
    torch.manual_seed(0)
    torch.compiler.reset()
    try:
        torch.set_default_device("cuda")
        model, inputs = BUILDERS[name](batch)
        model = model.eval()
        expected = _outputs(model(*inputs))
        model = model.half()
        halves = [each.half() if each.is_floating_point() else each for each in inputs]
    except torch.cuda.OutOfMemoryError:
        print(f"{name:12} b{batch:<4} does not fit")
        return []
    for way in ways:
        try:
            run = WAYS[way](model)
            worst = _worst(_outputs(run(*halves)), expected)
            milliseconds = _milliseconds(lambda run=run: run(*halves))
        except Exception as error:  # what one way cannot run says nothing about the others
            print(f"{name:12} b{batch:<4} {way:9} fails: {str(error).splitlines()[0][:80]}")
            continue
        verdict = "" if worst <= TOLERANCE else f"  WRONG: differs by {worst:.3f}"
        print(
            f"{name:12} b{batch:<4} {way:9} {milliseconds:9.4f} ms  (off by {worst:.4f}){verdict}", flush=True
        )
        if not verdict:
            found.append(Timing(name, batch, way, milliseconds, worst))
    return found


def _outputs(result: Any) -> list[Any]:
    return [result] if hasattr(result, "shape") else [*result]


def _worst(found: list[Any], expected: list[Any]) -> float:
    """Return the largest difference as a part of the largest value expected."""
    return max(
        float((a.float() - b).abs().max() / b.abs().max()) for a, b in zip(found, expected, strict=True)
    )


def _milliseconds(run: Callable[[], Any]) -> float:
    """Return the median time of a run that is replayed as one CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    times: list[float] = []
    for number in range(WARM + RUNS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        if number >= WARM:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)
