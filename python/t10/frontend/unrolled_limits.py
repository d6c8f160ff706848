"""Why a Loop or Scan was not unrolled, and what would help."""

from __future__ import annotations

from typing import Any

from onnx import numpy_helper

from t10.frontend.rewrites.site import Facts
from t10.frontend.rewrites.unrolled_size import MOST_NODES, body_of, goes_on
from t10.frontend.unsupported import title_of

Reason = tuple[str, str]

UNROLLED_HINT = "export with constant conditions and trip counts, so that it can be unrolled"
_TOO_LARGE: Reason = (
    f"becomes more than {MOST_NODES:,} nodes if it is unrolled, loops inside it included",
    "take fewer steps, or compute all of them at once, as CumSum and MatMul do",
)
_NO_STEPS: Reason = (
    "takes no step, and its body does not state the type and shape of what it stacks",
    "infer shapes before the export, or leave the loop out",
)


def why_not_unrolled(node: Any, facts: Facts) -> Reason:
    """Return why a Loop or Scan that no rule has rewritten cannot be compiled, and what helps."""
    return _loop(node, facts) if node.op_type == "Loop" else _scan(node, facts)


def _loop(node: Any, facts: Facts) -> Reason:
    """Return why a Loop is left whose trip count and first condition are constants: others need these first."""
    body = body_of(node)
    trips, start = (_number(facts, name) for name in (*node.input, "", "")[:2])
    if start == 0 or (trips is not None and trips < 1):
        return _NO_STEPS
    if goes_on(body, facts.constants):
        return _TOO_LARGE
    hint = f"{UNROLLED_HINT}; or bound it: --bound {title_of(node)}=N"
    return (f"ends when its body says so: by data, or after more than {MOST_NODES:,} nodes", hint)


def _number(facts: Facts, name: str) -> int | None:
    tensor = facts.constants.get(name)
    return None if tensor is None else int(numpy_helper.to_array(tensor).reshape(()))


def _scan(node: Any, facts: Facts) -> Reason:
    n_scanned = next((each.i for each in node.attribute if each.name == "num_scan_inputs"), 0)
    shapes = [facts.shapes.get(name) for name in node.input[len(node.input) - n_scanned :]]
    if n_scanned > len(node.input):
        most = f"at most {len(node.input)}, as it has inputs"
        return f"has num_scan_inputs {n_scanned} (expected {most})", "export the model again"
    if facts.opset < 9:
        return "is of opset 8, a batch of sequences", "export with opset 9 or later"
    if not n_scanned or not all(shapes):
        return "scans what is of unknown shape", "export with static shapes, or give --shape"
    axes = next((list(each.ints) for each in node.attribute if each.name == "scan_input_axes"), [0])
    if not (shapes[0] or (0,))[axes[0]]:
        return "takes no step", "leave it out"
    return _TOO_LARGE
