"""Changes of form: between float registers and integer registers, and between masks of 16 and 32 bits."""

from __future__ import annotations

import numpy as np

from t10.codelets.body import floats, integers
from t10.codelets.body.select import Form, Rules, Selector, Unselectable
from t10.codelets.body.virtual import Slice
from t10.core.dtypes import numpy_dtype
from t10.core.scalar import ScalarOp, parse_constant

ALL_ONES = 0xFFFFFFFF


def load(s: Selector, value: int, form: Form, part: int) -> Slice:
    """Return a part of an input."""
    return s.sources.load(s.code, value, form, part)


def constant_bits(op: ScalarOp, form: Form) -> int:
    """Return a constant as a word: 16-bit ones twice, truth values as masks in float registers."""
    value = parse_constant(op.attribute)
    if op.dtype == "i1":
        return int(bool(value)) if form == "m" else ALL_ONES * bool(value)
    if op.dtype == "f16":
        return int(np.float16(value).view(np.uint16)) * 0x10001
    if op.dtype == "f32":
        return int(np.float32(value).view(np.uint32))
    # As numpy casts: what does not fit wraps.
    return int(np.array(value).astype(numpy_dtype(op.dtype))) & ALL_ONES


def convert(s: Selector, value: int, source: Form, target: Form, part: int) -> Slice:
    """Return a part of a value in another form than it is computed in."""
    if target == "m":
        return _to_integers(s, value, source, part)
    if source == "m":
        return _from_integers(s, value, target, part)
    if s.lanes == 1:
        return s.get(value, source, 0)
    if source == "h":
        halves, wide = s.get(value, "h", 0).part(part), s.new("w")
        s.code.aux("sort4x16lo", wide.part(0), halves, halves)
        s.code.aux("sort4x16hi", wide.part(1), halves, halves)
        return wide
    narrow = s.new("h")
    for i in range(narrow.width):
        words = s.get(value, "w", i)
        s.code.aux("sort4x16lo", narrow.part(i), words.part(0), words.part(1))
    return narrow


def _to_integers(s: Selector, value: int, source: Form, part: int) -> Slice:
    """Return one point's bits; of a mask 0 or 1."""
    if source == "w":
        register = integers.lane(s.get(value, "w", integers.word(s, part)), s, part)
    else:
        register = s.get(value, "h", 0).part(part // 2)
    moved = s.code.main("mov", s.new("m"), register)
    if s.dtypes[value] == "i1":
        if source == "h" and part % 2 == 1:
            return s.code.main("shr", s.new("m"), moved, "31")
        return s.code.main("and", s.new("m"), moved, "1")
    if source == "w":
        return moved
    raise Unselectable(f"{s.dtypes[value]} in integer registers")


def _from_integers(s: Selector, value: int, target: Form, part: int) -> Slice:
    """Return points in float registers, through the worker's scratch memory: there is no other way."""
    is_mask = s.dtypes[value] == "i1"
    n_points = min(s.lanes, 2) if target == "w" else s.lanes
    points = [s.get(value, "m", part * n_points + i) for i in range(n_points)]
    if is_mask:
        points = [s.code.main("sub", s.new("m"), "$mzero", point) for point in points]
    if target == "h":
        pairs = [(points[i], points[min(i + 1, n_points - 1)]) for i in range(0, n_points, 2)]
        points = [s.code.main("sort4x16lo", s.new("m"), *pair) for pair in pairs]
    base, first = s.sources.scratch(len(points))
    stream = f"scratch {first}"
    for i, point in enumerate(points):
        s.code.add(f"st32 {{}}, {base}, $mzero, {first + i}", "i", point, is_main=True, streams=(stream,))
    result = s.new(target)
    if result.width == 2:
        s.code.add(f"ld64 {{}}, {base}, $mzero, {first // 2}", "o", result, is_main=True, streams=(stream,))
    else:
        s.code.add(f"ld32 {{}}, {base}, $mzero, {first}", "o", result, is_main=True, streams=(stream,))
    return result


def _select_words(s: Selector, op: ScalarOp, part: int) -> Slice:
    return floats.select_as(s, op, "w", part)


RULES = Rules(
    by_form={"h": floats.HANDLERS, "w": floats.HANDLERS, "m": integers.HANDLERS},
    direct={
        ("arith.fptosi", "w"): floats.to_integer,
        ("arith.fptoui", "w"): floats.to_integer,
        ("arith.bitcast", "w"): floats.same_bits,
        ("arith.bitcast", "h"): floats.same_bits,
        ("arith.select", "w"): _select_words,
    },
    load=load,
    convert=convert,
    constant_bits=constant_bits,
)
"""How the operations that `body.expand` leaves become instructions."""
