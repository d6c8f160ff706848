"""Tables of fitted models as files: what `t10 profile` writes and the cost model `ipu` reads.

Every class keeps the operator it was measured on, so that a table can be made again from itself: same seed, same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from t10.core.atomic import write_text
from t10.core.expression import OperatorSpec
from t10.cost.classes import OperatorClass, class_of
from t10.cost.kernel_variants import PER_CYCLE
from t10.errors import InputError
from t10.profile.fit_variants import Model, tables_of, variant_times
from t10.profile.model import Profile

VERSION = 2
_SPEC = TypeAdapter(OperatorSpec)


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors on held-back shapes."""

    median: float
    p99: float
    n: int


def errors_of(profiles: Sequence[Profile]) -> Errors:
    """Return the errors of held-back shapes of all profiles together."""
    all_errors = np.concatenate([np.abs(p.errors[p.is_test]) for p in profiles])
    return Errors(float(np.median(all_errors)), float(np.quantile(all_errors, 0.99)), len(all_errors))


def write_fits(path: Path | str, profiles: Sequence[Profile], seed: int, n_samples: int) -> None:
    """Write a table of fitted models."""
    classes = {p.one.key: _record(p) for p in sorted(profiles, key=lambda p: p.one.key)}
    document = {
        "version": VERSION,
        "seed": seed,
        "samples": n_samples,
        "shared": _shared(profiles),
        "classes": classes,
    }
    write_text(path, json.dumps(document, indent=1) + "\n")


def _shared(profiles: Sequence[Profile]) -> dict[str, dict[str, dict[str, int]]]:
    """Return every variant of products by types, with the coefficients of the class that most boxes took it in."""
    most: dict[tuple[str, str], int] = {}
    result: dict[str, dict[str, dict[str, int]]] = {}
    for one in sorted((p for p in profiles if p.one.matrix is not None), key=lambda p: p.one.key):
        variants = one.one.variants(one.boxes)
        taken = variant_times(tables_of(variants, len(one.boxes)), one.model).argmin(axis=0)
        model = _rounded(one.model)
        for number, variant in enumerate(variants):
            found = model.get(variant.name, model.get(variant.family))
            count, place = int((taken == number).sum()), (one.one.types, variant.name)
            if found is not None and count > most.get(place, 0):
                most[place] = count
                result.setdefault(one.one.types, {})[variant.name] = found
    return result


def _rounded(model: Model) -> dict[str, dict[str, int]]:
    return {
        variant: {name: round(value * PER_CYCLE) for name, value in values.items()}
        for variant, values in model.items()
    }


def _record(one: Profile) -> dict[str, Any]:
    errors = errors_of([one])
    return {
        "title": one.one.title,
        "step": one.one.step,
        "layout": one.one.layout,
        "errors": {"median": round(errors.median, 4), "p99": round(errors.p99, 4), "n": errors.n},
        "coefficients": _rounded(one.model),
        "operator": json.loads(_SPEC.dump_json(one.one.spec, exclude_defaults=True)),
    }


def classes_of_table(path: Path | str | None = None) -> tuple[OperatorClass, ...]:
    """Return the classes of a table, the bundled one by default. Raises `InputError` for a file that is none."""
    file = resources.files("t10.cost") / "data" / "ipu-fit.json" if path is None else Path(path)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        records = [document["classes"][key] for key in sorted(document["classes"])]
        return tuple(class_of(_SPEC.validate_python(each["operator"]), each["step"]) for each in records)
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        raise InputError(f"{path or 'the bundled table'} holds no fitted costs: {error}") from None
