"""Conversions between f16, f32, 32-bit integers, fp8 (ISA reference §9)."""

from __future__ import annotations

from functools import partial
from typing import Final

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction

_TO_HALF: Final = (
    "Nearest even, denormals kept; overflow gives the largest number, or NaN where FP_CTL.NANOO is set."
)
_TO_INTEGER: Final = (
    "FP_CTL.RND is nearest even; out of range gives the nearest integer of the type, NaN gives zero."
)
_FP8: Final = "formats and scaling of fp8 are not public"

_v = partial(forms, group="convert", pipe="aux", mode="worker")

CONVERT: tuple[Instruction, ...] = (
    *_v("f16tof32", "d:a, x:a", "d = x.h[0] as f32", "d = bits(half(x, 0));"),
    *_v("f16v2tof32", "d:aP, x:a", "d.w[i] = x.h[i] as f32", "d = widened(x);"),
    *_v("f32tof16", "d:a, x:a", "d.h[0] = d.h[1] = x as f16", "d = both_halves(c.narrowed(x));", _TO_HALF),
    *_v("f32v2tof16", "d:a, x:aP", "d.h[i] = x.w[i] as f16", "d = c.narrowed(x);", _TO_HALF),
    *_v("f32v4tof16", "d:aP, x:aQ", "d.h[i] = x.w[i] as f16", "d = c.narrowed(x);", _TO_HALF),
    *_v(
        "f32fromi32",
        "d:a, x:a",
        "d = signed integer x as f32",
        "d = bits(float(int32_t(x)));",
        "Nearest even.",
    ),
    *_v("f32fromui32", "d:a, x:a", "d = unsigned integer x as f32", "d = bits(float(x));", "Nearest even."),
    *_v("f32toi32", "d:a, x:a", "d = x rounded to a signed integer", "d = c.signed_integer(x);", _TO_INTEGER),
    *_v(
        "f32toui32",
        "d:a, x:a",
        "d = x rounded to an unsigned integer",
        "d = c.unsigned_integer(x);",
        _TO_INTEGER,
    ),
    *_v("f16v2tof8", "d:a, x:a", _FP8),
    *_v("f16v8tof8", "d:aP, x:aQ", _FP8),
    *_v("f8v2tof16", "d:a, x:a", _FP8),
    *_v("f8v4tof16", "d:aP, x:a", _FP8),
)
