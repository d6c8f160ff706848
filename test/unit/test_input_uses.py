"""Random inputs are what a model takes: indices, places, lengths, masks and divisors are found by their use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from support import models
from support.contributed import model_of

import t10
from t10.cli import main
from t10.driver import Executable
from t10.input_uses import input_uses
from t10.random_inputs import LARGE, MIXED, MOST_COORDINATE, NORMAL, Reach, random_inputs
from t10.reference import run_onnx_runtime

N_SEEDS = 20
TABLE = models.weights(0, 7, 5)
FLOAT, INT64, INT32, UINT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8


def compiled(path: Path) -> Executable:
    return t10.compile(path, chip="test-4")


def drawn(executable: Executable, name: str, reach: Reach = NORMAL) -> list[NDArray[Any]]:
    graph, weights = executable.plan.graph, executable.weights
    return [random_inputs(graph, seed, reach, weights=weights)[name] for seed in range(N_SEEDS)]


def agreed(path: Path, reach: Reach) -> None:
    """Check that ONNX Runtime takes what is drawn, and gives what the plan gives."""
    executable = compiled(path)
    for seed in range(4):
        inputs = random_inputs(executable.plan.graph, seed, reach)
        expected = run_onnx_runtime(path, inputs)
        for name, found in executable.run(inputs).items():
            np.testing.assert_allclose(found, expected[name], rtol=1e-4, atol=1e-5, equal_nan=True)


def looking_up(path: Path) -> Path:
    """Write y = table[ids + 2], through a cast and another shape."""
    nodes = [
        helper.make_node("Cast", ["ids"], ["wide"], to=INT64),
        helper.make_node("Unsqueeze", ["wide", "first"], ["row"]),
        helper.make_node("Add", ["row", "two"], ["places"]),
        helper.make_node("Gather", ["table", "places"], ["y"]),
    ]
    stored = {"table": TABLE, "first": np.array([0]), "two": np.array(2)}
    return models.save(path, nodes, {"ids": (INT32, [6])}, {"y": (FLOAT, [1, 6, 5])}, **stored)


def scattering(path: Path) -> Path:
    nodes = [helper.make_node("ScatterElements", ["x", "places", "new"], ["y"], axis=0)]
    inputs = {"x": (FLOAT, [6, 3]), "places": (INT64, [5, 3]), "new": (FLOAT, [5, 3])}
    return models.save(path, nodes, inputs, {"y": (FLOAT, [6, 3])})


def recurrent(path: Path) -> Path:
    nodes = [helper.make_node("RNN", ["x", "w", "r", "", "lengths"], ["y"], hidden_size=2)]
    stored = {"w": models.weights(1, 1, 2, 4), "r": models.weights(2, 1, 2, 2)}
    inputs = {"x": (FLOAT, [6, 8, 4]), "lengths": (INT32, [8])}
    return models.save(path, nodes, inputs, {"y": (FLOAT, [6, 1, 8, 2])}, **stored)


def dividing(path: Path) -> Path:
    nodes = [helper.make_node("Div", ["a", "b"], ["y"])]
    return models.save(path, nodes, {"a": (INT32, [40]), "b": (INT32, [40])}, {"y": (INT32, [40])})


def masked(path: Path) -> Path:
    nodes = [
        helper.make_node("Cast", ["mask"], ["kept"], to=FLOAT),
        helper.make_node("Sub", ["one", "kept"], ["left_out"]),
        helper.make_node("Mul", ["left_out", "huge"], ["bias"]),
        helper.make_node("Add", ["x", "bias"], ["y"]),
    ]
    stored = {"one": np.array(1, np.float32), "huge": np.array(-1e4, np.float32)}
    return models.save(
        path, nodes, {"x": (FLOAT, [3, 6]), "mask": (INT64, [3, 6])}, {"y": (FLOAT, [3, 6])}, **stored
    )


def test_indices_are_within_their_table_from_both_ends(tmp_path: Path) -> None:
    executable = compiled(models.embedding(tmp_path / "m.onnx"))
    ids = np.concatenate(drawn(executable, "ids"))
    assert ids.min() in range(-37, -30)
    assert ids.max() in range(30, 37)
    agreed(tmp_path / "m.onnx", NORMAL)


def test_a_shifted_index_is_shifted_back(tmp_path: Path) -> None:
    ids = np.concatenate(drawn(compiled(looking_up(tmp_path / "m.onnx")), "ids"))
    assert (ids.min(), ids.max()) == (-9, 4)
    agreed(tmp_path / "m.onnx", LARGE[0])


def test_an_index_that_is_not_wrapped_is_not_negative(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["ids"], ["wide"], to=INT64),
        helper.make_node("Gather", ["table", "wide"], ["y"]),
    ]
    path = models.save(tmp_path / "m.onnx", nodes, {"ids": (UINT8, [6])}, {"y": (FLOAT, [6, 5])}, table=TABLE)
    ids = np.concatenate(drawn(compiled(path), "ids", LARGE[0]))
    assert (ids.min(), ids.max(), ids.dtype) == (0, 6, np.uint8)


def test_no_two_elements_are_scattered_to_one_place(tmp_path: Path) -> None:
    for places in drawn(compiled(scattering(tmp_path / "m.onnx")), "places"):
        assert all(np.unique(column % 6).size == 5 for column in places.T)
    agreed(tmp_path / "m.onnx", NORMAL)


def test_no_two_elements_of_several_dims_are_scattered_to_one_place(tmp_path: Path) -> None:
    """A MaxUnpool takes its places in flat order: those of two rows must differ, too."""
    nodes = [helper.make_node("MaxUnpool", ["x", "places"], ["y"], kernel_shape=[2, 2], strides=[2, 2])]
    inputs = {"x": (FLOAT, [1, 1, 3, 2]), "places": (INT64, [1, 1, 3, 2])}
    path = models.save(tmp_path / "m.onnx", nodes, inputs, {"y": (FLOAT, [1, 1, 6, 4])})
    assert all(np.unique(places % 24).size == 6 for places in drawn(compiled(path), "places"))
    agreed(path, Reach("small"))


@pytest.mark.slow
def test_lengths_are_at_least_one_and_at_most_all(tmp_path: Path) -> None:
    lengths = np.concatenate(drawn(compiled(recurrent(tmp_path / "m.onnx")), "lengths", LARGE[0]))
    assert set(lengths) == {1, 2, 3, 4, 5, 6}
    agreed(tmp_path / "m.onnx", LARGE[0])


@pytest.mark.parametrize("n_new", [1, 4])
def test_places_of_new_tokens_are_in_the_cache(n_new: int, tmp_path: Path) -> None:
    """They end at `lengths`, which is below the total length; ONNX Runtime reads anything for others."""
    names = ["q", "", "", "pk", "pv", "lengths", "total"]
    heads: dict[str, Any] = {"num_heads": 2, "kv_num_heads": 1, "domain": "com.microsoft"}
    node = helper.make_node("GroupQueryAttention", names, ["y", "k", "v"], **heads)
    cache, lengths = models.weights(0, 1, 1, 12, 16), np.zeros(1, np.int32)
    inputs = {"q": models.weights(1, 1, n_new, 64), "pk": cache, "pv": cache, "lengths": lengths}
    model = model_of(node, inputs, dict.fromkeys("ykv", FLOAT), {"total": np.array(9, np.int32)})
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    found = set(np.concatenate(drawn(compiled(path), "lengths", LARGE[0])).tolist())
    assert len(found) > 3
    assert found <= set(range(n_new - 1, 9))
    agreed(path, NORMAL)


def test_nothing_is_divided_by_zero(tmp_path: Path) -> None:
    executable = compiled(dividing(tmp_path / "m.onnx"))
    divisors = np.concatenate(drawn(executable, "b", LARGE[0]))
    assert not np.isin(divisors, (0, -1)).any()
    assert (divisors < 0).any()
    dividends = np.concatenate(drawn(executable, "a", LARGE[0]))
    assert (dividends.min(), dividends.max()) == (-(2**31), 2**31 - 1)


def test_masks_are_zero_and_one_and_no_row_is_empty(tmp_path: Path) -> None:
    for mask in drawn(compiled(masked(tmp_path / "m.onnx")), "mask", LARGE[0]):
        assert np.isin(mask, (0, 1)).all()
        assert (mask[:, 0] == 1).all()


def test_what_is_counted_before_it_selects_is_a_mask(tmp_path: Path) -> None:
    executable = compiled(models.counted_places(tmp_path / "places.onnx"))
    assert input_uses(executable.plan.graph)["mask"].is_mask
    assert np.isin(drawn(executable, "mask"), (0, 1)).all()
    agreed(tmp_path / "places.onnx", LARGE[0])


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [(UINT8, 0, 255), (INT32, -(2**31), 2**31 - 1), (INT64, -(2**40), 2**40)],
)
def test_other_integers_take_all_values_of_their_type(
    tmp_path: Path, kind: int, least: int, most: int
) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=FLOAT)]
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (kind, [5, 9])}, {"y": (FLOAT, [5, 9])})
    for x in drawn(compiled(path), "x", LARGE[0]):
        assert (int(x.min()), int(x.max())) == (least, most)


def test_floats_reach_as_far_as_they_are_told(tmp_path: Path) -> None:
    executable = compiled(models.mlp(tmp_path / "m.onnx"))
    assert max(np.abs(x).max() for x in drawn(executable, "x")) < 10
    sizes = np.abs(np.concatenate(drawn(executable, "x", MIXED[0])))
    assert sizes.min() == 0
    assert sizes[sizes > 0].min() < 2**-30
    assert sizes.max() > 2**30
    assert np.abs(np.concatenate(drawn(executable, "x", LARGE[0]))).max() > 9e17


def test_specials_are_among_floats_where_they_are_wanted(tmp_path: Path) -> None:
    executable = compiled(models.mlp(tmp_path / "m.onnx"))
    graph = executable.plan.graph
    x = random_inputs(graph, 0, specials=True)["x"]
    assert np.isnan(x).any()
    assert np.isinf(x).any()
    assert np.isfinite(random_inputs(graph, 0)["x"]).all()


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grids_stay_near_the_image(mode: str, tmp_path: Path) -> None:
    """Also those that are computed; the image is as large as it may be."""
    nodes = [
        helper.make_node("Add", ["grid", "offsets"], ["moved"]),
        helper.make_node(
            "GridSample", ["x", "moved"], ["y"], mode=mode, padding_mode="reflection", align_corners=0
        ),
    ]
    inputs = {"x": (FLOAT, [1, 2, 5, 4]), "grid": (FLOAT, [1, 3, 3, 2]), "offsets": (FLOAT, [1, 3, 3, 2])}
    path = models.save(tmp_path / "m.onnx", nodes, inputs, {"y": (FLOAT, [1, 2, 3, 3])})
    executable = compiled(path)
    for reach in (LARGE[0], MIXED[0]):
        for name in ("grid", "offsets"):
            assert all(np.abs(array).max() <= MOST_COORDINATE for array in drawn(executable, name, reach))
        assert max(np.abs(array).max() for array in drawn(executable, "x", reach)) > 1e6
    assert (
        main(["verify", str(path), "--chip", "test-4", "--no-cache", "--engine", "plan", "--seeds", "3"]) == 0
    )


@pytest.mark.parametrize("values", [0.5, [0, 1, 2, 3, 100, 1e5, 7, 8], [[7], [1]]])
def test_floats_that_are_rounded_and_tell_no_place_are_drawn_as_others(
    values: object, tmp_path: Path
) -> None:
    nodes = [
        helper.make_node("Round", ["x"], ["r"]),
        helper.make_node("Equal", ["r", "given"], ["is_given"]),
        helper.make_node("Where", ["is_given", "x", "r"], ["y"]),
    ]
    constants = {"given": np.array(values, np.float32)}
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [8])}, {"y": (FLOAT, None)}, **constants)
    assert max(np.abs(array).max() for array in drawn(compiled(path), "x", LARGE[0])) > 1e6
