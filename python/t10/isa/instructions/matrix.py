"""The matrix engine (AMP, ISA reference §10) and the sliding window (SLIC, §12).

Per set of 8 units: E[m] are the sums in progress, Q[m] a queue of finished sums and partials to come. A step of phase
p: at p = 0 swap E and Q; the result is (Q[0], Q[1]); Q moves down by two and takes the two partials at its top; then
every unit adds the dot product of x with its weights, E[m] += x . CW[m][p].
"""

from __future__ import annotations

from typing import Final

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction

_ORDER: Final = "Products are added to the sum one after another, lane 0 first, each sum rounded to f32."
_ODD: Final = f"{_ORDER} Products are rounded to f32 first. Odd phases give zero. TAS is left undefined."
_PHASES: Final = "flags TAMP_F16V4_E{4,2,1}_P{0..3}: 8, 4, 2 units with 4, 2, 1 phases"
_PHASES32: Final = "flags TAMP_F32_E{4,2,1}_P{0..7}: phase p takes word p & 1 of CW[m][p >> 1]"
_WINDOW: Final = "flags TSLIC_F16V4_{1x4,1x3}_W{0,1}: window K and bank n of weights"


def _m(
    mnemonic: str, operands: str, semantics: str, code: str = "", assumption: str = _ORDER
) -> tuple[Instruction, ...]:
    assumed = assumption if code else ""
    group = "slic" if "slic" in mnemonic else "matrix"
    return forms(
        mnemonic, f"{operands}, flags:flags", semantics, code, assumed, group=group, pipe="aux", mode="worker"
    )


MATRIX: tuple[Instruction, ...] = (
    *_m(
        "f16v4hihoamp",
        "d:a, x:aP, pin:a",
        f"8 units, f16 partials in, f16 out; {_PHASES}",
        "d = c.narrowed(c.amp16(x, widened(pin), flags));",
    ),
    *_m(
        "f16v4sihoamp",
        "d:a, x:aP, pin:aP",
        f"8 units, f32 partials in, f16 out; {_PHASES}",
        "d = c.narrowed(c.amp16(x, pin, flags));",
    ),
    *_m(
        "f16v4sisoamp",
        "d:aP, x:aP, pin:aP",
        f"8 units, f32 partials in and out; {_PHASES}",
        "d = c.amp16(x, pin, flags);",
    ),
    *_m(
        "f16v4hihov4amp",
        "d:aP, x:aP, pin:aP",
        f"16 units, f16 partials in and out, a pair for each set; {_PHASES}",
        "d = c.amp16v4(x, pin, flags);",
    ),
    *_m(
        "f32sisoamp",
        "d:aP, x:a, pin:aP",
        f"8 units, f32; only even phases move Q; {_PHASES32}",
        "d = c.amp32(x, pin, flags);",
        _ODD,
    ),
    *_m(
        "f32sisov2amp",
        "d:aP, x:a, pin:aP",
        f"16 units, f32; even phases move Q of set 0, odd ones of set 1; {_PHASES32}",
        "d = c.amp32v2(x, pin, flags);",
        _ODD,
    ),
    *_m("f8v8hihov4amp", "d:aP, x:aP, pin:aP", "fp8 inputs and weights: formats are not public"),
    *_m(
        "f16v4hihoslic",
        "d:a, x:aP, pin:a",
        f"f16 partials in, f16 out; {_WINDOW}",
        "d = c.narrowed(c.slic16(x, widened(pin), flags, 0));",
    ),
    *_m(
        "f16v4sihoslic",
        "d:a, x:aP, pin:aP",
        f"f32 partials in, f16 out; {_WINDOW}",
        "d = c.narrowed(c.slic16(x, pin, flags, 0));",
    ),
    *_m(
        "f16v4sisoslic",
        "d:aP, x:aP, pin:aP",
        f"f32 partials in and out; {_WINDOW}",
        "d = c.slic16(x, pin, flags, 0);",
    ),
    *_m(
        "f16v4hihov4slic",
        "d:aP, x:aP, pin:aP",
        f"both sets, f16 partials in and out, a pair for each; {_WINDOW}",
        "d = Pair{{c.narrowed(c.slic16(x, widened(pin.w[0]), flags, 0)), "
        "c.narrowed(c.slic16(x, widened(pin.w[1]), flags, 1))}};",
    ),
    *_m("f32sisoslic", "d:aP, x:a, pin:aP", "two steps per position; flags are not public"),
    *_m("f8v8hihov4slic", "d:aP, x:aP, pin:aP", "fp8 inputs and weights: formats are not public"),
)
