"""`t10 pareto MODEL --op NAME`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from rich.text import Text

from t10.artefact import Folder
from t10.chip import ChipSpec, load_chip
from t10.cli.arguments import Arguments
from t10.cli.operators import list_operators
from t10.cli.options import bounds_of, constants_of, loaded, partials_of, plan_options_of, shapes_of
from t10.cli.shared_arguments import DEFAULT_CHIP, DEFAULT_COST_MODEL
from t10.cli.terminal import progress_bar, say, say_folded, say_json, stdout
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.plan import OperatorPlan
from t10.core.schedule import ModulePlan
from t10.cost.registry import CodeFile, cost_model, file_of, given
from t10.driver import Progress
from t10.explain.expression import formula
from t10.explain.front import front_points
from t10.explain.table import front_table
from t10.plan.fronts.pinned import check_names
from t10.plan.search.operator import SearchStatistics, search_operator
from t10.report.table import count_text


@dataclass(frozen=True, slots=True)
class _Source:
    """What is searched: a model, on a chip, under a cost model; `plan` where it is planned already."""

    graph: Graph
    chip: ChipSpec
    cost_model_name: str
    cost_source: str | CodeFile
    plan: ModulePlan | None = None


def run_pareto(arguments: Arguments) -> int:
    """Search one operator and print its front, time against memory; the plan of a compiled model is marked."""
    if arguments.plot is not None:
        from t10.explain.picture import check_picture

        check_picture(arguments.plot)
    options = plan_options_of(arguments)
    with progress_bar(quiet=arguments.quiet or arguments.as_json) as progress:
        source = _source(arguments, progress)
        if arguments.operator is None:
            return list_operators(arguments, source.graph, source.plan)
        check_names((arguments.operator,), source.graph)
        spec = next(spec for spec in source.graph.operators if spec.name == arguments.operator)
        progress("search", 0, 100)
        found = search_operator(
            spec,
            source.chip,
            cost_model(source.cost_source, source.chip),
            options,
            progress=lambda share: progress("search", round(100 * share), 100),
        )
    points = front_points(spec, found.front, _chosen(source.plan, spec))
    written = ""
    if arguments.plot is not None:
        from t10.explain.picture import front_picture

        written = front_picture(
            points, f"{spec.name} on {source.chip.name}", source.cost_model_name, arguments.plot
        )
    console = stdout(quiet=arguments.quiet)
    if arguments.as_json:
        head = {"format": "t10-front", "version": 1, "modelled": True}
        about = {"operator": spec.name, "chip": source.chip.name, "cost_model": source.cost_model_name}
        say_json(console, {**head, **about, "front": [asdict(point) for point in points],
                "search": asdict(found.statistics)})  # fmt: skip
        return 0
    say_folded(console, Text(formula(spec)))
    title = f"{spec.name} on {source.chip.name}: time against memory (modelled, {source.cost_model_name})"
    console.print(front_table(points, title, whole=True))
    say_folded(console, Text(_searched(found.statistics)))
    if source.plan is not None:
        is_on = any(point.is_chosen for point in points)
        say(
            console,
            "* runs in the compiled model"
            if is_on
            else "the compiled model runs another plan: see t10 explain",
        )
    if written:
        say(console, written)
    return 0


def _searched(statistics: SearchStatistics) -> str:
    """Return how large the space was, and how much of it had to be looked at."""
    share = statistics.n_priced / max(statistics.n_plans, 1)
    return (
        f"complete: {count_text(statistics.n_plans, 'plan')} of {statistics.n_partitions:,} F_op; "
        f"{statistics.n_priced:,} priced ({share:.2%}), the others proved to be beaten, in {statistics.seconds:.3f} s"
    )


def _chosen(plan: ModulePlan | None, spec: OperatorSpec) -> OperatorPlan | None:
    """Return the plan that a compiled model runs the operator by."""
    if plan is None:
        return None
    return next(op.active.plan for op in plan.operators if op.name == spec.name)


def _source(arguments: Arguments, progress: Progress) -> _Source:
    """Return the model of a file or of a compiled folder; options win over what the folder says."""
    if arguments.model.is_dir():
        folder = Folder.open(arguments.model)
        # What the folder was made with is named again by the option that names another one to search under.
        is_of_user = file_of(folder.manifest.about.cost_model) is not None
        executable = loaded(folder, arguments if is_of_user else replace(arguments, cost_model=""))
        chip = load_chip(arguments.chip) if arguments.chip else executable.chip
        if arguments.cost_model:
            name, costs = arguments.cost_model, given(arguments.cost_model)
        else:
            name, costs = executable.cost_model, executable.cost_file or executable.cost_model
        return _Source(executable.plan.graph, chip, name, costs, executable.plan)
    from t10.dialect.mlir import ir
    from t10.frontend.importer import import_model
    from t10.passes.pipeline import fused

    chip = load_chip(arguments.chip or DEFAULT_CHIP)
    progress("import", 0, 1)
    shapes, constants = shapes_of(arguments), constants_of(arguments)
    module = import_model(
        arguments.model,
        shapes=shapes,
        dtype=arguments.dtype,
        constants=constants,
        bounds=bounds_of(arguments),
        keep_f64=arguments.keep_f64,
    ).module
    with module.context, ir.Location.unknown():
        graph = fused(module, chip, progress, partials_of(arguments)).graph
    name = arguments.cost_model or DEFAULT_COST_MODEL
    return _Source(graph, chip, name, given(name))
