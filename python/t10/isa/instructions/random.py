"""Random numbers (ISA reference §3): the generator is public, how instructions use its bits is not."""

from __future__ import annotations

from functools import partial

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction

_r = partial(forms, group="random", pipe="aux", mode="worker")

RANDOM: tuple[Instruction, ...] = (
    *_r(
        "urand32",
        "d:a",
        "d = 32 random bits",
        "d = uint32_t(c.random_bits());",
        "The low half of one output of the generator (xoroshiro128aox).",
    ),
    *_r(
        "urand64",
        "d:aP",
        "d = 64 random bits",
        "d = pair_of(c.random_bits());",
        "One output of the generator (xoroshiro128aox).",
    ),
    *_r("f16v2grand", "d:a", "two normal deviates; their construction is not public"),
    *_r("f32v2grand", "d:aP", "two normal deviates; their construction is not public"),
    *_r("f16v4rmask", "d:aP, x:aP, p:a", "lanes kept at random; the comparison is not public"),
    *_r("f32v2rmask", "d:aP, x:aP, p:a", "lanes kept at random; the comparison is not public"),
)
