"""Operators at the ends of their types: NaN, infinities and zeros with a sign, the same on all engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import t10
from t10.backend import ENGINES, lowered, run_on_host, run_on_tiles, write_program
from t10.frontend.tournament import stages
from t10.reference import run_onnx_runtime

INF, NAN = np.inf, np.nan
Arrays = dict[str, NDArray[Any]]
Node = tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]
ROWS = np.array(
    [
        *(
            [1, NAN, 3, INF],
            [NAN, NAN, 1, 2],
            [-INF, -INF, -INF, -INF],
            [INF, 2, INF, 1],
            [0.0, -0.0, 0, -0.0],
        ),
        *([-0.0, 0.0, 3, 3], [NAN, -INF, NAN, INF], [NAN, NAN, NAN, NAN]),
    ],
    np.float32,
)
ZEROS = np.array([-0.0, 1, -0.0, NAN, INF, -2.0], np.float32)


def on_every_engine(
    folder: Path,
    nodes: Sequence[Node],
    inputs: Arrays,
    constants: Arrays | None = None,
    *,
    is_planned_only: bool = False,
) -> tuple[Path, dict[str, Arrays]]:
    """Return the model and what each engine makes of it."""
    written = [helper.make_node(op, list(read), list(made), **options) for op, read, made, options in nodes]
    graph = helper.make_graph(
        written,
        "extremes",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
         for name, x in inputs.items()],
        [helper.make_value_info(name, onnx.TypeProto()) for node in written for name in node.output],
        [numpy_helper.from_array(x, name) for name, x in (constants or {}).items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    path = folder / "m.onnx"
    path.write_bytes(onnx.shape_inference.infer_shapes(model).SerializeToString())
    executable = t10.compile(path, chip="test-4", program=not is_planned_only)
    if is_planned_only:
        return path, {"plan": executable.run(inputs)}
    write_program(executable, lowered(executable), folder / "program")
    found = {
        "plan": executable.run(inputs),
        "iss": dict(run_on_tiles(executable, inputs).outputs),
        "poplar-host": run_on_host(executable, folder / "program", inputs),
    }
    assert set(found) == set(ENGINES)
    return path, found


def check(found: dict[str, Arrays], wanted: Mapping[str, NDArray[Any]]) -> None:
    """Compare values, NaNs and signs of zeros."""
    for engine, outputs in found.items():
        for name, expected in wanted.items():
            case = f"{name} on {engine}"
            np.testing.assert_array_equal(outputs[name], expected, case)
            if expected.dtype.kind == "f":
                zeros = expected == 0
                np.testing.assert_array_equal(
                    np.signbit(outputs[name])[zeros], np.signbit(expected)[zeros], case
                )


def referenced(path: Path, inputs: Arrays) -> Arrays:
    evaluator: Any = ReferenceEvaluator(str(path))
    return dict(zip(evaluator.output_names, map(np.asarray, evaluator.run(None, inputs)), strict=True))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_limit_that_clip_leaves_out_is_the_largest_number(dtype: Any, tmp_path: Path) -> None:
    x = np.array([0.0, -0.0, 1, -1, INF, -INF, NAN, 6e4], dtype)
    nodes: list[Node] = [
        ("Clip", ["x", "low"], ["above"], {}), ("Clip", ["x", "", "high"], ["below"], {}),
        ("Clip", ["x"], ["free"], {}),
    ]  # fmt: skip
    limits = {"low": np.array(-1, dtype), "high": np.array(1, dtype)}
    _, found = on_every_engine(tmp_path, nodes, {"x": x}, limits)
    least, most = np.finfo(dtype).min, np.finfo(dtype).max
    check(
        found, {"above": np.clip(x, -1, most), "below": np.clip(x, least, 1), "free": np.clip(x, least, most)}
    )


def test_scattered_elements_keep_their_signs(tmp_path: Path) -> None:
    nodes: list[Node] = [
        ("ScatterND", ["x", "at", "u"], ["nd"], {}), ("ScatterElements", ["x", "places", "u"], ["elements"], {}),
    ]  # fmt: skip
    updates = np.array([-0.0, -INF], np.float32)
    at = {"at": np.array([[1], [3]]), "places": np.array([1, 3])}
    path, found = on_every_engine(tmp_path, nodes, {"x": ZEROS, "u": updates}, at)
    check(found, run_onnx_runtime(path, {"x": ZEROS, "u": updates}))


@pytest.mark.slow
def test_a_remainder_of_nothing_has_the_sign_of_the_dividend(tmp_path: Path) -> None:
    x = np.array([-0.0, -0.0, 0, -3, 5, -6, 6], np.float32)
    y = np.array([2, INF, 3, 3, -3, 3, -3], np.float32)
    _, found = on_every_engine(tmp_path, [("Mod", ["x", "y"], ["rest"], {"fmod": 1})], {"x": x, "y": y})
    check(found, {"rest": np.fmod(x, y)})


@pytest.mark.slow
def test_a_floored_remainder_of_nothing_has_the_sign_of_the_divisor(tmp_path: Path) -> None:
    x = np.array([-0.0, 0, 0, -3, 5, -6, 6, 6, -0.0, -3], np.float32)
    y = np.array([2, -INF, -3, 3, -3, 3, -3, 3, -2, INF], np.float32)
    _, found = on_every_engine(tmp_path, [("Mod", ["x", "y"], ["rest"], {"fmod": 0})], {"x": x, "y": y})
    check(found, {"rest": np.mod(x, y)})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_rows_that_are_looked_up_keep_signs_of_zeros(kind: type[np.floating[Any]], tmp_path: Path) -> None:
    """A look-up moves its one row: added to 0, it would lose them."""
    inputs: Arrays = {}
    nodes: list[Node] = []
    wanted: Arrays = {}
    for n, (shape, axis) in enumerate([((3, 7, 5), 1), ((6, 8), 0), ((64, 16), 0)]):
        x: NDArray[Any] = np.array([-0.0, 0.0, -1.0], kind)[np.arange(np.prod(shape)) % 3].reshape(shape)
        i = np.array([2, 0, shape[axis] - 1], np.int64)
        inputs |= {f"x{n}": x, f"i{n}": i}
        nodes.append(("Gather", [f"x{n}", f"i{n}"], [f"y{n}"], {"axis": axis}))
        wanted[f"y{n}"] = np.take(x, i, axis)
    _, found = on_every_engine(tmp_path, nodes, inputs)
    check(found, wanted)


def test_what_a_scatter_adds_is_rounded_once_and_leaves_zeros(tmp_path: Path) -> None:
    x, i = np.array([1, -0.0, 0, -0.0], np.float16), np.array([[0], [0], [3]], np.int64)
    u = np.array([2048, 1, -0.0], np.float16)
    nodes: list[Node] = [("ScatterND", ["x", "i", "u"], ["y"], {"reduction": "add"})]
    _, found = on_every_engine(tmp_path, nodes, {"x": x, "i": i, "u": u})
    check(found, {"y": np.array([2050, -0.0, 0, -0.0], np.float16)})


@pytest.mark.slow
def test_selections_rank_nans_and_infinities(tmp_path: Path) -> None:
    """An extreme is the first NaN, if there is one; TopK takes NaN for the largest, as ONNX Runtime does."""
    nodes: list[Node] = [
        *((op, ["x"], [op], {"axis": 1}) for op in ("ArgMax", "ArgMin", "Hardmax")),
        ("ArgMax", ["x"], ["last"], {"axis": 1, "select_last_index": 1}),
        *(
            ("TopK", ["x", f"k{k}"], [f"value{k}{i}", f"place{k}{i}"], {"axis": 1, "largest": i})
            for k in (1, 3)
            for i in (0, 1)
        ),
    ]
    ranks = {f"k{k}": np.array([k]) for k in (1, 3)}
    path, found = on_every_engine(tmp_path, nodes, {"x": ROWS}, ranks)
    wanted = referenced(path, {"x": ROWS})
    runtime = run_onnx_runtime(path, {"x": ROWS})
    check(found, wanted | {name: runtime[name] for name in runtime if name[:5] in ("value", "place")})


@pytest.mark.slow
def test_ranks_in_stages_keep_nans(tmp_path: Path) -> None:
    """A long axis is ranked by chunks, the last of which is padded."""
    n, k = 1213, 20
    chunk, *following = stages(n, k, 2)
    assert following
    assert n % chunk
    x = np.random.default_rng(0).integers(-3, 4, (2, n)).astype(np.float32)
    x[0, [5, 77, n - 1]], x[0, [0, 80, 1000]], x[0, 10:20], x[1] = NAN, INF, -INF, NAN
    nodes: list[Node] = [
        ("TopK", ["x", "k"], [f"value{i}", f"place{i}"], {"axis": 1, "largest": i}) for i in (0, 1)
    ]
    path, found = on_every_engine(tmp_path, nodes, {"x": x}, {"k": np.array([k])})
    check(found, run_onnx_runtime(path, {"x": x}))


def test_a_shift_by_the_width_or_more_leaves_nothing(tmp_path: Path) -> None:
    inputs: Arrays = {}
    nodes: list[Node] = []
    for dtype in (np.uint8, np.uint32):
        name, n_bits = dtype.__name__, 8 * np.dtype(dtype).itemsize
        inputs[f"x_{name}"] = np.array([1, 255, 129, 255, 7, 200], dtype)
        inputs[f"n_{name}"] = np.array(
            [0, n_bits - 1, n_bits, n_bits + 1, 4 * n_bits + 1, np.iinfo(dtype).max], dtype
        )
        nodes += [
            ("BitShift", [f"x_{name}", f"n_{name}"], [f"{name}_{direction}"], {"direction": direction})
            for direction in ("LEFT", "RIGHT")
        ]
    path, found = on_every_engine(tmp_path, nodes, inputs)
    check(found, run_onnx_runtime(path, inputs))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", [5, 150])
def test_running_sums_leave_out_what_is_behind(n: int, tmp_path: Path) -> None:
    """Along axes that are summed up at once, and in chunks."""
    x = np.random.default_rng(1).integers(-9, 9, (3, n)).astype(np.float32)
    x[0, n // 2], x[1, [n // 3, n - 2]], x[2, 2] = INF, (INF, -INF), NAN
    options = [(i, j) for i in (0, 1) for j in (0, 1)]
    nodes: list[Node] = [
        ("CumSum", ["x", "axis"], [f"y{i}{j}"], {"exclusive": i, "reverse": j}) for i, j in options
    ]
    path, found = on_every_engine(tmp_path, nodes, {"x": x}, {"axis": np.array(1)})
    check(found, referenced(path, {"x": x}))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_sequence_of_no_steps_ends_at_zero(kind: str, tmp_path: Path) -> None:
    """As in ONNX Runtime, whatever the initial state is."""
    rng, n_gates = np.random.default_rng(0), {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    states = ["h", "c"] if kind == "LSTM" else ["h"]
    read = ["x", "w", "r", "", "lengths", *states]
    inputs: Arrays = {name: rng.normal(size=(1, 3, 4)).astype(np.float32) for name in states}
    inputs |= {"x": rng.normal(size=(2, 3, 2)).astype(np.float32), "lengths": np.array([0, 1, 2], np.int32)}
    weights: Arrays = {
        name: rng.normal(size=(1, n_gates * 4, width)).astype(np.float32)
        for name, width in (("w", 2), ("r", 4))
    }
    nodes: list[Node] = [(kind, read, ["y", *(f"{name}_end" for name in states)], {"hidden_size": 4})]
    path, found = on_every_engine(tmp_path, nodes, inputs, weights)
    wanted = run_onnx_runtime(path, inputs)
    assert not wanted["h_end"][0, 0].any()
    for engine, outputs in found.items():
        for name, expected in wanted.items():
            np.testing.assert_allclose(outputs[name], expected, 1e-4, 1e-6, err_msg=f"{name} on {engine}")


def test_units_of_f16_round_once(tmp_path: Path) -> None:
    x = np.array([0.3, -0.7, -0.01, 1e-4, -12, 100, -0.0123], np.float16)
    operators = ("Elu", "Selu", "Softplus", "Softsign")
    nodes: list[Node] = [(op, ["x"], [op], {}) for op in operators]
    path, found = on_every_engine(tmp_path, nodes, {"x": x})
    wanted = run_onnx_runtime(path, {"x": x})
    for engine, outputs in found.items():
        for op in operators:
            away = np.abs(outputs[op].astype(np.float64) - wanted[op])
            assert (away <= 0.51 * np.spacing(np.abs(outputs[op]))).all(), f"{op} on {engine}"


def test_exponentials_of_f16_stay_finite(tmp_path: Path) -> None:
    """The f16 instructions of a tile make infinities of infinities only."""
    x = np.array([100, 6e4, 11.1, 12, -100, INF, -INF, NAN], np.float16)
    nodes: list[Node] = [("Exp", ["x"], ["y"], {}), ("Exp", ["grid"], ["z"], {})]
    grid = np.tile(x, (3, 5))[:, ::-1].copy()
    _, found = on_every_engine(tmp_path, nodes, {"x": x, "grid": grid})
    with np.errstate(over="ignore"):
        wide = np.exp(np.clip(x.astype(np.float64), -1e3, 7e2))
    wanted = np.where(np.isinf(x), np.where(x > 0, INF, 0), np.minimum(wide, 65504)).astype(np.float16)
    check(found, {"y": wanted, "z": np.tile(wanted, (3, 5))[:, ::-1]})


def test_powers_of_integers_are_cut(tmp_path: Path) -> None:
    """As a conversion to integers does; only the plan simulator computes in f64."""
    x, y = np.array([1694128948, 10, 7, -3], np.int32), np.array([0.03, 0.5, 0.9, 3], np.float32)
    _, found = on_every_engine(
        tmp_path, [("Pow", ["x", "y"], ["z"], {})], {"x": x, "y": y}, is_planned_only=True
    )
    check(found, {"z": np.array([1, 3, 5, -27], np.int32)})


@pytest.mark.parametrize(
    ("x", "y", "is_planned_only"),
    [
        (
            np.array([-0.3254, -945e-6, 0.5, 3], np.float16),
            np.array([-1e-38, 3e6, 0.1, 2], np.float32),
            False,
        ),
        (np.array([-2, -1e-30, 9, -3], np.float32), np.array([-2e-308, 3e300, 0.5, 3]), True),
        (
            np.array([-1e-38, -2, -1, -np.inf], np.float32),
            np.array([2**32 - 1, 31, 2**24 + 1, 3], np.uint32),
            False,
        ),
    ],
)
def test_exponents_are_not_rounded_to_the_type_of_the_base(
    tmp_path: Path, x: Any, y: Any, is_planned_only: bool
) -> None:
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    _, found = on_every_engine(
        tmp_path, [("Pow", ["x", "y"], ["z"], {})], {"x": x, "y": y}, is_planned_only=is_planned_only
    )
    check(found, {"z": wanted})


def test_a_constant_exponent_in_f64_takes_no_f64(tmp_path: Path) -> None:
    """What rounds to f32 within its accuracy is computed in it, on every engine."""
    x = np.array([1, 4, 0.25, 9], np.float32)
    exponents = {"tenth": 0.1, "root": 0.5, "cube": 3.0}
    nodes: list[Node] = [("Pow", ["x", name], [f"x_{name}"], {}) for name in exponents]
    _, found = on_every_engine(
        tmp_path, nodes, {"x": x}, {name: np.array(y) for name, y in exponents.items()}
    )
    for outputs in found.values():
        for name, exponent in exponents.items():
            np.testing.assert_allclose(outputs[f"x_{name}"], x**exponent, rtol=1e-6)
