"""From arguments to the values the driver takes."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from t10.artefact import Folder
from t10.chip import ChipSpec, load_chip
from t10.cli.arguments import Arguments
from t10.core.partials import Partials
from t10.cost import CostModel
from t10.driver import Executable
from t10.errors import InputError
from t10.frontend.given import parse_constants
from t10.frontend.shapes import parse_shapes
from t10.plan.options import PlanOptions
from t10.report.stages import STAGES_FILE

OPTIONS = ("parallelism", "padding", "exhaustive", "reconcile", "reading", "gap")
"""Arguments that are options of the planner by the same name."""
_LONGEST = 9
"""Most digits of an extent."""


def shapes_of(arguments: Arguments) -> dict[str, tuple[int, ...]]:
    """Return the extents given with `--shape`, by name of an input or of a symbolic dim."""
    return parse_shapes(arguments.shapes)


def constants_of(arguments: Arguments) -> dict[str, NDArray[Any]]:
    """Return the inputs fixed with `--constant`: the values of a .npy file, or int64 or float64 numbers."""
    return parse_constants(arguments.constants)


def bounds_of(arguments: Arguments) -> dict[str, int]:
    """Return the extents given with `--bound`, by name of an operator or of its result."""
    bounds: dict[str, int] = {}
    for text in arguments.bounds:
        name, _, extent = text.rpartition("=")
        if (
            not name
            or not (extent.isascii() and extent.isdigit())
            or len(extent) > _LONGEST
            or name in bounds
        ):
            raise InputError(
                f"--bound {text!r} is malformed or repeated (expected NAME=N, N of at most 9 digits)"
            )
        bounds[name] = int(extent)
    return bounds


def plan_options_of(arguments: Arguments) -> PlanOptions:
    """Return the planner's options; raises `InputError` for values out of range."""
    if arguments.reading is not None and arguments.reconcile != "greedy":
        raise InputError("--reading is for --reconcile greedy", hint="give both, or neither")
    given = {name: getattr(arguments, name) for name in OPTIONS}
    given["time_limit_seconds"] = arguments.time_limit
    if arguments.as_published and (given["reconcile"] or "greedy") != "greedy":
        raise InputError("--as-published is planned by Algorithm 1", hint="leave --reconcile out")
    given["as_published"] = arguments.as_published or None
    return PlanOptions(**{name: value for name, value in given.items() if value is not None})


def partials_of(arguments: Arguments) -> Partials:
    """Return in which type sums of f16 are kept; raises `InputError` for a tolerance that nothing asks for."""
    kind = arguments.partials or ("f16" if arguments.as_published else "f32")
    if arguments.partials_tolerance is None:
        return Partials(kind)
    if kind != "auto":
        raise InputError("--partials-tolerance is for --partials auto", hint="give both, or neither")
    return Partials(kind, arguments.partials_tolerance)


def loaded(folder: Folder, arguments: Arguments) -> Executable:
    """Return the executable of a folder; the files of users that it was made with must be named again."""
    check_single(folder)
    return Executable.load(folder, cost_model=arguments.cost_model, codelets=arguments.codelets)


def check_single(folder: Folder) -> None:
    """Raise `InputError` for a folder of stages."""
    if folder.has(STAGES_FILE):
        raise InputError(
            f"{folder.path} holds stages", hint=f"give the folder of one: {folder.path}/stages/0"
        )


def chip_of(arguments: Arguments) -> ChipSpec:
    """Return the chip that is asked for; raises `InputError` where there is none such."""
    return load_chip(chip_name_of(arguments))


def chip_name_of(arguments: Arguments) -> str:
    """Return the name of the chip that is asked for, with its numbers that arguments change."""
    name = arguments.chip
    for field in ("shift_buffer_bytes", "hbm_bandwidth"):
        value = getattr(arguments, field)
        if value is not None:
            name += f"{',' if ':' in name else ':'}{field}={value}"
    return name


def known_costs(executable: Executable) -> CostModel | None:
    """Return the cost model of a compiled model; None where it is not there, as a user's file that was not given."""
    try:
        return executable.costs()
    except InputError:
        return None
