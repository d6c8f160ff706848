"""Which variants of `t10.cost.kernel_variants` a codelet may be: as its name and its vertex's words tell."""

from __future__ import annotations

from t10.core.codelet import Codelet

REDUCTIONS = {"rows": "rows of", "columns": "columns of", "points": "points", "pieces": "pieces"}


def variants_of(codelet: Codelet) -> str:
    """Return how the names of the variants begin that a codelet may be, with bars between; "" for any."""
    family, _, rest = codelet.name.partition("_")
    if family == "Matrix":
        return "copied|turned, copied" if "_copy" in codelet.name else "direct|turned, odd"
    if family == "Reduce":
        return REDUCTIONS.get(rest.partition("_")[0], "")
    if family != "Vector":
        return ""
    names = {field.name for field in codelet.fields}
    if "total" in names:
        found = ["all points"]
    elif any(name.startswith("stride") for name in names):
        found = ["across", "strided"]
    else:
        found = ["rows, "] if "n_rows" in names else ["columns, ", "one row"]
    return "|".join([*found, *(f"single, {name}" for name in found)])
