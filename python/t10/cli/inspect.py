"""`t10 inspect MODEL`, and the statistics of operators that `t10 compile --stats` prints too."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console

from t10.artefact import MANIFEST_FILE
from t10.cli.arguments import Arguments
from t10.cli.options import shapes_of
from t10.cli.terminal import new_table, say, say_json, stdout
from t10.errors import InputError
from t10.inspect import KindStatistics, ModelFacts, Port, model_facts, statistics
from t10.inspect.drawing import draw
from t10.inspect.tree import short, tree_lines
from t10.report.table import count_text

DEFAULT_ROWS = 200


def run_inspect(arguments: Arguments) -> int:
    """Print signature, statistics and operator graph of a model; nothing is lowered."""
    if arguments.rows is not None and arguments.rows < 0:
        raise InputError(f"--rows is {arguments.rows} (expected 0 or more)")
    if (arguments.model / MANIFEST_FILE).is_file():
        raise InputError(
            f"{arguments.model} is an output folder, expected a model", hint=f"t10 report {arguments.model}"
        )
    facts = model_facts(arguments.model, shapes=shapes_of(arguments))
    if arguments.graph is not None:
        draw(facts, arguments.graph)
    console = stdout(quiet=arguments.quiet)
    if arguments.as_json:
        say_json(console, facts_json(facts))
        return 0
    _print_signature(console, facts)
    print_statistics(console, statistics(facts))
    rows = DEFAULT_ROWS if arguments.rows is None else arguments.rows
    for line in tree_lines(facts, max_nodes=rows):
        say(console, line)
    for problem in facts.problems:
        say(console, f"problem: {problem}")
    if arguments.graph is not None:
        say(console, f"wrote {arguments.graph}")
    return 0


def facts_json(facts: ModelFacts) -> dict[str, object]:
    """Return all of it as JSON values."""
    return {
        "source": facts.source,
        "form": facts.form,
        "properties": dict(facts.properties),
        "functions": [{"name": name, "nodes": nodes} for name, nodes in facts.functions],
        "inputs": [asdict(port) for port in facts.inputs],
        "outputs": [asdict(port) for port in facts.outputs],
        "weights": asdict(facts.weights),
        "statistics": [asdict(row) for row in statistics(facts)],
        "nodes": [asdict(node) for node in facts.graph.nodes],
        "values": {name: port.type_text() for name, port in sorted(facts.values.items())},
        "problems": list(facts.problems),
    }


def print_statistics(console: Console, rows: tuple[KindStatistics, ...]) -> None:
    """Print a row per operator and their sum."""
    titles = ("count", "MACs", "parameters", "weight bytes", "output bytes")
    table = new_table("operator", *titles, title="operators")
    for row in rows:
        table.add_row(short(row.kind), *_numbers(row))
    table.add_section()
    table.add_row("all", *_numbers(_sum(rows)))
    console.print(table)
    unknown = sum(row.n_unknown for row in rows)
    if unknown:
        say(
            console,
            f"{unknown} nodes make something whose shape the file does not determine: they are not in the sums.",
        )


def _sum(rows: tuple[KindStatistics, ...]) -> KindStatistics:
    return KindStatistics(
        "all",
        n_nodes=sum(row.n_nodes for row in rows),
        n_macs=sum(row.n_macs for row in rows),
        n_parameters=sum(row.n_parameters for row in rows),
        weight_bytes=sum(row.weight_bytes for row in rows),
        output_bytes=sum(row.output_bytes for row in rows),
    )


def _numbers(row: KindStatistics) -> tuple[str, ...]:
    values = (row.n_nodes, row.n_macs, row.n_parameters, row.weight_bytes, row.output_bytes)
    return tuple(f"{value:,}" for value in values)


def _print_signature(console: Console, facts: ModelFacts) -> None:
    say(console, f"{facts.source}: {facts.form}")
    for label, text in facts.properties:
        say(console, f"  {label}: {text[:200]}")
    for title, ports in (("input", facts.inputs), ("output", facts.outputs)):
        for port in ports:
            say(console, f"  {title} {_port(port)}")
    for name, n_nodes in facts.functions:
        say(console, f"  function {short(name)}: {count_text(n_nodes, 'node')}")
    weights = facts.weights
    by_dtype = ", ".join(f"{dtype} {size:,}" for dtype, size in weights.bytes_by_dtype)
    say(
        console,
        f"  weights: {count_text(weights.n_tensors, 'tensor')}, {weights.n_parameters:,} parameters, "
        f"{weights.n_bytes:,} bytes" + (f" ({by_dtype})" if by_dtype else ""),
    )
    for file in weights.files:
        say(console, f"  external file {short(file.location)!r}: {file.n_bytes:,} bytes, {file.state}")


def _port(port: Port) -> str:
    return f"{short(port.name)}: {port.type_text()}"
