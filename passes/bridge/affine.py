"""Arithmetic on the affine index forms of `t10.core.expression`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t10.core.expression import AffineDim, Term

ZERO = AffineDim(())


def axis_dim(axis: int) -> AffineDim:
    """Return the form that is one axis alone."""
    return AffineDim((Term(axis, 1),))


def compose(dim: AffineDim, by_axis: Sequence[AffineDim] | Mapping[int, AffineDim]) -> AffineDim:
    """Return the form with every axis replaced by a form over other axes."""
    offset = dim.offset
    coefficients: dict[int, int] = {}
    for term in dim.terms:
        inner = by_axis[term.axis]
        offset += term.coefficient * inner.offset
        for part in inner.terms:
            coefficients[part.axis] = coefficients.get(part.axis, 0) + term.coefficient * part.coefficient
    return AffineDim(tuple(Term(axis, c) for axis, c in sorted(coefficients.items()) if c), offset)


def is_zero(dim: AffineDim) -> bool:
    """Return whether the form is the constant 0."""
    return not dim.terms and dim.offset == 0
