"""All rules, by operator."""

from __future__ import annotations

from functools import cache

from t10.frontend.rewrites import (
    control,
    elementwise,
    fourier,
    layout,
    losses,
    matrices,
    normalizing,
    patches,
    pools,
    quantized,
    recurrent,
    regions,
    resample,
    sampling,
    scans,
    scatter,
    transposed,
)
from t10.frontend.rewrites.site import Rule

_FAMILIES = (
    control,
    elementwise,
    fourier,
    layout,
    losses,
    matrices,
    normalizing,
    patches,
    pools,
    quantized,
    recurrent,
    regions,
    resample,
    sampling,
    scans,
    scatter,
    transposed,
)


@cache
def rules() -> dict[str, Rule]:
    """Return the rule of every operator that has one."""
    return {operator: rule for family in _FAMILIES for operator, rule in family.RULES.items()}
