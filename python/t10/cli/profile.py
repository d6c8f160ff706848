"""`t10 profile`: random sub-tasks counted, bounded and run, and what a linear regression would say of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t10.chip import load_chip
from t10.cli.arguments import Arguments
from t10.cli.terminal import new_table, progress_bar, say, stdout
from t10.core.atomic import check_writable
from t10.driver import Progress, compile
from t10.errors import InputError, UnsupportedOpError, VerifyError
from t10.profile.compute_step import ComputeStep, steps_of
from t10.profile.exchange import SAMPLES as EXCHANGE_SAMPLES
from t10.profile.exchange import exchange_errors
from t10.profile.operators import made_steps
from t10.profile.picture import accuracy_picture
from t10.profile.step_profile import StepProfile, check_samples_file, errors_of, profiled, write_samples
from t10.report.columns import FittedTable

SAMPLES = 80


def run_profile(arguments: Arguments) -> int:
    """Count, bound and run random sub-tasks of compute steps; raises `VerifyError` where these contradict each other.

    With `--exchange`, the communication model is held against the exchange simulator instead.
    """
    check_writable(arguments.output, arguments.plot)
    if arguments.plot is not None:
        from t10.explain.picture import check_picture

        check_picture(arguments.plot)
    if arguments.exchange:
        return _run_exchange(arguments)
    check_samples_file(arguments.output)
    with progress_bar(quiet=arguments.quiet) as progress:
        profiles, n_steps = _profiles(arguments, progress)
    console = stdout(quiet=arguments.quiet)
    console.print(_by_kind(profiles, has_regression=not arguments.check))
    if len(profiles) < n_steps:
        say(console, f"no codelet computes {n_steps - len(profiles)} of {n_steps} steps")
    if arguments.output is not None:
        write_samples(arguments.output, profiles)
        say(console, f"wrote {arguments.output}")
    if arguments.plot is not None:
        accuracy_picture(profiles, arguments.plot)
        say(console, f"wrote {arguments.plot}")
    faults = tuple(fault for each in profiles for fault in each.faults)
    if faults:
        raise VerifyError(
            f"{len(faults)} sub-tasks do not take what is counted, or take less than their bound: {faults[0]}",
            details=faults[1:],
        )
    return 0


def _profiles(arguments: Arguments, progress: Progress) -> tuple[list[StepProfile], int]:
    """Return what was found out about the steps that codelets compute, and how many steps there are."""
    steps = _steps(arguments, progress)
    found: list[StepProfile] = []
    for number, one in enumerate(steps):
        progress("profile", number, len(steps))
        try:
            found.append(profiled(one, arguments.samples or SAMPLES, arguments.seed))
        except UnsupportedOpError:
            continue
    if not any(each.samples for each in found):
        raise UnsupportedOpError("no codelet computes any of these operators")
    return found, len(steps)


def _steps(arguments: Arguments, progress: Progress) -> tuple[ComputeStep, ...]:
    """Return the steps of the models' operators, or of those made in code where there are no models."""
    if not arguments.models:
        return made_steps()
    return steps_of(
        compile(model, arguments.chip, progress=progress).plan.graph for model in arguments.models
    )


def _by_kind(profiles: Sequence[StepProfile], *, has_regression: bool) -> FittedTable:
    title = "Random sub-tasks: cycles counted from their code, bounded, and run (modelled: no silicon)"
    columns = (
        "kind",
        "steps",
        "run",
        "counted = run",
        "on data",
        "in limits",
        "bound: 10 %",
        "median",
        "most",
    )
    regression = ("regression: median", "p99") if has_regression else ()
    table = new_table(*columns, *regression, title=title)
    for kind in (*sorted({each.one.kind for each in profiles}), "all"):
        members = [each for each in profiles if kind in (each.one.kind, "all")]
        samples = [sample for each in members for sample in each.samples]
        n_data = sum(sample.counted is None for sample in samples)
        n_right = sum(sample.counted == sample.run for sample in samples)
        n_limited = sum(s.limits is not None and s.limits[0] <= s.run <= s.limits[1] for s in samples)
        numbers = [f"{number:,}" for number in (len(members), len(samples), n_right, n_data, n_limited)]
        well = [sample.bound_ratio for sample in samples if sample.is_placed_well and sample.bound]
        numbers += [f"{np.quantile(well, q):.2f}" for q in (0.1, 0.5)] if well else [""] * 2
        numbers.append(f"{max(sample.bound_ratio for sample in samples):.2f}" if well else "")
        if has_regression:
            errors = errors_of(members)
            numbers += [f"{np.quantile(errors, q):.0%}" for q in (0.5, 0.99)] if len(errors) else [""] * 2
        table.add_row(kind, *numbers)
    return table


def _run_exchange(arguments: Arguments) -> int:
    """Print how far modelled exchange phases on a chip are from simulated ones."""
    if arguments.output is not None:
        raise InputError("--exchange only prints: -o does not go with it")
    found = exchange_errors(load_chip(arguments.chip), arguments.samples or EXCHANGE_SAMPLES, arguments.seed)
    title = "Errors on random phases (model against the exchange simulator)"
    table = new_table("kind", "phases", "median", "p99", "most", title=title)
    for each in found:
        table.add_row(each.kind, str(each.n), f"{each.median:.2%}", f"{each.p99:.2%}", f"{each.most:.2%}")
    stdout(quiet=arguments.quiet).print(table)
    return 0
