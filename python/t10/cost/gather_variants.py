"""How tasks with selectors run (`t10.codelets.gather`): rows go where indices say, or come from there."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from t10.core.dtypes import is_float, size_bytes
from t10.core.expression import OperatorSpec
from t10.core.tile import N_WORKERS
from t10.cost.kernel_variants import Boxes, Column, KernelVariant, both, chosen, product
from t10.cost.roles import LoopRoles

VECTOR_BYTES = 8
GUESS = {"one": 150.0, "selected": 6.0}


def gather_variants(spec: OperatorSpec, roles: LoopRoles, boxes: Boxes) -> list[KernelVariant]:
    """Return the variants of a task with selectors, by how its rows lie: one holds for every box."""
    floats = [size_bytes(o.dtype) for o in spec.inputs if is_float(o.dtype)] + [size_bytes(spec.acc_dtype)]
    line = max(VECTOR_BYTES // min(floats), 1)
    run, rows = product(boxes, roles.run), product(boxes, roles.rows)
    features = cache(partial(_features, spec, roles, boxes))
    is_whole, is_one, is_even = run % line == 0, rows == 1, run % 2 == 0
    no = np.logical_not
    conditions = {
        "few, whole": both(is_one, is_whole),
        "whole": both(no(is_one), is_whole),
        "few": both(is_one, no(is_whole)),
        "even": both(no(is_one), no(is_whole), is_even),
        "odd": both(no(is_one), no(is_whole), no(is_even)),
    }
    return [KernelVariant(name, partial(_same, when), features, GUESS) for name, when in conditions.items()]


def _same(when: Column) -> Column:
    return when


def _features(spec: OperatorSpec, roles: LoopRoles, boxes: Boxes) -> dict[str, Column]:
    types = [operand.dtype for operand in spec.inputs] + [spec.acc_dtype]
    width = max(VECTOR_BYTES // max([size_bytes(dtype) for dtype in types if is_float(dtype)] or [4]), 1)
    run, rows = product(boxes, roles.run), product(boxes, roles.rows)
    selected = product(boxes, roles.selected)
    points, vectors, share = run * rows, -(-run // width), -(-rows // N_WORKERS)
    outermost = product(boxes, ())
    for axis in reversed(roles.rows):
        outermost = chosen(boxes[:, axis] > 1, boxes[:, axis], outermost)
    dealt = -(-outermost // N_WORKERS) * (rows // outermost)
    outputs = -(-points // N_WORKERS)
    result: dict[str, Column] = {
        "one": points * 0 + 1,
        "dealt": dealt,
        "dealt vectors": dealt * vectors,
        "spread": -(-points // (N_WORKERS * width)),
        "share": share,
        "share vectors": share * vectors,
        "row vectors": rows * -(-run // (N_WORKERS * width)),
        "points": outputs,
        "selected": selected,
        "outputs selected": outputs * selected,
    }
    if spec.reduction_axes:
        folded, summed = product(boxes, roles.folded), product(boxes, roles.summed)
        terms = summed * folded
        result |= {
            "output folds": outputs * summed * -(-folded // width),
            "output sums": outputs * summed,
            "output terms": outputs * terms,
            "share vector terms": share * vectors * terms,
            "spread terms": -(-points // (N_WORKERS * width)) * terms,
            "share terms": share * terms,
            "dealt terms": dealt * terms,
            "dealt vector terms": dealt * vectors * terms,
            "dealt sums": dealt * summed,
        }
    return result
