"""`t10 compile MODEL -o OUT`."""

from __future__ import annotations

from rich.text import Text

from t10.artefact import MANIFEST_FILE, check_replaceable
from t10.backend import PROGRAM_FOLDER, Lowered, lowered, write_program
from t10.chip import ChipSpec
from t10.cli.arguments import Arguments
from t10.cli.cache import cache_of
from t10.cli.inspect import print_statistics
from t10.cli.options import bounds_of, chip_of, constants_of, partials_of, plan_options_of, shapes_of
from t10.cli.prove import PROVED, prove
from t10.cli.stages import check_stages, compile_to_folder
from t10.cli.terminal import progress_bar, say, say_folded, stdout
from t10.codelets.user import unused_codelets
from t10.core.garbage import rare_collections
from t10.driver import MODULE_FILE, PLAN_FILE, REPORT_FILE, WEIGHTS_FILE, Executable, Progress, compile
from t10.inspect import model_facts, statistics
from t10.report.table import count_text, operator_table, slowest, slowest_title, summary


@rare_collections()
def run_compile(arguments: Arguments) -> int:
    """Compile a model, write its folder, and print what it costs."""
    check_stages(arguments, is_program_wanted=arguments.program)
    chip = chip_of(arguments)
    check_replaceable(arguments.folder)
    if arguments.stats:
        facts = model_facts(arguments.model, shapes=shapes_of(arguments))
        print_statistics(stdout(quiet=arguments.quiet), statistics(facts))
    if arguments.stages:
        return compile_to_folder(arguments)
    with progress_bar(quiet=arguments.quiet) as progress:
        executable, made = _compile(arguments, chip, progress)
        if arguments.prove:
            prove(executable, progress)
        with executable.saving(arguments.folder) as into:
            if made is not None:
                progress("emit", 0, 1)
                write_program(executable, made, into / PROGRAM_FOLDER)
    report = executable.report()
    console = stdout(quiet=arguments.quiet)
    console.print(summary(report))
    console.print(operator_table(slowest(report), title=slowest_title(report)))
    files = [MODULE_FILE, PLAN_FILE, REPORT_FILE]
    if (arguments.folder / WEIGHTS_FILE).exists():
        files.append(WEIGHTS_FILE)
    if executable.missing_weights:
        say(console, "The model came without the values of its weights: it is planned, but cannot be run.")
    if arguments.prove:
        say(console, PROVED)
    if made is not None:
        files.append(f"{PROGRAM_FOLDER}/")
        say_folded(console, Text(_program_line(made)))
        unused = unused_codelets(arguments.codelets, [each.name for each in made.program.codelets])
        if unused:
            say(
                console,
                f"No task of the program is one that {_either(unused)} declares: other codelets compute them.",
            )
        if executable.plan.reserved_bytes > chip.reserved_bytes:
            say(
                console,
                f"The program needs more than the {chip.reserved_bytes:,} bytes that the chip reserves: planned beside "
                f"{executable.plan.reserved_bytes:,}.",
            )
    say(console, f"wrote {arguments.folder}/: {', '.join((*files, MANIFEST_FILE))}")
    return 0


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _compile(arguments: Arguments, chip: ChipSpec, progress: Progress) -> tuple[Executable, Lowered | None]:
    """Return the compiled model and, unless only a plan is wanted, its device program."""
    executable = compile(
        arguments.model, chip, shapes_of(arguments), plan_options_of(arguments), progress,
        cost_model=arguments.cost_model, codelets=arguments.codelets,
        plan=arguments.plan, dtype=arguments.dtype, constants=constants_of(arguments),
        bounds=bounds_of(arguments), keep_f64=arguments.keep_f64, partials=partials_of(arguments),
        frontend=arguments.frontend, frontend_flags=arguments.frontend_flags,
        cache=cache_of(arguments), program=arguments.program,
    )  # fmt: skip
    if not arguments.program:
        return executable, None
    # A program is there to check the plan's price against.
    executable = executable.with_measured_steps(progress)
    return executable, lowered(executable)


def _program_line(made: Lowered) -> str:
    """Return what the program holds and how much of a tile it takes."""
    program = made.program
    sizes = {name: size for name, _, size in program.memory.regions}
    return (
        f"program: {count_text(len(program.codelets), 'codelet')} ({sizes['code']:,} bytes of code), "
        f"{count_text(len(program.compute_sets), 'compute set')}, "
        f"{count_text(len(program.copies), 'exchange')}; {program.memory.program_bytes:,} bytes per tile with vertex "
        f"state, stacks and (estimated) exchange code"
    )
