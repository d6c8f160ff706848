"""`t10 explain OUT --op NAME`, and its exchanges."""

from __future__ import annotations

from rich.text import Text

from t10.artefact import Folder
from t10.backend import program_of
from t10.cli.arguments import Arguments
from t10.cli.operators import list_operators
from t10.cli.options import loaded
from t10.cli.terminal import say, say_folded, say_json, stdout
from t10.core.placed_costs import placed_costs
from t10.driver import Executable
from t10.emit.poplar.description import read_program
from t10.errors import InputError
from t10.explain import explain_operator
from t10.explain.exchanges import exchange_lines
from t10.explain.table import explanation_parts
from t10.plan.fronts.pinned import check_names


def run_explain(arguments: Arguments) -> int:
    """Print why an operator runs as it does: its loops, rings, front, neighbours and memory; draw it if asked to."""
    folder = Folder.open(arguments.folder)
    executable = loaded(folder, arguments)
    if arguments.exchange:
        return _explain_exchanges(folder, executable, arguments)
    if arguments.operator is None:
        return list_operators(arguments, executable.plan.graph, executable.plan)
    check_names((arguments.operator,), executable.plan.graph)
    costs = placed_costs(executable.costs(), executable.plan, executable.chip.tile_memory)
    explained = explain_operator(
        executable.plan,
        arguments.operator,
        costs[arguments.operator],
        executable.cost_model,
        executable.chip,
    )
    written = ""
    if arguments.plot is not None:
        from t10.explain.picture import explanation_picture

        written = explanation_picture(explained, arguments.plot)
    console = stdout(quiet=arguments.quiet)
    if arguments.as_json:
        say_json(console, explained.as_json())
        return 0
    for part in explanation_parts(explained):
        if isinstance(part, Text):
            say_folded(console, part)
        else:
            console.print(part)
    if written:
        say(console, written)
    return 0


def _explain_exchanges(folder: Folder, executable: Executable, arguments: Arguments) -> int:
    """Print the exchanges of the program in the folder, of one operator or of all."""
    if arguments.plot is not None or arguments.as_json:
        raise InputError("--exchange only prints text: --plot and --json do not go with it")
    if arguments.operator is not None:
        check_names((arguments.operator,), executable.plan.graph)
    program = read_program(program_of(folder, has_engines=False), executable.chip)
    console = stdout(quiet=arguments.quiet)
    for line in exchange_lines(program, arguments.operator):
        say_folded(console, Text(line))
    return 0
