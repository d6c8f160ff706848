"""Layouts of a planned model as `#rtensor.layout` values: per tensor dim, as the dialect spells them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from t10.core import geometry
from t10.core.chunks import chunk_slots
from t10.core.expression import Operand, OperatorSpec
from t10.core.movement import operand_of
from t10.core.plan import OperatorPlan
from t10.core.schedule import Layout
from t10.dialect.layout import Layout as DialectLayout


def dialect_layout(spec: OperatorSpec | None, layout: Layout, shape: tuple[int, ...]) -> DialectLayout:
    """Return the encoding of a value of `shape` under a layout; `spec` is the operator of an operand layout."""
    if spec is None or layout.plan is None:
        n_elements = prod(shape)
        chunk = chunk_slots(n_elements, layout.n_cores)
        return DialectLayout(linear=-(-n_elements // chunk))
    return operand_layout(spec, layout.plan, layout.operand, layout.scatter)


def operand_layout(spec: OperatorSpec, plan: OperatorPlan, number: int, scatter: int = 1) -> DialectLayout:
    """Return the encoding of operand `number` (inputs, epilogue inputs, output) of an operator under its plan."""
    operand = operand_of(spec, number)
    slot = min(number, len(spec.inputs))
    ft = tuple(t if axis in operand.axes else 1 for axis, t in enumerate(plan.ft[slot]))
    pace = tuple(rp if t > 1 else 0 for rp, t in zip(plan.rp, ft, strict=True))
    padded = _padded(operand, plan)
    still = DialectLayout(
        fs=geometry.dim_factors(operand, plan.f_op),
        ft=geometry.dim_factors(operand, ft),
        cores=geometry.n_sharers(operand, plan),
        scatter=scatter,
        halo=_halos(operand, plan, padded),
        padded=padded,
    )
    # A dim over several axes, or with a stride, moves in whole blocks: all of its partition is handed on.
    blocks = still.partition(operand.shape)
    return replace(
        still,
        rp=tuple(
            pace[dim.terms[0].axis] if dim.is_simple else block if t > 1 else 0
            for dim, t, block in zip(operand.dims, still.ft, blocks, strict=True)
        ),
    )


def _padded(operand: Operand, plan: OperatorPlan) -> tuple[int, ...]:
    """Return the extents that dims are padded to where even parts of their axes need more than they have; else empty.

    Axes are padded by temporal factors that do not divide; a compound dim besides by the windows that begin or end
    outside of it (a convolution's padding).
    """
    whole = tuple(f * length for f, length in zip(plan.f_op, plan.lengths, strict=True))
    spans = tuple(geometry.dim_extent(dim, whole) for dim in operand.dims)
    even = tuple(
        -(-extent // pieces) * pieces if dim.is_simple else extent
        for dim, extent, pieces in zip(
            operand.dims, operand.shape, geometry.dim_factors(operand, plan.f_op), strict=True
        )
    )
    is_longer = any(span > extent for span, extent in zip(spans, even, strict=True))
    return tuple(map(max, operand.shape, spans)) if is_longer else ()


def _halos(operand: Operand, plan: OperatorPlan, padded: tuple[int, ...]) -> tuple[int, ...]:
    """Return by how many elements neighbouring sub-tensors overlap in every dim; empty if none do, nor coincide.

    Where several axes of a dim are cut, neighbours overlap by less along one than along another: what stands for all
    is the halo that makes the sub-tensors as long as they are, with their beginnings evenly spaced over the extent.
    """
    factors = geometry.dim_factors(operand, plan.f_op)
    halos: list[int] = []
    for dim, extent, pieces in zip(operand.dims, padded or operand.shape, factors, strict=True):
        length = geometry.dim_extent(dim, plan.lengths)
        spacing = max(1, -(-(extent - length) // (pieces - 1))) if pieces > 1 else length
        halos.append(0 if dim.is_simple else max(0, length - spacing))
    coincide = any(pieces > max(extent, 1) for extent, pieces in zip(operand.shape, factors, strict=True))
    return tuple(halos) if any(halos) or coincide else ()
