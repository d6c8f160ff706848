"""The operators of a model, for commands that want one of them by name."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from t10.cli.arguments import Arguments
from t10.cli.terminal import say, say_json, stdout
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan
from t10.explain.expression import formula


def list_operators(arguments: Arguments, graph: Graph, plan: ModulePlan | None = None) -> int:
    """Print the names of all operators, with their loops and, of a planned model, their cycles; returns 0."""
    console = stdout(quiet=arguments.quiet)
    if arguments.as_json:
        say_json(console, [spec.name for spec in graph.operators])
        return 0
    cycles = {} if plan is None else {op.name: op.active.cycles.total for op in plan.operators}
    table = Table(title="Operators: choose one with --op NAME", title_justify="left", header_style="bold")
    table.add_column("operator", overflow="fold")
    table.add_column("kind", no_wrap=True)
    if cycles:
        table.add_column("cycles", justify="right", no_wrap=True)
    table.add_column("axes", overflow="fold")
    for spec in graph.operators:
        axes = " ".join(f"{axis.name}={axis.extent}" for axis in spec.axes)
        spent = [f"{cycles[spec.name]:,}"] if cycles else []
        table.add_row(escape(spec.name), spec.kind, *spent, axes)
    console.print(table)
    if graph.operators:
        say(console, f"the first computes {formula(graph.operators[0])}")
    return 0
