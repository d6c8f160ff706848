"""Fronts of a model's operators: the same from threads, processes, any executor, and a cache that cannot lie."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest
from support import specs

from t10.chip import ChipSpec, load_chip
from t10.core.canonical import canonical
from t10.core.document import write_document
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.cost import CostModel, IpuCostModel
from t10.cost.custom import CustomCostModel, UserCost
from t10.errors import InfeasiblePlanError, T10Error
from t10.plan import ForcedPartition, PlanOptions, plan_module
from t10.plan.fronts import operator_fronts as operator_fronts_module
from t10.plan.fronts import parallel_map, stored_fronts
from t10.plan.fronts.cache import PlanCache
from t10.plan.fronts.front_cache import forget
from t10.plan.fronts.operator_fronts import operator_fronts, search_options
from t10.plan.search.operator import plan_operator
from t10.plan.search.pareto import Front

CHIP = load_chip("test-16")
OPTIONS = PlanOptions()
HUGE = 1 << 12


@dataclass(frozen=True, slots=True)
class Priced(IpuCostModel):
    """The bundled model under a name of the test's."""

    text: str = "test"

    def fingerprint(self) -> str:
        return self.text


COST = Priced(CHIP)


def volume(spec: OperatorSpec, boxes: Any) -> Any:
    """Return a cost function of somebody's own."""
    return boxes.prod(axis=1)


class Scrambled(Executor):
    """Calls are made when the last one is handed in, in an order of their own."""

    def __init__(self, n_calls: int, seed: int) -> None:
        self.n_calls, self.rng = n_calls, Random(seed)
        self.waiting: list[tuple[Future[Any], Any, tuple[Any, ...]]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        assert not kwargs
        future: Future[Any] = Future()
        self.waiting.append((future, fn, args))
        if len(self.waiting) == self.n_calls:
            self.rng.shuffle(self.waiting)
            for each, function, arguments in self.waiting:
                try:
                    each.set_result(function(*arguments))
                except T10Error as error:
                    each.set_exception(error)
        return future


def model() -> Graph:
    """Five operators of three kinds."""
    ops = (
        specs.linear_relu(16, 32, 32, name="first", a="x", b="w0", c="y0"),
        specs.linear_relu(16, 32, 32, name="second", a="y0", b="w1", c="y1"),
        specs.matmul(16, 24, 32, name="third", a="y1", b="w2", c="y2"),
        specs.linear_relu(16, 24, 24, name="fourth", a="y2", b="w3", c="y3"),
        specs.matmul(16, 24, 24, name="fifth", a="y3", b="w4", c="y4"),
    )
    return specs.chain_graph("five", ops)


N_KINDS = 4


def too_large_model() -> Graph:
    """Two operators that fit no core, between others that do."""
    ops = (
        specs.linear_relu(16, HUGE, 32, name="fits", a="x", b="w0", c="y0"),
        specs.matmul(16, HUGE, HUGE, name="too_large", a="y0", b="w1", c="y1"),
        specs.matmul(16, 2 * HUGE, HUGE, name="even_larger", a="y1", b="w2", c="y2"),
    )
    return specs.chain_graph("large", ops)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def cache(tmp_path: Path) -> PlanCache:
    return PlanCache(tmp_path / "cache")


def found(**keywords: Any) -> tuple[Front, ...]:
    forget()
    return operator_fronts(model(), CHIP, COST, OPTIONS, **keywords)


def entries(cache: PlanCache) -> list[Path]:
    return sorted(path for path in cache.folder.rglob("*") if path.is_file())


def test_operators_that_differ_in_names_share_one_front() -> None:
    first, second, third, fourth, fifth = found()
    assert first is second
    assert len({id(front) for front in (first, third, fourth, fifth)}) == N_KINDS


def test_what_was_found_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = found()
    monkeypatch.setattr(operator_fronts_module, "solve", None)
    assert operator_fronts(model(), CHIP, COST, replace(OPTIONS, reading="literal", gap=0.5)) == expected


@pytest.mark.parametrize("n_cores", [1, 2, 5])
def test_fronts_do_not_depend_on_the_number_of_threads(n_cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = found()
    monkeypatch.setattr(parallel_map, "usable_cores", lambda: n_cores)
    assert found() == expected


def test_fronts_do_not_depend_on_the_order_in_which_searches_end() -> None:
    expected = found()
    for seed in range(5):
        assert found(executor=Scrambled(N_KINDS, seed)) == expected


@pytest.mark.slow
def test_processes_find_the_same_fronts() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert found(executor=processes) == found()


@pytest.mark.slow
def test_every_way_of_searching_names_the_first_operator_that_has_no_plan() -> None:
    messages: set[str] = set()
    with (
        ThreadPoolExecutor(2) as threads,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes,
    ):
        for executor in (None, threads, processes, Scrambled(3, 1), Scrambled(3, 2)):
            forget()
            with pytest.raises(InfeasiblePlanError) as caught:
                operator_fronts(too_large_model(), CHIP, COST, OPTIONS, executor=executor)
            assert caught.value.operator == "too_large"
            messages.add(str(caught.value))
    assert len(messages) == 1


def test_what_fails_inside_a_search_is_reported_with_its_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("in a cost function")

    monkeypatch.setattr(operator_fronts_module, "solve", broken)
    with pytest.raises(T10Error, match="ZeroDivisionError: in a cost function") as caught:
        found()
    assert caught.value.operator == "first"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_progress_counts_operators_up_to_all_of_them() -> None:
    seen: list[tuple[str, int, int]] = []

    def note(stage: str, done: int, total: int) -> None:
        seen.append((stage, done, total))

    found(progress=note)
    counts = [done for _, done, _ in seen]
    assert {(stage, total) for stage, _, total in seen} == {("search", 5)}
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 5)


def test_an_interrupted_search_keeps_what_it_found(cache: PlanCache) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found(progress=interrupt, cache=cache)
    kept = len(entries(cache))
    assert 1 <= kept <= N_KINDS
    again = PlanCache(cache.folder)
    assert found(cache=again) == found()
    assert again.hits == kept


def test_a_cached_front_needs_no_search(cache: PlanCache, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = found(cache=cache)
    assert (cache.hits, cache.misses) == (0, N_KINDS)
    monkeypatch.setattr(operator_fronts_module, "solve", None)
    assert found(cache=cache) == expected
    assert (cache.hits, cache.misses) == (N_KINDS, N_KINDS)


@pytest.mark.slow
def test_a_model_has_the_same_plan_with_and_without_a_cache(cache: PlanCache, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.json" for name in ("none", "cold", "warm")]
    for path, chosen in zip(files, (None, cache, cache), strict=True):
        forget()
        write_document(path, plan_module(model(), CHIP, cost=COST, cache=chosen))
    none, cold, warm = (path.read_bytes() for path in files)
    assert none == cold == warm
    assert cache.hits == N_KINDS


def test_forced_partitions_are_searched_and_not_kept(cache: PlanCache) -> None:
    options = PlanOptions(forced=(ForcedPartition("second", (4, 4, 1)),))
    result = operator_fronts(model(), CHIP, COST, options, cache=cache)
    assert {costed.plan.f_op for costed in result[1]} == {(4, 4, 1)}
    assert result[0] == found()[0] != result[1]
    assert len(entries(cache)) == N_KINDS


def test_without_a_fingerprint_nothing_is_kept(cache: PlanCache) -> None:
    prices = CustomCostModel(COST, (UserCost("mine", "contraction", volume),))
    assert prices.fingerprint() is None
    operator_fronts(model(), CHIP, prices, OPTIONS, cache=cache)
    assert entries(cache) == []


def test_a_cost_function_may_look_at_names() -> None:
    def is_second(spec: OperatorSpec) -> bool:
        return spec.name == "second"

    prices = CustomCostModel(COST, (UserCost("mine", is_second, volume),))
    first, second, *_ = operator_fronts(model(), CHIP, prices, OPTIONS)
    assert first == found()[0] != second
    spec = model().operators[1]
    assert second == plan_operator(spec, CHIP, prices, OPTIONS)


def key(chip: ChipSpec = CHIP, cost: CostModel = COST, options: PlanOptions = OPTIONS) -> str | None:
    return stored_fronts.front_key(canonical(specs.matmul(16, 24, 32)), chip, cost, search_options(options))


@pytest.mark.parametrize(
    "other",
    [
        {"chip": CHIP.model_copy(update={"sync_cycles": CHIP.sync_cycles + 1})},
        {"cost": Priced(CHIP, text="other")},
        {"options": PlanOptions(padding=0.8)},
        {"options": PlanOptions(exhaustive=True)},
        {"options": PlanOptions(max_front=3)},
    ],
    ids=["chip", "cost", "padding", "exhaustive", "max_front"],
)
def test_what_a_front_depends_on_is_in_its_key(other: dict[str, Any]) -> None:
    assert key(**other) != key()


@pytest.mark.parametrize(
    "other",
    [
        {"chip": CHIP.model_copy(update={"name": "renamed", "description": "the same chip"})},
        {"options": PlanOptions(reconcile="greedy", reading="literal", gap=0.1, time_limit_seconds=1)},
        {"options": PlanOptions(forced=(ForcedPartition("somebody else", (1, 1, 1)),))},
    ],
    ids=["name", "choice", "forced"],
)
def test_what_a_front_does_not_depend_on_is_not_in_its_key(other: dict[str, Any]) -> None:
    assert key(**other) == key()


def test_another_planner_has_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setattr(stored_fronts, "planner_fingerprint", lambda: "changed")
    assert key() != before


def test_a_model_without_a_fingerprint_has_no_keys() -> None:
    assert key(cost=CustomCostModel(COST, (UserCost("mine", lambda _: True, volume),))) is None


def _drop_a_plan(rows: list[Any]) -> list[Any]:
    return rows[1:]


def _swap(rows: list[Any]) -> list[Any]:
    return rows[::-1]


def _cheaper(rows: list[Any]) -> list[Any]:
    return [[*row[:2], row[2] - 1, row[3]] for row in rows]


def _smaller(rows: list[Any]) -> list[Any]:
    return [[*row[:3], row[3] - 8] for row in rows]


def _too_many_cores(rows: list[Any]) -> list[Any]:
    return [[[16, 24, 32], *row[1:]] for row in rows]


def _unaligned(rows: list[Any]) -> list[Any]:
    return [[row[0], [[1, 1, 7]] * 3, *row[2:]] for row in rows]


def _beaten(rows: list[Any]) -> list[Any]:
    return [*rows, [[1, 1, 1], [[1, 1, 1]] * 3, 1, 1]]


def _of_strings(rows: list[Any]) -> list[Any]:
    return [[[str(f) for f in row[0]], *row[1:]] for row in rows]


def _short_rows(rows: list[Any]) -> list[Any]:
    return [row[:3] for row in rows]


def _nothing(rows: list[Any]) -> list[Any]:
    return []


LIES = (_swap, _cheaper, _smaller, _too_many_cores, _unaligned, _beaten, _of_strings, _short_rows, _nothing)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lie", LIES)
def test_an_entry_that_lies_is_not_believed_and_is_written_anew(cache: PlanCache, lie: Any) -> None:
    expected = found(cache=cache)
    whole = [path.read_bytes() for path in entries(cache)]
    for path in entries(cache):
        payload = json.loads(cache.get(path.name, "front") or b"")
        payload["front"] = lie(payload["front"])
        cache.put(path.name, "front", json.dumps(payload).encode())
    assert found(cache=cache) == expected
    assert [path.read_bytes() for path in entries(cache)] == whole


def test_an_entry_that_leaves_a_plan_out_cannot_change_a_price(cache: PlanCache) -> None:
    expected = found(cache=cache)
    for path in entries(cache):
        payload = json.loads(cache.get(path.name, "front") or b"")
        payload["front"] = _drop_a_plan(payload["front"]) or payload["front"]
        cache.put(path.name, "front", json.dumps(payload).encode())
    for front, whole in zip(found(cache=cache), expected, strict=True):
        assert set(front) <= set(whole)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text", [b"", b"[]", b"null", b"{}", b'{"format": 3}', b'{"format": "t10-front 1"}', b"\xff"]
)
def test_an_entry_of_another_form_is_none(cache: PlanCache, text: bytes) -> None:
    expected = found(cache=cache)
    for path in entries(cache):
        cache.put(path.name, "front", text)
    assert found(cache=cache) == expected


def test_a_search_that_is_not_wanted_any_more_ends() -> None:
    stop = Event()
    stop.set()
    spec = specs.matmul(1024, 1024, 1024)
    with pytest.raises(parallel_map.Stopped):
        operator_fronts_module.solve(
            spec, load_chip("ipu-mk2"), COST, PlanOptions(exhaustive=True), stop=stop
        )
