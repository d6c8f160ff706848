"""Groups of cores of one level of a chip, each taken as a chip of its own: what runs a stage of a model."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from t10.chip.levels import Level, n_cores_of
from t10.chip.spec import ChipSpec
from t10.errors import InputError

STAGE_CHIP = "{chip}.{level}"
"""The name of a group as a chip of its own."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Equal groups of cores of `whole`, each of them `chip`.

    `order` lists the groups such that neighbours in it are neighbours on the chip: group g has the cores from
    `g * chip.n_cores` on.
    """

    whole: ChipSpec
    level: str
    chip: ChipSpec
    order: tuple[int, ...]


def groups_of(whole: ChipSpec, level: str = "") -> Groups:
    """Return the groups that a level counts, by default those of the innermost level with groups of cores.

    Raises `InputError` for a chip without groups, for a level that it has not, and for one with off-chip memory.
    """
    names = [each.name for each in whole.levels[1:]]
    if not names:
        raise InputError(
            f"chip {whole.name} has no groups of cores for stages to run on",
            hint="take a chip with levels, such as pod16 or test-4x16 (docs/chip-files.md)",
        )
    wanted = level or names[0]
    if wanted not in names:
        raise InputError(f"chip {whole.name} has no level {wanted!r} of groups (expected {', '.join(names)})")
    if whole.memory is not None:
        raise InputError(f"chip {whole.name} has off-chip memory, which stages cannot share: expected none")
    above = names.index(wanted) + 1
    inner = whole.levels[:above]
    is_flat = all(each.topology == "exchange" for each in inner)
    chip = whole.model_copy(
        update={
            "name": STAGE_CHIP.format(chip=whole.name, level=wanted),
            "description": f"a {wanted} of {whole.name}",
            "n_cores": n_cores_of(inner),
            "levels": () if is_flat else inner,
            "energy": whole.energy and whole.energy.share(prod(each.count for each in whole.levels[above:])),
        }
    )
    return Groups(whole, wanted, chip, _order(whole.levels[above:]))


def _order(levels: tuple[Level, ...]) -> tuple[int, ...]:
    """Return groups in an order in which neighbours are linked: every second row of a grid backwards."""
    outer = levels[-1]
    width = outer.columns or outer.count
    row_major = [
        row * width + (width - 1 - column if row % 2 else column)
        for row in range(outer.count // width)
        for column in range(width)
    ]
    inner = prod(each.count for each in levels[:-1])
    return tuple(place * inner + within for place in row_major for within in range(inner))
