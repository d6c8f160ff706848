"""Blocks of weights: how many words a column has of one, and what loading it takes."""

from __future__ import annotations

from t10.cost.bound.columns import Column, both, chosen
from t10.cost.bound.rows import BLOCK_WORDS

ADDRESS, MOST_SKIPPED = 6, 5
"""A load that waits for its address, and the words that are loaded in vain rather than that."""


def even_words(words: Column) -> Column:
    """Return how many words of a line a block has at most where all blocks have as many."""
    thirds = chosen(words % 3 == 0, 3, chosen(words % 2 == 0, 2, 1))
    return chosen(words % BLOCK_WORDS == 0, BLOCK_WORDS, thirds)


def load_cycles(n: Column, step: Column, columns: Column, blocks: Column, is_wide: Column) -> Column:
    """Return the cycles of loading `n` words for every column of some blocks, by block; columns `step` words apart."""
    is_wide = both(is_wide, n > 1)
    own, skip = chosen(is_wide, -(-n // 2), n), step - n
    most = chosen(is_wide, 2 * MOST_SKIPPED, MOST_SKIPPED)
    between = chosen(skip <= most, chosen(is_wide, -(-skip // 2), skip), ADDRESS)
    return columns * (own + between) // blocks - between
