"""Small graphs in which values are read twice, late, through views or by others too, and choices among their states."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from support import specs
from t10.chip import ChipSpec
from t10.core.graph import Graph, GraphOutput, TensorValue, View
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel
from t10.plan import PlanOptions
from t10.plan.assemble import assemble
from t10.plan.context import Context, context_of
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.greedy.algorithm1 import base_bytes
from t10.plan.joint.choose import JointPlanner
from t10.plan.memory.allocation import live_bytes
from t10.plan.memory.buffers import buffer_requests
from t10.plan.memory.levels import Choice

Ints = NDArray[np.int64]


def residual_graph() -> Graph:
    """Return relu(x w0) + relu(x w0) w1: a sum of two values of which both die, and an input read twice."""
    ops = (
        specs.linear_relu(24, 32, 32, name="first", a="x", b="w0", c="p"),
        specs.linear_relu(24, 32, 32, name="second", a="p", b="w1", c="q"),
        specs.elementwise((24, 32), name="sum", a="p", b="q", o="r"),
        specs.elementwise((24, 32), "arith.mulf", name="gate", a="r", b="x", o="y"),
    )
    return specs.chain_graph("residual", ops)


def squared_graph() -> Graph:
    """Return |x| * |x|: both operands are one value, which dies there and is taken over."""
    ops = (
        specs.map_unary((16, 24), "math.absf", name="abs", x="x", o="a"),
        specs.elementwise((16, 24), "arith.mulf", name="square", a="a", b="a", o="y"),
    )
    return specs.chain_graph("squared", ops)


def gram_graph() -> Graph:
    """Return the products of all rows of |x|: one value that dies as both operands, and cannot be taken over."""
    ops = (
        specs.map_unary((16, 8, 12), "math.absf", name="abs", x="x", o="a"),
        specs.bmm(16, 8, 8, 12, name="gram", a="a", b="a", c="g"),
        specs.map_unary((16, 8, 8), "math.absf", name="end", x="g", o="y"),
    )
    return specs.chain_graph("gram", ops)


def transposed_first_graph() -> Graph:
    """Return |x| * |x^T|^T: the operator that reads the input as it is comes after one that reads a view of it."""
    views = (
        View("xt", "transpose", ("x",), (24, 16), "f16", permutation=(1, 0)),
        View("at", "transpose", ("a",), (16, 24), "f16", permutation=(1, 0)),
    )
    ops = (
        specs.map_unary((24, 16), "math.absf", name="turned", x="xt", o="a"),
        specs.map_unary((16, 24), "math.absf", name="straight", x="x", o="b"),
        specs.elementwise((16, 24), "arith.mulf", name="product", a="b", b="at", o="y"),
    )
    graph = specs.chain_graph("transposed_first", ops, views)
    return replace(graph, inputs=(TensorValue("x", (16, 24), "f16"),))


def joined_graph() -> Graph:
    """Return a product of two results side by side, one of which the model returns too; all weights are one."""
    views = (View("both", "concat", ("p", "q"), (32, 32), "f16", axis=0),)
    ops = (
        specs.linear_relu(16, 32, 32, name="left", a="x", b="w", c="p"),
        specs.linear_relu(16, 32, 32, name="right", a="p", b="w", c="q"),
        specs.linear_relu(32, 24, 32, name="joint", a="both", b="v", c="y"),
        specs.map_unary((32, 24), "math.absf", name="end", x="y", o="z"),
    )
    graph = specs.chain_graph("joined", ops, views)
    return replace(graph, outputs=(*graph.outputs, GraphOutput("early", "q")))


GRAPHS = (
    specs.mlp_graph(32, (64, 128, 64)),
    specs.mlp_graph(4, (48, 48, 48), "f32"),
    specs.softmax_graph(64, 48),
    specs.layer_norm_graph(32, 96),
    specs.one_operator_graph(specs.conv2d(1, 16, 14, 14, 8, 3, 3, pad=1)),
    specs.one_operator_graph(specs.gather(24, 16, 100)),
    residual_graph(),
    squared_graph(),
    gram_graph(),
    transposed_first_graph(),
    joined_graph(),
)


@dataclass(frozen=True, slots=True)
class Planning:
    """A joint planner of a small graph, and what its choices really come to."""

    chip: ChipSpec
    context: Context
    planner: JointPlanner

    @property
    def room_bytes(self) -> int:
        """Return what the planner may spend of a core."""
        return self.chip.capacity_bytes - base_bytes(self.context)

    def random_rows(self, number: int) -> Ints:
        """Return any choice of rows."""
        rng = np.random.default_rng(number)
        selection = self.planner.selection(self.room_bytes)
        return np.array([rng.choice(selection.rows_of(o)) for o in range(selection.n_operators)], np.int64)

    def settled(self, rows: Ints) -> None:
        """Make the costs of a choice exact."""
        selection = self.planner.selection(self.room_bytes)
        states = selection.states_of(rows).tolist()
        levels = [int(row) - selection.rows_of(o).start for o, row in enumerate(rows)]
        self.planner.pair_costs.settle([(states, levels)])

    def assembled(self, rows: Ints) -> ModulePlan:
        """Return the plan of a choice of rows."""
        selection = self.planner.selection(self.room_bytes)
        choices: list[Choice] = []
        for operator, row in enumerate(rows.tolist()):
            table, number = (
                self.planner.pair_costs.rows[operator].table,
                row - selection.rows_of(operator).start,
            )
            choices.append(Choice(int(table.plan[number]), int(table.level[number])))
        return assemble(self.context, self.planner.states, tuple(choices), None)


def planning(
    graph: Graph, chip: ChipSpec, options: PlanOptions | None = None, shared_level: int = 0
) -> Planning:
    """Return a planner without choices to start from; shared weights rest at a level."""
    cost = IpuCostModel(chip)
    context = context_of(graph, chip, cost).with_shared(shared_level, ())
    chosen = options or PlanOptions()
    fronts = operator_fronts(graph, chip, cost, chosen)
    return Planning(chip, context, JointPlanner(context, fronts, chosen, {}))


def alive_bytes(plan: ModulePlan, chip: ChipSpec) -> Ints:
    """Return the bytes alive at every moment of a plan, without the reserved ones; no packing is below their most."""
    layouts = {layout.value: layout for layout in (*plan.weight_layouts, *plan.input_layouts)}
    return live_bytes(buffer_requests(plan.graph, plan.operators, layouts, chip))
