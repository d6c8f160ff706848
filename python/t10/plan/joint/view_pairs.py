"""What moves between plans of a producer and of a reader through views: an estimate, pair by pair.

A view reads boxes of its sources, each dim of a source along one dim of the view or at one position. A core receives
what it needs of such a box less what it holds of it. That is counted on a few cores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t10.core.arrays import Ints
from t10.core.expression import Operand, OperatorSpec
from t10.core.part_lengths import whole_lengths
from t10.core.view_boxes import Piece, inverse
from t10.plan.search.placement import natural_core_order

CORES_LOOKED_AT = 12


def most_received(
    pieces: Sequence[Piece],
    maker: tuple[OperatorSpec, Operand, Ints, Ints],
    reader: tuple[OperatorSpec, Operand, Ints],
) -> Ints:
    """Return about how many elements the busiest core receives, by partitions of the maker and of the reader.

    Each is (operator, operand or result, F_op by row), with the elements that lie on a core at most for the maker.
    """
    made_spec, made, made_rows, stored = maker
    read_spec, read, read_rows = reader
    cores = read_rows.prod(axis=1)
    # Cores evenly spread over those of each of the reader's partitions, both ends among them.
    looked_at = np.arange(CORES_LOOKED_AT) * (cores[:, None] - 1) // (CORES_LOOKED_AT - 1)
    needed = _windows(read_spec, read, read_rows, looked_at)
    # By partitions of the maker, of the reader, and cores.
    where = np.broadcast_to(looked_at[None], (len(made_rows), *looked_at.shape))
    held = _windows(made_spec, made, made_rows, where.reshape(len(made_rows), -1))
    is_used = where < made_rows.prod(axis=1)[:, None, None]
    total = np.zeros(where.shape, np.int64)
    for piece in pieces:
        wanted = np.ones(looked_at.shape, np.int64)
        own = np.ones(where.shape, np.int64)
        for number, (dim, offset, stride) in enumerate(
            zip(piece.dims, piece.offsets, piece.strides, strict=True)
        ):
            low, high = (bound.reshape(where.shape) for bound in held[number])
            if dim < 0:
                own *= (low <= offset) & (offset < high)
                continue
            first = np.maximum(needed[dim][0], piece.ranges[dim][0])
            last = np.minimum(needed[dim][1], piece.ranges[dim][1])
            wanted *= np.maximum(last - first, 0)
            low, high = inverse(low, high, offset, stride)
            own *= np.maximum(np.minimum(high, last) - np.maximum(low, first), 0)
        total += wanted - np.minimum(np.where(is_used, own, 0), stored[:, None, None])
    most: Ints = total.max(axis=2)
    return most


def _windows(spec: OperatorSpec, operand: Operand, rows: Ints, cores: Ints) -> list[tuple[Ints, Ints]]:
    """Return, per dim of a tensor, the first position and the one behind the last, by F_op and core of `cores`."""
    extents = np.array(spec.extents)
    lengths = whole_lengths(spec, rows)
    parts = np.zeros((*cores.shape, rows.shape[1]), np.int64)
    for row, f_op in enumerate(rows.tolist()):
        left = cores[row]
        for axis in reversed(natural_core_order(spec, tuple(f_op), tuple(lengths[row].tolist()))):
            left, parts[row, :, axis] = np.divmod(left, f_op[axis])
    first = parts * lengths[:, None, :]
    last = np.minimum(first + lengths[:, None, :], extents)
    result: list[tuple[Ints, Ints]] = []
    for dim, size in zip(operand.dims, operand.shape, strict=True):
        low = np.full(cores.shape, dim.offset)
        high = low + 1
        for term in dim.terms:
            low = low + term.coefficient * first[:, :, term.axis]
            high = high + term.coefficient * (last[:, :, term.axis] - 1)
        result.append((np.clip(low, 0, size), np.clip(high, 0, size)))
    return result
