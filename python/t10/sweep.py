"""One model on many chips: what an architect varies, planned chip by chip, kept as it comes.

`chips_of` makes the chips, `sweep` plans the model on each (on any `concurrent.futures` executor) and keeps a line of
JSON per chip in a file: what a file has is not planned again, so that a sweep that was interrupted goes on where it
ended.
All cycles are modelled.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from t10.chip import ChipSpec, load_chip
from t10.chip.numbers import listed, meant_field, numbers_of, words_of
from t10.chip.off_chip import BANDWIDTH_KEY
from t10.chip.units import bytes_per_second, hertz, n_bytes
from t10.core.atomic import write_text
from t10.core.trust.files import DOCUMENT_BYTES, MODEL_BYTES, STANDARD_INPUT, read_bytes, read_text
from t10.core.trust.schema import Size, explain
from t10.errors import InfeasiblePlanError, InputError
from t10.version import VERSION

if TYPE_CHECKING:
    from t10.report import Report
    from t10.staged import StagedExecutable

MOST_CHIPS = 10_000
RANGE, STEPS = "..", ":"
NO_CHIP, TOO_LARGE = "no such chip", "does not fit"
"""Why a point has no numbers: how its reason begins."""
SHOWN_UNITS = {
    "_bytes": ("GiB", "MiB", "KiB"),
    "_hz": ("GHz", "MHz", "kHz"),
    "_per_second": ("TB/s", "GB/s", "MB/s"),
    BANDWIDTH_KEY: ("TB/s", "GB/s", "MB/s"),
}
"""Units that a table shows, by the end of a field's name, largest first."""
Setting = tuple[tuple[str, str], ...]
"""Fields that differ and their values, as text."""


@dataclass(frozen=True, slots=True)
class Varied:
    """A field of a chip and the values it takes, as text."""

    field: str
    values: tuple[str, ...]


class Point(BaseModel):
    """A model on one chip: `setting` is what differs; where there is no plan, `reason` says why, and numbers are 0.

    `chip` is a digest of the whole chip. `moved_share` is the share of cycles that exchanges take,
    `mean_gbytes_per_second_in` and `utilisation` are those of `t10.report.rates`, `used_bytes` the most of a core
    that is in use at once, `gap` what a better choice could save at most. Of a model in stages, cycles are those from a
    request to its result; `gap` and both rates are those of the time from one result to the next.
    `joules` are those of a run, of a model in stages those of a result, where the chip has energies.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    setting: Setting
    chip: str
    reason: str = ""
    cycles: Size = 0
    microseconds: float = 0.0
    moved_share: float = 0.0
    mean_gbytes_per_second_in: float = 0.0
    utilisation: float | None = None
    used_bytes: Size = 0
    gap: float = 0.0
    n_stages: Size = 0
    results_per_second: float = 0.0
    joules: float | None = None


class _Head(BaseModel):
    """The first line of a file of points."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["t10-sweep"] = "t10-sweep"
    key: str


def parse_varied(text: str, base: ChipSpec) -> Varied:
    """Return what `FIELD=A,B,C`, `FIELD=LOW..HIGH` (doubling) or `FIELD=LOW..HIGH:N` (N values) says of a chip's field.

    A field that takes words has only the first form. Raises `InputError`.
    """
    field, equals, values = text.partition("=")
    field = field.strip()
    known, words = numbers_of(base), words_of(base)
    if field not in known and field not in words:
        near = meant_field(field, (*known, *words))
        meant = f"did you mean {near}?" if near else f"expected one of {listed((*known, *words))}"
        raise InputError(f"--vary {text!r:.60}: found no field {field!r:.60}: {meant}")
    if not equals or not values:
        raise InputError(f"--vary {text!r:.60}: found no values, expected {field}=A,B,C")
    if field in words:
        return Varied(field, _words(text, field, values, words[field]))
    if RANGE not in values:
        return Varied(field, _listed(text, field, values))
    low, _, rest = values.partition(RANGE)
    high, _, steps = rest.partition(STEPS)
    if _has_unit(low) != _has_unit(high):
        raise InputError(
            f"--vary {text!r:.60}: found {low}..{high}, expected a unit at both ends of the range, or at neither"
        )
    try:
        least, most = number(low, field), number(high, field)
    except ValueError as error:
        raise InputError(f"--vary {text!r:.60}: {error}") from None
    if not 0 < least <= most:
        raise InputError(f"--vary {text!r:.60}: found {low}..{high}, expected 0 < LOW <= HIGH")
    if not steps:
        numbers = [least]
        while numbers[-1] * 2 <= most:
            numbers.append(numbers[-1] * 2)
        numbers += [most] if numbers[-1] != most else []
    elif steps.isascii() and steps.isdigit() and 2 <= int(steps) <= MOST_CHIPS:
        numbers = [least + (most - least) * n / (int(steps) - 1) for n in range(int(steps))]
    else:
        raise InputError(f"--vary {text!r:.60}: found {steps!r:.20} values, expected 2 to {MOST_CHIPS:,}")
    is_whole = isinstance(known[field], int)
    return Varied(field, _once(_text(round(number) if is_whole else number) for number in numbers))


def _text(value: float) -> str:
    """Return a number as chip files have it; a whole one has no fraction."""
    return str(int(value)) if value == int(value) else repr(value)


def _once(values: Iterable[str]) -> tuple[str, ...]:
    """Return values without repetitions, in their order."""
    return tuple(dict.fromkeys(values))


def _listed(text: str, field: str, values: str) -> tuple[str, ...]:
    """Return the values of a list; raises `InputError` for one that is no number, or below 0, as no field is."""
    listed: dict[float, str] = {}
    for value in map(str.strip, values.split(",")):
        try:
            found = number(value, field)
        except ValueError as error:
            raise InputError(f"--vary {text!r:.60}: field {field}: {error}") from None
        if not found >= 0:
            raise InputError(f"--vary {text!r:.60}: found {value:.20}, expected a number of at least 0")
        listed.setdefault(found, value)
    return tuple(listed.values())


def _words(text: str, field: str, values: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a list; raises `InputError` for one that the field does not take."""
    listed = _once(map(str.strip, values.split(",")))
    for word in listed:
        if word not in known:
            near = get_close_matches(word, known, n=1)
            meant = f": did you mean {near[0]}?" if near else ""
            raise InputError(
                f"--vary {text!r:.60}: field {field}: found {word!r:.40}, expected one of {', '.join(known)}{meant}"
            )
    return listed


def _has_unit(text: str) -> bool:
    return text.strip()[-1:].isalpha()


def number(text: str, field: str) -> float:
    """Return the number that a text gives for a chip's field, in Hz, bytes or bytes per second; raises ValueError."""
    is_rate = field == BANDWIDTH_KEY or field.endswith("_per_second")
    read = bytes_per_second if is_rate else hertz if field.endswith("_hz") else n_bytes
    return float(str(read(text.strip())))


def with_unit(field: str, value: str) -> str:
    """Return a value as a reader of a table wants it: as it was written, numbers of a range with their unit."""
    units = next((each for end, each in SHOWN_UNITS.items() if field.endswith(end)), ())
    if _has_unit(value):
        return value
    given = number(value, field)
    for unit in units:
        scaled = given / number(f"1 {unit}", field)
        # Few digits, and the same number.
        text = f"{scaled:.9g} {unit}"
        if scaled >= 1 and number(text, field) == given:
            return text
    return value


def settings_of(varied: Sequence[Varied]) -> list[Setting]:
    """Return every combination of values; raises `InputError` for a field that is varied twice, and for too many."""
    fields = [each.field for each in varied]
    twice = next((field for field in fields if fields.count(field) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is varied twice, expected once", hint=f"--vary {twice}=A,B,C")
    n_chips = prod(len(each.values) for each in varied)
    if n_chips > MOST_CHIPS:
        raise InputError(
            f"found {n_chips:,} chips, expected at most {MOST_CHIPS:,}", hint="vary fewer values"
        )
    every = product(*(each.values for each in varied))
    return [tuple(zip(fields, values, strict=True)) for values in every]


def chips_of(
    base: str, varied: Sequence[Varied], refused: dict[Setting, InputError] | None = None
) -> dict[Setting, ChipSpec]:
    """Return the chips of every combination, by what differs; those that cannot be go to `refused`.

    Raises `InputError` if no combination is a chip, or for the first that is none where there is no `refused`.
    """
    result: dict[Setting, ChipSpec] = {}
    errors = {} if refused is None else refused
    for setting in settings_of(varied):
        changes = ",".join(f"{field}={value}" for field, value in setting)
        try:
            result[setting] = load_chip(f"{base}{',' if ':' in base else ':'}{changes}" if changes else base)
        except InputError as error:
            if refused is None:
                raise
            errors[setting] = error
    if errors and not result:
        raise next(iter(errors.values()))
    return result


def refused_point(setting: Setting, error: InputError) -> Point:
    """Return the point of a combination that is no chip."""
    return Point(setting=setting, chip="", reason=f"{NO_CHIP}: {error.message}")


def plan_point(model: str, chip: ChipSpec, options: Mapping[str, Any], setting: Setting) -> Point:
    """Return a model planned on a chip: the call that executors carry.

    `options` are those of `t10.compile`, or where `stages` is among them of `t10.compile_stages`.
    """
    from t10.driver import compile
    from t10.staged import compile_stages

    try:
        if "stages" in options:
            found = _of_stages(compile_stages(model, chip, **options))
        else:
            found = _of_report(compile(model, chip, **options).report())
    except InfeasiblePlanError as error:
        return Point(setting=setting, chip=_digest(chip), reason=f"{TOO_LARGE}: {error.message}")
    return Point(setting=setting, chip=_digest(chip), **found)


def _of_report(report: Report) -> dict[str, Any]:
    """Return the numbers of a model on one chip."""
    total = report.total_cycles
    return {
        "cycles": total,
        "microseconds": round(total / report.chip.clock_hz * 1e6, 6),
        "moved_share": _moved_share((report,), total),
        "mean_gbytes_per_second_in": round(report.mean_rate, 3),
        "utilisation": report.utilisation,
        "used_bytes": report.peak_bytes,
        "n_stages": 1,
        "gap": round((report.optimality and report.optimality.gap) or 0.0, 5),
        "results_per_second": round(report.chip.clock_hz / total, 3) if total else 0.0,
        "joules": None if report.energy is None else report.energy.total,
    }


def _of_stages(found: StagedExecutable) -> dict[str, Any]:
    """Return the numbers of a model in stages."""
    whole, reports = found.report(), [each.report() for each in found.executables]
    return {
        "cycles": whole.latency_cycles,
        "microseconds": round(whole.latency_cycles / whole.clock_hz * 1e6, 6),
        "moved_share": _moved_share([reports[stage.plan] for stage in whole.stages], whole.latency_cycles),
        "mean_gbytes_per_second_in": round(whole.mean_gbytes_per_second_in, 3),
        "utilisation": whole.utilisation,
        "used_bytes": max(stage.peak_bytes for stage in whole.stages),
        "gap": round(1 - whole.bound_cycles / whole.interval_cycles, 5) if whole.interval_cycles else 0.0,
        "n_stages": len(whole.stages),
        "results_per_second": whole.results_per_second,
        "joules": None if whole.energy is None else whole.energy.total,
    }


def _moved_share(reports: Sequence[Report], total: int) -> float:
    """Return which part of the cycles copies and exchanges take; off-chip memory is waited for, which is neither."""
    others = sum(report.cycles.compute + report.cycles.wait for report in reports)
    return round(1 - others / total, 4) if total else 0.0


def sweep(
    model: str | Path,
    chips: Mapping[Setting, ChipSpec],
    kept: Path,
    options: Mapping[str, Any],
    executor: Executor | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Point]:
    """Return a point per chip, in their order; those that `kept` has of this model and these options are not planned.

    `executor` plans chips side by side, this process one after the other without one. What raises ends the sweep; what
    was found until then stays in `kept`, and so do points of other chips. Raises `InputError` for a file that is no
    sweep of this model, and what `t10.compile` raises, but for a model that does not fit.
    """
    key = _key(model, options)
    known = _kept(kept, key)
    found = {
        point.setting: point
        for point in known
        if point.setting in chips and point.chip == _digest(chips[point.setting])
    }
    others = [point for point in known if point.setting not in chips]
    todo = [setting for setting in chips if setting not in found]

    def done(point: Point) -> None:
        found[point.setting] = point
        records = (_Head(key=key), *others, *found.values())
        write_text(kept, "".join(record.model_dump_json() + "\n" for record in records))
        if progress:
            progress("sweep", len(found), len(chips))

    if progress:
        progress("sweep", len(found), len(chips))
    calls = [(str(model), chips[setting], dict(options), setting) for setting in todo]
    if executor is None:
        for call in calls:
            done(plan_point(*call))
    else:
        futures = [executor.submit(plan_point, *call) for call in calls]
        try:
            for future in as_completed(futures):
                done(future.result())
        finally:
            for future in futures:
                future.cancel()
    return [found[setting] for setting in chips]


def _key(model: str | Path, options: Mapping[str, Any]) -> str:
    """Return what names a model, its options with the files they name, and this version; not where plans are kept."""
    if str(model) == STANDARD_INPUT or Path(model).is_fifo() or Path(model).is_char_device():
        raise InputError(f"{model} can be read once, expected a file: a sweep reads its model for every chip")
    digest = sha256(read_bytes(model, MODEL_BYTES))
    digest.update(VERSION.encode())
    for name in sorted(set(options) - {"cache"}):
        digest.update(f"{name}={_shown(options[name])};".encode())
    for path in (
        options.get("plan"),
        str(options.get("cost_model")).partition(":")[0],
        *options.get("codelets", ()),
    ):
        if path is not None and Path(path).is_file():
            digest.update(read_bytes(path, DOCUMENT_BYTES))
    return digest.hexdigest()


def _shown(value: Any) -> str:
    """Return an option as text that is complete: numpy shortens large arrays."""
    if isinstance(value, Mapping):
        known = cast("Mapping[str, Any]", value)
        return ",".join(f"{name}:{_shown(known[name])}" for name in sorted(known))
    if isinstance(value, np.ndarray):
        values = cast("NDArray[Any]", value)
        return f"{values.dtype}{values.shape}{sha256(values.tobytes()).hexdigest()}"
    return repr(value)


def _digest(chip: ChipSpec) -> str:
    return sha256(chip.model_dump_json().encode()).hexdigest()


def _kept(path: Path, key: str) -> list[Point]:
    """Return the points of a file, none where there is no file."""
    if not path.exists():
        return []
    first, *lines = read_text(path, DOCUMENT_BYTES).split("\n")
    try:
        head = _Head.model_validate_json(first)
        # The last line is empty, or was cut off while it was written.
        points = [Point.model_validate_json(line) for line in lines[:-1]]
    except ValidationError as error:
        raise InputError(f"{path} is no file of a sweep: {explain(error)}", hint="delete it") from None
    if head.key != key:
        raise InputError(
            f"{path} is of another model, version or options", hint="delete it, or write to another folder"
        )
    return points


def csv_text(points: Sequence[Point]) -> str:
    """Return a line per point, a column per field that differs and per number; without a plan numbers are empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(_rows(points))
    return text.getvalue()


def _rows(points: Sequence[Point]) -> Iterator[list[str]]:
    unknown = {"joules"} if all(point.joules is None for point in points) else set[str]()
    numbers = [name for name in Point.model_fields if name not in {"setting", "chip", "reason", *unknown}]
    yield [*(name for name, _ in points[0].setting), "reason", *numbers]
    for point in points:
        values = (None if point.reason else getattr(point, name) for name in numbers)
        yield [
            *(value for _, value in point.setting),
            point.reason,
            *("" if each is None else str(each) for each in values),
        ]
