"""SequenceMap writes its body for every tensor of a known list, and computes what ONNX Runtime computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from support.contributed import computed
from support.engines import by_runtime

from t10.errors import UnsupportedOpError
from t10.frontend.importer import import_proto

Array = NDArray[Any]
RANDOM = np.random.default_rng(11)


def _model(graph: str) -> Any:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {graph}')


def _floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


SHIFTED = """body: graph = each (float[n] a, float[m] b) => (float[n] sum, int64[1] shape) {
    sum = Add (a, b)
    shape = Shape (a)
}"""
TWICE = "body: graph = twice (float[n] a) => (float[n] sum) { sum = Add (a, x) }"


@pytest.mark.parametrize(
    ("mapped", "other"),
    [
        (f"mapped, shapes = SequenceMap <{SHIFTED}> (parts, bias)", "x"),
        (f"mapped, shapes = SequenceMap <{SHIFTED}> (parts, parts)", "z"),
        (f"one, shapes = SequenceMap <{SHIFTED}> (parts, z)  mapped = SequenceMap <{TWICE}> (one)", "x"),
    ],
    ids=["tensor", "lists", "twice"],
)
def test_what_is_mapped_over_a_list_is_written_for_every_tensor(mapped: str, other: str) -> None:
    """A body may read what the graph around it makes; `other` has an extent of 2 or 1, and spreads."""
    of = _model(f"""g (float[1] x, float[2] z, float[1] bias) => (float[?] y, int64[?] s, float[?] last) {{
            parts = SequenceConstruct (z, {other}, z)
            {mapped}
            y = ConcatFromSequence <axis: int = 0> (mapped)
            s = ConcatFromSequence <axis: int = 0> (shapes)
            place = Constant <value: tensor = int64 {{-1}}> ()
            last = SequenceAt (mapped, place)
        }}""")
    inputs = {"x": _floats(1), "z": _floats(2), "bias": _floats(1)}
    due, found = by_runtime(of, inputs), computed(of, inputs)
    for name, values in due.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6, err_msg=name)


def test_what_is_mapped_over_an_unknown_list_is_refused_by_name() -> None:
    of = _model(f"""g (float[2] x, float[2] z, int64 n) => (float[2] y) {{
        two = SequenceConstruct (x, z)
        parts = SequenceErase (two, n)
        mapped = SequenceMap <{TWICE}> (parts)
        y = ConcatFromSequence <axis: int = 0> (mapped)
    }}""")
    with pytest.raises(UnsupportedOpError, match="SequenceErase needs constants for its position"):
        import_proto(of, source="m")
