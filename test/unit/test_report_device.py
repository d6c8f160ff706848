"""Memory of a device program for people: regions, lives of variables, the plot."""

from __future__ import annotations

from itertools import pairwise

from support.device_programs import CASES, ring

from t10.report.device_memory import (
    Scale,
    device_memory_plot,
    lives,
    regions,
    scale_of,
)


def test_regions_cover_the_memory_without_gaps() -> None:
    for make in CASES.values():
        found = regions(make().program)
        for before, after in pairwise(found):
            assert before.last == after.first
        assert (found[0].first, found[-1].last) == (0x4C000, 0xE8000)
        assert found[-1].name == "data"


def test_variables_live_from_first_to_last_use() -> None:
    program = ring().program
    by_name = {life.variable.name: (life.first, life.last) for life in lives(program)}
    assert by_name["input:x"] == (-1, 0)
    assert by_name["idle:w"] == (-1, 1)
    assert by_name["accumulator:mix"] == (0, 0)
    assert by_name["value:y"] == (0, 1)


def test_the_plot_is_the_same_every_time() -> None:
    first, second = (device_memory_plot(ring().program, 0x80000) for _ in range(2))
    assert first == second
    assert "interleaved above" in first


def test_heights_grow_with_used_addresses_and_skip_the_rest() -> None:
    scale = Scale(((0x100, 0x200), (0x10000, 0x10100)), gap=10)
    assert [scale.height(a) for a in (0, 0x100, 0x180, 0x200, 0x8000, 0x10000)] == [
        0,
        0,
        0x80,
        0x100,
        266,
        266,
    ]
    assert scale.top == 0x200 + 10
    program = ring().program
    for variable in program.variables:
        first = scale_of(program).height(variable.address_bytes)
        last = scale_of(program).height(variable.address_bytes + variable.shape[0] * 4)
        assert last - first == variable.shape[0] * 4
