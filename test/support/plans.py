"""A planned model written by hand: the paper's example, so that tests of what reads plans need no planner.

`matmul` of 4 x 6 x 6 on 2 x 3 cores: the rows of `a` are cut in three along k, the columns of `b` in two, the pace is
two and every core takes three steps. `relu` follows on the same six cores and takes the result from where it lies.
"""

from __future__ import annotations

from dataclasses import replace

from support import specs
from t10.core.graph import Graph, View
from t10.core.operator_body import scheduled_operator
from t10.core.plan import CostedPlan, Cycles, OperatorPlan, PhaseTerm
from t10.core.schedule import Arrival, Buffer, ModulePlan, ValueLayout

CAPACITY_BYTES = 1024

ROTATING = OperatorPlan(
    f_op=(2, 3, 1),
    lengths=(2, 2, 6),
    ft=((1, 1, 3), (1, 1, 2), (1, 1, 1)),
    rp=(0, 0, 2),
    steps=(1, 1, 3),
    loop_order=(2,),
    phases=((), (), (PhaseTerm((0,), 1, 2, 3), PhaseTerm((1,), 1, 3, 2))),
    core_order=(0, 1, 2),
)
RESIDENT = replace(
    ROTATING, ft=((1, 1, 1),) * 3, rp=(0, 0, 0), steps=(1, 1, 1), loop_order=(), phases=((),) * 3
)
SPREAD = OperatorPlan(
    f_op=(2, 3), lengths=(2, 2), ft=((1, 1),) * 2, rp=(0, 0), steps=(1, 1), loop_order=(), phases=((), ()),
    core_order=(0, 1),
)  # fmt: skip


def two_operator_graph() -> Graph:
    """Return relu(a @ b), read once more as a column of numbers."""
    matmul = replace(specs.matmul(4, 6, 6, "f32"), location="layer/MatMul")
    relu = specs.map_unary((4, 6), "math.absf", "f32", name="relu", x="c", o="y")
    flat = View("flat", "reshape", ("y",), (24,), "f32")
    graph = specs.chain_graph("two_layers", (matmul, relu), (flat,))
    return replace(graph, outputs=(replace(graph.outputs[0], name="result", value="flat"),))


def two_operator_plan() -> ModulePlan:
    """Return the plan of `two_operator_graph` on six cores; its cycles are made up."""
    fast = CostedPlan(RESIDENT, Cycles(compute=200, setup=40), weight_bytes=48, active_bytes=112)
    small = CostedPlan(ROTATING, Cycles(compute=240, shift=90, setup=30), weight_bytes=24, active_bytes=56)
    spec, after_spec = two_operator_graph().operators
    matmul_out = ValueLayout("operand", "c", 6, "f32", operator="matmul", operand=2, plan=ROTATING)
    relu = CostedPlan(SPREAD, Cycles(compute=50, relayout=0), weight_bytes=0, active_bytes=32)
    matmul = scheduled_operator(
        spec,
        small,
        (
            Arrival(0, "relayout", "operand:matmul:0", 16, 16, 2, 25),
            Arrival(1, "setup", "operand:matmul:1", 24, 24, 3, 30),
        ),
        matmul_out,
        (small, fast),
    )
    after = scheduled_operator(
        after_spec,
        relu,
        (Arrival(0, "in_place", "value:c"),),
        ValueLayout("operand", "y", 6, "f32", operator="relu", operand=1, plan=SPREAD),
        (relu,),
    )
    buffers = (
        Buffer("shift", 0, 64, -1, 2),
        Buffer("idle:b", 64, 24, -1, 2),
        Buffer("input:a", 96, 16, -1, 0),
        Buffer("operand:matmul:0", 112, 16, 0, 0),
        Buffer("operand:matmul:1", 128, 24, 0, 0),
        Buffer("value:c", 160, 16, 0, 1),
        Buffer("value:y", 176, 16, 1, 2),
    )
    return ModulePlan(
        chip="test-16",
        graph=two_operator_graph(),
        operators=(matmul, after),
        weight_layouts=(ValueLayout("linear", "b", 6, "f32"),),
        input_layouts=(ValueLayout("linear", "a", 6, "f32"),),
        buffers=buffers,
        peak_bytes=160,
        capacity_bytes=CAPACITY_BYTES,
    )
