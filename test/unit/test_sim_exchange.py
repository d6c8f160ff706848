"""Exchanges on the cores' bytes move and count exactly what `support.routes` says they should."""

from random import Random

import numpy as np
import pytest
from support import specs
from support.routes import route, traffic
from support.simulation import plan_of

from t10.core import movement
from t10.core.graph import Graph, View
from t10.core.movement import ElementMap
from t10.core.schedule import Buffer, ValueLayout
from t10.errors import SimTrap
from t10.plan.memory.allocation import aligned_size
from t10.sim import exchange
from t10.sim.exchange import Source, gather
from t10.sim.memory import CoreMemory

PRODUCER = specs.matmul(6, 8, 8, "f32", name="producer", a="a", b="b", c="s")
VIEWS = (
    View("t", "transpose", ("s",), (8, 6), "f32", permutation=(1, 0)),
    View("c", "concat", ("s", "x"), (9, 8), "f32", axis=0),
    View("p", "pad", ("c",), (10, 9), "f32", low=(1, 0), value="7.0"),
)
READER = specs.map_unary((10, 9), "math.absf", "f32", name="reader", x="p", o="o")
OTHER = specs.map_unary((3, 8), "math.absf", "f32", name="other", x="x", o="q")
GRAPH: Graph = specs.chain_graph("g", (PRODUCER, READER, OTHER), VIEWS)
VALUES = {"s": np.arange(48, dtype=np.float32), "x": 100 + np.arange(24, dtype=np.float32)}


def source_layouts(rng: Random) -> dict[str, ValueLayout]:
    """Return a layout of the producer's result, replicated or scattered, and one of the input."""
    plan = plan_of(PRODUCER, rng.choice([(2, 2, 2), (3, 1, 3), (1, 4, 2), (6, 1, 1), (2, 1, 4)]))
    scatter = rng.choice([j for j in (1, 2, 3, 4, 8) if plan.f_op[2] % j == 0])
    number = len(PRODUCER.operands)
    return {
        "s": ValueLayout("operand", "s", plan.n_cores, "f32", "producer", number, plan, scatter),
        "x": ValueLayout("linear", "x", rng.randint(1, 9), "f32"),
    }


@pytest.mark.parametrize("chunk_slots", [1, 1 << 22])
@pytest.mark.parametrize("value", ["s", "t", "c", "p"])
def test_moves_and_counts_agree_with_the_route(
    value: str, chunk_slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "CHUNK_SLOTS", chunk_slots)
    for seed in range(20):
        rng = Random(seed)
        through = movement.view_elements(GRAPH, value)
        layouts = source_layouts(rng)
        homes = [
            (movement.layout_map(PRODUCER if s == "s" else None, layouts[s], VALUES[s].size), VALUES[s].size)
            for s in through.sources
        ]
        wanted = np.array(
            [[rng.randrange(-1, through.ids.size) for _ in range(7)] for _ in range(12)], np.int32
        )
        moves = route(ElementMap(wanted, np.zeros(12, np.int64)), through, homes)
        memory, sources = placed(through.sources, homes)
        out = np.full(wanted.shape, -5, np.float32)
        renaming = None if value == "s" else through.ids.reshape(-1)
        moved = gather(memory, sources, wanted, renaming, (7.0,), out)
        assert moved == traffic(moves, homes)
        flat = np.concatenate([VALUES[s] for s in through.sources])
        ids = through.ids.reshape(-1)[np.maximum(wanted, 0)]
        expected = np.where(ids < 0, np.float32(7), flat[np.maximum(ids, 0)])
        np.testing.assert_array_equal(out[wanted >= 0], expected[wanted >= 0])


def placed(names: tuple[str, ...], homes: list[tuple[ElementMap, int]]) -> tuple[CoreMemory, list[Source]]:
    """Return memories in which the values lie as their maps say, one buffer right after the other."""
    memory = CoreMemory(12, 4096)
    sources: list[Source] = []
    address = 0
    for name, (lies, n_elements) in zip(names, homes, strict=True):
        size = aligned_size(4 * lies.elements.shape[1])
        memory.begin(Buffer(name, address, size, 0, 0))
        slots = memory.slots(name, "f32", *lies.elements.shape)
        slots[:] = VALUES[name][np.maximum(lies.elements, 0)]
        memory.mark_written(name, *(len(slots), 4 * slots.shape[1]))
        sources.append(Source(name, name, lies, n_elements))
        address += size
    return memory, sources


def two_sources(n_written: int) -> tuple[CoreMemory, list[Source]]:
    """Return two values of four elements on core 0, right beside each other; the second is written in part."""
    memory = CoreMemory(2, 64)
    sources: list[Source] = []
    for number, name in enumerate("xy"):
        memory.begin(Buffer(name, 16 * number, 16, 0, 0))
        lies = ElementMap(np.arange(4, dtype=np.int32).reshape(1, 4), np.zeros(1, np.int64))
        memory.slots(name, "f32", 1, 4)[:] = np.arange(4) + 4 * number
        memory.mark_written(name, 1, 4 * n_written if number else 16)
        sources.append(Source(name, name, lies, 4))
    return memory, sources


def test_values_that_lie_beside_each_other_are_fragments_of_their_own() -> None:
    wanted = np.array([[-1] * 4, [2, 3, 4, 5]], np.int32)
    out = np.zeros(wanted.shape, np.float32)
    moved = gather(*two_sources(4), wanted, np.arange(8), (), out)
    assert out[1].tolist() == [2, 3, 4, 5]
    assert (moved.fragments, moved.received_elements, moved.sent_elements) == (2, 4, 4)


def test_an_element_that_nobody_wrote_is_not_moved() -> None:
    wanted = np.array([[-1] * 2, [3, 6]], np.int32)
    out = np.zeros(wanted.shape, np.float32)
    gather(*two_sources(3), wanted, np.arange(8), (), out)
    with pytest.raises(SimTrap, match="poisoned bytes in buffer y: element 2 of y"):
        gather(*two_sources(2), wanted, np.arange(8), (), out)
