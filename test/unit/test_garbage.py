"""Collecting cyclic garbage rarely ends with the block that asked for it."""

from __future__ import annotations

import gc

import pytest

from t10.core.garbage import RARE, rare_collections


def test_thresholds_are_as_before_behind_the_outermost_block() -> None:
    before = gc.get_threshold()
    with rare_collections():
        with rare_collections():
            assert gc.get_threshold() == RARE
        assert gc.get_threshold() == RARE
    assert gc.get_threshold() == before


def test_thresholds_are_as_before_behind_an_error() -> None:
    before = gc.get_threshold()

    @rare_collections()
    def fail() -> None:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            fail()
    assert gc.get_threshold() == before
