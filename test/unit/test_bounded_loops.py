"""Loops of which data decide when they end, with a bound: ONNX Runtime's results of at most so many steps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from support.engines import by_runtime
from support.linalg_numpy import run_module

from t10.cli.entry import main
from t10.errors import InputError, MissingConstantError, UnsupportedOpError
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse

Array = NDArray[Any]
RANDOM = np.random.default_rng(11)
BOUND = 4
HALVES = """body: graph = step (int64 i, bool cond, float[3] before) => (bool on, float[3] after, float[3] row) {
    half = Constant <value: tensor = float {0.5}> ()
    least = Constant <value: tensor = float {0.1}> ()
    after = Mul (before, half)
    place = Cast <to: int = 1> (i)
    row = Add (after, place)
    most = ReduceMax <keepdims: int = 0> (after)
    on = Greater (most, least)
}"""
"""Halves what it carries until all of it is small."""
COUNTED = HALVES.replace("Greater (most, least)", "Identity (cond)")


def model(graph: str) -> Any:
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {graph}')


def computed(of: Any, inputs: dict[str, Array], bound: int = BOUND, name: str = "last") -> dict[str, Array]:
    """Return what the imported and fused model computes, interpreted."""
    bounds = {name: bound} if bound else {}
    imported = import_proto(onnx.ModelProto.FromString(of.SerializeToString()), source="m", bounds=bounds)
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        return dict(run_module(imported.module, {**inputs, **imported.weights}))


def agree(found: dict[str, Array], due: dict[str, Array], count: int) -> None:
    """Compare carried values with those due, and rows up to the count; the rest must be zeros."""
    assert int(found["last.count"]) == count
    np.testing.assert_allclose(found["last"], due["last"], rtol=1e-6)
    np.testing.assert_allclose(found["rows"][:count], due["rows"], rtol=1e-6)
    assert found["rows"].shape[0] == BOUND
    assert not found["rows"][count:].any()


@pytest.mark.parametrize("n_steps", [-(1 << 40), 0, 1, 3, 4, 9])
def test_a_computed_number_of_steps(n_steps: int) -> None:
    of = model(f"""g (float[3] x, int64 n) => (float[3] last, float[?, 3] rows) {{
        last, rows = Loop (n, , x) <{COUNTED}> }}""")
    x, count = RANDOM.standard_normal(3).astype(np.float32), max(0, min(n_steps, BOUND))
    due = by_runtime(of, {"x": x, "n": np.array(count)})
    agree(computed(of, {"x": x, "n": np.array(n_steps)}), due, count)


@pytest.mark.parametrize("bound", [2, 12])
def test_a_range_of_a_loop(bound: int) -> None:
    """As ONNX's own function of Range has it; the file states the extent of its example."""
    of = model("""g (float start, int64 n, float step) => (float last, float[2] y) {
        last, y = Loop (n, , start) <
            body: graph = more (int64 i, bool cond, float before) => (bool on, float after, float row) {
                after = Add (before, step)
                row = Identity (before)
                on = Identity (cond)
            }
        > }""")
    inputs = {"start": np.float32(1), "n": np.array(2), "step": np.float32(3)}
    made = computed(of, {name: np.asarray(each) for name, each in inputs.items()}, bound, "y")
    np.testing.assert_array_equal(made["y"], np.pad([1, 4], (0, bound - 2)))
    assert float(made["last"]) == 7


@pytest.mark.parametrize("go", [True, False])
def test_a_constant_condition_before_the_first_step(go: bool) -> None:
    of = model(f"""g (float[3] x, int64 n) => (float[3] last, float[?, 3] rows) {{
        go = Constant <value: tensor = bool {{{int(go)}}}> ()
        last, rows = Loop (n, go, x) <{COUNTED}> }}""")
    inputs = {"x": np.ones(3, np.float32), "n": np.array(2)}
    agree(computed(of, inputs), by_runtime(of, inputs), 2 * go)


@pytest.mark.parametrize("trips", ["", "n", "huge"])
@pytest.mark.parametrize("largest", [0.01, 0.15, 0.5, 1.2, 99.0])
def test_a_condition_that_the_body_computes(largest: float, trips: str) -> None:
    of = model(f"""g (float[3] x, int64 n) => (float[3] last, float[?, 3] rows) {{
        huge = Constant <value: tensor = int64 {{9223372036854775807}}> ()
        last, rows = Loop ({trips}, , x) <{HALVES}> }}""")
    x = np.array([largest, -3, 0], np.float32)
    count = min(BOUND, next(i for i in range(1, 20) if largest / 2**i <= 0.1))
    inputs = {"x": x, "n": np.array(2)}
    count = min(count, 2) if trips == "n" else count
    limited = model(f"""g (float[3] x, int64 n) => (float[3] last, float[?, 3] rows) {{
        four = Constant <value: tensor = int64 {{{count}}}> ()
        last, rows = Loop (four, , x) <{HALVES}> }}""")
    agree(computed(of, inputs), by_runtime(limited, inputs), count)


def test_a_single_step_that_always_runs() -> None:
    of = model("""g (float[3] x) => (float[3] last, int64[?] rows) {
        last, rows = Loop (, , x) <
            body: graph = step (int64 i, bool cond, float[3] before) => (bool on, float[3] after, int64 row) {
                after = Add (before, before)
                row = Identity (i)
                most = ReduceMax <keepdims: int = 0> (after)
                least = Constant <value: tensor = float {0.1}> ()
                on = Less (most, least)
            }
        > }""")
    inputs = {"x": np.ones(3, np.float32)}
    due, found = by_runtime(of, inputs), computed(of, inputs, bound=1)
    np.testing.assert_array_equal(found["last"], due["last"])
    np.testing.assert_array_equal(found["rows"], due["rows"])


def test_a_condition_that_holds_again() -> None:
    """It is false behind the second step, and would be true behind the third one."""
    of = model("""g (float[3] x, int64 stop) => (float[3] last) {
        last = Loop (, , x) <
            body: graph = step (int64 i, bool cond, float[3] before) => (bool on, float[3] after) {
                after = Add (before, before)
                same = Equal (i, stop)
                on = Not (same)
            }
        > }""")
    found = computed(of, {"x": np.ones(3, np.float32), "stop": np.array(1)})
    np.testing.assert_array_equal(found["last"], np.full(3, 4))
    assert int(found["last.count"]) == 2


@pytest.mark.parametrize("goes", [True, False])
@pytest.mark.parametrize("body", [HALVES, COUNTED])
def test_a_condition_before_the_first_step(goes: bool, body: str) -> None:
    of = model(f"""g (float[3] x, bool go) => (float[3] last, float[?, 3] rows) {{
        three = Constant <value: tensor = int64 {{3}}> ()
        last, rows = Loop (three, go, x) <{body}> }}""")
    inputs = {"x": np.array([9, 8, 7], np.float32), "go": np.array(goes)}
    due, found = by_runtime(of, inputs), computed(of, inputs)
    count = 3 if goes else 0
    assert int(found["last.count"]) == count
    np.testing.assert_allclose(found["last"], due["last"])
    np.testing.assert_allclose(found["rows"][:count], due["rows"])
    assert not found["rows"][count:].any()


def test_values_outside_and_elements_that_the_step_chooses() -> None:
    """A decoder: reads row i of a table, stops at a token, and returns the tokens so far."""
    of = model("""g (float[6, 5] table, int64[1] stop) => (float[5] last, int64[?] tokens, int64 n) {
        start = ConstantOfShape <value: tensor = float[1] {0}> (five)
        last, tokens = Loop (, , start) <
            body: graph = step (int64 i, bool cond, float[5] sum) => (bool on, float[5] more, int64 token) {
                row = Gather <axis: int = 0> (table, i)
                more = Add (sum, row)
                kept = ArgMax <axis: int = 0, keepdims: int = 0> (row)
                token = Identity (kept)
                same = Equal (token, flat)
                on = Not (same)
            }
        >
        n = Size (tokens)
    }""")
    of.graph.initializer.append(onnx.numpy_helper.from_array(np.array([5]), "five"))
    of.graph.node.insert(0, onnx.helper.make_node("Squeeze", ["stop"], ["flat"]))
    table = RANDOM.standard_normal((6, 5)).astype(np.float32)
    inputs = {"table": table, "stop": table[2:3].argmax(1)}
    due, found = by_runtime(of, inputs), computed(of, inputs, bound=6)
    n = len(due["tokens"])
    assert n <= 3
    np.testing.assert_allclose(found["last"], due["last"], rtol=1e-6)
    np.testing.assert_array_equal(found["tokens"], np.pad(due["tokens"], (0, 6 - n)))
    assert int(found["n"]) == int(found["last.count"]) == n


def test_rows_are_followed() -> None:
    of = model(f"""g (float[3] x, int64 n) => (float[3] last, float[3] total, float[?, 3] y) {{
        last, rows = Loop (n, , x) <{COUNTED}>
        total = ReduceSum <keepdims: int = 0> (rows, zero)
        soft = Softmax <axis: int = 1> (rows)
        y = Mul (soft, soft) }}""")
    of.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "zero"))
    inputs = {"x": RANDOM.standard_normal(3).astype(np.float32), "n": np.array(2)}
    due, found = by_runtime(of, inputs), computed(of, inputs, name="rows")
    np.testing.assert_allclose(found["total"], due["total"], rtol=1e-6)
    np.testing.assert_allclose(found["y"], np.pad(due["y"], ((0, 2), (0, 0))), rtol=1e-6)


GROWS = """body: graph = step (int64 i, bool cond, float[k] before) => (bool on, float[m] after) {
    after = Concat <axis: int = 0> (before, x)
    on = Identity (cond)
}"""


@pytest.mark.parametrize("extent", [1, 3])
def test_carried_values_that_grow_are_refused(extent: int) -> None:
    of = model(f"g (float[{extent}] x, int64 n) => (float[k] last) {{ last = Loop (n, , x) <{GROWS}> }}")
    with pytest.raises(
        UnsupportedOpError, match=r"--bound last: .* carried values keep one static shape in each"
    ):
        computed(of, {})


def test_refusals_name_the_bound() -> None:
    of = model(f"""g (float[3] x, int64 n) => (float[3] last, float[?, 3] rows) {{
        last, rows = Loop (n, , x) <{COUNTED}> }}""")
    with pytest.raises(MissingConstantError, match="trip count") as caught:
        import_proto(of, source="m")
    assert "--bound last=N" in str(caught.value.hint)
    of = model(f"""g (float[3] x) => (float[3] last, float[?, 3] rows) {{
        last, rows = Loop (, , x) <{HALVES}> }}""")
    with pytest.raises(UnsupportedOpError) as found:
        import_proto(of, source="m")
    assert "--bound last=N" in str(found.value.hint)
    of = model(f"""g (float[3] x) => (float[3] last, float[?, 3] rows) {{
        n = Constant <value: tensor = int64 {{3}}> ()
        last, rows = Loop (n, , x) <{COUNTED}> }}""")
    with pytest.raises(InputError, match="Loop reads constants only"):
        computed(of, {})


def test_bounds_of_constant_loops_inside_others_do_not_matter() -> None:
    """A constant Loop reads the extent of a bounded result: the count, not the bound."""
    of = model("""g (float[5] x) => (float[] y) {
        at = NonZero (x)
        zero = Constant <value: tensor = float {0}> ()
        two = Constant <value: tensor = int64 {2}> ()
        y = Loop (two, , zero) <
            body: graph = step (int64 i, bool cond, float[] sum) => (bool on, float[] more) {
                n = Size (at)
                m = Cast <to: int = 1> (n)
                more = Add (sum, m)
                on = Identity (cond)
            }
        > }""")
    inputs = {"x": np.array([0, 1, 2, 0, 3], np.float32)}
    np.testing.assert_allclose(computed(of, inputs, name="at")["y"], by_runtime(of, inputs)["y"])


@pytest.mark.parametrize("goes", [True, False])
def test_what_a_branch_makes_has_a_bound(goes: bool) -> None:
    of = model("""g (float[5] x, bool go) => (int64[1] y) {
        y = If (go) <
            then_branch: graph = one () => (int64[1] p) {
                at = NonZero (x)
                axis = Constant <value: tensor = int64[1] {1}> ()
                p = ReduceSum <keepdims: int = 0> (at, axis)
            },
            else_branch: graph = other () => (int64[1] q) { q = Constant <value: tensor = int64[1] {9}> () }
        >
    }""")
    inputs = {"x": np.array([0, 1, 2, 0, 3], np.float32), "go": np.array(goes)}
    assert computed(of, inputs, name="y.nonzero")["y"] == by_runtime(of, inputs)["y"]


def test_a_loop_of_no_steps_gives_what_it_got() -> None:
    of = model(f"""g (float[3] x) => (float[3] last) {{
        none = Constant <value: tensor = int64 {{0}}> ()
        last, rows = Loop (none, , x) <{COUNTED}> }}""")
    inputs = {"x": np.array([4, 2, 1], np.float32)}
    np.testing.assert_array_equal(computed(of, inputs, bound=0)["last"], inputs["x"])


def test_rows_that_a_loop_of_no_steps_makes_have_no_elements() -> None:
    of = model(f"""g (float[3] x) => (float[3] y) {{
        none = Constant <value: tensor = int64 {{0}}> ()
        last, rows = Loop (none, , x) <{COUNTED}>
        axis = Constant <value: tensor = int64[1] {{0}}> ()
        more = Mul (x, x)
        row = Unsqueeze (more, axis)
        both = Concat <axis: int = 0> (rows, row)
        y = ReduceSum <keepdims: int = 0> (both, axis)
    }}""")
    inputs = {"x": np.array([4, 2, 1], np.float32)}
    np.testing.assert_array_equal(computed(of, inputs, bound=0)["y"], inputs["x"] ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("trips", ["n", ""])
def test_bounded_loops_are_verified(trips: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    of = model(f"""g (float[3] x, int64 n) => (float[3] last) {{
        small = Tanh (x)
        last, rows = Loop ({trips}, , small) <{HALVES}> }}""")
    path.write_bytes(of.SerializeToString())
    assert main(["verify", str(path), "--chip", "test-4", "--bound", "last=4", "--engine", "iss"]) == 0
    assert "last.count" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trips", "body", "given", "goes_on"),
    [
        ("n", COUNTED, {"n": 3}, False),
        ("n", COUNTED, {"n": 4}, True),
        ("n", HALVES, {"n": 9, "x": 0.7}, False),
        ("n", HALVES, {"n": 3, "x": 99.0}, False),
        ("n", HALVES, {"n": 9, "x": 0.9}, True),
        ("", HALVES, {"x": 0.7}, False),
        ("", HALVES, {"x": 0.9}, True),
        ("three", HALVES, {"x": 99.0}, False),
        ("four", HALVES, {"x": 99.0}, True),
        ("kept", HALVES, {"x": 99.0}, True),
    ],
)
def test_steps_behind_a_bound_are_a_failure(
    trips: str,
    body: str,
    given: dict[str, float],
    goes_on: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "m.onnx"
    of = model(f"""g (float[3] x, int64 n) => (float[3] last) <int64 kept = {{4}}> {{
        three = Constant <value: tensor = int64 {{3}}> ()
        four = Constant <value: tensor = int64 {{4}}> ()
        last, rows = Loop ({trips}, , x) <{body}> }}""")
    path.write_bytes(of.SerializeToString())
    inputs = {"x": np.full(3, given.get("x", 1), np.float32), "n": np.array(given.get("n", 0), np.int64)}
    np.savez(tmp_path / "in.npz", x=inputs["x"], n=inputs["n"])
    command = ["verify", str(path), "--chip", "test-4", "--bound", "last=3"]
    assert main([*command, "--inputs", str(tmp_path / "in.npz")]) == int(goes_on)
    failure = "FAILED: --bound last=3 ends a Loop that takes more steps (on the given inputs; give a larger"
    assert (failure in capsys.readouterr().out) == goes_on


@pytest.mark.parametrize("go", ["", "asked"])
@pytest.mark.parametrize("trips", [0, 1, 3, 6])
def test_a_constant_trip_count_is_a_bound(trips: int, go: str) -> None:
    """Of what data end, all steps are written; nothing counts them."""
    of = model(f"""g (float[3] x, bool asked) => (float[3] last) {{
        trips = Constant <value: tensor = int64 {{{trips}}}> ()
        last, rows = Loop (trips, {go}, x) <{HALVES}> }}""")
    for largest in (0.01, 0.5, 99.0):
        for asked in (True, False):
            inputs = {"x": np.array([largest, -3, 0], np.float32), "asked": np.array(asked)}
            made = computed(of, inputs, bound=0)
            assert list(made) == ["last"]
            np.testing.assert_allclose(made["last"], by_runtime(of, inputs)["last"], rtol=1e-6)


@pytest.mark.parametrize("bound", [0, 9000])
def test_too_many_steps_that_data_end_are_refused_before_they_are_written(bound: int) -> None:
    of = model(f"""g (float[3] x) => (float[3] last) {{
        trips = Constant <value: tensor = int64 {{9223372036854775807}}> ()
        last, rows = Loop (trips, , x) <{HALVES}> }}""")
    started = time.process_time()
    with pytest.raises(UnsupportedOpError, match="20,000 nodes"):
        computed(of, {}, bound=bound)
    assert time.process_time() - started < 2


def test_rows_that_data_count_need_a_bound() -> None:
    of = model(f"""g (float[3] x) => (float[3] last, float[n, 3] rows) {{
        trips = Constant <value: tensor = int64 {{3}}> ()
        last, rows = Loop (trips, , x) <{HALVES}> }}""")
    with pytest.raises(UnsupportedOpError, match="--bound last=N"):
        computed(of, {}, bound=0)
