"""What adds into the accumulators or reads them: sums, products, axpy, drains, transposition (ISA reference §9)."""

from __future__ import annotations

from functools import partial
from typing import Final

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction

_UNFUSED: Final = "Products are rounded to f32, then the sum is."
_ORDER: Final = "Products are added one after another, lane 0 first, each sum rounded to f32."
_TRANSPOSER: Final = "Accumulators are left undefined."

_a = partial(forms, group="accumulate", pipe="aux", mode="worker")

ACCUMULATE: tuple[Instruction, ...] = (
    *_a("f16v4acc", "x:aP", "AACC[2i] += x.h[i]", "c.add_halves(x, Same());"),
    *_a("f16v8acc", "x:aQ", "AACC[2i] += x.h[i]", "c.add_halves(x, Same());"),
    *_a("f16v4absacc", "x:aP", "AACC[2i] += |x.h[i]|", "c.add_halves(x, Magnitude());"),
    *_a("f16v8absacc", "x:aQ", "AACC[2i] += |x.h[i]|", "c.add_halves(x, Magnitude());"),
    *_a("f16v8sqacc", "x:aQ", "AACC[2i] += x.h[i]^2", "c.add_halves(x, Square());"),
    *_a("f32v4acc", "x:aQ", "AACC[2i] += x.w[i]", "c.add_words(x, Same());"),
    *_a("f32v4absacc", "x:aQ", "AACC[2i] += |x.w[i]|", "c.add_words(x, Magnitude());"),
    *_a("f32v4sqacc", "x:aQ", "AACC[2i] += x.w[i]^2", "c.add_words(x, Square());", _UNFUSED),
    *_a("f32mac", "x:a, y:a", "AACC[0] += x * y", "c.add_products(Pair{{x, 0}}, Pair{{y, 0}}, 1);", _UNFUSED),
    *_a("f32v2mac", "x:aP, y:aP", "AACC[2i] += x.w[i] * y.w[i]", "c.add_products(x, y, 2);", _UNFUSED),
    *_a(
        "f16v2cmac",
        "x:a, y:a",
        "AACC[0] += x.h[0] * y.h[0] + x.h[1] * y.h[1]",
        "c.add_dots(Pair{{x, 0}}, Pair{{y, 0}}, 1);",
        _ORDER,
    ),
    *_a(
        "f16v4cmac",
        "x:aP, y:aP",
        "AACC[0] += x.h[0] * y.h[0] + x.h[1] * y.h[1]; AACC[2] += x.h[2] * y.h[2] + x.h[3] * y.h[3]",
        "c.add_dots(x, y, 2);",
        f"{_ORDER} Which lanes go to which accumulator is an assumption too: add both.",
    ),
    *_a(
        "f32v2axpy",
        "d:aP, x:aP, y:aP",
        "d.w[i] = AACC[2i]; AACC[2i] = TAS * x.w[i] + y.w[i]",
        "d = c.axpy(x, y);",
        _UNFUSED,
    ),
    *_a(
        "f16v4mix",
        "d:aP, x:aP, y:aP",
        "d.h[i] = AACC[2i] as f16; AACC[2i] = TAS.h[0] * x.h[i] + TAS.h[1] * y.h[i]",
        "d = c.mix(x, y);",
        _UNFUSED,
    ),
    *_a(
        "f32v2gina",
        "d:aP, s:aP, imm:z12",
        "d.w = {AACC[c], AACC[c+2]}, c = imm: 0 or 1; AACC[c+k] = AACC[c+k+4], k = 0, 2, .. 10; "
        "AACC[c+12], AACC[c+14] = s.w[0], s.w[1]",
        "d = c.drain(s, imm);",
    ),
    *_a(
        "f16v2gina",
        "d:a, s:a, imm:z12",
        "as f32v2gina, d rounded to f16, s widened to f32",
        "d = c.narrowed(c.drain(widened(s), imm));",
    ),
    *_a(
        "f16v4gacc",
        "d:aP",
        "d.h[i] = AACC[2i] as f16; accumulators stay",
        "d = c.narrowed(c.accumulators());",
    ),
    *_a(
        "f16v4istacc",
        "d:aP, x:aP, y:aP, flags:flags",
        "4 x 4 transposition: P0 takes rows 0, 1 and gives column 2 of the block before; "
        "P1 takes rows 2, 3 and gives column 3",
        "d = c.transpose_in(x, y, flags);",
        _TRANSPOSER,
    ),
    *_a(
        "f16v4stacc",
        "d:aP, flags:flags",
        "4 x 4 transposition: P0 and P1 give columns 0 and 1 of the block",
        "d = c.transpose_out(flags);",
    ),
    *_a("f32v2aop", "x:aP, y:aP, flags:flags", "outer product; where it is accumulated is not public"),
)
