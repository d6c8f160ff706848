"""An operator as a tensor expression: axes, operands indexed by affine forms, a body and how it is combined.

```
C[m, n] += A[m, k] * B[k, n]       axes m, n parallel; k reduction; combine = "sum"
O[n, f, h, w] += X[n, c, 2h + kh - 1, 2w + kw - 1] * W[f, c, kh, kw]      compound dims with padding
```

The loop nest an `OperatorSpec` stands for (outermost first, all axes in the order of `axes`):

```
for every point of the parallel axes:
    acc = neutral element of combine
    for every point of the reduction axes (that satisfies every selector):
        acc = combine(acc, body(inputs at their affine indices))
    output[...] = epilogue(acc, epilogue_inputs at their affine indices)
```

Source: compute-shift model §1, T10 §4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from t10.core.scalar import ScalarFunction
from t10.errors import T10Error, UnsupportedOpError

AxisSizes = tuple[int, ...]
"""One number per axis of an operator, in the order of `OperatorSpec.axes`."""

AxisKind = Literal["parallel", "reduction"]
Role = Literal["weight", "activation", "output"]
Combine = Literal["none", "sum", "prod", "max", "min", "maxnum", "minnum", "and", "or"]
OperatorKind = Literal["contraction", "convolution", "reduction", "pooling", "elementwise", "gather"]


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of the expression: `extent` points; `is_splittable` says whether F_op may cut it."""

    name: str
    extent: int
    kind: AxisKind
    is_splittable: bool = True

    def __post_init__(self) -> None:
        """Refuse empty axes."""
        if self.extent < 1:
            raise T10Error(f"axis {self.name} has extent {self.extent} (expected at least 1)")


@dataclass(frozen=True, slots=True)
class Term:
    """`coefficient * axis` inside an affine index; `axis` is a number into `OperatorSpec.axes`."""

    axis: int
    coefficient: int


@dataclass(frozen=True, slots=True)
class AffineDim:
    """The index of one operand dim: `sum of terms + offset`; no term means the constant `offset`."""

    terms: tuple[Term, ...]
    offset: int = 0

    @property
    def is_simple(self) -> bool:
        """Return whether the dim is exactly one axis with coefficient 1 and no offset."""
        return len(self.terms) == 1 and self.terms[0].coefficient == 1 and self.offset == 0

    @property
    def axes(self) -> AxisSizes:
        """Return the axes that occur in the dim."""
        return tuple([term.axis for term in self.terms])


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor read or written by an operator.

    `name` is the graph value (or view) it reads or makes; `shape` is in elements; `dims` has one affine form per
    dim. Indices outside `shape` read `pad_value` (a constant's spelling, see `scalar.parse_constant`), or 0 where it
    is empty: they then belong to iterations that do not count.
    """

    name: str
    role: Role
    dtype: str
    shape: tuple[int, ...]
    dims: tuple[AffineDim, ...]
    pad_value: str = ""

    def __post_init__(self) -> None:
        """Refuse a rank mismatch and non-positive coefficients."""
        if len(self.shape) != len(self.dims):
            raise T10Error(
                f"operand {self.name}: {len(self.dims)} index forms for a rank-{len(self.shape)} tensor"
            )
        for dim in self.dims:
            if any(term.coefficient < 1 for term in dim.terms):
                raise T10Error(f"operand {self.name}: index coefficients must be at least 1, found {dim}")
            if len(set(dim.axes)) != len(dim.axes):
                raise T10Error(f"operand {self.name}: an axis occurs twice in one dim: {dim}")

    @property
    def axes(self) -> frozenset[int]:
        """Return A(T), the axes that occur in the operand."""
        return frozenset([term.axis for dim in self.dims for term in dim.terms])

    @property
    def simple_axes(self) -> frozenset[int]:
        """Return the axes that only occur in simple dims: their windows may be circular (compute-shift model R5)."""
        compound = [term.axis for dim in self.dims if not dim.is_simple for term in dim.terms]
        return self.axes.difference(compound)


@dataclass(frozen=True, slots=True)
class Selector:
    """Data-dependent access made affine: only the point of `axis` with `axis == index(inputs)` counts (a gather)."""

    axis: int
    index: ScalarFunction


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One operator, the unit that is planned. See the module's docstring for the loop nest it stands for.

    `body` takes the `inputs` in order and returns the contribution in `acc_dtype`; `epilogue` takes the accumulated
    value and then `epilogue_inputs`, which are indexed by parallel axes only, and returns `output.dtype`.
    `location` is the source's name for error messages (an ONNX node name or file:line:column). `first` is what sums
    begin with in the place of zeros (`t10.core.first_partial`): operators that are planned have none.
    """

    name: str
    kind: OperatorKind
    axes: tuple[Axis, ...]
    inputs: tuple[Operand, ...]
    output: Operand
    combine: Combine
    body: ScalarFunction
    acc_dtype: str
    epilogue: ScalarFunction | None = None
    epilogue_inputs: tuple[Operand, ...] = ()
    selectors: tuple[Selector, ...] = ()
    location: str = ""
    first: Operand | None = None

    def __post_init__(self) -> None:
        """Refuse expressions that no plan could execute."""
        parallel = frozenset(i for i, axis in enumerate(self.axes) if axis.kind == "parallel")
        self._check_output(parallel)
        if (self.combine == "none") != (len(parallel) == len(self.axes)):
            raise T10Error("an operator combines if and only if it has a reduction axis", operator=self.name)
        if self.body.n_inputs != len(self.inputs):
            raise T10Error(
                f"body takes {self.body.n_inputs} of {len(self.inputs)} inputs", operator=self.name
            )
        if any(not operand.axes <= parallel for operand in self.epilogue_inputs):
            raise T10Error("epilogue inputs must be indexed by parallel axes", operator=self.name)
        if self.epilogue is not None and self.epilogue.n_inputs != 1 + len(self.epilogue_inputs):
            raise T10Error("epilogue must take the accumulator and every epilogue input", operator=self.name)
        if self.epilogue is None and self.acc_dtype != self.output.dtype:
            found = f"accumulates {self.acc_dtype} into {self.output.dtype} without epilogue"
            raise T10Error(found, operator=self.name)

    def _check_output(self, parallel: frozenset[int]) -> None:
        """Refuse an output of which elements are written twice, or not at all."""
        output, used = self.output, [axis for dim in self.output.dims for axis in dim.axes]
        places = zip(output.dims, output.shape, strict=True)
        if any(not dim.is_simple if dim.terms else (dim.offset, extent) != (0, 1) for dim, extent in places):
            raise UnsupportedOpError(
                f"output {output.name} of shape {list(output.shape)} is not indexed by single axes, expected one for "
                "every dim of more than one element",
                operator=self.name,
            )
        if frozenset(used) != parallel or len(used) > len(parallel):
            raise UnsupportedOpError(
                f"output {output.name} is indexed by {[self.axes[axis].name for axis in used]}, expected every "
                "parallel axis once, and no other",
                operator=self.name,
            )

    def __hash__(self) -> int:
        """Return a hash of what tells most operators apart: one is a key of much that is kept, and has many parts."""
        return hash((self.name, self.kind, self.extents, self.combine, self.acc_dtype, self.output.dtype))

    @property
    def rotatable(self) -> tuple[Operand, ...]:
        """Return the operands that have an `ft`: inputs in order, then the output."""
        return (*self.inputs, self.output)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Return every tensor read: inputs in order, then epilogue inputs."""
        return (*self.inputs, *self.epilogue_inputs)

    @property
    def extents(self) -> AxisSizes:
        """Return N_a per axis."""
        return tuple(axis.extent for axis in self.axes)

    @property
    def reduction_axes(self) -> AxisSizes:
        """Return the axes that are summed (or otherwise combined) away."""
        return tuple(i for i, axis in enumerate(self.axes) if axis.kind == "reduction")

    @property
    def window_positions(self) -> frozenset[int]:
        """Return the reduction axes of dims over several axes: positions in the window of a convolution or pooling."""
        return frozenset(
            axis
            for operand in self.inputs
            for dim in operand.dims
            if len(dim.terms) > 1
            for axis in dim.axes
            if self.axes[axis].kind == "reduction"
        )

    @property
    def n_points(self) -> int:
        """Return the number of points of the iteration space."""
        return prod(self.extents)
