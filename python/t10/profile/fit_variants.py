"""Several variants of which the fastest is taken, each linear, fitted together: who takes which box and for how long.

Codelets choose by estimates of their own. Boxes begin with the variant that a rough guess says is the fastest; then
variants are fitted to their boxes, and boxes go to the variant that is fastest as fitted, until none moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t10.core.arrays import Bools, Floats, Ints
from t10.cost.kernel_variants import OTHER, KernelVariant
from t10.profile.fit import fit

Model = Mapping[str, Mapping[str, float]]
"""Cycles by variant, or family of variants, and feature."""

LEAST_SAMPLES = 6
"""A variant with fewer boxes than this has no coefficients of its own."""
ROUNDS = 8
NEVER = 1e18
MOST_LOSS = 1.0
WORTH = 3e-4
"""A variant is kept if the mean error is larger by so much without it."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A variant's boxes and features as numbers: `when` (n,), `columns` by name, each (n,)."""

    variant: KernelVariant
    when: Bools
    columns: Mapping[str, Floats]

    def total(self, coefficients: Mapping[str, float]) -> Floats:
        """Return the cycles of boxes, shape (n,)."""
        result = np.zeros(len(self.when))
        for name, value in coefficients.items():
            result += value * self.columns[name]
        return result

    def guessed(self) -> Floats:
        """Return the cycles of boxes by the variant's rough guess, shape (n,)."""
        return self.total({name: self.variant.guess.get(name, 0.0) for name in self.columns})


def tables_of(variants: Sequence[KernelVariant], n: int) -> list[Table]:
    """Return variants over `n` boxes as numbers."""
    return [
        Table(
            variant,
            np.array(np.broadcast_to(variant.when(), (n,)), np.bool_),
            {k: np.array(np.broadcast_to(v, (n,)), np.float64) for k, v in variant.features().items()},
        )
        for variant in variants
    ]


def fit_variants(variants: Sequence[KernelVariant], cycles: Floats, taken_by: Sequence[str]) -> Model:
    """Return coefficients that make the fastest variant take `cycles` (n,) as nearly as can be.

    `taken_by` is how the names of the variants begin that every box may have been computed in, with bars between. What
    features cannot tell apart is modelled better where boxes may go to any variant: whatever is nearer is returned.
    """
    tables = tables_of(variants, len(cycles))
    known = np.stack(
        [[variant.name.startswith(tuple(each.split("|"))) for each in taken_by] for variant in variants]
    )
    found = [_alternated(tables, cycles, each) for each in (known, np.ones_like(known))]
    return _pruned(tables, cycles, min(found, key=lambda each: each[0])[1])


def _alternated(tables: Sequence[Table], cycles: Floats, known: Bools) -> tuple[float, Model]:
    """Return the loss and the model where boxes go to the fastest of known variants."""
    times = np.stack([np.where(t.when, t.guessed(), NEVER) for t in tables])
    times = _among(times, known)
    best: tuple[float, Model] | None = None
    taken = np.where(times.min(axis=0) < NEVER, times.argmin(axis=0), -1)
    for _ in range(ROUNDS):
        model = _fitted(tables, taken, cycles)
        times = variant_times(tables, model)
        other = times.min(axis=0) >= NEVER
        loss = _loss(times, tables[0].total(model[OTHER]), cycles)
        if best is None or loss < best[0]:
            best = (loss, model)
        moved = np.where(other, taken, _among(times, known).argmin(axis=0))
        if (moved == taken).all():
            break
        taken = moved
    assert best is not None
    return best


def _loss(times: Floats, other: Floats, cycles: Floats) -> float:
    """Return how far modelled and measured cycles lie apart, as the mean logarithm; `other` is for boxes without."""
    modelled = times.min(axis=0)
    modelled = np.where(modelled < NEVER, modelled, other)
    return float(np.minimum(np.abs(np.log(np.maximum(modelled, 1) / cycles)), MOST_LOSS).mean())


def _pruned(tables: Sequence[Table], cycles: Floats, model: Model) -> Model:
    """Return the model without the variants that the others make up for: a search evaluates all that are left."""
    other = tables[0].total(model[OTHER])
    kept = dict(model)
    n_without = int((variant_times(tables, kept).min(axis=0) >= NEVER).sum())
    loss = _loss(variant_times(tables, kept), other, cycles)
    for name in sorted(model.keys() - {OTHER}):
        rest = {each: values for each, values in kept.items() if each != name}
        times = variant_times(tables, rest)
        without = _loss(times, other, cycles)
        is_enough = (times.min(axis=0) >= NEVER).sum() <= n_without
        if is_enough and without < loss + WORTH:
            kept, loss = rest, min(loss, without)
    return kept


def _among(times: Floats, known: Bools) -> Floats:
    """Return times in which only known variants can be taken, where any of them can."""
    masked = np.where(known, times, NEVER)
    return np.where(masked.min(axis=0) < NEVER, masked, times)


def variant_times(tables: Sequence[Table], model: Model) -> Floats:
    """Return the cycles of every variant on every box, shape (variants, n); `NEVER` where it cannot be taken."""
    rows: list[Floats] = []
    for table in tables:
        own = model.get(table.variant.name, model.get(table.variant.family))
        rows.append(
            np.full(len(table.when), NEVER) if own is None else np.where(table.when, table.total(own), NEVER)
        )
    return np.stack(rows)


def predicted(variants: Sequence[KernelVariant], model: Model, n: int) -> Floats:
    """Return the modelled cycles of `n` boxes."""
    tables = tables_of(variants, n)
    modelled = variant_times(tables, model).min(axis=0)
    return np.where(modelled < NEVER, modelled, tables[0].total(model[OTHER]))


def _fitted(tables: Sequence[Table], taken: Ints, cycles: Floats) -> Model:
    """Return every variant fitted to the boxes that take it; families where a variant of theirs has too few."""
    model: dict[str, Mapping[str, float]] = {}
    wanting: dict[str, list[int]] = {}
    for number, table in enumerate(tables):
        here = taken == number
        if here.sum() >= LEAST_SAMPLES:
            model[table.variant.name] = fit({k: c[here] for k, c in table.columns.items()}, cycles[here])
        elif table.variant.family:
            wanting.setdefault(table.variant.family, [])
    for family in wanting:
        members = [i for i, table in enumerate(tables) if table.variant.family == family]
        parts = [taken == i for i in members]
        if sum(part.sum() for part in parts) < LEAST_SAMPLES:
            continue
        columns = {
            name: np.concatenate(
                [tables[i].columns[name][part] for i, part in zip(members, parts, strict=True)]
            )
            for name in sorted(tables[members[0]].columns)
            if all(name in tables[i].columns for i in members)
        }
        model[family] = fit(columns, np.concatenate([cycles[part] for part in parts]))
    model[OTHER] = fit(dict(tables[0].columns), cycles)
    return model
