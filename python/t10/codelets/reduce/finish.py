"""The end of one output: lanes folded, sums rounded, what was there before taken in, vectors stored, pointers moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from t10.codelets.body.code import Code
from t10.codelets.body.virtual import Slice
from t10.codelets.loops.combining import INTEGERS, TRUTHS
from t10.codelets.loops.memory import LOADS
from t10.codelets.reduce.accumulators import combined
from t10.codelets.reduce.body import Body
from t10.codelets.reduce.epilogue import InPlace, with_epilogue
from t10.codelets.reduce.layout import RegisterLayout
from t10.core.dtypes import size_bytes

PART_TYPES = frozenset({"i1", "i8", "ui8", "i16", "ui16"})
"""Integers smaller than a word."""

WORD_BYTES = 8
"""What is stored at once, at most."""

OUT = "out"
"""The stream of accesses by the output's pointer."""


@dataclass(frozen=True, slots=True)
class WordAround:
    """The word in which one f16 lies: `half` is 0 where that is the lower one, `address` and `old` are the word's."""

    half: Slice
    address: Slice
    old: Slice


@dataclass(frozen=True, slots=True)
class Finish:
    """Code that ends an output. `results` remain to be stored, unless `is_stored`; `advanced` have moved.

    `around` has been loaded for a f16 that remains to be stored.
    """

    code: Code
    results: tuple[Slice, ...]
    is_stored: bool
    advanced: frozenset[int]
    around: WordAround | None = None

    @property
    def live(self) -> tuple[Slice, ...]:
        """Return the registers that are read after the code."""
        around = (self.around.half, self.around.address, self.around.old) if self.around else ()
        return () if self.is_stored else (*self.results, *around)


def finished(body: Body, layout: RegisterLayout, *, loads_word: bool) -> Finish:
    """Return the end of an output whose contributions have been taken.

    `loads_word`: the word of a single f16 is loaded meanwhile, which takes registers but no slots.
    """
    code, task = Code(body.numbering), layout.task
    is_whole = layout.shape.mode == "columns" and not layout.shape.tail
    is_word = layout.shape.mode != "columns" and task.output.dtype in ("f32", "i32")
    is_stored = is_whole or is_word
    steps_out = is_whole and layout.steps_out and OUT in layout.homes.register
    results: list[Slice] = []
    for part, result in enumerate(_ended(body, layout, code)):
        if is_stored and not steps_out:
            store = "st64" if result.width == 2 else "st32"
            text = f"{store} {{}}, {layout.out_register}, $mzero, {part}"
            code.add(text, "i", result, is_main=True, streams=(OUT,))
        elif is_stored:
            _store_and_step(layout, code, part, result)
        results.append(result)
    around = _word_around(layout, code) if loads_word else None
    advanced = _advance(layout, code, moves_out=around is not None or (is_stored and not steps_out))
    if steps_out:
        advanced |= {layout.out}
    return Finish(code, tuple(results), is_stored, advanced, around)


def _ended(body: Body, layout: RegisterLayout, code: Code) -> Iterator[Slice]:
    """Add all that is computed of an output; return vectors of results, one by one as they are taken."""
    begins = layout.task.initial and layout.task.first is None
    old = () if begins else _old(layout, code)
    sums = (
        read if begins else _with_old(layout, code, old[part], read)
        for part, read in enumerate(_results(body, layout, code))
    )
    if layout.task.epilogue is None:
        yield from sums
        return
    lanes = layout.shape.lanes if layout.shape.mode == "columns" else 1
    yield from with_epilogue(layout.task, code, tuple(sums), lanes, InPlace(layout))


def _word_around(layout: RegisterLayout, code: Code) -> WordAround:
    """Add loading the word that the output's element lies in."""
    half, address, old = code.new("m"), code.new("m"), code.new("a")
    for mnemonic, target, mask in (("and", half, 2), ("andc", address, 3)):
        text = f"{mnemonic} {{}}, {layout.out_register}, {mask}"
        code.add(text, "o", target, is_main=True, streams=(OUT,))
    code.add("ld32 {}, {}, $mzero, 0", "oi", old, address, is_main=True, streams=(OUT,))
    return WordAround(half, address, old)


def _results(body: Body, layout: RegisterLayout, code: Code) -> Iterable[Slice]:
    """Add reading the accumulator, one by one as they are taken; return vectors of outputs, or one of them."""
    task = layout.task
    if layout.shape.mode == "columns":
        return body.accumulator.vectors(code, task.acc_dtype)
    result = body.accumulator.folded(code)
    if task.acc_dtype == "f16" and task.combine == "sum":
        return (code.aux("f32tof16", code.new("a"), result),)
    if task.output.dtype in PART_TYPES and task.initial:
        # Storing changes the register.
        return (code.main("mov", code.new("m"), result),)
    return (result,)


def _old(layout: RegisterLayout, code: Code) -> tuple[Slice, ...]:
    """Add loading what the output held, or what sums begin with: vector by vector, or one element."""
    task = layout.task
    dtype, first = task.acc_dtype, task.first
    out, stream = (
        (layout.out_register, OUT) if first is None else (layout.still_pointers[first], f"in{first}")
    )
    is_vector = layout.shape.mode == "columns"
    if dtype in ("f16", "f32"):
        n_bytes = layout.shape.lanes * size_bytes(dtype) if is_vector else 0
        width = 2 if n_bytes >= WORD_BYTES else 1
        load = "ld64" if width == 2 else "ld32" if is_vector or dtype == "f32" else "ldb16"
        loaded = tuple(code.new("a", width) for _ in range(max(1, n_bytes // WORD_BYTES)))
    else:
        load, loaded = LOADS[dtype], (code.new("m"),)
    for part, target in enumerate(loaded):
        code.add(f"{load} {{}}, {out}, $mzero, {part}", "o", target, is_main=True, streams=(stream,))
    return loaded


def _with_old(layout: RegisterLayout, code: Code, old: Slice, result: Slice) -> Slice:
    """Add combining a result with what the output held."""
    task, dtype = layout.task, layout.task.acc_dtype
    if dtype not in ("f16", "f32"):
        table = TRUTHS if dtype == "i1" else INTEGERS
        return code.main(table[task.combine], code.new("m"), old, result)
    return combined(code, task.combine, "h" if dtype == "f16" else "w", old, result)


def _store_and_step(layout: RegisterLayout, code: Code, part: int, result: Slice) -> None:
    """Add storing a vector of outputs; the pointer goes on to the next, after the last one to the next output."""
    store = "st64step" if result.width == 2 else "st32step"
    text = f"{store} {{}}, $mzero, {layout.out_register}+=, "
    n_parts = max(1, layout.shape.lanes * layout.sizes[layout.out] // WORD_BYTES)
    if part < n_parts - 1:
        code.add(f"{text}1", "i", result, is_main=True, streams=(OUT,))
        return
    field = layout.out_pace(n_parts, 4 * result.width)
    if field in layout.homes.register:
        code.add(f"{text}{layout.homes.register[field]}", "i", result, is_main=True, streams=(OUT,))
        return
    pace = code.new("m")
    word = layout.state.place(field)
    code.add(f"ld32 {{}}, $mvertex_base, $mzero, {word}", "o", pace, is_main=True)
    code.add(f"{text}{{}}", "ii", result, pace, is_main=True, streams=(OUT,))


def _advance(layout: RegisterLayout, code: Code, *, moves_out: bool) -> frozenset[int]:
    """Add moving the pointers that are in registers to the next output; return whose have moved."""
    k = len(layout.shape.parallel) - 1
    moved: list[int] = []
    for i in layout.operands:
        name = "out" if i == layout.out else f"p{i}"
        if (
            not layout.is_stepped(i, k)
            or name not in layout.homes.register
            or (i == layout.out and not moves_out)
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
