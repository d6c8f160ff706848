"""Loops of which data decide the end, written as a fixed number of steps of which the first ones count.

run[0] = cond and 0 < M;  run[i] = run[i - 1] and the condition that step i - 1 makes and i < M
carried = Where(run[i], what step i makes of carried, carried)
scanned = Compress(what each step makes, run)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from t10.frontend.fold import fold_constants
from t10.frontend.rewrites.apply import facts_of
from t10.frontend.rewrites.control import body_of, stacked
from t10.frontend.rewrites.site import KIND, Rule, Site
from t10.frontend.rewrites.subgraphs import write_graph
from t10.frontend.rewrites.unrolled_size import MOST_NODES, goes_on, unrolled_nodes
from t10.frontend.shapes import infer_shapes


@dataclass(frozen=True, slots=True)
class Steps:
    """Which of `n` steps run, as a mask, and how many do (int32)."""

    n: int
    run: str
    count: str


def write_loop(site: Site, bound: int) -> Steps | None:
    """Write a Loop as at most so many steps; None for one of constants, and where shapes change from step to step."""
    body = body_of(site, "body")
    ends_itself = not goes_on(body, site.facts.constants)
    trips = site.constant_input(0)
    n = bound if trips is None else min(bound, int(trips.reshape(())))
    limits = _limits(site, n)
    n_nodes = unrolled_nodes(site.node, site.facts, n, is_masked=True)
    if n < 1 or n_nodes > MOST_NODES or not (limits or ends_itself):
        return None
    carried, true = list(site.node.input[2:]), site.constant(np.array(True))
    n_carried, goes, runs = len(carried), true, list[str]()
    rows, pairs = list[list[str]](), list[tuple[str, str]]()
    for step in range(n):
        run = _element(site, limits, step) if limits else true
        if ends_itself and step:
            goes = site.op("And", runs[-1], site.reshape(goes, ()))
            run = site.op("And", goes, run) if limits else goes
        given = (site.constant(np.array(step, np.int64)), true, *carried)
        inputs = {value.name: name for value, name in zip(body.input, given, strict=True)}
        goes, *made = write_graph(site, body, inputs)
        rows.append(made[n_carried:])
        pairs += [*zip(made, carried, strict=False), *zip(rows[-1], rows[0], strict=True)]
        carried = [
            now if now == last else site.op("Where", run, now, last)
            for now, last in zip(made, carried, strict=False)
        ]
        runs.append(run)
    if not _keep_shapes(site, pairs):
        return None
    for place, name in enumerate(carried):
        site.give(name, place)
    run = site.concat([site.reshape(each, (1,)) for each in runs], 0) if ends_itself else limits
    for place, row in enumerate(zip(*rows, strict=True), start=n_carried):
        if n == 1 and not limits:  # the only step always runs
            site.give(stacked(site, row, 0), place)
        elif site.output(place):
            site.op("Compress", stacked(site, row, 0), run, output=site.node.output[place], axis=0)
    total = site.reduce("ReduceSum", site.cast(run, KIND.FLOAT), [0], keep=False)
    return Steps(n, run, site.cast(total, KIND.INT32))


def _by_trip_count(site: Site) -> bool:
    """Write a Loop of a constant trip count that data end; rows that it stacks, if any are read, need a bound."""
    trips = site.constant_input(0)
    places = range(len(site.node.input) - 2, len(site.node.output))
    if trips is None or any(site.output(place) for place in places):
        return False
    return write_loop(site, int(trips.reshape(()))) is not None


RULES: dict[str, Rule] = {"Loop": _by_trip_count}
"""For a Loop that data end and that has no bound. To be used last: what ends it may turn out to be constant."""


def _limits(site: Site, n: int) -> str:
    """Write which steps may run by what is known before the first one, as a mask; nothing if all of them."""
    is_counted = bool(site.input(0)) and site.constant_input(0) is None
    start = site.constant_input(1)
    is_asked = bool(site.input(1)) and (start is None or not start.reshape(()))
    if not is_counted and not is_asked:
        return ""
    mask = site.constant(np.ones(n, np.bool_))
    if is_counted:
        mask = site.op("Less", site.constant(np.arange(n, dtype=np.int64)), site.reshape(site.input(0), ()))
    return site.op("And", mask, site.reshape(site.input(1), ())) if is_asked else mask


def _element(site: Site, mask: str, place: int) -> str:
    return site.reshape(site.slice(mask, 0, place, place + 1), ())


def _keep_shapes(site: Site, pairs: Sequence[tuple[str, str]]) -> bool:
    """Return whether both of every pair have the same static shape in what has been written."""
    facts, graph = site.facts, onnx.helper.make_graph(site.nodes, "steps", [], [])
    written = {tensor.name: tensor for tensor in site.graph.initializer}
    for name in sorted(set(_read(graph)) - {name for node in site.nodes for name in node.output}):
        if name in written:
            graph.initializer.append(written[name])
        elif name in facts.kinds:
            kind, shape = facts.kinds[name], facts.shapes.get(name)
            graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    model: Any = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", facts.opset)])
    model = infer_shapes(model, site.stem)
    while fold_constants(model):
        model = infer_shapes(model, site.stem)
    shapes = facts.shapes | facts_of(model).shapes
    return all(a in shapes and shapes[a] == shapes.get(b) for a, b in pairs)


def _read(graph: Any) -> Iterator[str]:
    """Yield what the nodes of a graph and of those inside them read."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _read(attribute.g)
