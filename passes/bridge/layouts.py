"""Layouts of a planned model as `#rtensor.layout` values: per tensor dim, as the dialect spells them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from t10.core import geometry
from t10.core.chunks import chunk_slots
from t10.core.expression import AffineDim, Operand, OperatorSpec
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
    still = DialectLayout(
        fs=geometry.dim_factors(operand, plan.f_op),
        ft=geometry.dim_factors(operand, ft),
        cores=geometry.n_sharers(operand, plan),
        scatter=scatter,
        halo=_halos(operand, plan),
        padded=_padded(operand, plan),
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
    """Return the extents that dims are padded to where temporal factors ask for more than even parts; else empty."""
    extents: list[int] = []
    is_longer = False
    for dim, extent in zip(operand.dims, operand.shape, strict=True):
        if not dim.is_simple:
            extents.append(extent)
            continue
        axis = dim.terms[0].axis
        is_longer |= plan.lengths[axis] > -(-extent // plan.f_op[axis])
        extents.append(max(extent, plan.f_op[axis] * plan.lengths[axis]))
    return tuple(extents) if is_longer else ()


def _halos(operand: Operand, plan: OperatorPlan) -> tuple[int, ...]:
    """Return by how many elements neighbouring sub-tensors overlap in every dim; empty if none do, nor coincide.

    Where several axes of a dim are cut, neighbours overlap by less along one than along another: what stands for all
    is the halo of sub-tensors as long as they are, with their beginnings evenly spaced over what they span.
    """
    factors = geometry.dim_factors(operand, plan.f_op)
    halos = tuple(_halo(dim, pieces, plan) for dim, pieces in zip(operand.dims, factors, strict=True))
    coincide = any(pieces > max(extent, 1) for extent, pieces in zip(operand.shape, factors, strict=True))
    return halos if any(halos) or coincide else ()


def _halo(dim: AffineDim, pieces: int, plan: OperatorPlan) -> int:
    """Return by how many elements the `pieces` of one dim overlap."""
    if len(dim.terms) == 1 or pieces == 1:
        return 0
    whole = tuple(f * length for f, length in zip(plan.f_op, plan.lengths, strict=True))
    length = geometry.dim_extent(dim, plan.lengths)
    spacing = -(-(geometry.dim_extent(dim, whole) - length) // (pieces - 1))
    return max(0, length - max(1, spacing))
