"""`--bound NAME=N`: results of data-dependent length get N rows, and the model an output that counts the valid ones.

What is computed row by row from such rows is right in the valid rows. Followed through the model are operators
that keep rows apart; sums, maxima and scatters leave invalid rows out; all others are refused by name, as
they would mix them in. What asks for the extent of such a result gets N to shape others, the count to compute with.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import numpy_helper

from t10.errors import InputError, UnsupportedOpError
from t10.frontend.asked_extents import Extents
from t10.frontend.fold import fold_constants
from t10.frontend.followed_rows import Follower
from t10.frontend.outer_constants import give_constants_to_branches
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.rewrites.apply import MOST_EXTENT, rewrite_by
from t10.frontend.rewrites.bounded import FORMS, Bounds
from t10.frontend.rewrites.control import BRANCHES
from t10.frontend.shapes import infer_shapes
from t10.frontend.unsupported import node_location, title_of

COUNT = ".count"
"""What the name of an output that counts ends in."""


def bound_results(model: Any, extents: Mapping[str, int], source: str) -> Any:
    """Return the model with results of some operators bounded; `extents` are by name of an operator or of its result.

    Raises `InputError` for a name that no such operator has, and `UnsupportedOpError` for a form that has no rule and
    for an operator that is not known to keep invalid rows apart.
    """
    if not extents:
        return model
    for name, n in extents.items():
        if not 1 <= n <= MOST_EXTENT:
            raise InputError(f"--bound {name}={n} (expected at least 1, at most {MOST_EXTENT:,})")
    bounds, given = Bounds(extents), list(model.graph.node)
    model = infer_shapes(model, source)
    # What branches make may be bounded by the name that it has once both are written out.
    while (
        fold_constants(model)
        or rewrite_by(model, bounds.control())
        or give_constants_to_branches(model)
        or rewrite_by(model, BRANCHES)
    ):
        model = infer_shapes(model, source)
    asked = Extents(model, source, bounded=frozenset(extents))
    asked.separate()
    model = infer_shapes(model, source)
    while fold_constants(model) or rewrite_by(model, bounds.rules()):
        model = infer_shapes(model, source)
    for name in extents:
        if name not in bounds.used:
            _refuse(name, given, {title_of(node) for node in model.graph.node}, source)
    _follow(model, bounds, asked, source)
    return infer_shapes(model, source)


def _refuse(name: str, given: Sequence[Any], left: Collection[str], source: str) -> NoReturn:
    """Refuse a bound that was not used, of an operator of the model as it was given or of none."""
    node = next((each for each in given if name in (each.name, *each.output)), None)
    if node is None:
        raise InputError(
            f"--bound {name}: the model has no such operator or result",
            hint=f"{', '.join(FORMS)}, by name or by result",
        )
    where: dict[str, Any] = {"operator": title_of(node), "location": node_location(node, source)}
    if node.op_type not in FORMS:
        raise InputError(
            f"--bound {name}: {node.op_type} takes no bound (expected {', '.join(FORMS)})",
            hint="leave the bound out: what the operator needs instead is said then",
            **where,
        )
    if title_of(node) not in left:
        raise InputError(
            f"--bound {name}: {node.op_type} reads constants only (expected a result whose length data decide)",
            hint="leave the bound out",
            **where,
        )
    raise UnsupportedOpError(
        f"--bound {name}: this {node.op_type} is in a form that has no rule (expected one {FORMS[node.op_type]})",
        hint="--constant NAME=VALUE fixes an input of the model, --shape gives extents",
        **where,
    )


def _follow(model: Any, bounds: Bounds, asked: Extents, source: str) -> None:
    """Follow rows through the model in place, and add the outputs that count."""
    graph = model.graph
    follower = Follower(model, bounds, source)
    nodes: list[Any] = []
    for node in graph.node:
        nodes.extend(follower.followed(node))
        of_extents = {name: asked.rows_of(name, follower) for name in node.output}
        follower.rows |= {name: rows for name, rows in of_extents.items() if rows is not None}
    nodes = asked.settle(graph, follower, nodes)
    for value in graph.output:
        rows = follower.rows.get(value.name)
        if rows is not None:
            nodes = follower.filled(nodes, value.name)
            dims = value.type.tensor_type.shape.dim
            if dims:  # what the file states is for some data
                dims[rows.axis].dim_value = rows.n
    for name, count in bounds.counts.items():
        made = f"{name}{COUNT}"
        nodes.append(onnx.helper.make_node("Identity", [count], [made], name=made))
        graph.output.append(onnx.helper.make_tensor_value_info(made, onnx.TensorProto.INT32, []))
    replace_all(graph.node, nodes)
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(values), name) for name, values in follower.constants.items()
    )
