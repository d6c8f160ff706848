"""Writing results: whole vectors, what is left of a row of outputs, and single elements smaller than a word."""

from __future__ import annotations

from t10.codelets.assembly import Assembly

PART_BITS = {"i1": 8, "i8": 8, "ui8": 8, "i16": 16, "ui16": 16}


def store_half(text: Assembly, source: str, scratch: str, out: str) -> None:
    """Write a f16 that stands in both halves of `source` to the address in `out`. Changes $m0, $m1 and `scratch`."""
    upper, done = text.new_label(), text.new_label()
    text.op(f"and $m0, {out}, 2")
    text.op(f"andc $m1, {out}, 3")
    text.op(f"ld32 {scratch}, $m1, $mzero, 0")
    text.op(f"brnz $m0, {upper}")
    text.op(f"sort4x16hi {scratch}, {source}, {scratch}")
    text.op(f"st32 {scratch}, $m1, $mzero, 0")
    text.op(f"bri {done}")
    text.label(upper)
    text.op(f"sort4x16lo {scratch}, {scratch}, {source}")
    text.op(f"st32 {scratch}, $m1, $mzero, 0")
    text.label(done)


def store_in_word(text: Assembly, source: str, half: str, address: str, old: str) -> None:
    """Write a f16 that stands in both halves of `source` into a loaded word, its lower half where `half` is 0.

    Changes `source`.
    """
    done = text.new_label()
    text.bundle(f"brz {half}, {done}", f"sort4x16hi {source}, {source}, {old}")
    text.op(f"sort4x16lo {source}, {old}, {source}", "what was put into the lower half is the result")
    text.label(done)
    text.op(f"st32 {source}, {address}, $mzero, 0")


def store_part(text: Assembly, dtype: str, source: str, out: str, scratch: str) -> None:
    """Write the low bits of an integer register to the address in `out`. Changes $m0, $m1, `source` and `scratch`."""
    text.op(f"and $m0, {out}, 3")
    text.op("shl $m0, $m0, 3", "bits to the left")
    text.op(f"setzi {scratch}, {(1 << PART_BITS[dtype]) - 1:#x}")
    text.op(f"and {source}, {source}, {scratch}")
    text.op(f"shl {source}, {source}, $m0")
    text.op(f"shl {scratch}, {scratch}, $m0")
    text.op(f"andc $m0, {out}, 3")
    text.op("ld32 $m1, $m0, $mzero, 0")
    text.op(f"andc $m1, $m1, {scratch}")
    text.op(f"or $m1, $m1, {source}")
    text.op("st32 $m1, $m0, $mzero, 0")


def store_rest(text: Assembly, words: list[str], per_word: int, scratch: str, out: str, rest: str) -> None:
    """Write the first `rest` (a register) elements of a vector in registers `words`. Changes $m1 and `scratch`."""
    done = text.new_label()
    for number, word in enumerate(words):
        partial = text.new_label()
        text.op(f"add $m1, {rest}, {-(number + 1) * per_word}")
        text.op(f"brneg $m1, {partial}")
        text.op(f"st32 {word}, {out}, $mzero, {number}")
        if number == len(words) - 1:
            text.op(f"bri {done}")
        else:
            text.op(f"bri {done}_{number}")
        text.label(partial)
        if per_word == 2:
            text.op(f"and $m1, {rest}, 1")
            text.op(f"brz $m1, {done}")
            text.op(f"ld32 {scratch}, {out}, $mzero, {number}")
            text.op(f"roll16 {scratch}, {scratch}, {word}")
            text.op(f"swap16 {scratch}, {scratch}")
            text.op(f"st32 {scratch}, {out}, $mzero, {number}")
        text.op(f"bri {done}")
        if number < len(words) - 1:
            text.label(f"{done}_{number}")
    text.label(done)
