"""Loops that are too large together are refused before anything is unrolled."""

from __future__ import annotations

import time
from typing import Any

import onnx
import pytest

from t10.errors import UnsupportedOpError
from t10.frontend.importer import import_proto
from t10.frontend.rewrites import apply
from t10.frontend.rewrites.site import Facts
from t10.frontend.rewrites.unrolled_size import unrolled_nodes

INNER = """Loop (inner, go, before) <body: graph = inside (int64 j, bool c, float[3] old) => (bool d, float[3] new) {
    new = Add (old, old)
    d = Identity (c)
}>"""
COUNTED = INNER.replace("inner", "many", 1)
SCAN = """Scan <num_scan_inputs = 1, body: graph = row (float[3] old, float s) => (float[3] new) {
    new = Add (old, s)
}> (before, table)"""
BRANCHES = """If (p) <
    then_branch: graph = yes () => (float[3] a) { a = %s },
    else_branch: graph = no () => (float[3] b) { b = Tanh (before) }
>"""


def nested(step: str, outer: int, inner: int) -> Any:
    """Return a model of one Loop whose steps make `after` of `before`."""
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[3] x, bool p, float[1000] table) => (float[3] y) {{
            go = Constant <value: tensor = bool {{1}}> ()
            outer = Constant <value: tensor = int64 {{{outer}}}> ()
            inner = Constant <value: tensor = int64 {{{inner}}}> ()
            y = Loop (outer, go, x) <body: graph = step (int64 i, bool cond, float[3] before)
                    => (bool on, float[3] after) {{
                {step}
                on = Identity (cond)
            }}>
        }}""")


@pytest.mark.parametrize(
    "step",
    [
        f"after = {INNER}",
        f"many = Identity (inner)  after = {COUNTED}",
        f"after = {SCAN}",
        f"middle = {INNER}  after = {BRANCHES % 'Identity (middle)'}",
    ],
    ids=["loop", "cast", "scan", "beside-if"],
)
def test_loops_in_loops_count_as_often_as_they_run(step: str) -> None:
    started = time.process_time()
    with pytest.raises(UnsupportedOpError, match="more than 20000 nodes if it is unrolled") as caught:
        import_proto(nested(step, 9000, 9000), source="m")
    assert caught.value.operator == "y"
    assert time.process_time() - started < 2


@pytest.mark.parametrize("step", [f"after = {BRANCHES % INNER}", f"many = Add (i, inner)  after = {COUNTED}"])
def test_what_is_known_late_is_limited_in_all(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop within a branch, and one that runs as often as a step's number says."""
    monkeypatch.setattr(apply, "MOST_WRITTEN", 1000)
    of = nested(step, 20, 100)
    with pytest.raises(UnsupportedOpError, match="written out as more than 1000 nodes"):
        import_proto(of, source="m")


@pytest.mark.parametrize(
    ("step", "n_nodes"),
    [
        (f"after = {INNER}", 5 * 2 + 1),
        (f"inner = Constant <value: tensor = int64 {{3}}> ()  after = {INNER}", 1 + 3 * 2 + 1),
        (f"inner = Add (i, i)  after = {INNER}", 1 + 2 + 1),
        (f"after = {SCAN}", 1000 + 1),
        (f"after = {BRANCHES % INNER}", 1 + 1),
    ],
    ids=["outer-constant", "own-constant", "hidden", "scan", "least-branch"],
)
def test_nodes_are_counted_as_they_would_be_written(step: str, n_nodes: int) -> None:
    graph = nested(step, 2, 5).graph
    body = next(node for node in graph.node if node.op_type == "Loop").attribute[0].g
    constants = {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    facts = Facts({"table": (1000,)}, {}, constants, frozenset(), 18)
    assert unrolled_nodes(body, facts) == n_nodes
