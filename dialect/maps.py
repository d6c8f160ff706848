"""Affine maps of linalg operands to and from `AffineDim` values."""

from __future__ import annotations

from typing import Any

from t10.core.expression import AffineDim, Term
from t10.dialect.mlir import ir
from t10.errors import UnsupportedOpError


def read_map(affine_map: Any) -> tuple[AffineDim, ...]:
    """Return one affine form per result of an indexing map; raises `UnsupportedOpError` for mod, div and symbols."""
    return tuple(_read_result(expression) for expression in affine_map.results)


def _read_result(expression: Any) -> AffineDim:
    coefficients: dict[int, int] = {}
    offset = _accumulate(expression, 1, coefficients)
    terms = tuple(Term(axis, c) for axis, c in sorted(coefficients.items()) if c)
    if any(term.coefficient < 0 for term in terms):
        raise UnsupportedOpError(f"index {expression} runs backwards (expected non-negative coefficients)")
    return AffineDim(terms, offset)


def _accumulate(expression: Any, factor: int, coefficients: dict[int, int]) -> int:
    """Add `factor * expression` to `coefficients` by axis and return the constant part."""
    if isinstance(expression, ir.AffineDimExpr):
        axis = ir.AffineDimExpr(expression).position
        coefficients[axis] = coefficients.get(axis, 0) + factor
        return 0
    if isinstance(expression, ir.AffineConstantExpr):
        return factor * int(ir.AffineConstantExpr(expression).value)
    if isinstance(expression, ir.AffineAddExpr):
        both = ir.AffineAddExpr(expression)
        return _accumulate(both.lhs, factor, coefficients) + _accumulate(both.rhs, factor, coefficients)
    if isinstance(expression, ir.AffineMulExpr):
        both = ir.AffineMulExpr(expression)
        for scale, rest in ((both.rhs, both.lhs), (both.lhs, both.rhs)):
            if isinstance(scale, ir.AffineConstantExpr):
                return _accumulate(rest, factor * int(ir.AffineConstantExpr(scale).value), coefficients)
    raise UnsupportedOpError(f"index {expression} is not a sum of axes times constants")


def map_attr(dims: tuple[AffineDim, ...], n_axes: int) -> Any:
    """Return the attribute of an indexing map over `n_axes` axes."""
    return ir.AffineMapAttr.get(ir.AffineMap.get(n_axes, 0, [_expression(dim) for dim in dims]))


def _expression(dim: AffineDim) -> Any:
    total: Any = None
    for term in dim.terms:
        part = ir.AffineDimExpr.get(term.axis)
        part = part if term.coefficient == 1 else part * term.coefficient
        total = part if total is None else total + part
    if total is None:
        return ir.AffineConstantExpr.get(dim.offset)
    return total + dim.offset if dim.offset else total
