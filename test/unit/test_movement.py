"""Routes between layouts: every slot gets the element it asks for, and traffic counts what crosses cores."""

from dataclasses import replace

import numpy as np
from support import specs
from support.routes import route, traffic
from support.simulation import plan_of

from t10.core import movement
from t10.core.chunks import chunk_slots
from t10.core.graph import Graph, GraphOutput, TensorValue, View
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.schedule import ValueLayout


def linear(value: str, n_cores: int) -> ValueLayout:
    return ValueLayout(kind="linear", value=value, n_cores=n_cores, dtype="f32")


def graph_of(*views: View) -> Graph:
    inputs = (TensorValue("x", (2, 6), "f32"), TensorValue("y", (2, 3), "f32"))
    return Graph("g", inputs, (), (), views, (GraphOutput("out", views[-1].name),))


def test_linear_layout_spreads_elements_in_order() -> None:
    spread = movement.layout_map(None, linear("x", 4), 6)
    assert spread.elements.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_chunks_of_more_than_one_element_are_even() -> None:
    assert [chunk_slots(n, 4) for n in (1, 4, 5, 8, 9, 13, 16, 17)] == [1, 1, 2, 2, 4, 4, 4, 6]
    assert [chunk_slots(n, 1) for n in (1, 2, 3, 7)] == [1, 2, 3, 7]
    spread = movement.layout_map(None, linear("x", 4), 10)
    assert spread.elements.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, -1, -1]]


def test_views_are_read_through_in_order() -> None:
    graph = graph_of(
        View("t", "transpose", ("x",), (6, 2), "f32", permutation=(1, 0)),
        View("s", "slice", ("t",), (3, 2), "f32", offsets=(1, 0), strides=(2, 1)),
        View("r", "reshape", ("s",), (2, 3), "f32"),
        View("c", "concat", ("r", "y"), (2, 6), "f32", axis=1),
        View("p", "pad", ("c",), (3, 6), "f32", low=(1, 0), value="-inf"),
    )
    through = movement.view_elements(graph, "p")
    x = np.arange(12).reshape(2, 6)
    expected = np.concatenate([x.T[1:6:2].reshape(2, 3), 12 + np.arange(6).reshape(2, 3)], axis=1)
    assert through.sources == ("x", "y")
    assert through.constants == ("-inf",)
    assert (through.ids[1:] == expected).all()
    assert (through.ids[0] == -1).all()


def test_of_equal_elements_the_first_cores_is_read() -> None:
    halo = movement.ElementMap(np.array([[0, 1], [1, 2]], np.int32), np.zeros(2, np.int64))
    core, slot = movement.home_tables(halo, 3)
    assert (core.tolist(), slot.tolist()) == ([[0, 0, 1]], [[0, 1, 1]])


def test_what_is_taken_comes_in_runs_of_one_source_core_and_stretch() -> None:
    source = np.array([[0, 0, 0, 1, 1, 1]])
    core = np.array([[2, 2, 2, 2, 3, 3]])
    slot = np.array([[5, 6, 8, 9, 10, 11]])
    takes = np.array([[True, True, True, True, True, False]])
    found = movement.take_runs(source, core, slot, takes, 7).tolist()
    # Source, core and slot there; core and slot here; length.
    assert found == [[0, 2, 5, 7, 0, 2], [0, 2, 8, 7, 2, 1], [1, 2, 9, 7, 3, 1], [1, 3, 10, 7, 4, 1]]
    filled = np.array([[0, 0, -1, 0, 2]])
    # Constant; core and slot here; length.
    assert movement.fill_runs(filled, 7).tolist() == [[0, 7, 0, 2], [0, 7, 3, 1], [2, 7, 4, 1]]


def test_slots_that_are_read_though_outside_hold_padding() -> None:
    spec = specs.matmul(4, 4, 7)
    even, padded = plan_of(spec, (2, 2, 1)), plan_of(spec, (1, 1, 2))
    assert padded.lengths[2] * 2 > 7
    assert [movement.is_padded(spec, operand, padded) for operand in (*spec.inputs, spec.output)] == [
        True,
        True,
        False,
    ]
    assert not any(movement.is_padded(spec, operand, even) for operand in spec.inputs)
    # A product whose inputs are padded with something else, and a square, do not sum over padding.
    ones = replace(spec, inputs=(replace(spec.inputs[0], pad_value="1.0"), spec.inputs[1]))
    assert not movement.is_padded(ones, ones.inputs[1], padded)
    square = replace(spec, body=ScalarFunction(2, (ScalarOp("arith.mulf", (0, 0), "f32"),), 2))
    assert not movement.is_padded(square, square.inputs[0], padded)
    # The loop goes on past the end of a row.
    short = replace(spec.inputs[0], shape=(4, 6))
    assert movement.is_padded(replace(ones, inputs=(short, spec.inputs[1])), short, even)


def test_route_takes_every_element_from_where_it_lies() -> None:
    graph = graph_of(View("t", "transpose", ("x",), (6, 2), "f32", permutation=(1, 0)))
    through = movement.view_elements(graph, "t")
    home = movement.layout_map(None, linear("x", 4), 12)
    wanted = movement.layout_map(None, linear("t", 3), 12)
    moves = route(wanted, through, [(home, 12)])
    assert (home.elements[moves.core, moves.slot] == through.ids.ravel()[wanted.elements]).all()


def test_traffic_counts_only_what_crosses_cores_and_multicast_once() -> None:
    graph = graph_of(View("b", "broadcast", ("x",), (3, 2, 6), "f32", dims=(1, 2)))
    through = movement.view_elements(graph, "b")
    home = movement.layout_map(None, linear("x", 1), 12)
    wanted = movement.layout_map(None, linear("b", 3), 36)
    counted = traffic(route(wanted, through, [(home, 12)]), [(home, 12)])
    # Core 0 keeps its copy; cores 1 and 2 receive 12 elements each in one run; core 0 sends each element once.
    assert (counted.received_elements, counted.sent_elements, counted.fragments) == (12, 12, 1)
    assert (counted.total_elements, counted.copied_elements) == (24, 12)


def test_what_stays_on_its_core_is_counted_as_copied() -> None:
    graph = graph_of(View("r", "reshape", ("x",), (3, 4), "f32"))
    through = movement.view_elements(graph, "r")
    home = movement.layout_map(None, linear("x", 3), 12)
    wanted = movement.layout_map(None, linear("r", 3), 12)
    counted = traffic(route(wanted, through, [(home, 12)]), [(home, 12)])
    assert (counted.total_elements, counted.copied_elements) == (0, 4)
