"""Partials: in which type sums of 16-bit floats are kept while they grow (poplibs calls it the partials type).

    f32    in f32, and rounded to f16 once
    f16    products in f16, wherever the total is rounded to f16 anyway and that gains time: a product of many rows is
           summed at twice the rate
    mixed  products of matrices and convolutions in f32 as long as a core adds to them in one step, and in f16 from then
           on: what cores hand on to each other is half as long
    auto   products in f16 where the bound on their error is within a tolerance and f16 gains time; else f32

The bound on the error of a sum of n terms kept in f16:

    |sum in f16 - sum| <= sqrt(n) 2^-11 (|sum| + sqrt(term 1 ^ 2 + ... + term n ^ 2))

The sum is rounded at most n times on the way, each time by at most 2^-11 of the sum so far. In an order that has
nothing to do with the terms, the mean square of sums so far is at most sum^2 / 3 + (sum of squares) / 6; n roundings
that are independent and of mean 0 make sqrt(n / 3) of one. So the bound is three standard deviations and more. It holds
where no sum so far is beyond f16 (65504). Roundings of equal terms are not independent: no sum is off by more than
n 2^-11 of the sum of its terms' magnitudes, but some are.

Of a sum whose terms are added up in f32 in n parts, every part is rounded once, which are n independent roundings of at
most 2^-11 of a part each, and the n - 1 sums of them are: sqrt(n - 1) + 1 takes the place of sqrt(n).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt
from typing import Literal, get_args

from t10.core.contiguous_parts import is_cut
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.products import hands_on_rounded
from t10.core.schedule import ModulePlan
from t10.errors import InputError

Kind = Literal["f32", "mixed", "f16", "auto"]
Kept = Literal["", "f32", "mixed", "f16"]
KINDS: tuple[str, ...] = get_args(Kind)
ONE_PASS_ROWS = 8
"""Rows that the matrix engine takes as columns in one pass with f32 sums."""
LONG_SUM = 256
"""Terms from which on rounding a sum takes less than a sixteenth of summing, for one of so few rows."""
HALF_UNIT_F16 = 2.0**-11
DEFAULT_TOLERANCE = 5e-3
"""What `auto` allows: sums of up to 104 products."""


@dataclass(frozen=True, slots=True)
class Partials:
    """What the user asks for; `tolerance` is the largest `partials_error` that `auto` accepts."""

    kind: str = "f32"
    tolerance: float = DEFAULT_TOLERANCE

    def __post_init__(self) -> None:
        """Refuse what is none."""
        if self.kind not in KINDS:
            raise InputError(f"partials is '{self.kind}' (expected {', '.join(KINDS[:-1])} or {KINDS[-1]})")
        if not self.tolerance >= 0:
            raise InputError(
                f"the tolerance of partials is {self.tolerance} (expected a number of at least 0)"
            )

    def keeps_f16(self, n_terms: int, *, is_product: bool, n_rows: int = 0, n_rows_each: int = 0) -> bool:
        """Return whether a sum of so many 16-bit terms stays in 16 bits.

        Long products of few rows do not: the engine takes all rows in one pass with f32 sums, and rounding the results
        takes little time beside them. `n_rows` are those of the smaller operand, 0 where there is a batch. Nor do
        products of matrices and vectors (`n_rows_each` of 1): the vector unit sums in f32, and takes longer for f16.
        Nor do reductions: vector code sums them in f32 at the same rate, and sums overflow whose means do not.
        """
        if not is_product or (n_rows_each == 1 or (0 < n_rows <= ONE_PASS_ROWS and n_terms >= LONG_SUM)):
            return False
        if self.kind == "auto":
            return partials_error(n_terms) <= self.tolerance
        return self.kind == "f16"

    def are_alike(self, n_terms: int, n_others: int) -> bool:
        """Return whether `auto` says the same of products with so many terms each; else it is not asked."""
        allows = [partials_error(n) <= self.tolerance for n in (n_terms, n_others)]
        return self.kind != "auto" or allows[0] == allows[1]

    def rounds_parts(self, n_rows: int) -> bool:
        """Return whether what a core has summed of products is rounded to 16 bits before it is handed on.

        `n_rows` are those of the smaller operand in every matrix of a batch: of a convolution, the features or the
        positions of a group. Of few rows the engine takes all in one pass with f32 sums, and hands on little.
        """
        return self.kind == "mixed" and n_rows > ONE_PASS_ROWS

    def as_options(self) -> dict[str, str | float]:
        """Return the fields by the names of the drivers' options; the tolerance where it says something."""
        given: dict[str, str | float] = {"partials": self.kind}
        return {**given, "partials_tolerance": self.tolerance} if self.kind == "auto" else given


def partials_error(n_terms: int) -> float:
    """Return the bound on the error of a sum of so many terms kept in f16, as a part of |sum| + root of squares."""
    return sqrt(n_terms) * HALF_UNIT_F16


def partials_type(spec: OperatorSpec) -> Kept:
    """Return the type in which an operator keeps sums of f16; empty for one that sums none.

    A gather sums one term, which is moved.
    """
    is_sum = spec.combine == "sum" and not spec.selectors
    if not is_sum or all(operand.dtype != "f16" for operand in spec.inputs):
        return ""
    if spec.acc_dtype == "f16":
        return "mixed" if hands_on_rounded(spec) else "f16"
    return "f32" if spec.acc_dtype == "f32" else ""


def allowed_error(spec: OperatorSpec, plan: OperatorPlan) -> float:
    """Return the bound on the error that partials make of an operator's sums, as `partials_error`; 0: they are f32."""
    kept = partials_type(spec)
    if kept not in ("f16", "mixed"):
        return 0.0
    n_terms = prod(spec.axes[axis].extent for axis in spec.reduction_axes)
    if kept == "f16":
        return partials_error(n_terms)
    n_parts = prod(plan.f_op[axis] * plan.steps[axis] for axis in spec.reduction_axes)
    if is_cut(spec, plan):
        # A step that crosses the end of a window is two, along every axis.
        n_parts *= 2 ** len(spec.reduction_axes)
    return partials_error(min(n_parts, n_terms) - 1) + HALF_UNIT_F16


def allowed_errors(plan: ModulePlan) -> tuple[tuple[OperatorSpec, float], ...]:
    """Return the operators of a plan, each with the bound on its error."""
    return tuple(
        (spec, allowed_error(spec, scheduled.active.plan))
        for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True)
    )
