"""The end of one output: lanes folded, sums rounded, what was there before taken in, vectors stored, pointers moved."""

from __future__ import annotations

from dataclasses import dataclass

from t10.codelets.body.code import Code
from t10.codelets.body.virtual import Slice
from t10.codelets.loops.combining import INTEGERS, TRUTHS
from t10.codelets.loops.memory import LOADS
from t10.codelets.reduce.accumulators import FLOAT_NAMES, family
from t10.codelets.reduce.body import Body
from t10.codelets.reduce.layout import Layout

PART_TYPES = frozenset({"i1", "i8", "ui8", "i16", "ui16"})
"""Integers smaller than a word."""

OUT = "out"
"""The stream of accesses by the output's pointer."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Code that ends an output. `results` remain to be stored, unless `is_stored`; `advanced` have moved."""

    code: Code
    results: tuple[Slice, ...]
    is_stored: bool
    advanced: frozenset[int]

    @property
    def live(self) -> tuple[Slice, ...]:
        """Return the registers that are read after the code."""
        return () if self.is_stored else self.results


def finished(body: Body, layout: Layout) -> Finish:
    """Return the end of an output whose contributions have been taken."""
    code, task = Code(body.numbering), layout.task
    results = _results(body, layout, code)
    if not task.initial:
        results = tuple(_with_old(layout, code, part, result) for part, result in enumerate(results))
    is_whole = layout.shape.mode == "columns" and not layout.shape.tail
    is_word = layout.shape.mode != "columns" and task.output.dtype in ("f32", "i32")
    is_stored = is_whole or is_word
    if is_stored:
        for part, result in enumerate(results):
            store = "st64" if result.width == 2 else "st32"
            text = f"{store} {{}}, {layout.out_register}, $mzero, {part}"
            code.add(text, "i", result, is_main=True, streams=(OUT,))
    return Finish(code, results, is_stored, _advance(layout, code, is_stored=is_stored))


def _results(body: Body, layout: Layout, code: Code) -> tuple[Slice, ...]:
    """Add reading the accumulator; return vectors of outputs, or one of them."""
    task = layout.task
    if layout.shape.mode == "columns":
        return body.accumulator.vectors(code, task.output.dtype)
    result = body.accumulator.folded(code)
    if task.output.dtype == "f16" and task.combine == "sum":
        return (code.aux("f32tof16", code.new("a"), result),)
    if task.output.dtype in PART_TYPES and task.initial:
        # Storing changes the register.
        return (code.main("mov", code.new("m"), result),)
    return (result,)


def _with_old(layout: Layout, code: Code, part: int, result: Slice) -> Slice:
    """Add combining a result with what the output held."""
    task, dtype = layout.task, layout.task.output.dtype
    if dtype not in ("f16", "f32"):
        old = code.new("m")
        text = f"{LOADS[dtype]} {{}}, {layout.out_register}, $mzero, 0"
        code.add(text, "o", old, is_main=True, streams=(OUT,))
        table = TRUTHS if dtype == "i1" else INTEGERS
        return code.main(table[task.combine], code.new("m"), old, result)
    is_vector = layout.shape.mode == "columns"
    load = "ld64" if result.width == 2 else "ld32" if is_vector or dtype == "f32" else "ldb16"
    old = code.new("a", result.width)
    code.add(f"{load} {{}}, {layout.out_register}, $mzero, {part}", "o", old, is_main=True, streams=(OUT,))
    name = family("h" if dtype == "f16" else "w", result.width) + FLOAT_NAMES[task.combine]
    return code.aux(name, code.new("a", result.width), old, result)


def _advance(layout: Layout, code: Code, *, is_stored: bool) -> frozenset[int]:
    """Add moving the pointers that are in registers to the next output; return whose have moved."""
    k = len(layout.shape.parallel) - 1
    moved: list[int] = []
    for i in layout.operands:
        name = "out" if i == layout.out else f"p{i}"
        if (
            not layout.is_stepped(i, k)
            or name not in layout.homes.register
            or (i == layout.out and not is_stored)
        ):
            continue
        register, streams = layout.homes.register[name], (OUT if i == layout.out else f"in{i}",)
        field = layout.step(i, k)
        if field in layout.homes.register:
            code.add(
                f"add {register}, {register}, {layout.homes.register[field]}",
                "",
                is_main=True,
                streams=streams,
            )
        else:
            step = code.new("m")
            word = layout.state.place(field)
            code.add(f"ld32 {{}}, $mvertex_base, $mzero, {word}", "o", step, is_main=True)
            code.add(f"add {register}, {register}, {{}}", "i", step, is_main=True, streams=streams)
        moved.append(i)
    return frozenset(moved)
