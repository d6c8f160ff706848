"""`t10 profile`: run codelets on random shapes on the instruction-set simulator and fit the linear cost model."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from t10.chip import load_chip
from t10.cli.arguments import Arguments
from t10.cli.terminal import new_table, progress_bar, say, stdout
from t10.core.atomic import check_writable
from t10.core.graph import Graph
from t10.cost.classes import OperatorClass, class_of
from t10.cost.combine import combine_operator
from t10.driver import Progress, compile
from t10.errors import UnsupportedOpError, VerifyError
from t10.profile.check import Checked, check
from t10.profile.exchange import SAMPLES as EXCHANGE_SAMPLES
from t10.profile.exchange import fit_exchange, write_exchange_fit
from t10.profile.model import Profile, profile
from t10.profile.picture import accuracy_picture, kind_of
from t10.profile.table import classes_of_table, errors_of, write_fits

WORST_SHOWN = 12
SAMPLES = 160


def run_profile(arguments: Arguments) -> int:
    """Measure and fit the classes of the bundled table, or those of models, and print how accurate the fits are.

    With `--exchange`, the communication model is fitted instead.
    """
    check_writable(arguments.output, arguments.plot)
    if arguments.plot is not None:
        from t10.explain.picture import check_picture

        check_picture(arguments.plot)
    if arguments.exchange:
        return _run_exchange(arguments)
    n_samples = arguments.samples or SAMPLES
    if arguments.check:
        return _run_check(arguments, n_samples)
    with progress_bar(quiet=arguments.quiet) as progress:
        classes = _classes(arguments, progress)
        profiles: list[Profile] = []
        for number, one in enumerate(classes):
            progress("profile", number, len(classes))
            found = profile(one, n_samples, arguments.seed)
            if found is not None:
                profiles.append(found)
    if not profiles:
        raise UnsupportedOpError("no codelet computes any of these operators")
    console = stdout(quiet=arguments.quiet)
    console.print(_by_kind(profiles))
    console.print(_worst(profiles))
    if arguments.output is not None:
        write_fits(arguments.output, profiles, arguments.seed, n_samples)
        say(
            console,
            f"wrote {arguments.output}: {len(profiles)} classes (use it with --cost-model {arguments.output})",
        )
    if arguments.plot is not None:
        accuracy_picture(profiles, arguments.plot)
        say(console, f"wrote {arguments.plot}")
    return 0


def _run_check(arguments: Arguments, n_samples: int) -> int:
    """Compare counted with run cycles; raises `VerifyError` where they differ."""
    with progress_bar(quiet=arguments.quiet) as progress:
        classes = _classes(arguments, progress)
        found: list[Checked] = []
        for number, one in enumerate(classes):
            progress("check", number, len(classes))
            found.append(check(one, n_samples, arguments.seed))
    title = "Cycles of random sub-tasks, counted from their code and run (modelled: no silicon)"
    table = new_table("kind", "classes", "run", "branch on data", "counted", "counted = run", title=title)
    for kind in (*sorted({kind_of(each.one) for each in found}), "all"):
        members = [each for each in found if kind in (kind_of(each.one), "all")]
        n_run, n_counted = sum(each.n_run for each in members), sum(each.n_counted for each in members)
        n_right = n_counted - sum(len(each.wrong) for each in members)
        numbers = (len(members), n_run, n_run - n_counted, n_counted, n_right)
        table.add_row(kind, *(f"{number:,}" for number in numbers))
    stdout(quiet=arguments.quiet).print(table)
    wrong = tuple(f"{each.one.title}: {text}" for each in found for text in each.wrong)
    if wrong:
        raise VerifyError(
            f"{len(wrong)} sub-tasks do not take what is counted: {wrong[0]}", details=wrong[1:]
        )
    return 0


def _run_exchange(arguments: Arguments) -> int:
    """Fit the communication model to random phases on a chip and print how accurate it is on others."""
    chip, n_samples = load_chip(arguments.chip), arguments.samples or EXCHANGE_SAMPLES
    found = fit_exchange(chip, n_samples, arguments.seed)
    console = stdout(quiet=arguments.quiet)
    title = "Errors on held-back phases (model against the exchange simulator)"
    table = new_table("kind", "phases", "median", "p99", "most", title=title)
    for each in found.errors:
        table.add_row(each.kind, str(each.n), f"{each.median:.2%}", f"{each.p99:.2%}", f"{each.most:.2%}")
    console.print(table)
    if arguments.output is not None:
        write_exchange_fit(arguments.output, found, chip, n_samples, arguments.seed)
        say(console, f"wrote {arguments.output}")
    return 0


def _classes(arguments: Arguments, progress: Progress) -> tuple[OperatorClass, ...]:
    """Return the classes of the models' operators, or of the bundled table where there are no models."""
    if not arguments.models:
        return classes_of_table()
    found: dict[str, OperatorClass] = {}
    for model in arguments.models:
        graph = compile(model, arguments.chip, progress=progress).plan.graph
        found |= {one.key: one for one in classes_of(graph)}
    return tuple(found[key] for key in sorted(found))


def classes_of(graph: Graph) -> Iterable[OperatorClass]:
    """Yield the classes of all operators of a graph, and those of combining their partial sums."""
    for spec in graph.operators:
        yield class_of(spec, "sub_task")
        if spec.combine != "none":
            yield class_of(combine_operator(spec.acc_dtype, spec.combine), "combine")
        if spec.epilogue is not None:
            yield class_of(spec, "epilogue")


def _by_kind(profiles: list[Profile]) -> Table:
    title = "Errors on held-back shapes (fitted model against the instruction-set simulator)"
    table = new_table("kind", "classes", "shapes", "median", "p99", title=title)
    kinds = sorted({kind_of(one.one) for one in profiles})
    for kind in (*kinds, "all"):
        members = [one for one in profiles if kind in (kind_of(one.one), "all")]
        errors = errors_of(members)
        table.add_row(kind, str(len(members)), str(errors.n), f"{errors.median:.2%}", f"{errors.p99:.2%}")
    return table


def _worst(profiles: list[Profile]) -> Table:
    title = f"Classes with the largest median error ({WORST_SHOWN} of {len(profiles)})"
    table = new_table("class", "median", "p99", title=title)
    for one in sorted(profiles, key=lambda p: -errors_of([p]).median)[:WORST_SHOWN]:
        errors = errors_of([one])
        table.add_row(one.one.title, f"{errors.median:.2%}", f"{errors.p99:.2%}")
    return table
