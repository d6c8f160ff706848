"""Bundles and registers of random loop bodies: nothing is read before it is written, no pipe or register used twice."""

from __future__ import annotations

from random import Random

import pytest

from t10.codelets.body.code import Code, Numbering
from t10.codelets.body.pipeline import Free, Pipeline, Times, least_interval, pipelined
from t10.codelets.body.virtual import Fusion, Instruction, Register

FREE: Free = {"a": tuple(range(16)), "m": tuple(range(2, 10))}
N_BODIES = 60


def random_body(rng: Random) -> tuple[Code, list[Instruction], list[Fusion]]:
    """Return loads, sums of them and stores, the stores, and perhaps a load that joins the only store."""
    code = Code(Numbering())
    values = [code.main("ld64step", code.new("a", 2)) for _ in range(rng.randint(1, 4))]
    for _ in range(rng.randint(1, 6)):
        values.append(code.aux("f32v2add", code.new("a", 2), rng.choice(values), rng.choice(values)))
    is_fused = rng.random() < 0.4
    stores = [
        code.add("st64step {}", "i", value, is_main=True, streams=("out",))
        for value in rng.sample(values, 1 if is_fused else 2)
    ]
    fusions = [Fusion(code.instructions[0], stores[0], "ldst64pace {}, {}")] if is_fused else []
    return code, stores, fusions


def issues(pipeline: Pipeline) -> list[tuple[bool, int]]:
    """Return pipe and bundle of everything that is issued; what is fused is issued once."""
    stores = {fusion.store for fusion in pipeline.fusions}
    return [
        (instruction.is_main, time % pipeline.interval)
        for instruction, time in zip(pipeline.instructions, pipeline.times, strict=True)
        if instruction not in stores
    ]


def bundles_of(pipeline: Pipeline) -> dict[Register, tuple[int, int]]:
    """Return when every register is written and read last."""
    found: dict[Register, tuple[int, int]] = {}
    for instruction, time in zip(pipeline.instructions, pipeline.times, strict=True):
        for slice_ in instruction.writes:
            found[slice_.register] = (time, time)
    for instruction, time in zip(pipeline.instructions, pipeline.times, strict=True):
        for slice_ in instruction.reads:
            first, last = found[slice_.register]
            assert time > first, "a value is read before it is written"
            found[slice_.register] = (first, max(last, time))
    return found


@pytest.mark.parametrize("seed", range(N_BODIES))
def test_iterations_overlap_and_share_nothing(seed: int) -> None:
    code, stores, fusions = random_body(Random(seed))
    is_store = [instruction in stores for instruction in code.instructions]
    pipeline = pipelined(code.instructions, fusions, is_store, FREE, {}, extra=30)
    if pipeline is None:  # a fusion need not be possible
        fusions.clear()
        pipeline = pipelined(code.instructions, fusions, is_store, FREE, {}, extra=30)
    assert pipeline is not None
    interval = pipeline.interval
    assert least_interval(code.instructions, fusions) <= interval
    assert len(set(issues(pipeline))) == len(issues(pipeline)), "a pipe is used twice in a bundle"
    assert {pipeline.stage(store) for store in stores} == {pipeline.n_stages - 1}
    for fusion in fusions:
        number = {each: time % interval for each, time in zip(code.instructions, pipeline.times, strict=True)}
        assert number[fusion.load] == number[fusion.store]
    busy: set[tuple[int, int]] = set()
    for register, (first, last) in bundles_of(pipeline).items():
        place = pipeline.placement[register]
        assert place % register.width == 0
        assert {place, place + 1} <= set(FREE["a"])
        arc = {
            (place + i, t % interval) for i in range(2) for t in range(first + 1, max(last, first + 1) + 1)
        }
        assert len(arc) == 2 * max(last - first, 1), "a value lives longer than the interval"
        assert not busy & arc, "a register holds two values"
        busy |= arc


def test_the_shortest_interval_is_found_where_registers_allow() -> None:
    code = Code(Numbering())
    x = code.main("ld64step", code.new("a", 2))
    y = code.aux("f32v2add", code.new("a", 2), x, x)
    store = code.add("st64step {}", "i", y, is_main=True)
    marks = [instruction is store for instruction in code.instructions]
    found = pipelined(code.instructions, (), marks, FREE, {})
    assert found is not None
    assert found.interval == 2
    fused = pipelined(code.instructions, [Fusion(code.instructions[0], store, "")], marks, FREE, {})
    assert fused is not None
    assert fused.interval == 1
    assert pipelined(code.instructions, (), marks, {"a": (0, 1), "m": ()}, {}, extra=0) is None


def test_code_that_runs_once_goes_one_by_one_where_registers_are_few() -> None:
    code = Code(Numbering())
    for _ in range(3):
        value = code.main("ld64step", code.new("a", 2))
        code.add("st64step {}", "i", code.aux("f32v2add", code.new("a", 2), value, value), is_main=True)
    times = Times(code.instructions, {})
    early, late = times.straight(FREE), times.straight({"a": (0, 1, 2, 3), "m": ()})
    assert early is not None
    assert late is not None
    assert max(early[0]) < len(code.instructions) - 1
    assert late[0] == list(range(len(code.instructions)))
    assert times.straight({"a": (0, 1), "m": ()}) is not None
    assert times.straight({"a": (1, 2), "m": ()}) is None
