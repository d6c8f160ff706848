"""What moves between plans through views: boxes of sources against numpy, what is received against sets of elements."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support import specs

from t10.chip import load_chip
from t10.core.expression import Operand, OperatorSpec
from t10.core.geometry import coordinates
from t10.core.graph import Graph, GraphOutput, TensorValue, View
from t10.core.plan import OperatorPlan
from t10.core.view_boxes import Piece, pieces_of
from t10.plan.joint.view_pairs import most_received
from t10.plan.schedule import plan_module
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place
from t10.plan.verify import verify_module

SHAPES = {"x": (6, 5), "z": (2, 5)}
INPUTS = tuple(TensorValue(name, shape, "f16") for name, shape in SHAPES.items())
VIEWS = (
    View("strided", "slice", ("x",), (2, 4), "f16", offsets=(1, 1), strides=(3, 1)),
    View("flipped", "slice", ("x",), (3, 5), "f16", offsets=(5, 4), strides=(-2, -1)),
    View("turned", "transpose", ("x",), (5, 6), "f16", permutation=(1, 0)),
    View("long", "reshape", ("x",), (1, 6, 1, 5), "f16"),
    View("joined", "concat", ("x", "z", "x"), (14, 5), "f16", axis=0),
    View("middle", "slice", ("joined",), (6, 3), "f16", offsets=(2, 1), strides=(2, 1)),
    View("back", "slice", ("joined",), (5, 5), "f16", offsets=(13, 0), strides=(-3, 1)),
    View("framed", "pad", ("middle",), (9, 6), "f16", low=(1, 2), value="0"),
    View("corner", "slice", ("framed",), (4, 3), "f16", offsets=(0, 1), strides=(1, 1)),
    View("sideways", "transpose", ("framed",), (6, 9), "f16", permutation=(1, 0)),
    View("row", "slice", ("x",), (1, 5), "f16", offsets=(4, 0), strides=(1, 1)),
    View("rows", "broadcast", ("row",), (3, 7, 5), "f16", dims=(1, 2)),
    View("one_of_rows", "slice", ("rows",), (2, 3, 2), "f16", offsets=(1, 2, 1), strides=(1, 2, 2)),
    View("flat", "reshape", ("row",), (5,), "f16"),
    View("row_again", "reshape", ("flat",), (1, 5), "f16"),
    View("ends", "concat", ("row_again", "row"), (2, 5), "f16", axis=0),
)  # fmt: skip
GRAPH = Graph("views", INPUTS, (), (), VIEWS, ())


def seen(value: str) -> NDArray[np.int64]:
    """Return, by numpy, which element each element of a value is: x counts from 0, z from 100, padding is -1."""
    view = next((view for view in VIEWS if view.name == value), None)
    if view is None:
        return np.arange(prod(SHAPES[value])).reshape(SHAPES[value]) + 100 * (value == "z")
    first, *_ = sources = [seen(source) for source in view.sources]
    if view.kind == "slice":
        at = [
            low + step * np.arange(n)
            for low, step, n in zip(view.offsets, view.strides, view.shape, strict=True)
        ]
        return first[np.ix_(*at)]
    if view.kind == "transpose":
        return first.transpose(view.permutation)
    if view.kind == "broadcast":
        extents = [1] * len(view.shape)
        for dim, to in enumerate(view.dims):
            extents[to] = first.shape[dim]
        return np.broadcast_to(first.reshape(extents), view.shape)
    if view.kind == "concat":
        return np.concatenate(sources, axis=view.axis)
    if view.kind == "pad":
        width = [(low, n - low - m) for low, n, m in zip(view.low, view.shape, first.shape, strict=True)]
        return np.pad(first, width, constant_values=-1)
    return first.reshape(view.shape)


def read_by(piece: Piece) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return the position in the source by position of the view."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for at in np.ndindex(*(high - low for low, high in piece.ranges)):
        where = tuple(low + step for (low, _), step in zip(piece.ranges, at, strict=True))
        runs = zip(piece.dims, piece.offsets, piece.strides, strict=True)
        found[where] = tuple(
            offset + (stride * where[dim] if dim >= 0 else 0) for dim, offset, stride in runs
        )
    return found


@pytest.mark.parametrize("value", [view.name for view in VIEWS])
def test_boxes_of_sources_are_what_a_view_reads(value: str) -> None:
    pieces = pieces_of(GRAPH, value, {})
    assert pieces is not None
    expected = seen(value)
    found = np.full(expected.shape, -1)
    for piece in pieces:
        for where, position in read_by(piece).items():
            assert found[where] == -1
            found[where] = seen(piece.source)[position]
    assert (found == expected).all()


def test_a_source_is_seen_as_it_is_laid_out() -> None:
    assert pieces_of(GRAPH, "turned", {"x": (30,)}) is None
    assert pieces_of(GRAPH, "turned", {"x": (3, 10)}) is None
    assert pieces_of(GRAPH, "turned", {"z": (10,)}) == pieces_of(GRAPH, "turned", {})
    pieces = pieces_of(GRAPH, "strided", {"x": (6, 1, 5)})
    assert pieces is not None
    assert read_by(pieces[0])[1, 2] == (4, 0, 3)


def test_an_input_that_is_laid_out_reshaped_is_read_through_views() -> None:
    """It has other dims where it lies than in the model: that once broke planning."""
    sums = specs.row_reduce(24, 8, "sum", x="flat", o="sums")
    mapped = specs.map_unary((8, 6), x="part", o="out")
    views = (
        View("flat", "reshape", ("x",), (24, 8), "f16"),
        View("turned", "transpose", ("x",), (4, 8, 6), "f16", permutation=(1, 2, 0)),
        View("one", "slice", ("turned",), (1, 8, 6), "f16", offsets=(1, 0, 0), strides=(1, 1, 1)),
        View("part", "reshape", ("one",), (8, 6), "f16"),
    )
    inputs = (TensorValue("x", (6, 4, 8), "f16"),)
    outputs = (GraphOutput("sums", "sums"), GraphOutput("out", "out"))
    graph = Graph("reshaped", inputs, (), (sums, mapped), views, outputs)
    plan = plan_module(graph, load_chip("test-16"))
    assert verify_module(plan, load_chip("test-16")) == []


def unrotated(spec: OperatorSpec, f_op: tuple[int, ...]) -> OperatorPlan:
    ft = tuple((1,) * len(f_op) for _ in spec.rotatable)
    plan = place(spec, f_op, ft, align_pace(spec, f_op, ft))
    assert plan is not None
    return plan


def window(operand: Operand, spec: OperatorSpec, plan: OperatorPlan, core: int) -> set[tuple[int, ...]]:
    """Return the elements of a tensor that a core reads, one by one."""
    starts = coordinates(plan)[core] * np.array(plan.lengths)
    axes = [
        range(int(start), min(int(start) + length, axis.extent))
        for start, length, axis in zip(starts, plan.lengths, spec.axes, strict=True)
    ]
    return {
        tuple(dim.offset + sum(t.coefficient * where[t.axis] for t in dim.terms) for dim in operand.dims)
        for where in product(*axes)
    }


MAKERS: list[Any] = [(6, 1), (1, 5), (2, 3), (1, 1), (3, 2)]
READERS: list[Any] = [(4, 1, 1), (1, 3, 2), (2, 1, 3), (1, 1, 5), (2, 2, 2)]


@pytest.mark.parametrize(
    "value", ["strided", "flipped", "turned", "middle", "back", "framed", "sideways", "row"]
)
@pytest.mark.parametrize("stored", [2, 30])
def test_the_busiest_core_receives_what_it_needs_less_what_it_holds(value: str, stored: int) -> None:
    pieces = tuple(piece for piece in pieces_of(GRAPH, value, {}) or () if piece.source == "x")
    m, k = next(view.shape for view in VIEWS if view.name == value)
    maker, reader = specs.map_unary(SHAPES["x"]), specs.matmul(m, 6, k)
    readers = [tuple(map(min, f_op, (m, 6, k))) for f_op in READERS]
    found = most_received(
        pieces,
        (maker, maker.output, np.array(MAKERS), np.full(len(MAKERS), stored)),
        (reader, reader.operands[0], np.array(readers)),
    )
    for row, made_by in enumerate(unrotated(maker, f_op) for f_op in MAKERS):
        for column, read_by_plan in enumerate(unrotated(reader, f_op) for f_op in readers):
            received: list[int] = []
            for core in range(read_by_plan.n_cores):
                needed = window(reader.operands[0], reader, read_by_plan, core)
                held: set[tuple[int, ...]] = set()
                if core < made_by.n_cores:
                    held = window(maker.output, maker, made_by, core)
                total = 0
                for piece in pieces:
                    reads = [position for where, position in read_by(piece).items() if where in needed]
                    total += len(reads) - min(sum(position in held for position in reads), stored)
                received.append(total)
            assert found[row, column] == max(received)
