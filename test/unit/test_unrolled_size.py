"""Loops that are too large together are refused before anything is unrolled."""

from __future__ import annotations

import re
import time
from math import ceil
from typing import Any

import onnx
import pytest

from t10.errors import UnsupportedOpError
from t10.frontend.importer import import_proto
from t10.frontend.rewrites import apply
from t10.frontend.rewrites.site import Facts
from t10.frontend.rewrites.unrolled_size import MOST_NODES, most_steps, unrolled_nodes
from t10.frontend.unrolled_limits import why_not_unrolled

INNER = """Loop (inner, go, before) <body: graph = inside (int64 j, bool c, float[3] old) => (bool d, float[3] new) {
    new = Add (old, old)
    d = Identity (c)
}>"""
UNTIL = """Loop (, go, before) <body: graph = inside (int64 j, bool c, float[3] old) => (bool d, float[3] new) {
    new = Add (old, old)
    d = Less (j, i)
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
        f"after = {INNER.replace('inner, go', 'i, cond')}",
        f"after = {UNTIL.replace('go', 'cond')}",
    ],
    ids=["loop", "cast", "scan", "beside-if", "step", "until"],
)
def test_loops_in_loops_count_as_often_as_they_run(step: str) -> None:
    started = time.process_time()
    with pytest.raises(UnsupportedOpError, match="more than 20,000 nodes if it is unrolled") as caught:
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
        (f"after = {INNER}", 2 * (5 * 1.2 + 0.2)),
        (f"inner = Constant <value: tensor = int64 {{3}}> ()  after = {INNER}", 2 * (0.2 + 3 * 1.2 + 0.2)),
        (f"inner = Add (i, i)  after = {INNER}", (1 + 0.2 + 0.2) + (1 + 2 * 1.2 + 0.2)),
        (f"after = {INNER.replace('inner', 'i', 1)}", (0.2 + 0.2) + (1.2 + 0.2)),
        (f"after = {UNTIL}", (2 + 0.2) + (2 * 2 + 0.2)),
        (f"after = {SCAN}", 2 * (1000 + 0.2)),
        (f"after = {BRANCHES % INNER}", 2 * (1 + 0.2)),
    ],
    ids=["outer-constant", "own-constant", "computed", "step", "until", "scan", "least-branch"],
)
def test_nodes_are_counted_as_they_would_be_written(step: str, n_nodes: float) -> None:
    """An Identity and a Constant weigh a fifth of another node."""
    graph = nested(step, 2, 5).graph
    constants = {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    facts = Facts({"table": (1000,)}, {}, constants, frozenset(), 18)
    loop = next(node for node in graph.node if node.op_type == "Loop")
    assert unrolled_nodes(loop, facts, 2) == ceil(round(n_nodes, 1))
    assert unrolled_nodes(loop, facts, most_steps(loop.attribute[0].g, facts)) > MOST_NODES


@pytest.mark.parametrize(
    ("loop", "reason", "hint"),
    [
        ("Loop (n, , x)", "needs constants for its trip count", "--bound y=N"),
        ("Loop (, p, x)", "needs constants for its cond", "--bound y=N"),
        ("Loop (, , x)", "becomes more than 20,000 nodes", "fewer steps"),
        ("Loop (many, , x)", "becomes more than 20,000 nodes", "fewer steps"),
    ],
)
def test_a_refusal_says_what_is_in_the_way(loop: str, reason: str, hint: str) -> None:
    of = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[3] x, int64 n, bool p) => (float[3] y) {{
            many = Constant <value: tensor = int64 {{9223372036854775807}}> ()
            y = {loop} <body: graph = inside (int64 j, bool c, float[3] old) => (bool d, float[3] new) {{
                new = Add (old, old)
                d = Identity (c)
            }}> }}""")
    with pytest.raises(UnsupportedOpError, match=reason) as caught:
        import_proto(of, source="m")
    assert hint in str(caught.value)
    assert ("--bound" in str(caught.value)) == ("--bound" in hint)


@pytest.mark.parametrize(
    ("attributes", "rows", "opset", "reason"),
    [
        ("num_scan_inputs = 7", 5, 18, "has num_scan_inputs 7 .expected at most 2"),
        ("num_scan_inputs = 1", 0, 18, "takes no step"),
        ("num_scan_inputs = 1", 30000, 18, "becomes more than 20,000 nodes"),
        ("num_scan_inputs = 1", 5, 8, "is of opset 8"),
    ],
)
def test_a_refused_scan_says_why(attributes: str, rows: int, opset: int, reason: str) -> None:
    body = "body: graph = step (float[2] a, float[2] e) => (float[2] o) { o = Add (a, e) }"
    of = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[2] s, float[{rows}, 2] x) => (float[2] y) {{ y = Scan <{attributes}, {body}> (s, x) }}""")
    facts = Facts({"x": (rows, 2)}, {}, {}, frozenset(), opset)
    assert re.match(reason, why_not_unrolled(of.graph.node[0], facts)[0])


def test_small_loops_whose_nodes_are_mostly_identities_are_unrolled() -> None:
    """Of 8 nodes of a step one computes: 2,600 steps of them are fewer than 20,000 that count, and more in all."""
    links = "\n".join(f"d{i} = Identity ({'c' if not i else f'd{i - 1}'})" for i in range(7))
    of = nested(f"after = {INNER.replace('d = Identity (c)', links + ' d = Identity (d6)')}", 26, 100)
    assert import_proto(of, source="m").weights == {}
