"""The value of `#rtensor.layout`: how a tensor lies on the cores, and the rules it must satisfy.

```
tensor<6x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 2], cores = 4}>>
```

cuts dim 0 in 2 sub-tensors of 3x8; 4 cores share each; every ring of 1*2 cores holds one copy, cut in 2 along dim 1
into partitions of 3x4, and they rotate by 2 elements of dim 1 at a time:

```
for each sub-tensor (i, j) of fs:                        # 2 x 1, outermost dim first
  for each ring of its sharers:                          # cores / prod(ft) = 2 copies
    for member r of the ring, of prod(ft) = 2:           # holds partition r; each step hands on rp elements
      hold T[i * 3 : i * 3 + 3,  (start(r) + [0, 4)) mod 8]
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from t10.core.chunks import chunk_slots
from t10.dialect.attributes import int_tuple, is_int, refuse_unknown, required
from t10.dialect.ods import Invalid

KEYS = ("fs", "ft", "rp", "cores", "scatter", "halo", "padded", "linear")
"""Keys of the attribute: either `linear` alone, or `fs`, `ft` and `rp` with the others where not default."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies on the cores, per tensor dim (outermost first); see the module's docstring.

    `fs` pieces in space, `ft` pieces of a sub-tensor over one ring, `rp` elements per shift (0: does not rotate).
    `cores` share a sub-tensor (0: not stated). `scatter` cores hold 1/scatter of each partition (1: whole), as
    reduce-scatter leaves it. `halo` elements by which neighbouring sub-tensors of a compound dim (such as h + kh)
    overlap, as if evenly spaced where several of its axes are cut; empty means that none overlap, and then no dim has
    more sub-tensors than elements. `padded` extents that dims are padded to where that is more than even pieces of `fs`
    need (so that every ft on an axis divides its length); empty means none. A dim indexed by several axes has the
    product of their factors.
    `linear` over 0 is the other form: elements in row-major order, dealt out in equal chunks to that many cores.
    """

    fs: tuple[int, ...] = ()
    ft: tuple[int, ...] = ()
    rp: tuple[int, ...] = ()
    cores: int = 0
    scatter: int = 1
    halo: tuple[int, ...] = ()
    padded: tuple[int, ...] = ()
    linear: int = 0

    @property
    def ring(self) -> int:
        """Return the number of cores that together hold one copy of a sub-tensor: prod(ft)."""
        return prod(self.ft)

    def partition_elements(self, shape: tuple[int, ...]) -> int:
        """Return the number of elements one core holds."""
        if self.linear:
            return chunk_slots(prod(shape), self.linear)
        return chunk_slots(prod(self.partition(shape)), self.scatter)

    def sub_tensor(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the extents of one sub-tensor in elements, padding and halo included."""
        halo = self.halo or (0,) * len(shape)
        extents = self.padded or shape
        return tuple(_ceil_div(max(n - h, 1), f) + h for n, f, h in zip(extents, self.fs, halo, strict=True))

    def partition(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the extents of one sub-tensor partition in elements: what one core of a ring holds."""
        return tuple(_ceil_div(n, t) for n, t in zip(self.sub_tensor(shape), self.ft, strict=True))

    def fields(self) -> dict[str, Any]:
        """Return the fields to write, by key; defaults are left out."""
        if self.linear:
            return {"linear": self.linear}
        fields: dict[str, Any] = {"fs": self.fs, "ft": self.ft, "rp": self.rp}
        if self.cores:
            fields["cores"] = self.cores
        if self.scatter != 1:
            fields["scatter"] = self.scatter
        if self.halo:
            fields["halo"] = self.halo
        if self.padded:
            fields["padded"] = self.padded
        return fields


def read_layout(fields: Mapping[str, Any]) -> Layout:
    """Return the layout spelled by a decoded attribute; raises `Invalid` for missing, unknown or ill-typed keys."""
    refuse_unknown(fields, KEYS, "layout")
    scalars: dict[str, int] = {key: fields[key] for key in ("cores", "scatter", "linear") if key in fields}
    for key, value in scalars.items():
        if not is_int(value) or value < 1:
            raise Invalid(f"layout {key} is {value}, expected a positive integer")
    if "linear" in fields:
        refuse_unknown(fields, ("linear",), "linear layout")
        return Layout(linear=scalars["linear"])
    rows = {key: int_tuple(required(fields, key, "layout"), key) for key in ("fs", "ft", "rp")}
    cores, scatter = scalars.get("cores", 0), scalars.get("scatter", 1)
    halo, padded = (int_tuple(fields.get(key, ()), key) for key in ("halo", "padded"))
    return Layout(rows["fs"], rows["ft"], rows["rp"], cores=cores, scatter=scatter, halo=halo, padded=padded)


def check_layout(layout: Layout, shape: tuple[int, ...]) -> None:
    """Raise `Invalid` with the first rule that `layout` breaks on a tensor of `shape` (compute-shift model §2, §3)."""
    if layout.linear:
        return
    _check_ranks(layout, len(shape))
    for dim, (extent, padded) in enumerate(zip(shape, layout.padded, strict=False)):
        if padded < extent:
            raise Invalid(f"padded[{dim}] = {padded}, expected at least the extent {extent}")
    sub_tensor = layout.sub_tensor(shape)
    for dim, (extent, fs, ft) in enumerate(zip(shape, layout.fs, layout.ft, strict=True)):
        if fs > max(extent, 1) and not layout.halo:
            raise Invalid(
                f"fs[{dim}] = {fs} cuts extent {extent} into more pieces than elements, expected at most {extent}"
            )
        if ft > sub_tensor[dim]:
            raise Invalid(
                f"ft[{dim}] = {ft} cuts a sub-tensor of {sub_tensor[dim]} elements, expected at most {sub_tensor[dim]}"
            )
    if layout.cores and layout.cores % layout.ring:
        raise Invalid(
            f"prod(ft) = {layout.ring} does not divide the {layout.cores} cores that share a sub-tensor"
        )
    if layout.cores and layout.cores // layout.ring % layout.scatter:
        raise Invalid(
            f"scatter = {layout.scatter} does not divide the {layout.cores // layout.ring} copies of a sub-tensor"
        )
    for dim, (length, ft, rp) in enumerate(zip(layout.partition(shape), layout.ft, layout.rp, strict=True)):
        if rp > length:
            raise Invalid(
                f"rp[{dim}] = {rp} is larger than a partition of {length} elements "
                f"(extent {shape[dim]}, fs {layout.fs[dim]}, ft {ft})"
            )
        if rp and ft == 1:
            raise Invalid(
                f"rp[{dim}] = {rp} but ft[{dim}] = 1: a dim that is not cut in time does not rotate, expected 0"
            )


def _check_ranks(layout: Layout, rank: int) -> None:
    """Raise `Invalid` for rows that are not as long as the tensor's rank, or hold numbers out of range."""
    rows = (("fs", layout.fs, 1), ("ft", layout.ft, 1), ("rp", layout.rp, 0))
    optional = tuple(each for each in (("halo", layout.halo, 0), ("padded", layout.padded, 1)) if each[1])
    for name, row, least in (*rows, *optional):
        if len(row) != rank:
            raise Invalid(f"{name} has {len(row)} entries for a rank-{rank} tensor, expected {rank}")
        for dim, value in enumerate(row):
            if value < least:
                raise Invalid(f"{name}[{dim}] = {value}, expected at least {least}")


def _ceil_div(a: int, b: int) -> int:
    """Return a / b rounded up."""
    return -(-a // b)
