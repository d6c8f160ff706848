"""Bytes, halves and words rearranged, on either register file. Element 0 is the least significant."""

from __future__ import annotations

from functools import partial

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction

_any = partial(forms, group="permute")
_aux = partial(forms, group="permute", pipe="aux", mode="worker")


def _main(mnemonic: str, semantics: str, code: str) -> tuple[Instruction, ...]:
    return _any(mnemonic, "d:m, x:m, y:m", semantics, code)


_ROLL = ("d.h = {x.h[1], y.h[0]}", "d = halves_of(x >> 16, y);")
_LO = ("d.h = {x.h[0], y.h[0]}", "d = halves_of(x, y);")
_HI = ("d.h = {x.h[1], y.h[1]}", "d = halves_of(x >> 16, y >> 16);")
_SWAP = ("d.h = {x.h[1], x.h[0]}", "d = halves_of(x >> 16, x);")
_GUESS = "The order of the bytes is not public."

PERMUTE: tuple[Instruction, ...] = (
    *_main("roll16", *_ROLL),
    *_aux("roll16", "d:a, x:a, y:a", *_ROLL),
    *_main("sort4x16lo", *_LO),
    *_aux("sort4x16lo", "d:a, x:a, y:a | d:a, x:a:BU, y:a", *_LO),
    *_main("sort4x16hi", *_HI),
    *_aux("sort4x16hi", "d:a, x:a, y:a | d:a, x:a:BL, y:a", *_HI),
    *_any("swap16", "d:m, x:m", *_SWAP),
    *_aux("swap16", "d:a, x:a", *_SWAP),
    *_aux("roll32", "d:aP, x:aP, y:aP", "d.w = {x.w[1], y.w[0]}", "d = Pair{{x.w[1], y.w[0]}};"),
    *_aux("sort4x32lo", "d:aP, x:aP, y:aP", "d.w = {x.w[0], y.w[0]}", "d = Pair{{x.w[0], y.w[0]}};"),
    *_aux("sort4x32hi", "d:aP, x:aP, y:aP", "d.w = {x.w[1], y.w[1]}", "d = Pair{{x.w[1], y.w[1]}};"),
    *_main("roll8l", "d.b = {x.b[3], y.b[0], y.b[1], y.b[2]}", "d = bytes_of(x >> 24, y, y >> 8, y >> 16);"),
    *_main("roll8r", "d.b = {x.b[1], x.b[2], x.b[3], y.b[0]}", "d = bytes_of(x >> 8, x >> 16, x >> 24, y);"),
    *_main("shuf8x8lo", "d.b = {x.b[0], y.b[0], x.b[1], y.b[1]}", "d = bytes_of(x, y, x >> 8, y >> 8);"),
    *_main(
        "shuf8x8hi",
        "d.b = {x.b[2], y.b[2], x.b[3], y.b[3]}",
        "d = bytes_of(x >> 16, y >> 16, x >> 24, y >> 24);",
    ),
    *_main("sort8x8lo", "d.b = {x.b[0], x.b[2], y.b[0], y.b[2]}", "d = bytes_of(x, x >> 16, y, y >> 16);"),
    *_main(
        "sort8x8hi",
        "d.b = {x.b[1], x.b[3], y.b[1], y.b[3]}",
        "d = bytes_of(x >> 8, x >> 24, y >> 8, y >> 24);",
    ),
    *_any("sort8", "d:m, x:m", _GUESS),
    *_any("swap8", "d:m, x:m", _GUESS),
)
