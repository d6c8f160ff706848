"""`t10 sweep MODEL --vary FIELD=VALUES -o OUT`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t10.chip import load_chip
from t10.cli.arguments import Arguments
from t10.cli.cache import cache_of
from t10.cli.options import bounds_of, chip_name_of, constants_of, partials_of, plan_options_of, shapes_of
from t10.cli.stages import check_stages
from t10.cli.terminal import new_table, progress_bar, say, stdout
from t10.cli.workers import workers
from t10.core.atomic import make_folder, write_text
from t10.cost.ipu import is_counted
from t10.cost.registry import DEFAULT_COST_MODEL
from t10.errors import InputError
from t10.report.columns import Column, FittedTable
from t10.report.rates import MEAN_RATE, OF_PEAK
from t10.report.sweep import sweep_plot
from t10.report.table import joules_text, share_text
from t10.sweep import (
    Point,
    Setting,
    chips_of,
    csv_text,
    parse_varied,
    refused_point,
    settings_of,
    sweep,
    with_unit,
)

POINTS_FILE, TABLE_FILE, PLOT_FILE = "points.jsonl", "sweep.csv", "sweep.svg"
MOST_REASONS = 8


def run_sweep(arguments: Arguments) -> int:
    """Plan a model on chips that differ in what is varied; write and print what it costs on each."""
    check_stages(arguments, is_program_wanted=arguments.program)
    base = chip_name_of(arguments)
    varied = [parse_varied(text, load_chip(base)) for text in arguments.varied]
    refused: dict[Setting, InputError] = {}
    chips = chips_of(base, varied, refused)
    folder = arguments.folder
    make_folder(folder)
    cache = cache_of(arguments)
    options = {
        "shapes": shapes_of(arguments),
        "options": plan_options_of(arguments),
        "cost_model": arguments.cost_model,
        "dtype": arguments.dtype,
        "constants": constants_of(arguments),
        "bounds": bounds_of(arguments),
        "keep_f64": arguments.keep_f64,
        "partials": partials_of(arguments),
        "frontend": arguments.frontend,
        "frontend_flags": arguments.frontend_flags,
        "cache": None if cache is None else cache.folder,
    }
    if arguments.stages:
        options |= {"stages": arguments.stages, "level": arguments.stage_level}
    else:
        options |= {
            "program": arguments.program,
            "plan": arguments.plan,
            "codelets": arguments.codelets,
        }
    with progress_bar(quiet=arguments.quiet) as progress, workers(arguments.jobs) as executor:
        planned = sweep(arguments.model, chips, folder / POINTS_FILE, options, executor, progress)
    found = {point.setting: point for point in planned}
    found |= {setting: refused_point(setting, error) for setting, error in refused.items()}
    points = [found[setting] for setting in settings_of(varied)]
    write_text(folder / TABLE_FILE, csv_text(points))
    write_text(folder / PLOT_FILE, sweep_plot(points, in_stages=bool(arguments.stages)))
    console = stdout(quiet=arguments.quiet)
    console.print(_table(points, in_stages=bool(arguments.stages)))
    for line in _reasons(points, base):
        say(console, line)
    if arguments.cost_model == DEFAULT_COST_MODEL and len({is_counted(chip) for chip in chips.values()}) > 1:
        say(
            console,
            "compute steps are counted only where engines, vector widths and workers are an IPU Mk2's;",
        )
        say(
            console,
            "on the other chips they are priced by formulas: do not compare the two (docs/cost-model.md)",
        )
    say(console, f"wrote {folder}/: {POINTS_FILE}, {TABLE_FILE}, {PLOT_FILE}; times are modelled")
    return 0


def _reasons(points: Sequence[Point], base: str) -> Iterator[str]:
    """Yield why points have no numbers, each reason once, with the first chip that it is said of."""
    chips: dict[str, list[str]] = {}
    for point in points:
        if point.reason:
            changes = ",".join(f"{field}={value}" for field, value in point.setting)
            # The chip's name would make every reason another.
            reason = point.reason.replace(f"chip {base}{',' if ':' in base else ':'}{changes}: ", "", 1)
            chips.setdefault(reason, []).append(changes)
    for reason, said_of in [*chips.items()][:MOST_REASONS]:
        more = f" and {len(said_of) - 1:,} more" if said_of[1:] else ""
        yield f"{said_of[0]}{more}: {reason}"
    if len(chips) > MOST_REASONS:
        yield f"{len(chips) - MOST_REASONS:,} more reasons are in {TABLE_FILE}"


def _varied_columns(points: Sequence[Point]) -> Iterator[Column]:
    """Yield the columns of what is varied; words stand at the left of theirs, as the first column does."""
    for place, (name, _) in enumerate(points[0].setting):
        has_words = any(point.setting[place][1][:1].isalpha() for point in points)
        yield Column(
            name, rank=max(place - 1, 0), is_folded=place == 0, is_number=place > 0 and not has_words
        )


def _table(points: Sequence[Point], *, in_stages: bool) -> FittedTable:
    staged = ("stages", "results/s") if in_stages else ()
    named = _varied_columns(points)
    has_energy = any(point.joules is not None for point in points)
    energy = ("energy",) if has_energy else ()
    table = new_table(
        *named, *staged, "\u00b5s", "cycles", "moves", MEAN_RATE, OF_PEAK, "KiB/core", "gap", *energy
    )
    for point in points:
        values = [with_unit(field, value) for field, value in point.setting]
        if point.reason:
            table.add_row(*values, point.reason.partition(":")[0])
            continue
        table.add_row(
            *values,
            *((f"{point.n_stages}", f"{point.results_per_second:,.1f}") if in_stages else ()),
            f"{point.microseconds:,.1f}",
            f"{point.cycles:,}",
            f"{point.moved_share:.0%}",
            f"{point.mean_gbytes_per_second_in:.2f}",
            share_text(point.utilisation),
            f"{point.used_bytes / 1024:.1f}",
            f"{point.gap:.2%}",
            *((joules_text(point.joules or 0.0),) if has_energy else ()),
        )
    return table
