"""The benchmark of rings on a mesh: what it counts is the link model that its page states."""

from __future__ import annotations

import pytest
from rings import sources_of_rings, step_cycles


@pytest.mark.parametrize("n", [5, 16, 33])
@pytest.mark.parametrize("words", [1, 40])
def test_a_step_takes_its_words_and_the_hops_of_its_longest_way(n: int, words: int) -> None:
    natural, derived = sources_of_rings(n)
    assert step_cycles(n, natural, words) == (words + n - 1, n - 1)
    assert step_cycles(n, derived, words) == (words + 2, 2)


def test_no_hop_is_longer_than_two_on_lines_of_any_length() -> None:
    for n in range(4, 200):
        _, derived = sources_of_rings(n)
        assert max(abs(source - core) for core, source in enumerate(derived.tolist())) == 2, n
