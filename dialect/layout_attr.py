"""The attributes `#rtensor.grid`, `#rtensor.layout`, `#rtensor.linear` and `#rtensor.place`, and their values."""

# The docstrings of attributes are part of the reference page: tools/gen_docs.py writes it.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from t10.core.expression import AffineDim, AxisSizes
from t10.dialect.attributes import (
    Decoder,
    entries_of,
    int_tuple,
    is_int,
    refuse_unknown,
    required,
    spelled,
    to_attr,
    to_python,
)
from t10.dialect.grid import Grid, grid_fields, read_grid
from t10.dialect.layout import Layout, LinearLayout, RotatingLayout, check_layout, dim_numbers
from t10.dialect.maps import map_attr, read_map
from t10.dialect.mlir import ir
from t10.dialect.ods import DictAttr, Invalid
from t10.dialect.rtensor_base import RTensor
from t10.errors import UnsupportedOpError

LAYOUT_KEYS = ("map", "fs", "ft", "rp", "scatter", "partial", "at")


class GridAttr(RTensor.Attribute, name="grid"):
    """How the points of one operator lie on the cores and in time.

    ```mlir
    func.func private @f() attributes {grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3],
      loop_order = [2], core_order = [0, 1], phases = [[], [], [[3, 1, 2, 0], [2, 1, 3, 1]]]}>}
    ```

    | key | shape | meaning |
    |---|---|---|
    | `f_op` | axes | parts of every axis; their product is the number of cores that work |
    | `lengths` | axes | indices of one part, temporal padding included |
    | `steps` | axes | sub-tasks along the axis; their product is the number of sub-tasks |
    | `loop_order` | axes of several steps | outermost loop first |
    | `core_order` | axes of several parts | a core's number is row-major over its coordinates in this order |
    | `phases` | axes x terms | where a core starts: terms `[stride, divisor, modulus, sharer axes ...]` |

    Core `s` has coordinates `s_a < f_op[a]`. With `sigma` the row-major number of its coordinates along the sharer axes
    of a term,

    ```text
    phase_a(s) = sum over terms (stride * ((sigma / divisor) mod modulus)) mod lengths[a]       where core s starts
    pace_a = lengths[a] / steps[a]                                                              indices of a sub-task
    at positions p core s computes the box prod_a [phase_a(s) + p_a * pace_a, + pace_a) mod lengths[a]
    ```

    A negative modulus is that of a digit that is folded: it counts 0, 2, 4 ... 5, 3, 1 instead of 0, 1, 2 ....
    An axis of one step has no loop and no phases: its box is the whole part.
    """

    fields: DictAttr


class LayoutAttr(RTensor.Attribute, name="layout"):
    """How a tensor lies on the cores of a grid: the encoding of a `tensor` type.

    ```mlir
    #grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2],
      core_order = [0, 1], phases = [[], [], [[3, 1, 2, 0], [2, 1, 3, 1]]]}>
    func.func private @f(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>,
      fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)
    ```

    `map` says which axes of the grid index the tensor. Per tensor dim, outermost first: `fs` pieces in space, `ft`
    pieces of a sub-tensor over one ring of cores, `rp` indices by which a window moves in one shift. A dim indexed by
    several axes has one number per axis: `fs = [1, [2, 1]]`. `fs` and `rp` follow from the grid and are checked
    against it.

    Core `s` holds `[phase_a(s) + p_a * pace_a, + lengths[a] / ft) mod lengths[a]` of its part of every axis `a` that
    the tensor rotates along (`ft` over 1), and its whole part of the others. Optional keys:

    | key | meaning |
    |---|---|
    | `at` | positions `p` per dim at which windows stand; without it they stand at 0 |
    | `scatter` | of n cores that hold one window each keeps one of n chunks of it, by its rank among them |
    | `partial` | the combination that is still owed: cores that hold one window hold partial results |

    A grid may cover more than the tensor: slots outside are padding. The windows of the cores that share a sub-tensor
    leave no part of it out; those of a tensor that is shifted also form rings (`rtensor.shift`).
    """

    grid: GridAttr
    fields: DictAttr


class LinearAttr(RTensor.Attribute, name="linear"):
    """The elements of a tensor in row-major order, dealt out in equal chunks: the encoding of a `tensor` type.

    ```mlir
    func.func private @f(tensor<8x8xf16, #rtensor.linear<{cores = 16}>>)
    ```

    Chunks are one element or an even number of them, where there are several; core `c` holds chunk `c`.
    """

    fields: DictAttr


class PlaceAttr(RTensor.Attribute, name="place"):
    """Where a value lies in the memory of every core: the attribute `rtensor.place` of what owns memory.

    ```mlir
    func.func private @f() attributes {rtensor.place = #rtensor.place<{address = 20480, bytes = 64}>}
    ```

    The address is the device's, counted from the first byte of a core's memory. Buffers begin at multiples of 16,
    behind `rtensor.program`, and end before the last 64 bytes of the memory, into which codelets read ahead.
    """

    fields: DictAttr


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """Bytes of every core's memory: the address of the first and how many."""

    address_bytes: int
    size_bytes: int


def grid_attr(grid: Grid) -> Any:
    """Return `#rtensor.grid<...>`."""
    return GridAttr.get(to_attr(grid_fields(grid)))


def layout_attr(layout: Layout) -> Any:
    """Return the encoding of a layout."""
    if isinstance(layout, LinearLayout):
        return LinearAttr.get(to_attr({"cores": layout.n_cores}))
    grid = layout.grid
    paces = tuple(grid.pace(axis) if t > 1 else 0 for axis, t in enumerate(layout.ft))
    fields: dict[str, Any] = {
        "map": map_attr(layout.dims, len(grid.f_op)),
        "fs": dim_numbers(layout, grid.f_op, 1),
        "ft": dim_numbers(layout, layout.ft, 1),
        "rp": dim_numbers(layout, paces, 0),
    }
    if layout.scatter != 1:
        fields["scatter"] = layout.scatter
    if layout.partial:
        fields["partial"] = layout.partial
    if layout.at:
        fields["at"] = dim_numbers(layout, layout.at, 0)
    return LayoutAttr.get(grid_attr(grid), to_attr(fields))


def with_layout(type_: Any, layout: Layout | None) -> Any:
    """Return a ranked tensor type with this layout as its encoding, or without one."""
    encoding = None if layout is None else layout_attr(layout)
    return ir.RankedTensorType.get(
        list(type_.shape), type_.element_type, encoding, loc=ir.Location.unknown(type_.context)
    )


def place_attr(place: MemoryRange) -> Any:
    """Return `#rtensor.place<...>`."""
    return PlaceAttr.get(to_attr({"address": place.address_bytes, "bytes": place.size_bytes}))


def read_place(attr: Any) -> MemoryRange:
    """Return the value of `#rtensor.place`; raises `Invalid`."""
    attr = attr.maybe_downcast()
    if not isinstance(attr, PlaceAttr):
        raise Invalid(f"rtensor.place is {attr}, expected #rtensor.place<{{address = ..., bytes = ...}}>")
    fields = to_python(attr.fields)
    refuse_unknown(fields, ("address", "bytes"), "place")
    numbers = [required(fields, key, "place") for key in ("address", "bytes")]
    if not all(is_int(number) and number >= 0 for number in numbers):
        raise Invalid(f"place is {spelled(fields)}, expected numbers that are not negative")
    return MemoryRange(*numbers)


def _decode_grid(attr: Any) -> Grid:
    return read_grid(to_python(attr.maybe_downcast().fields))


def _layout_of(type_: Any) -> Layout | None:
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return None
    encoding = type_.encoding.maybe_downcast()
    if not isinstance(encoding, (LayoutAttr, LinearAttr)):
        return None
    if not type_.has_static_shape:
        raise Invalid(f"layout on the dynamic shape of {type_}, expected a static shape")
    layout = _decode(encoding)
    check_layout(layout, tuple(type_.shape))
    return layout


def _decode(encoding: Any) -> Layout:
    if isinstance(encoding, LinearAttr):
        fields = to_python(encoding.fields)
        refuse_unknown(fields, ("cores",), "linear layout")
        cores = required(fields, "cores", "linear layout")
        if not is_int(cores):
            raise Invalid(f"linear layout on cores = {spelled(cores)}, expected an integer")
        return LinearLayout(cores)
    return _rotating(decode_grid(encoding.grid), to_python(encoding.fields))


def _rotating(grid: Grid, fields: Mapping[str, Any]) -> RotatingLayout:
    """Return the layout spelled by decoded fields, checking what of them follows from the grid."""
    refuse_unknown(fields, LAYOUT_KEYS, "layout")
    map_ = required(fields, "map", "layout")
    if not isinstance(map_, ir.AffineMapAttr) or map_.value.n_dims != len(grid.f_op) or map_.value.n_symbols:
        raise Invalid(
            f"layout map is {spelled(map_)}, expected an affine map over the {len(grid.f_op)} axes of the grid"
        )
    try:
        dims = read_map(map_.value)
    except UnsupportedOpError as problem:
        raise Invalid(f"layout map: {problem.message}") from None
    scatter, partial = fields.get("scatter", 1), fields.get("partial", "")
    if not is_int(scatter) or not isinstance(partial, str):
        raise Invalid(
            f"layout scatter is {spelled(scatter)} and partial {spelled(partial)}, expected a number and a name"
        )
    rows = {
        key: _by_axis(dims, required(fields, key, "layout"), key, len(grid.f_op))
        for key in ("fs", "ft", "rp")
    }
    at = _by_axis(dims, fields["at"], "at", len(grid.f_op), default=0) if "at" in fields else ()
    layout = RotatingLayout(grid, dims, rows["ft"], scatter, partial, at)
    for axis in layout.axes:
        if rows["fs"][axis] != grid.f_op[axis]:
            raise Invalid(f"fs = {rows['fs'][axis]} along axis {axis}, expected f_op = {grid.f_op[axis]}")
        pace = grid.pace(axis) if layout.ft[axis] > 1 else 0
        if rows["rp"][axis] != pace:
            raise Invalid(f"rp = {rows['rp'][axis]} along axis {axis}, expected the pace {pace} of the grid")
    return layout


def _by_axis(
    dims: tuple[AffineDim, ...], value: object, name: str, n_axes: int, default: int = 1
) -> AxisSizes:
    """Return numbers written per tensor dim as numbers per axis of the grid."""
    entries = entries_of(value)
    if entries is None or len(entries) != len(dims):
        raise Invalid(f"{name} is {spelled(value)}, expected one entry per tensor dim, here {len(dims)}")
    found: dict[int, int] = {}
    for d, (dim, entry) in enumerate(zip(dims, entries, strict=True)):
        numbers = int_tuple((entry,) if is_int(entry) else entry, f"{name}[{d}]")
        if not dim.terms:
            expected = 0 if name in ("rp", "at") else 1
            if numbers != (expected,):
                raise Invalid(f"{name}[{d}] = {spelled(entry)} of a dim without axis, expected {expected}")
            continue
        if len(numbers) != len(dim.terms) or (len(numbers) == 1) != is_int(entry):
            raise Invalid(f"{name}[{d}] = {spelled(entry)}, expected one number per axis of the dim")
        for axis, number in zip(dim.axes, numbers, strict=True):
            if found.setdefault(axis, number) != number:
                raise Invalid(
                    f"{name}[{d}] = {spelled(entry)}, but another dim has {found[axis]} along axis {axis}"
                )
    return tuple(found.get(axis, default) for axis in range(n_axes))


decode_grid = Decoder(_decode_grid)
"""Decodes `#rtensor.grid`; raises `Invalid`."""
layout_of = Decoder(_layout_of)
"""Returns the layout of a tensor type, checked on its shape, or None; raises `Invalid`."""
