"""The operators of a model, for commands that want one of them by name."""

from __future__ import annotations

from t10.cli.arguments import Arguments
from t10.cli.terminal import new_table, say, say_json, stdout
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan
from t10.explain.expression import formula
from t10.report.columns import Column


def list_operators(arguments: Arguments, graph: Graph, plan: ModulePlan | None = None) -> int:
    """Print the names of all operators, with their loops and, of a planned model, their cycles; returns 0."""
    console = stdout(quiet=arguments.quiet)
    if arguments.as_json:
        say_json(console, [spec.name for spec in graph.operators])
        return 0
    cycles = {} if plan is None else {op.name: op.active.cycles.total for op in plan.operators}
    table = new_table(
        "operator",
        Column("kind", rank=1, is_number=False),
        *((Column("cycles"),) if cycles else ()),
        Column("axes", rank=2, is_folded=True, is_number=False),
        title="Operators: choose one with --op NAME",
    )
    for spec in graph.operators:
        axes = " ".join(f"{axis.name}={axis.extent}" for axis in spec.axes)
        spent = [f"{cycles[spec.name]:,}"] if cycles else []
        table.add_row(spec.name, spec.kind, *spent, axes)
    console.print(table)
    if graph.operators:
        say(console, f"the first computes {formula(graph.operators[0])}")
    return 0
