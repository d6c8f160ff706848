"""If, Loop and Scan written out: the branch that is taken, or both where data decide, and steps one after another."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.helper import tensor_dtype_to_np_dtype

from t10.frontend.rewrites.site import Rule, Site
from t10.frontend.rewrites.subgraphs import write_graph
from t10.frontend.rewrites.trip_counts import n_steps_of
from t10.frontend.rewrites.unrolled_size import MOST_NODES, goes_on, most_steps, unrolled_nodes


def _if(site: Site) -> bool:
    condition = site.constant_input(0)
    if condition is None or condition.size != 1:
        return False
    branch = body_of(site, "then_branch" if condition.reshape(()) else "else_branch")
    for place, name in enumerate(write_graph(site, branch, {})):
        site.give(name, place)
    return True


def _both(site: Site) -> bool:
    """Compute both branches of an If and choose, where their results have one static shape."""
    shape = site.shape(0)
    branches = [body_of(site, name) for name in ("then_branch", "else_branch")]
    kinds = [
        [_static_type(value) for place, value in enumerate(branch.output) if site.output(place)]
        for branch in branches
    ]
    if shape is None or prod(shape) != 1 or kinds[0] != kinds[1] or None in kinds[0]:
        return False
    condition = site.reshape(site.input(0), ())
    for place, (one, other) in enumerate(
        zip(*(write_graph(site, each, {}) for each in branches), strict=True)
    ):
        if site.output(place):
            site.op("Where", condition, one, other, output=site.output(place))
    return True


def _static_type(value: Any) -> tuple[int, ...] | None:
    """Return the element type and extents of a value, None where they are not known."""
    kind = value.type.tensor_type
    dims = kind.shape.dim
    if not kind.elem_type or not kind.HasField("shape") or any(not dim.HasField("dim_value") for dim in dims):
        return None
    return kind.elem_type, *(dim.dim_value for dim in dims)


def _loop(site: Site) -> bool:
    condition, body = site.constant_input(1), body_of(site, "body")
    n_steps = _n_steps(site, body)
    if n_steps is None or (n_steps > 0 and site.input(1) and condition is None):
        return False
    if condition is not None and not condition.reshape(()):
        n_steps = 0
    carried = list(site.node.input[2:])
    n_scanned = len(body.output) - 1 - len(carried)
    if n_steps >= most_steps(body, site.facts) or unrolled_nodes(site.node, site.facts, n_steps) > MOST_NODES:
        return False
    if n_steps < 1:
        return _gives_what_it_got(site, body, carried)
    rows: list[list[str]] = [[] for _ in range(n_scanned)]
    true = site.constant(np.array(True))
    for step in range(n_steps):
        given = (site.constant(np.array(step, np.int64)), true, *carried)
        inputs = {value.name: name for value, name in zip(body.input, given, strict=True)}
        made = write_graph(site, body, inputs)[1:]
        carried = made[: len(carried)]
        for row, name in zip(rows, made[len(carried) :], strict=True):
            row.append(name)
    for place, name in enumerate(carried):
        site.give(name, place)
    for place, row in enumerate(rows, start=len(carried)):
        if site.output(place):
            site.give(stacked(site, row, 0), place)
    return True


def _n_steps(site: Site, body: Any) -> int | None:
    """Return how many steps a loop takes that is entered, `most_steps` if there are more; None where data decide."""
    count = site.constant_input(0)
    if site.input(0) and count is None:
        return None
    most = most_steps(body, site.facts)
    given = most if count is None else min(most, int(count.reshape(())))
    return given if given < 1 or goes_on(body, site.facts.constants) else n_steps_of(site, body, given)


def _gives_what_it_got(site: Site, body: Any, carried: Sequence[str]) -> bool:
    """Write a loop of no steps; what steps would be stacked to has no elements, and the shape that its body states."""
    stacks = list[tuple[int, NDArray[Any]]]()
    for place, value in enumerate(body.output[1 + len(carried) :], start=len(carried)):
        if not site.output(place):
            continue
        known = _static_type(value)
        if known is None:
            return False
        kind, *extents = known
        stacks.append((place, np.empty((0, *extents), tensor_dtype_to_np_dtype(kind))))
    for place, name in enumerate(carried):
        site.give(name, place)
    for place, stack in stacks:
        site.give(site.constant(stack), place)
    return True


def _scan(site: Site) -> bool:
    body, n_scanned = body_of(site, "body"), int(site.option("num_scan_inputs", 0))
    n_states = len(site.node.input) - n_scanned
    if site.facts.opset < 9 or n_scanned < 1 or n_states < 0:
        return False
    shapes = [site.shape(n_states + i) for i in range(n_scanned)]
    axes: list[int] = list(site.option("scan_input_axes", [0] * n_scanned))
    if any(not shape for shape in shapes):
        return False
    n_steps = (shapes[0] or (0,))[axes[0]]
    if n_steps < 1 or unrolled_nodes(site.node, site.facts, n_steps) > MOST_NODES:
        return False
    backwards = list(site.option("scan_input_directions", [0] * n_scanned))
    states, scanned = list(site.node.input[:n_states]), list(site.node.input[n_states:])
    n_rows = len(body.output) - n_states
    rows: list[list[str]] = [[] for _ in range(n_rows)]
    for step in range(n_steps):
        elements = [
            site.op("Gather", name, site.constant(np.array(n_steps - 1 - step if back else step)), axis=axis)
            for name, axis, back in zip(scanned, axes, backwards, strict=True)
        ]
        inputs = {value.name: name for value, name in zip(body.input, (*states, *elements), strict=True)}
        made = write_graph(site, body, inputs)
        states = made[:n_states]
        for row, name in zip(rows, made[n_states:], strict=True):
            row.append(name)
    _give_scanned(site, states, rows)
    return True


def _give_scanned(site: Site, states: list[str], rows: list[list[str]]) -> None:
    axes = list(site.option("scan_output_axes", [0] * len(rows)))
    prepends = list(site.option("scan_output_directions", [0] * len(rows)))
    for place, name in enumerate(states):
        site.give(name, place)
    for number, row in enumerate(rows):
        if site.output(len(states) + number):
            ordered = row[::-1] if prepends[number] else row
            site.give(stacked(site, ordered, axes[number]), len(states) + number)


def stacked(site: Site, row: Sequence[str], axis: int) -> str:
    """Return values one after another along a new axis."""
    axes = site.constant([axis], np.int64)
    wide = [
        site.op("Unsqueeze", name, axes)
        if site.facts.opset >= 13
        else site.op("Unsqueeze", name, axes=[axis])
        for name in row
    ]
    return wide[0] if len(wide) == 1 else site.concat(wide, axis)


def body_of(site: Site, name: str) -> Any:
    """Return the graph of an attribute."""
    return next(attribute.g for attribute in site.node.attribute if attribute.name == name)


BRANCHES: dict[str, Rule] = {"If": _both}
"""For an If whose condition data decide. To be used last: a condition may turn out to be constant."""
RULES: dict[str, Rule] = {"If": _if, "Loop": _loop, "Scan": _scan}
