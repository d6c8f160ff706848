"""Operators whose result has a data-dependent length, with a fixed extent and a count of its valid rows.

Of M elements those that a mask chooses get places in order: the running count of the mask is the row in which one
stands, and row j takes the one whose count is j + 1. Rows behind the last are those of element 0, and not valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from t10.frontend.rewrites import control
from t10.frontend.rewrites.bounded_loops import write_loop
from t10.frontend.rewrites.heads import below
from t10.frontend.rewrites.site import KIND, Rule, Site
from t10.frontend.unsupported import title_of


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows along an axis of a value are valid: the first ones, as a mask of `n` and as a count (int32)."""

    axis: int
    n: int
    valid: str
    count: str
    bound: str = ""
    """The name of the bound."""


OWNER_KEY = "t10.owner"
"""Of a node that a rule here has written: operator and name of the node of the model, on two lines."""
FILL_KEY = "t10.fill"
"""Of a node that reads what may have invalid rows: what they must hold, on which axis, and whose rows they must be."""


@dataclass(slots=True)
class Bounds:
    """Extents by name of an operator or of its first result, and the rows of what was written so."""

    extents: Mapping[str, int]
    used: set[str] = field(default_factory=set[str])
    rows: dict[str, Rows] = field(default_factory=dict[str, Rows])
    counts: dict[str, str] = field(default_factory=dict[str, str])
    """By name of a bound, the value that counts."""
    scanned: dict[str, Rows] = field(default_factory=dict[str, Rows])
    """What loops have made row by row: Compress of the first rows, until extents that are asked for are known."""
    places: set[str] = field(default_factory=set[str])
    """Results that say where elements are, and are at least 0."""

    def control(self) -> dict[str, Rule]:
        """Return rules for control flow: bounded loops, and what constants decide."""
        return {**control.RULES, "Loop": self._loop}

    def rules(self) -> dict[str, Rule]:
        """Return a rule for every other operator that may be bounded."""
        return {
            name: lambda site, write=write: self._written(site, write) for name, write in _WRITERS.items()
        }

    def _name(self, site: Site) -> str:
        return next((n for n in (site.node.name, *site.node.output) if n and n in self.extents), "")

    def _loop(self, site: Site) -> bool:
        if control.RULES["Loop"](site):
            return True
        name = self._name(site)
        steps = write_loop(site, self.extents[name]) if name else None
        if steps is None:
            return False
        self.used.add(name)
        self.counts[name] = steps.count
        rows = Rows(0, steps.n, steps.run, steps.count, name)
        self.scanned |= dict.fromkeys(site.node.output[len(site.node.input) - 2 :], rows)
        return True

    def _written(self, site: Site, write: _Writer) -> bool:
        output = site.node.output[0]
        if output in self.scanned:
            self.rows[output] = rows = self.scanned.pop(output)
            _filled(site, site.input(0), rows, len(site.shape(0) or ()), site.kind(0), 0)
            return True
        name = self._name(site)
        made = write(site, self.extents[name]) if name else None
        if made is None:
            return False
        self.used.add(name)
        self.rows |= {output: replace(rows, bound=name) for output, rows in made.items() if output}
        self.counts[name] = next(iter(made.values())).count
        place = _PLACES.get(site.node.op_type, len(site.node.output))
        self.places.update(site.node.output[place : place + 1])
        for node in site.nodes:
            node.metadata_props.add(key=OWNER_KEY, value=f"{site.node.op_type}\n{title_of(site.node)}")
        return True


_Writer = Callable[[Site, int], "dict[str, Rows] | None"]
"""Writes an operator with a bound and returns the rows of its results by name; None for a form that has no rule."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Places of chosen elements, [n] in int32, and which of them are valid."""

    hit: str
    places: str
    valid: str
    count: str

    def rows(self, axis: int, n: int) -> Rows:
        return Rows(axis, n, self.valid, self.count)


def _chosen(site: Site, mask: str, m: int, n: int, row_of: str = "") -> _Chosen:
    """Write the places of elements that a mask chooses; `row_of` says where each stands, 1 first, if not in order."""
    ones = site.cast(mask, KIND.FLOAT)
    if not row_of:
        row_of = site.op("CumSum", ones, site.constant(0, np.int64))
    rows = site.constant(np.arange(1, n + 1, dtype=np.float32)[:, None])
    is_row = site.op("Equal", site.reshape(row_of, (1, m)), rows)
    hit = site.cast(site.op("And", is_row, site.reshape(mask, (1, m))), KIND.FLOAT)
    place = site.op("MatMul", hit, site.constant(np.arange(m, dtype=np.float32)[:, None]))
    total = site.op("Min", site.reduce("ReduceSum", ones, [0], keep=False), site.scalar(n, KIND.FLOAT))
    count = site.cast(total, KIND.INT32)
    valid = below(site, site.constant(np.arange(n, dtype=np.int32)), count)
    return _Chosen(hit, site.cast(site.reshape(place, (n,)), KIND.INT32), valid, count)


def _valid(site: Site, x: str, fill: str, axis: int | None = None, like: str = "") -> str:
    """Write x with a number in invalid rows, if it has any: they must be along `axis`, and those of `like`.

    The number is `zero`, `least` or `most` of its type with infinities, or `lowest`, the least that is finite.
    """
    made = site.op("Identity", x)
    site.nodes[-1].metadata_props.add(key=FILL_KEY, value=f"{fill}\n{'' if axis is None else axis}\n{like}")
    return made


def _filled(site: Site, x: str, rows: Rows, rank: int, kind: int, place: int) -> None:
    """Write x with zeros in invalid rows as an output."""
    extents = [rows.n if axis == rows.axis else 1 for axis in range(rank)]
    if not site.output(place):
        return
    valid = site.reshape(rows.valid, extents)
    site.op("Where", valid, x, site.scalar(0, kind), output=site.node.output[place])


def _non_zero(site: Site, n: int) -> dict[str, Rows] | None:
    shape, kind = site.shape(0), site.kind(0)
    if not shape or not kind or prod(shape) >= 1 << 24:
        return None
    m = prod(shape)
    flat = site.reshape(_valid(site, site.input(0), "zero"), (m,))
    mask = flat if kind == KIND.BOOL else site.op("Not", site.op("Equal", flat, site.scalar(0, kind)))
    chosen = _chosen(site, mask, m, n)
    table = np.stack(np.unravel_index(np.arange(m), shape), 1).astype(np.float32)
    places = site.op("MatMul", chosen.hit, site.constant(table))
    site.cast(site.transpose(places, (1, 0)), KIND.INT64, output=site.node.output[0])
    return {site.node.output[0]: chosen.rows(1, n)}


def _compress(site: Site, n: int) -> dict[str, Rows] | None:
    shape, condition, kind = site.shape(0), site.shape(1), site.kind(0)
    if not shape or not condition or not kind:
        return None
    axis = site.option("axis", None)
    extents = shape if axis is not None else (prod(shape),)
    along = int(axis) % len(shape) if axis is not None else 0
    x = _valid(site, site.input(0), "zero", along, site.input(1))
    x = x if axis is not None else site.reshape(x, extents)
    m = min(condition[0], extents[along])
    mask = _valid(site, site.input(1), "zero")
    mask = mask if m == condition[0] else site.slice(mask, 0, 0, m)
    chosen = _chosen(site, mask, m, n)
    rows = chosen.rows(along, n)
    _filled(site, site.op("Gather", x, chosen.places, axis=along), rows, len(extents), kind, 0)
    return {site.node.output[0]: rows}


def _top_k(site: Site, n: int) -> dict[str, Rows] | None:
    shape, kind = site.shape(0), site.kind(0)
    if not shape or not kind or n > shape[int(site.option("axis", -1)) % len(shape)]:
        return None
    axis = int(site.option("axis", -1)) % len(shape)
    most = site.constant([n], np.int64)
    x = _valid(site, site.input(0), "least" if site.option("largest", 1) else "most", axis)
    values, places = site.several("TopK", [x, most], ("", ""), **site.options)
    asked = site.cast(site.reshape(site.input(1), ()), KIND.INT32)
    count = site.op("Min", asked, site.scalar(n, KIND.INT32))
    rows = Rows(axis, n, below(site, site.constant(np.arange(n, dtype=np.int32)), count), count)
    _filled(site, values, rows, len(shape), kind, 0)
    _filled(site, places, rows, len(shape), KIND.INT64, 1)
    return dict.fromkeys(site.node.output, rows)


def _unique(site: Site, n: int) -> dict[str, Rows] | None:
    """Write the different elements of a flat tensor, where each stands first, which one each is, and how many."""
    shape, kind = site.shape(0), site.kind(0)
    if not shape or not kind or site.option("axis", None) is not None:
        return None
    m = prod(shape)
    x = site.reshape(site.input(0), (m,))
    column, row = site.reshape(x, (m, 1)), site.reshape(x, (1, m))
    same = site.op("Equal", column, row)
    earlier = site.constant(np.tril(np.ones((m, m), bool), -1))
    n_earlier = site.reduce(
        "ReduceSum", site.cast(site.op("And", same, earlier), KIND.FLOAT), [1], keep=False
    )
    is_first = site.op("Less", n_earlier, site.scalar(0.5, KIND.FLOAT))
    firsts = site.cast(is_first, KIND.FLOAT)
    if site.option("sorted", 1):
        is_less = site.cast(site.op("Less", row, column), KIND.FLOAT)
        row_of = site.op("MatMul", is_less, site.reshape(firsts, (m, 1)))
        row_of = site.op("Add", site.reshape(row_of, (m,)), site.scalar(1, KIND.FLOAT))
    else:
        running = site.op("CumSum", firsts, site.constant(0, np.int64))
        at_first = site.reshape(site.op("Mul", running, firsts), (m, 1))
        row_of = site.reshape(site.op("MatMul", site.cast(same, KIND.FLOAT), at_first), (m,))
    chosen = _chosen(site, is_first, m, n, row_of)
    rows = chosen.rows(0, n)
    _filled(site, site.op("Gather", x, chosen.places, axis=0), rows, 1, kind, 0)
    _filled(site, site.cast(chosen.places, KIND.INT64), rows, 1, KIND.INT64, 1)
    if site.output(2):
        number = site.op("Sub", row_of, site.scalar(1, KIND.FLOAT))
        site.cast(number, KIND.INT64, output=site.node.output[2])
    if site.output(3):
        of_each = site.constant(np.arange(1, n + 1, dtype=np.float32)[:, None])
        is_one = site.cast(site.op("Equal", site.reshape(row_of, (1, m)), of_each), KIND.FLOAT)
        site.cast(site.reduce("ReduceSum", is_one, [1], keep=False), KIND.INT64, output=site.node.output[3])
    bounded = [name for i, name in enumerate(site.node.output) if i != 2]
    return dict.fromkeys(bounded, rows)


def _non_max(site: Site, n: int) -> dict[str, Rows] | None:
    """Write NonMaxSuppression as picks of the best box that is left, of all classes and batches at once."""
    boxes, scores = site.shape(0), site.shape(1)
    most = site.constant_input(2) if site.input(2) else np.zeros(1)
    if not boxes or not scores or most is None or site.kind(0) != KIND.FLOAT:
        return None
    batch, n_classes, n_boxes = scores
    n_picks = min(int(most.reshape(-1)[0]), n, n_boxes)
    if n_picks < 1:
        return None
    left = _Left(site, boxes, scores)
    picked = [left.pick() for _ in range(n_picks)]
    extents = (batch, n_classes, 1)
    places = site.concat([site.reshape(place, extents) for place, _ in picked], 2)
    is_there = site.concat([site.reshape(is_one, extents) for _, is_one in picked], 2)
    m = batch * n_classes * n_picks
    chosen = _chosen(site, site.reshape(is_there, (m,)), m, n)
    of_batch, of_class, _ = np.unravel_index(np.arange(m), (batch, n_classes, n_picks))
    known = site.constant(np.stack([of_batch, of_class], 1).astype(np.float32))
    table = site.concat([known, site.cast(site.reshape(places, (m, 1)), KIND.FLOAT)], 1)
    site.cast(site.op("MatMul", chosen.hit, table), KIND.INT64, output=site.node.output[0])
    return {site.node.output[0]: chosen.rows(0, n)}


class _Left:
    """Boxes that are neither picked nor suppressed, of all classes and batches: [batch, class, box]."""

    def __init__(self, site: Site, boxes: tuple[int, ...], scores: tuple[int, ...]) -> None:
        self.site, self.extents = site, scores
        batch, _, n_boxes = scores
        given = _valid(site, site.input(0), "zero", 1, site.input(1))
        ends = [site.reshape(site.slice(given, 2, i, i + 1), (batch, 1, n_boxes)) for i in range(boxes[2])]
        if site.option("center_point_box", 0):
            half = site.scalar(0.5, KIND.FLOAT)
            x, y, w, h = ends
            w, h = site.op("Mul", w, half), site.op("Mul", h, half)
            low = site.op("Sub", y, h), site.op("Sub", x, w)
            high = site.op("Add", y, h), site.op("Add", x, w)
        else:
            low = site.op("Min", ends[0], ends[2]), site.op("Min", ends[1], ends[3])
            high = site.op("Max", ends[0], ends[2]), site.op("Max", ends[1], ends[3])
        self.area = site.op("Mul", *(site.op("Sub", b, a) for a, b in zip(low, high, strict=True)))
        corners = site.concat([*low, *high], 1)
        self.low, self.high = (
            site.reshape(site.slice(corners, 1, i, i + 2), (batch, 1, 2, n_boxes)) for i in (0, 2)
        )
        self.table = site.transpose(site.concat([corners, self.area], 1), (0, 2, 1))
        lowest = np.finfo(np.float32).min
        above = site.scalar(np.nextafter(lowest, np.float32(0)), KIND.FLOAT)
        self.lowest = lowest = site.scalar(lowest, KIND.FLOAT)
        # The lowest score stands for a box that is gone: those that are there, also of -inf, are above it.
        self.scores = site.op("Max", site.input(1), above)
        if site.input(4):
            least = site.reshape(site.input(4), ())
            self.scores = site.op("Where", site.op("Greater", site.input(1), least), self.scores, lowest)
        self.scores = _valid(site, self.scores, "lowest", 2)
        zero = site.scalar(0, KIND.FLOAT)
        self.most = site.reshape(site.input(3), ()) if site.input(3) else zero

    def pick(self) -> tuple[str, str]:
        """Write the place of the best box, [batch, class, 1], and whether there is one; what overlaps it is gone."""
        site, (batch, n_classes, n_boxes) = self.site, self.extents
        best = site.reduce("ReduceMax", self.scores, [2], keep=True)
        is_there = site.op("Greater", best, self.lowest)
        place = site.op("ArgMax", self.scores, axis=2, keepdims=1)
        numbers = site.constant(np.arange(n_boxes, dtype=np.int32)[None, None])
        narrow = site.cast(place, KIND.INT32)
        is_it = site.op("Equal", numbers, narrow)
        own = site.op("MatMul", site.cast(is_it, KIND.FLOAT), self.table)
        low, high = (site.reshape(site.slice(own, 2, i, i + 2), (batch, n_classes, 2, 1)) for i in (0, 2))
        zero = site.scalar(0, KIND.FLOAT)
        # Both sides at once: an operator of few operands, whose plans are found in less time.
        sides = site.op("Sub", site.op("Min", high, self.high), site.op("Max", low, self.low))
        shared = site.reduce("ReduceProd", site.op("Max", sides, zero), [2], keep=False)
        union = site.op("Sub", site.op("Add", site.slice(own, 2, 4, 5), self.area), shared)
        overlaps = site.op("Greater", shared, site.op("Mul", self.most, union))
        # A box of a negative width shares nothing, but makes the union negative.
        overlaps = site.op("And", overlaps, site.op("Greater", shared, zero))
        gone = site.op("Or", overlaps, is_it)
        self.scores = site.op("Where", gone, self.lowest, self.scores)
        return place, is_there


_WRITERS: dict[str, _Writer] = {
    "Compress": _compress,
    "NonMaxSuppression": _non_max,
    "NonZero": _non_zero,
    "TopK": _top_k,
    "Unique": _unique,
}
_PLACES = {"NonMaxSuppression": 0, "NonZero": 0, "TopK": 1, "Unique": 1}
"""Which result says where elements are."""
FORMS = {
    "Compress": "of static shape",
    "Loop": "of at most 20,000 nodes in all steps, whose carried values keep one static shape in each",
    "NonMaxSuppression": "of float32 boxes and scores of static shape, max_output_boxes_per_class a constant above 0",
    "NonZero": "of static shape and fewer than 2^24 elements",
    "TopK": "of static shape, the bound at most the extent of its axis",
    "Unique": "of static shape, without an axis",
}
"""By operator, the form in which it may be bounded."""
