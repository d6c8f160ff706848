"""The partitions of one operator that are searched, stated as constraints instead of a list."""

from __future__ import annotations

from dataclasses import dataclass

from t10.core.expression import AxisSizes


@dataclass(frozen=True, slots=True)
class UnrotatedSpace:
    """All F_op of one operator within looser constraints, for plans that do not rotate.

    `padding` is the least useful part of a padded axis; however short an axis, it may be padded by one element.
    """

    least_cores: int
    padding: float
    n_f_op: int


@dataclass(frozen=True, slots=True)
class PartitionSpace:
    """All (F_op, ft) of one operator within constraints.

    ```
    #rtensor.space<{at_most = 18955, cores = 64, least_cores = 58, n_f_op = 84, padding = 0.81}>
    ```

    stands for

    ```
    for f_op in rows of parts per axis:     # n_f_op of them
      if least_cores <= prod(f_op) <= cores and every axis is useful enough:
        for ft in one row per operand whose product divides the cores that share it:
          yield f_op, ft
    for f_op in rows of parts per axis within `unrotated` that are not among those:
      yield f_op, ft = 1                    # at most so many in all
    ```

    `padding` is the least useful part of a padded axis: extent / (f_op * length), where a length is rounded up to a
    multiple of every ft. `f_op` is the only F_op where it is given, `rp` the pace that ft must give. `at_most` counts
    rows of ft that are within the constraints one by one; together some are not. `is_aligned` says that pace, steps and
    loop order of every partition follow from its factors and that `rp` is among the constraints if it is fixed.
    """

    cores: int
    least_cores: int
    padding: float
    n_f_op: int
    at_most: int
    f_op: AxisSizes | None = None
    rp: AxisSizes | None = None
    is_aligned: bool = False
    unrotated: UnrotatedSpace | None = None
