"""What was found out about code and is kept between runs: counts and formulas, read as data, never wrong silently."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import specs

from t10.chip import load_chip
from t10.core.expression import Operand, OperatorSpec
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.cost import IpuCostModel
from t10.cost.bound import least
from t10.cost.bound.step import combine_bound, epilogue_bound, sub_task_bound
from t10.cost.counts import KIND, MOST_BYTES, MOST_CYCLES, forget, kept_between_runs, kept_of, learn
from t10.cost.kept import current, current_store, key_of
from t10.plan.fronts.cache import PlanCache

STEP = ("step", frozenset({(0, 1), (2, 0)}))
CHIP = load_chip("test-16")
OPERATORS = {
    "product": specs.matmul(24, 96, 40),
    "wide product": specs.matmul(7, 33, 129, dtype="f32"),
    "batched": specs.bmm(3, 20, 31, 16),
    "convolution": specs.conv2d(2, 16, 8, 7, 7, 3, 3),
    "sum": specs.row_reduce(50, 70, "sum"),
    "map": specs.elementwise((30, 44)),
    "fused": specs.linear_relu(16, 48, 32),
}


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def store(tmp_path: Path) -> PlanCache:
    return PlanCache(tmp_path / "cache")


def cycles(box: tuple[int, ...], found: int | None) -> int:
    """Return the cycles of a box, counted as `found`; None: it must be known."""

    def counted() -> int:
        assert found is not None, f"{box} is counted"
        return found

    return kept_of(*STEP).of(box, counted)


def rewrite(store: PlanCache, payload: bytes) -> None:
    store.put(key_of(KIND, *STEP), KIND, payload)


def test_what_was_counted_is_known_in_the_next_run(store: PlanCache) -> None:
    with kept_between_runs(store):
        assert cycles((3, 4), 17) == 17
        learn({STEP: {(5,): 18}})
    forget()
    with kept_between_runs(store):
        assert cycles((3, 4), None) == 17
        assert cycles((5,), None) == 18
        assert cycles((6,), 19) == 19
    forget()
    with kept_between_runs(store):
        assert [cycles(box, None) for box in ((3, 4), (5,), (6,))] == [17, 18, 19]
    assert current_store() is None


def test_what_was_counted_before_an_interruption_is_kept(store: PlanCache) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), kept_between_runs(store):
        kept_of(*STEP).of((cycles((3,), 17),), interrupted)
    forget()
    with kept_between_runs(store):
        assert cycles((3,), None) == 17


def test_nothing_is_kept_without_a_store() -> None:
    with kept_between_runs(None):
        cycles((3,), 17)
    forget()
    assert cycles((3,), 18) == 18


DEEP = b"[" * 100_000
FORMS = (
    b"", b"{}", b"7", b"[7]", b"[[]]", b"[[3, true]]", b"[[3, 1.5]]", b'[["3", 1]]', b"\xff", DEEP,
    b"[[3, -7]]", b"[[3, 1180591620717411303424]]", b"[[3, NaN]]", b"[[3, 1073741824]]",
    b"[[3, 18]" + b" " * MOST_BYTES + b"]",
)  # fmt: skip


@pytest.mark.parametrize("payload", FORMS)
def test_an_entry_of_another_form_is_counted_anew(store: PlanCache, payload: bytes) -> None:
    rewrite(store, payload)
    with kept_between_runs(store):
        assert cycles((3,), 17) == 17
    forget()
    with kept_between_runs(store):
        assert cycles((3,), None) == 17


def test_a_step_that_takes_too_long_to_be_kept_spoils_no_entry(store: PlanCache) -> None:
    with kept_between_runs(store):
        cycles((3,), 17)
        cycles((4,), MOST_CYCLES)
    forget()
    with kept_between_runs(store):
        assert cycles((3,), None) == 17
        assert cycles((4,), 18) == 18


def test_keys_tell_values_apart_and_nothing_else() -> None:
    assert key_of(frozenset({1, 40, 9})) == key_of(frozenset({9, 40, 1}))
    others: list[Any] = [(1, 2), ((1,), 2), "(1,2)", frozenset({1, 2}), (1, "2"), (1, 2.0), OPERATORS["sum"]]
    assert len({key_of(each) for each in others}) == len(others)


def test_a_model_that_was_planned_before_counts_no_code(
    store: PlanCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, boxes = OPERATORS["fused"], np.array([[4, 16, 16], [5, 7, 48]])
    cost, windows = IpuCostModel(CHIP), boxes[:, None].repeat(3, axis=1)

    def priced() -> list[list[int]]:
        whole = cost.step_cycles_many(spec, boxes, windows, np.zeros(2, np.bool_))
        ends = cost.end_cycles_many(spec, boxes, np.array([1, 3]))
        return [
            whole.tolist(),
            ends.tolist(),
            cost.reduce_cycles_many(spec, boxes[:, 0], boxes[:, 1]).tolist(),
        ]

    with kept_between_runs(store):
        expected = priced()
    forget()
    monkeypatch.setattr("t10.cost.slowest._cycles", None)
    with kept_between_runs(store):
        assert priced() == expected


def boxes_of(spec: OperatorSpec, n: int = 60) -> Any:
    """Return boxes (n, axes) of an operator, every extent among them."""
    rng = np.random.default_rng(seed=len(spec.axes))
    return np.stack([rng.integers(1, extent + 1, n) for extent in spec.extents], axis=1)


@pytest.mark.parametrize("spec", OPERATORS.values(), ids=list(OPERATORS))
@pytest.mark.parametrize("is_whole", [False, True])
def test_operators_of_one_structure_have_the_bounds_of_each(spec: OperatorSpec, is_whole: bool) -> None:
    boxes = boxes_of(spec)
    expected = np.broadcast_to(sub_task_bound(spec, boxes, is_whole=is_whole), (len(boxes),))
    assert least.LeastSteps(0, is_whole).sub_task(spec, boxes).tolist() == expected.tolist()
    if not is_whole:
        windows = np.maximum(boxes_of(spec)[::-1], boxes)[:, None].repeat(len(spec.rotatable), axis=1)
        lies = [windows[:, number] for number in range(len(spec.rotatable))]
        expected = np.broadcast_to(sub_task_bound(spec, boxes, windows=lies), (len(boxes),))
        assert least.LeastSteps(0).step(spec, boxes, windows).tolist() == expected.tolist()


@pytest.mark.parametrize("spec", OPERATORS.values(), ids=list(OPERATORS))
def test_ends_of_one_structure_have_the_bounds_of_each(spec: OperatorSpec) -> None:
    slots, members = np.array([1, 2, 6, 40, 41, 999, 4096]), np.array([1, 1, 2, 3, 1, 7, 1])
    runs = np.array([1, 2, 3, 8, 41, 9, 64])
    steps = least.LeastSteps(100)
    expected = epilogue_bound(spec, slots, runs, members, 100)
    assert steps.epilogue(spec, slots, runs, members).tolist() == expected.tolist()
    if spec.combine != "none":
        parts = combine_bound(spec, members, slots)
        assert steps.combine(spec, members, slots).tolist() == parts.tolist()


def test_a_formula_is_traced_once(store: PlanCache, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, boxes = OPERATORS["product"], boxes_of(OPERATORS["product"])
    least.step_function.cache_clear()
    with current(store):
        expected = least.LeastSteps(0).sub_task(spec, boxes).tolist()
    least.step_function.cache_clear()
    monkeypatch.setattr(least, "traced", None)
    with current(store):
        assert least.LeastSteps(0).sub_task(spec, boxes).tolist() == expected
        other = specs.matmul(25, 97, 41)
        assert least.LeastSteps(0).sub_task(other, boxes).tolist() == sub_task_bound(other, boxes).tolist()


def changed(entry: list[Any], place: int, value: Any) -> bytes:
    return json.dumps([value if number == place else each for number, each in enumerate(entry)]).encode()


def test_a_formula_that_is_none_is_traced_anew(store: PlanCache) -> None:
    spec, boxes = OPERATORS["product"], boxes_of(OPERATORS["product"])
    least.step_function.cache_clear()
    with current(store):
        expected = least.LeastSteps(0).sub_task(spec, boxes).tolist()
    (path,) = (path for path in store.folder.glob("formula/*/*") if path.is_file())
    good = json.loads(store.get(path.name, "formula") or b"")
    wrong = (
        b"", b"[]", b"{}", DEEP, changed(good, 0, 2), changed(good, 0, "6"), changed(good, 1, [1, "x"]),
        changed(good, 2, [[99, 0, 0, 0]]), changed(good, 2, [[0, 10_000, 0, 0]]), changed(good, 2, [[0, 1]]),
        changed(good, 3, -1), changed(good, 3, 1 << 40), changed(good, 3, 1.0), changed(good, 0, 6.0),
        changed(good, 1, [float("nan")] * len(good[1])), changed(good, 1, [10**400]), changed(good, 1, 7),
        changed(good, 2, [[float("inf"), 0, 0, 0]]), json.dumps(good).encode() + b" " * least.MOST_BYTES,
    )  # fmt: skip
    for payload in wrong:
        store.put(path.name, "formula", payload)
        least.step_function.cache_clear()
        with current(store):
            assert least.LeastSteps(0).sub_task(spec, boxes).tolist() == expected, payload[:40]


@pytest.mark.parametrize("constant", [1e308, -1e308, 1e16])
def test_what_is_no_exact_number_bounds_nothing(
    store: PlanCache, constant: float, recwarn: pytest.WarningsRecorder
) -> None:
    spec, boxes = OPERATORS["product"], boxes_of(OPERATORS["product"])
    least.step_function.cache_clear()
    with current(store):
        least.LeastSteps(0).sub_task(spec, boxes)
    (path,) = (path for path in store.folder.glob("formula/*/*") if path.is_file())
    n_inputs = json.loads(store.get(path.name, "formula") or b"")[0]
    double = [n_inputs, [constant], [[0, n_inputs, n_inputs, 0]], n_inputs + 1]
    difference = [n_inputs, [constant], [*double[2], [1, n_inputs + 1, n_inputs + 1, 0]], n_inputs + 2]
    for formula in (double, difference):
        store.put(path.name, "formula", json.dumps(formula).encode())
        least.step_function.cache_clear()
        with current(store):
            assert not least.LeastSteps(0).sub_task(spec, boxes).any()
    least.step_function.cache_clear()
    assert not recwarn


@pytest.mark.parametrize("digest", ["t10.cost.bound.least.own_digest", "t10.cost.kept.code_digest"])
def test_formulas_of_other_code_are_not_taken(
    store: PlanCache, monkeypatch: pytest.MonkeyPatch, digest: str
) -> None:
    spec, boxes = OPERATORS["product"], boxes_of(OPERATORS["product"])

    def n_entries() -> int:
        least.step_function.cache_clear()
        least.end_function.cache_clear()
        with current(store):
            least.LeastSteps(0).sub_task(spec, boxes)
            least.LeastSteps(0).end(spec, boxes[:, 0], boxes[:, 1], boxes[:, 2])
        return len(list(store.folder.glob("formula/*/*")))

    assert n_entries() == 2
    monkeypatch.setattr(digest, lambda: "other code")
    assert n_entries() == 2 + 2


def test_every_kind_of_bound_has_a_formula_of_its_own(store: PlanCache) -> None:
    spec, boxes = OPERATORS["product"], boxes_of(OPERATORS["product"])
    ends = np.array([8, 40]), np.array([8, 20]), np.array([1, 2])

    def found() -> list[list[int]]:
        steps = [least.LeastSteps(0, is_whole).sub_task(spec, boxes) for is_whole in (False, True)]
        ended = [least.LeastSteps(launch).end(spec, *ends) for launch in (0, 100)]
        windows = 3 * boxes[:, None].repeat(3, axis=1)
        lying = [least.LeastSteps(0).step(spec, boxes, windows, adds=adds) for adds in (False, True)]
        # Without `adds` a step in windows is bounded by what is the bound of any.
        return [each.tolist() for each in (*steps, *ended, lying[1])]

    def found_anew() -> list[list[int]]:
        for function in (least.step_function, least.end_function, least.lying_function):
            function.cache_clear()
        with current(store):
            return found()

    expected = found_anew()
    assert found_anew() == expected
    assert len({str(each) for each in expected}) == len(expected)


def test_counts_of_own_codelets_and_other_sources_are_not_taken(
    store: PlanCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, boxes = OPERATORS["map"], np.array([[5, 7]])
    cost, windows = IpuCostModel(CHIP), boxes[:, None].repeat(3, axis=1)

    def n_entries() -> int:
        forget()
        with kept_between_runs(store):
            cost.step_cycles_many(spec, boxes, windows, np.zeros(1, np.bool_))
        return len(list(store.folder.glob("count/*/*")))

    assert n_entries() == 1
    assert n_entries() == 1
    monkeypatch.setattr("t10.cost.kept.code_digest", lambda: "other sources")
    assert n_entries() == 1 + 1
    monkeypatch.setattr("t10.cost.counted.own_digest", lambda: "own")
    assert n_entries() == 1 + 1 + 1


def test_a_key_is_made_of_frozen_values_only() -> None:
    with pytest.raises(TypeError, match="list is no part of a key"):
        key_of([1])


def test_no_store_is_used_in_a_block_without_one(store: PlanCache) -> None:
    with current(store), kept_between_runs(None):
        cycles((3,), 17)
        assert current_store() is None
    assert not list(store.folder.glob("count/*/*"))


def test_a_pipe_in_the_place_of_an_entry_is_replaced(store: PlanCache) -> None:
    key = key_of(KIND, *STEP)
    path = store.folder / KIND / key[:2] / key
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    with kept_between_runs(store):
        cycles((3,), 17)
    forget()
    with kept_between_runs(store):
        assert cycles((3,), None) == 17


def test_loops_over_rows_are_bounded_from_their_second_row_on() -> None:
    opcodes = (("arith.muli", (0, 1)), ("index", ()), ("arith.index_cast", (3,)), ("arith.addi", (2, 4)))
    ops = [
        ScalarOp(code, operands, "index" if code == "index" else "i64", "0" * (code == "index"))
        for code, operands in opcodes
    ]
    spec = OperatorSpec(
        name="places",
        kind="elementwise",
        axes=specs.parallel(i=8, j=12),
        inputs=tuple(Operand(name, "activation", "i64", (8,), specs.dims(0)) for name in "ab"),
        output=Operand("o", "output", "i64", (8, 12), specs.dims(0, 1)),
        combine="none",
        body=ScalarFunction(2, tuple(ops), 5),
        acc_dtype="i64",
    )
    boxes, cost = np.array([[2, 2], [2, 3], [7, 6], [8, 12], [1, 12], [8, 1]]), IpuCostModel(CHIP)
    taken = cost.step_cycles_many(
        spec, boxes, boxes[:, None].repeat(3, axis=1), np.zeros(len(boxes), np.bool_)
    )
    assert (cost.least.whole_cycles_many(spec, boxes) <= taken).all()
