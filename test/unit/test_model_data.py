"""Where the values of weights come from: files that may be read, mapped into memory, and the model's own file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.models import save

from t10.driver import compile
from t10.errors import InputError
from t10.frontend import protobuf_reader
from t10.frontend.external import external_file, mapped_array
from t10.frontend.importer import import_model
from t10.frontend.onnx_file import read_onnx
from t10.inspect import model_facts

onnx: Any = untyped_onnx
FLOAT = TensorProto.FLOAT


def _external(dims: list[int], kind: int = FLOAT, **entries: str) -> Any:
    tensor = TensorProto(name="w", data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("", "expected a file name"),
        ("a\0b", "expected a file name"),
        ("/etc/passwd", "would leave the folder"),
        ("../up.bin", "would leave the folder"),
        ("in/../../up.bin", "would leave the folder"),
        ("C:\\up.bin", "would leave the folder"),
        ("..\\up.bin", "would leave the folder"),
        ("link.bin", "symbolic link"),
        ("linked/w.bin", "symbolic link"),
        ("in", "no plain file"),
        ("pipe", "no plain file"),
        (".", "no plain file"),
    ],
)
def test_locations_that_lead_elsewhere_are_refused(location: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "w.bin").write_bytes(bytes(16))
    (tmp_path / "link.bin").symlink_to(tmp_path / "in" / "w.bin")
    (tmp_path / "linked").symlink_to(tmp_path / "in")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=message):
        external_file(tmp_path, location)


def test_plain_files_of_the_folder_are_found(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "w.bin").write_bytes(bytes(16))
    assert external_file(tmp_path, "in/w.bin") == tmp_path / "in" / "w.bin"
    assert external_file(tmp_path, "./in/w.bin") == tmp_path / "in" / "w.bin"
    assert external_file(tmp_path, "gone.bin") is None
    assert external_file(tmp_path, "gone/w.bin") is None


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"offset": "-4"}, "offset '-4'"),
        ({"offset": "abc"}, "offset 'abc'"),
        ({"offset": "9" * 30}, "offset '9999"),
        ({"offset": "1"}, "holds 15 bytes at offset 1 for 'w' \\(expected 16"),
        ({"offset": "17"}, "holds 0 bytes at offset 17"),
        ({"length": "15"}, "holds 15 bytes"),
        ({"length": "17"}, "expected 16"),
        ({"path": "x"}, "entry 'path'"),
    ],
)
def test_places_in_a_file_that_do_not_hold_the_tensor_are_refused(
    entries: dict[str, str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    with pytest.raises(InputError, match=message):
        mapped_array(_external([4], FLOAT, location="w.bin", **entries), tmp_path)


def test_values_are_mapped_not_read(tmp_path: Path) -> None:
    data = np.arange(100, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(b"head" + data.tobytes())
    found = mapped_array(_external([10, 10], location="w.bin", offset="4"), tmp_path)
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, data.reshape(10, 10))


def test_a_sparse_file_of_many_gigabytes_is_imported(tmp_path: Path) -> None:
    """Its values are never read: it takes no room on the disk, and none in memory."""
    n = 1 << 16
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(2 * n * n)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="huge")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, n])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [1, n])],
        [_external([n, n], TensorProto.FLOAT16, location="w.bin")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    imported = import_model(tmp_path / "m.onnx")
    assert imported.weights["w"].nbytes == 8 << 30
    assert imported.has_all_weights


def _with_weights(path: Path) -> Path:
    """Write a model of weights in initializers and in a Constant, large and small, of several types."""
    values = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(values + 1, "anything"))
    nodes = [
        constant,
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("MatMul", ["a", "c"], ["b"], name="second"),
        helper.make_node("Reshape", ["b", "shape"], ["r"], name="shape_it"),
        helper.make_node("Gather", ["table", "ids"], ["g"], name="gather"),
        helper.make_node("Add", ["r", "g"], ["y"], name="add"),
    ]
    return save(
        path,
        nodes,
        {"x": (FLOAT, [2, 64]), "ids": (TensorProto.INT64, [2])},
        {"y": (FLOAT, [2, 64])},
        w=values,
        table=values * 2,
        shape=np.array([2, 64]),
    )


def test_large_weights_inside_a_file_are_mapped_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _with_weights(tmp_path / "m.onnx")
    plain = import_model(path)
    monkeypatch.setattr(protobuf_reader, "MIN_FILE_BYTES", 0)
    monkeypatch.setattr(protobuf_reader, "MIN_TENSOR_BYTES", 1000)
    mapped = import_model(path)
    assert str(plain.module) == str(mapped.module)
    assert set(plain.weights) == set(mapped.weights)
    for name, values in plain.weights.items():
        assert isinstance(mapped.weights[name], np.memmap)
        np.testing.assert_array_equal(mapped.weights[name], values)


def test_mapped_weights_are_written_and_executed_as_read_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some are stored transposed: they are views of the file until they are used."""
    path = _with_weights(tmp_path / "m.onnx")
    plain = compile(path, "test-4")
    monkeypatch.setattr(protobuf_reader, "MIN_FILE_BYTES", 0)
    monkeypatch.setattr(protobuf_reader, "MIN_TENSOR_BYTES", 1000)
    mapped = compile(path, "test-4")
    assert any(
        isinstance(values, np.memmap) and not values.flags.c_contiguous for values in mapped.weights.values()
    )
    inputs = {"x": np.ones((2, 64), np.float32), "ids": np.array([1, 2])}
    np.testing.assert_array_equal(plain.run(inputs)["y"], mapped.run(inputs)["y"])
    plain.save(tmp_path / "plain")
    mapped.save(tmp_path / "mapped")
    assert (tmp_path / "plain" / "weights.npz").read_bytes() == (
        tmp_path / "mapped" / "weights.npz"
    ).read_bytes()


def test_what_is_left_of_a_file_without_its_weights_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _with_weights(tmp_path / "m.onnx")
    monkeypatch.setattr(protobuf_reader, "MIN_FILE_BYTES", 0)
    monkeypatch.setattr(protobuf_reader, "MIN_TENSOR_BYTES", 1000)
    assert path.stat().st_size > 3 * 64 * 64 * 4
    assert len(protobuf_reader.without_weights(path)) < 1500
    facts, model = model_facts(path), read_onnx(path)
    assert facts.weights.files == ()
    assert facts.weights.n_bytes == 3 * 64 * 64 * 4 + 16
    assert [node.op_type for node in model.graph.node] == [
        node.op_type for node in onnx.load(str(path)).graph.node
    ]


def test_a_model_reached_through_a_link_has_its_own_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_weights(tmp_path / "real.onnx")
    (tmp_path / "m.onnx").symlink_to(tmp_path / "real.onnx")
    monkeypatch.setattr(protobuf_reader, "MIN_FILE_BYTES", 0)
    monkeypatch.setattr(protobuf_reader, "MIN_TENSOR_BYTES", 1000)
    assert import_model(tmp_path / "m.onnx").has_all_weights


@pytest.mark.parametrize("n_bytes", [1, 100, 20_000, 40_000])
def test_a_file_cut_short_is_refused_at_any_length(
    n_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _with_weights(tmp_path / "m.onnx").read_bytes()
    (tmp_path / "cut.onnx").write_bytes(data[:n_bytes])
    monkeypatch.setattr(protobuf_reader, "MIN_FILE_BYTES", 0)
    monkeypatch.setattr(protobuf_reader, "MIN_TENSOR_BYTES", 1000)
    with pytest.raises(InputError, match="is not an ONNX model"):
        import_model(tmp_path / "cut.onnx")


def test_raw_data_told_twice_is_left_to_the_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Protocol buffers merge messages that are told in pieces: one tensor here, its data the last."""
    tensor = numpy_helper.from_array(np.zeros(500, np.float32), "w").SerializeToString()
    model = onnx.ModelProto.FromString(_with_weights(tmp_path / "m.onnx").read_bytes())
    del model.graph.initializer[:], model.graph.node[:]
    graph = b"\x2a" + _length(2 * len(tensor)) + tensor + tensor
    whole = model.SerializeToString() + b"\x3a" + _length(len(graph)) + graph
    (tmp_path / "twice.onnx").write_bytes(whole)
    monkeypatch.setattr(protobuf_reader, "MIN_FILE_BYTES", 0)
    monkeypatch.setattr(protobuf_reader, "MIN_TENSOR_BYTES", 1000)
    assert protobuf_reader.without_weights(tmp_path / "twice.onnx") == whole


def _length(value: int) -> bytes:
    """Return a number below 2^14, as protocol buffers write it."""
    return bytes([value & 0x7F | 0x80, value >> 7])
