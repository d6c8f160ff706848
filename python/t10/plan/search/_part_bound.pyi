"""Types of the native module `t10.plan.search._part_bound` (source: `_part_bound.cpp`)."""

from collections.abc import Sequence

from t10.cost._batch_function import BatchFunction

def least_part_cycles(
    bound: BatchFunction,
    axes: Sequence[
        tuple[
            int,
            int,
            int,
            int,
            int,
            Sequence[int],
            Sequence[tuple[Sequence[int], int, int, int]],
            bool,
            bool,
        ]
    ],
    core_order: Sequence[int],
    most_cores: int,
    most_parts: int,
) -> float:
    """Return cycles that steps in parts do not fall below; `t10.plan.search.part_bound` says what axes are.

    Raises ValueError where the function takes another number of axes.
    """
