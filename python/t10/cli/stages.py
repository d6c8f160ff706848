"""`--stages`: what commands do with a model in stages, on several groups of cores."""

from __future__ import annotations

from pathlib import Path

from t10.arrays import write_arrays
from t10.artefact import MANIFEST_FILE, Folder, amended
from t10.cli.arguments import Arguments
from t10.cli.cache import cache_of
from t10.cli.options import (
    bounds_of,
    chip_of,
    constants_of,
    known_costs,
    partials_of,
    plan_options_of,
    shapes_of,
)
from t10.cli.prove import PROVED
from t10.cli.terminal import progress_bar, say, stdout
from t10.core.atomic import check_writable, write_text
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.partials import allowed_errors
from t10.driver import WEIGHTS_FILE, Executable, Progress, checked_inputs
from t10.errors import InputError
from t10.plan.verify import require_valid
from t10.random_inputs import random_inputs
from t10.reference import read_given
from t10.report.stages import STAGES_FILE, stages_summary, stages_table
from t10.report.table import count_text, milliseconds_text
from t10.staged import STAGES_FOLDER, StagedExecutable, compile_stages, number_of

Compiled = Executable | StagedExecutable


def check_stages(arguments: Arguments, *, is_program_wanted: bool) -> None:
    """Raise `InputError` for options that mean nothing for stages, or only for them."""
    if not arguments.stages:
        if arguments.stage_level:
            raise InputError("--stage-level is for --stages", hint="give both, or neither")
        return
    number_of(arguments.stages)
    if is_program_wanted:
        raise InputError(
            "no program is emitted for several stages",
            hint="plan and simulate them: --no-program of `t10 compile`, --engine plan of `t10 verify`, `t10 sweep` "
            "without --program",
        )
    given = {
        "--plan": arguments.plan,
        "--codelets": arguments.codelets,
        "--layers": arguments.layers,
        "--bisect": arguments.bisect,
    }
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise InputError(f"--stages does not go with {wrong[0]}")


def compiled_stages(arguments: Arguments, model: Path, progress: Progress) -> StagedExecutable:
    """Return a model compiled in stages as the command says."""
    return compile_stages(
        model, chip_of(arguments), shapes_of(arguments), plan_options_of(arguments), progress,
        stages=arguments.stages, level=arguments.stage_level, cost_model=arguments.cost_model,
        dtype=arguments.dtype, constants=constants_of(arguments), bounds=bounds_of(arguments),
        keep_f64=arguments.keep_f64, partials=partials_of(arguments), frontend=arguments.frontend,
        frontend_flags=arguments.frontend_flags, cache=cache_of(arguments),
    )  # fmt: skip


def prove_stages(staged: StagedExecutable, progress: Progress) -> None:
    """Check every plan that differs with the independent checker; raises `VerifyError` with what one breaks."""
    for number, each in enumerate(staged.executables):
        progress("prove", number, len(staged.executables))
        require_valid(each.plan, each.chip)


def compile_to_folder(arguments: Arguments) -> int:
    """Compile a model in stages, write its folder, and print what it costs."""
    with progress_bar(quiet=arguments.quiet) as progress:
        staged = compiled_stages(arguments, arguments.model, progress)
        if arguments.prove:
            prove_stages(staged, progress)
        staged.save(arguments.folder)
    console = stdout(quiet=arguments.quiet)
    _print(staged, console)
    if arguments.prove:
        say(console, PROVED)
    files = [STAGES_FILE, f"{STAGES_FOLDER}/"]
    if (arguments.folder / WEIGHTS_FILE).exists():
        files.append(WEIGHTS_FILE)
    else:
        say(console, "The model came without the values of its weights: it is planned, but cannot be run.")
    say(console, f"wrote {arguments.folder}/: {', '.join((*files, MANIFEST_FILE))}")
    return 0


def run_folder(folder: Folder, arguments: Arguments) -> int:
    """Execute a model in stages and print its modelled cycles."""
    if arguments.engine != "plan" or arguments.trace is not None:
        wrong = "--trace" if arguments.engine == "plan" else f"--engine {arguments.engine}"
        raise InputError(f"{folder.path} holds stages, which {wrong} does not go with")
    check_writable(arguments.outputs)
    staged = StagedExecutable.load(folder)
    if arguments.inputs is None:
        inputs = random_inputs(staged.graph, arguments.seed)
    else:
        found, _ = read_given(arguments.inputs, staged.inputs)
        inputs = checked_inputs(staged.inputs, found, str(arguments.inputs))
    console = stdout(quiet=arguments.quiet)
    with progress_bar(quiet=arguments.quiet) as progress:
        result = staged.execute(inputs, progress=progress)
    time = milliseconds_text(result.cycles / staged.chip.clock_hz * 1000)
    say(
        console,
        f"{result.cycles:,} cycles, {time}, in {count_text(len(result.stages), 'stage')} "
        f"(modelled, {staged.cost_model})",
    )
    if arguments.inputs is None:
        say(console, f"inputs were random (seed {arguments.seed})")
    if arguments.outputs is not None:
        write_arrays(arguments.outputs, result.outputs)
        say(console, f"wrote {arguments.outputs}: {', '.join(result.outputs)}")
    return 0


def report_folder(folder: Folder, arguments: Arguments) -> int:
    """Print what a model in stages costs; write its page, and a page for each plan that differs."""
    console = stdout(quiet=arguments.quiet)
    staged = StagedExecutable.load(folder)
    _print(staged, console)
    say(console, f"operators: t10 report {arguments.folder / STAGES_FOLDER / '0'}")
    if arguments.plots:
        with progress_bar(quiet=arguments.quiet) as progress, amended(folder) as into:
            names = write_stage_pages(into, staged, progress)
        say(console, f"wrote {arguments.folder}/: {', '.join(names)}")
        say(console, f"open {names[0]} in a browser")
    return 0


def write_stage_pages(folder: Path, staged: StagedExecutable, progress: Progress) -> tuple[str, ...]:
    """Write the page of the pipeline and those of its plans; returns the names of the files, the former first."""
    from t10.report.analyser.data import page_data
    from t10.report.analyser.page import PAGE_FILE, page_text
    from t10.report.analyser.stages import page_of_plan, stages_page

    write_text(folder / PAGE_FILE, stages_page(staged.report()))
    names = [PAGE_FILE]
    for number, each in enumerate(staged.executables):
        progress("draw", number, len(staged.executables))
        report, costs = each.report(), known_costs(each)
        names.append(page_of_plan(number))
        write_text(folder / names[-1], page_text(report, page_data(each.plan, each.chip, report, costs)))
    return tuple(names)


def _print(staged: StagedExecutable, console: object) -> None:
    from rich.console import Console

    assert isinstance(console, Console)
    report = staged.report()
    console.print(stages_summary(report))
    console.print(stages_table(report))


def graph_of(compiled: Compiled) -> Graph:
    """Return the whole model."""
    return compiled.graph if isinstance(compiled, StagedExecutable) else compiled.plan.graph


def errors_of(compiled: Compiled) -> tuple[tuple[OperatorSpec, float], ...]:
    """Return the operators of a model, each with the bound on its error."""
    if isinstance(compiled, Executable):
        return allowed_errors(compiled.plan)
    plans = [allowed_errors(plan) for plan in compiled.plans]
    errors = [error for stage in compiled.staged.stages for _, error in plans[stage.plan]]
    return tuple(zip(compiled.graph.operators, errors, strict=True))
