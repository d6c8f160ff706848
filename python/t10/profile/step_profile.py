"""What was found out about compute steps: their sub-tasks, what a regression makes of them, and both as a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from t10.core.arrays import Floats
from t10.core.atomic import write_text
from t10.errors import InputError
from t10.profile.compute_step import ComputeStep
from t10.profile.regression import regressed
from t10.profile.sample import Sample, samples

SUFFIXES = (".json", ".csv")
Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class StepProfile:
    """The sub-tasks of a step; `regression` has the cycles of those that were held back from it, None for others."""

    one: ComputeStep
    samples: tuple[Sample, ...]
    regression: tuple[float | None, ...]

    @property
    def held_back(self) -> list[tuple[int, float]]:
        """Return the cycles of the sub-tasks that were held back, as they are and by regression."""
        pairs = zip(self.samples, self.regression, strict=True)
        return [(each.cycles, modelled) for each, modelled in pairs if modelled is not None]

    @property
    def faults(self) -> list[str]:
        """Return what contradicts what."""
        return [f"{self.one.title}: {each.fault}" for each in self.samples if each.fault]


def profiled(one: ComputeStep, n_samples: int, seed: int) -> StepProfile:
    """Return what `n_samples` random sub-tasks of a step take; raises `UnsupportedOpError` where no codelet does."""
    found = samples(one, n_samples, seed)
    return StepProfile(one, found, regressed(one, found))


def errors_of(profiles: Sequence[StepProfile]) -> Floats:
    """Return the relative errors of regressions on sub-tasks that were held back."""
    return np.array([abs(modelled / run - 1) for each in profiles for run, modelled in each.held_back])


def check_samples_file(path: Path | None) -> None:
    """Raise `InputError` for a file that samples cannot be written to."""
    if path is not None and path.suffix not in SUFFIXES:
        raise InputError(f"cannot write samples to {path} (expected a name that ends in .json or .csv)")


def write_samples(path: Path, profiles: Sequence[StepProfile]) -> None:
    """Write a record per sub-task, as .json or .csv; cycles are without the launch."""
    records = [record for each in profiles for record in _records(each)]
    if path.suffix == ".json":
        write_text(path, "[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n")
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    write_text(path, text.getvalue())


def _records(profile: StepProfile) -> Iterator[dict[str, Cell]]:
    for sample, regression in zip(profile.samples, profile.regression, strict=True):
        yield {
            "kind": profile.one.kind,
            "step": profile.one.title,
            "extents": " ".join(map(str, sample.box)),
            "placement": sample.placement,
            "run": sample.run,
            "counted": sample.counted,
            "least": sample.limits[0] if sample.limits is not None else None,
            "most": sample.limits[1] if sample.limits is not None else None,
            "bound": sample.bound,
            "regression": None if regression is None else round(regression, 1),
        }
