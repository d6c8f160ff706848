"""Epilogues over chunks of windows: what each member finishes."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from support.specs import linear_relu, matmul

from t10.core.chunks import window_chunk
from t10.core.epilogue_nest import chunk_nests
from t10.core.expression import OperatorSpec
from t10.core.geometry import partition_shape


@pytest.mark.parametrize("spec", [matmul(5, 9, 4), linear_relu(5, 9, 4)], ids=["flat", "bias per column"])
@pytest.mark.parametrize("n_members", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("lengths", [(5, 7, 4), (1, 9, 4), (3, 1, 4)])
def test_members_finish_every_slot_of_the_window_once_and_none_past_it(
    lengths: tuple[int, int, int], n_members: int, spec: OperatorSpec
) -> None:
    n_slots = prod(partition_shape(spec.output, lengths))
    finished = np.zeros(n_members, np.int64)
    for _, work in chunk_nests(spec, lengths, n_members):
        finished[work.tiles] += work.extents.prod(axis=1)
    chunk = window_chunk(n_slots, n_members)
    left = [max(n_slots - rank * chunk, 0) for rank in range(n_members)]
    assert finished.tolist() == [min(chunk, slots) for slots in left]
