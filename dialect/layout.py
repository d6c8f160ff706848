"""The values of `#rtensor.layout` and `#rtensor.linear`: which element of a tensor lies in which slot of which core.

```
#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], ...}>
tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>
```

is the tensor A of a product: it is indexed by the axes m and k of the grid, cut in 2 sub-tensors along m, and every
sub-tensor is cut in 3 along k over the ring of the three cores that share it:

```
for every core s:                                  # of the grid
  hold A[s_m, (phase_k(s) + [0, 2)) mod 6]         # 6 / 3 = 2 elements; one shift moves the window by rp = 2
```

`#rtensor.linear<{cores = 4}>` is the other form: the elements in row-major order, dealt out in equal chunks to cores.

Source: compute-shift model §2 and §3, T10 §4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from t10.core.expression import AffineDim, AxisSizes
from t10.core.plan import OperatorPlan
from t10.dialect.grid import Grid
from t10.dialect.ods import Invalid

if TYPE_CHECKING:
    from t10.core.geometry import Ints

COMBINES = ("sum", "prod", "max", "min", "maxnum", "minnum", "and", "or")


@dataclass(frozen=True, slots=True)
class LinearLayout:
    """The elements in row-major order, in equal chunks (`core.chunks.chunk_slots`), one per core."""

    n_cores: int

    def __post_init__(self) -> None:
        """Check the rule; raises `Invalid`."""
        if self.n_cores < 1:
            raise Invalid(f"linear layout on cores = {self.n_cores}, expected at least 1")


@dataclass(frozen=True, slots=True)
class RotatingLayout:
    """How a tensor lies on the cores of a grid; see the module's docstring.

    `dims` says which axes of the grid index each tensor dim; `ft` are temporal factors per axis of the grid. `scatter`
    cores that hold one window keep a chunk of it each. `partial` names the combination that is still owed: cores that
    hold one window hold partial results. `at` are positions per axis at which windows stand (none: where they start).
    """

    grid: Grid
    dims: tuple[AffineDim, ...]
    ft: AxisSizes
    scatter: int = 1
    partial: str = ""
    at: AxisSizes = ()

    def __post_init__(self) -> None:
        """Check the rules that do not need the tensor's shape; raises `Invalid`."""
        grid, n_axes = self.grid, len(self.grid.f_op)
        if len(self.ft) != n_axes:
            raise Invalid(f"layout has {len(self.ft)} temporal factors for a grid of {n_axes} axes")
        used = [axis for dim in self.dims for axis in dim.axes]
        if any(axis >= n_axes for axis in used):
            raise Invalid(f"layout indexes axis {max(used)} of a grid of {n_axes} axes")
        for axis, factor in enumerate(self.ft):
            if factor < 1 or grid.lengths[axis] % factor:
                raise Invalid(
                    f"ft = {factor} along axis {axis} does not divide its length {grid.lengths[axis]}"
                )
            if factor > 1 and axis not in used:
                raise Invalid(f"ft = {factor} along axis {axis}, which does not index the tensor, expected 1")
            if factor > grid.steps[axis]:
                raise Invalid(
                    f"ft = {factor} along axis {axis}, expected at most its {grid.steps[axis]} steps"
                )
        if self.n_sharers % self.ring_length:
            raise Invalid(
                f"ft cuts a sub-tensor in {self.ring_length}, which does not divide the {self.n_sharers} cores that "
                "share it"
            )
        if not 1 <= self.scatter <= self.n_copies:
            raise Invalid(f"scatter = {self.scatter}, expected 1 to {self.n_copies}, the copies of a window")
        if self.partial and (self.partial not in COMBINES or self.n_copies == 1):
            raise Invalid(
                f'partial = "{self.partial}" of {self.n_copies} copies, expected one of {", ".join(COMBINES)} '
                "and several"
            )
        self._check_positions()

    def _check_positions(self) -> None:
        if not self.at:
            return
        steps = self.grid.steps
        if len(self.at) != len(steps) or not any(self.at):
            raise Invalid(f"at = {list(self.at)}, expected a position per axis that are not all 0")
        for axis, position in enumerate(self.at):
            if not 0 <= position < steps[axis] or (position and self.ft[axis] == 1):
                raise Invalid(f"at = {list(self.at)}: axis {axis} does not stand at position {position}")

    @property
    def axes(self) -> frozenset[int]:
        """Return the axes of the grid that index the tensor."""
        return frozenset(axis for dim in self.dims for axis in dim.axes)

    @property
    def ring_length(self) -> int:
        """Return the number of cores that together hold one copy of a sub-tensor: prod(ft)."""
        return prod(self.ft)

    @property
    def n_sharers(self) -> int:
        """Return how many cores need the same sub-tensor."""
        return prod(parts for axis, parts in enumerate(self.grid.f_op) if axis not in self.axes)

    @property
    def n_copies(self) -> int:
        """Return how many cores hold the same window: the number of rings."""
        return self.n_sharers // self.ring_length

    @property
    def plan(self) -> OperatorPlan:
        """Return a plan on the grid whose only operand is this tensor."""
        return self.grid.plan((self.ft,))

    @property
    def rotates(self) -> bool:
        """Return whether windows move."""
        return self.ring_length > 1

    def standing(self, positions: AxisSizes) -> RotatingLayout:
        """Return the layout with its windows at loop positions, which count along the axes it rotates along."""
        at = tuple(p if t > 1 else 0 for p, t in zip(positions, self.ft, strict=True))
        return replace(self, at=at if any(at) else ())


Layout = LinearLayout | RotatingLayout


def dim_numbers(
    layout: RotatingLayout, per_axis: AxisSizes, without_axis: int
) -> tuple[int | tuple[int, ...], ...]:
    """Return numbers per axis as they are written per tensor dim: one, or one per axis of a compound dim."""
    rows = [tuple(per_axis[axis] for axis in dim.axes) for dim in layout.dims]
    return tuple((row[0] if row else without_axis) if len(row) < 2 else row for row in rows)


def check_layout(layout: Layout, shape: tuple[int, ...]) -> None:
    """Raise `Invalid` with the first rule that a layout breaks on a tensor of `shape` (compute-shift model §2, §4).

    Every index of the tensor lies on some core: the cores that share a sub-tensor hold every part of it.
    """
    if isinstance(layout, LinearLayout):
        return
    # numpy would double the time in which tools start.
    from t10.core.geometry import dim_extent

    grid = layout.grid
    if len(layout.dims) != len(shape):
        raise Invalid(f"layout has {len(layout.dims)} dims for a tensor of rank {len(shape)}")
    for d, (dim, extent) in enumerate(zip(layout.dims, shape, strict=True)):
        whole = tuple(parts * length for parts, length in zip(grid.f_op, grid.lengths, strict=True))
        covered = dim.offset + dim_extent(dim, whole)
        if dim.is_simple and covered < extent:
            raise Invalid(f"the grid covers {covered} of the {extent} elements of dim {d}")
    _check_covered(layout)


def _check_covered(layout: RotatingLayout) -> None:
    """Check that the windows of the cores that share a sub-tensor leave no part of it out."""
    if not layout.rotates:
        return
    import numpy as np

    group, ahead = _sharers(layout)
    sizes, cell = [int(group.max()) + 1], [group]
    windows: list[range] = []
    for axis, offsets in ahead.items():
        length = layout.grid.lengths[axis]
        width = length // layout.ft[axis]
        unit = int(np.gcd.reduce([width, *np.unique(offsets).tolist()]))
        sizes.append(length // unit)
        cell.append(offsets // unit)
        windows.append(range(width // unit))
    held = np.zeros(sizes, bool)
    for inside in product(*windows):
        held[(group, *((c + i) % n for c, i, n in zip(cell[1:], inside, sizes[1:], strict=True)))] = True
    if not held.all():
        raise Invalid("windows leave parts of a sub-tensor on no core")


def check_rings(layout: RotatingLayout) -> None:
    """Raise `Invalid` unless the windows of the cores that share a sub-tensor form rings, each of which tiles it.

    A ring is made of cores whose windows are whole widths apart. Different rings may begin at different indices.
    """
    import numpy as np

    ring, ahead = _sharers(layout)
    cell = np.zeros_like(ring)
    for axis, offsets in ahead.items():
        width = layout.grid.lengths[axis] // layout.ft[axis]
        ring = ring * width + offsets % width
        cell = cell * layout.ft[axis] + offsets // width
    _, ring = np.unique(ring, return_inverse=True)
    n_cells = layout.ring_length
    counts = np.bincount(ring.reshape(-1) * n_cells + cell, minlength=(int(ring.max()) + 1) * n_cells)
    counts = counts.reshape(-1, n_cells)
    if (counts != counts[:, :1]).any():
        raise Invalid("the windows of a ring do not tile the sub-tensor: no neighbour has what a core lacks")


def _sharers(layout: RotatingLayout) -> tuple[Ints, dict[int, Ints]]:
    """Return every core's sub-tensor, and per rotating axis how far its window is ahead of the first core's."""
    import numpy as np

    from t10.core import geometry

    plan = layout.plan
    starts, where = geometry.phases(plan), geometry.coordinates(plan)
    group = np.zeros(len(starts), np.int64)
    for axis in sorted(layout.axes):
        group = group * plan.f_op[axis] + where[:, axis]
    first = np.unique(group, return_index=True)[1]
    return group, {
        axis: (starts[:, axis] - starts[first[group], axis]) % plan.lengths[axis]
        for axis, factor in enumerate(layout.ft)
        if factor > 1
    }
