"""Sines and cosines of huge numbers: a slow path that code branches to where an argument is far, 2^17 or beyond.

The argument is M 2^(e - 150). Its product with 2 / pi, modulo 4 and with 55 bits behind the point, takes 88 bits of
2 / pi from a place on that the exponent e says: M times one byte of them after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from t10.codelets.assembly import Assembly

FAR = "t10.far"
"""A sine or cosine (the attribute) of the first operand where that is far, else the second operand."""
FAR_MARK = "far."
"""What an instruction begins with that stands for a branch to the slow path."""
FAR_EIGHTH = 9
"""The exponent field of 2^17, in units of 16."""
TABLE = ".LTwoOverPi"
TABLE_WORDS = (0x83F9A200, 0x15444E6E, 0x5727FC29, 0xDD34F5D1, 0x9562DBC0, 0x90433C99)
"""The bytes of 2 / pi behind a zero."""
N_BYTES = 11
"""How many bytes of them an argument takes."""
QUARTER, NAN_BITS = 1 << 30, 0x7FC00000
NAMES = ("t0", "t1", "t2", "t3", "t4", "t5", "d", "f0", "f1", "f2")
N_INTEGERS, N_FLOATS = 6, 4
"""Registers of the slow path."""
FRAME_WORDS = 2 + N_INTEGERS + N_FLOATS
"""Scratch words of the slow path behind branches: its argument or value, where it returns to, and its registers."""

# Minimax, as far as a quarter of pi.
SINE = (1.0, -0.16666653752326965, 0.008332131430506706, -0.00019510870333760977)
COSINE = (1.0, -0.5, 0.04166664555668831, -0.0013887305976822972, 2.4431239580735564e-05)


def is_near(target: str, bits: str) -> tuple[str, ...]:
    """Return the lines that set an integer register to whether a float, whose bits one holds, is not far."""
    return (
        f"shl {target}, {bits}, 1",
        f"shr {target}, {target}, 28",
        f"cmpslt {target}, {target}, {FAR_EIGHTH}",
    )


def wave_lines(name: str) -> tuple[str, ...]:
    """Return the lines that set `{d}` to the sine or cosine of the far float whose bits `{t0}` holds.

    They use `{t0}` to `{t5}`, `{f0}` to `{f2}`, the word `{word}` and labels that begin with `{L}`.
    """
    return (*_product(), *_turns(name), *_angle(), *_value())


def _product() -> tuple[str, ...]:
    """Return the lines that set `{t5}`, `{t0}` to two words of M times the bytes of 2 / pi from the exponent's on."""
    lines = ["st32 {t0}, {word}", "shl {t1}, {t0}, 1", "shr {t1}, {t1}, 24", "cmpeq {t3}, {t1}, 255",
             "brnz {t3}, {L}_nan", "shl {t2}, {t0}, 9", "shr {t2}, {t2}, 9", "ldconst {t3}, 0x800000",
             "or {t2}, {t2}, {t3}", f"add {{t1}}, {{t1}}, {-16 * FAR_EIGHTH}", "shr {t3}, {t1}, 3",
             f"setzi {{t4}}, {TABLE}", "add {t3}, {t3}, {t4}", "setzi {t5}, 0", "setzi {t0}, 0"]  # fmt: skip
    for i in range(N_BYTES):
        lines += [f"ldz8 {{t4}}, {{t3}}, $mzero, {i}", "mul {t4}, {t4}, {t2}"]
        # The byte's last bit is this many bits above the last one of the low word.
        place = 8 * (7 - i)
        if place >= 32:
            lines += [f"shl {{t4}}, {{t4}}, {place - 32}", "add {t5}, {t5}, {t4}"]
            continue
        if place > 0:
            lines += [
                f"shr {{t1}}, {{t4}}, {32 - place}",
                "add {t5}, {t5}, {t1}",
                f"shl {{t4}}, {{t4}}, {place}",
            ]
        if place < 0:
            lines += [f"shr {{t4}}, {{t4}}, {-place}"]
        lines += ["add {t0}, {t0}, {t4}", "cmpult {t4}, {t0}, {t4}", "add {t5}, {t5}, {t4}"]
    return tuple(lines)


def _turns(name: str) -> tuple[str, ...]:
    """Return the lines that shift the product to quarter turns modulo 4 in units of 2^-62, with the argument's sign."""
    ahead = (f"ldconst {{t4}}, {QUARTER:#x}", "add {t5}, {t5}, {t4}") if name == "cos" else ()
    return (
        "ld32 {t4}, {word}", "shr {t1}, {t4}, 23", "and {t1}, {t1}, 7",
        "setzi {t2}, 31", "sub {t2}, {t2}, {t1}", "shr {t3}, {t0}, 1", "shr {t3}, {t3}, {t2}",
        "shl {t5}, {t5}, {t1}", "or {t5}, {t5}, {t3}", "shl {t0}, {t0}, {t1}",
        "brpos {t4}, {L}_up",
        "sub {t0}, $mzero, {t0}", "cmpne {t1}, {t0}, $mzero", "add {t5}, {t5}, {t1}", "sub {t5}, $mzero, {t5}",
        "{L}_up:", *ahead,
    )  # fmt: skip


def _angle() -> tuple[str, ...]:
    """Return the lines that set `{f0}` to the angle from the nearest quarter turn, whose number goes to `{t0}`."""
    return (
        # The low word has a sign, too: near a quarter turn nothing cancels.
        "shr {t1}, {t0}, 31", "add {t5}, {t5}, {t1}", "st32 {t0}, {word}", "ld32 {f1}, {word}",
        f"ldconst {{t4}}, {QUARTER // 2:#x}", "add {t5}, {t5}, {t4}", "shr {t0}, {t5}, 30",
        "shl {t5}, {t5}, 2", "shr {t5}, {t5}, 2", "sub {t5}, {t5}, {t4}",
        "st32 {t5}, {word}", "ld32 {f0}, {word}", "f32fromi32 {f0}, {f0}", "f32fromi32 {f1}, {f1}",
        f"ldconst {{f2}}, {_bits(2.0**-32)}", "f32mul {f1}, {f1}, {f2}", "f32add {f0}, {f0}, {f1}",
        f"ldconst {{f1}}, {_bits(math.pi / 2 / QUARTER)}", "f32mul {f0}, {f0}, {f1}",
    )  # fmt: skip


def _value() -> tuple[str, ...]:
    """Return the lines that set `{d}` to the sine of `{t0}` quarter turns and the angle in `{f0}`."""
    return (
        "f32mul {f1}, {f0}, {f0}", "and {t1}, {t0}, 1", "brnz {t1}, {L}_odd",
        *_polynomial(SINE), "f32mul {d}, {d}, {f0}", "bri {L}_signed",
        "{L}_odd:", *_polynomial(COSINE),
        "{L}_signed:", "shr {t0}, {t0}, 1", "shl {t0}, {t0}, 31", "mov {t1}, {d}", "xor {t1}, {t1}, {t0}",
        "st32 {t1}, {word}", "ld32 {d}, {word}", "bri {L}_done",
        "{L}_nan:", f"ldconst {{d}}, {NAN_BITS:#x}", "{L}_done:",
    )  # fmt: skip


def _polynomial(coefficients: tuple[float, ...]) -> tuple[str, ...]:
    """Return the lines that set `{d}` to a polynomial in `{f1}`."""
    lines = [f"ldconst {{d}}, {_bits(coefficients[-1])}"]
    for coefficient in reversed(coefficients[:-1]):
        lines += ["f32mul {d}, {d}, {f1}", f"ldconst {{f2}}, {_bits(coefficient)}", "f32add {d}, {d}, {f2}"]
    return tuple(lines)


def _bits(value: float) -> str:
    return f"{int(np.float32(value).view(np.uint32)):#x}"


def write_table(text: Assembly) -> None:
    """Add the bytes of 2 / pi."""
    text.align()
    text.label(TABLE)
    for word in TABLE_WORDS:
        text.op(f".int {word:#x}")


@dataclass(slots=True)
class FarPath:
    """The branches to the slow path of one codelet, and what lies there: it changes the near value's register only."""

    branches: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def branch(self, text: str) -> tuple[str, str]:
        """Return the branch that an instruction with `FAR_MARK` stands for, and the label where the slow path ends."""
        name, is_near, word, value = text.removeprefix(FAR_MARK).replace(",", "").split()
        number = len(self.branches)
        self.branches.append((name, word, value))
        return f"brz {is_near}, .Lfar{number}", f".Lback{number}"

    def lines(self, base: int, frame: int) -> list[str]:
        """Return the slow path; `frame` is its first word at the integer register with number `base`."""
        integers = [f"$m{i}" for i in range(N_INTEGERS + 2) if i != base][: N_INTEGERS + 1]
        words = [f"$m{base}, $mzero, {frame + i}" for i in range(FRAME_WORDS)]
        link, *saved = integers
        floats = [f"$a{i}" for i in range(N_FLOATS)]
        names = dict(zip(NAMES, (*saved, *floats), strict=True))
        kept = list(zip((*saved, *floats), words[2:], strict=True))
        lines: list[str] = []
        for number, (name, word, value) in enumerate(self.branches):
            lines += [f".Lfar{number}:", f"st32 {word}, {words[0]}", f"st32 {link}, {words[1]}",
                      f"call {link}, .Lwave_{name}", f"ld32 {value}, {words[0]}", f"ld32 {link}, {words[1]}",
                      f"bri .Lback{number}"]  # fmt: skip
        for name in sorted({name for name, _, _ in self.branches}):
            label = f".Lwave_{name}"
            lines += [
                f"{label}:",
                *(f"st32 {register}, {word}" for register, word in kept),
                f"ld32 {saved[0]}, {words[0]}",
            ]
            lines += [line.format(**names, word=words[0], L=label) for line in wave_lines(name)]
            lines += [
                f"st32 {names['d']}, {words[0]}",
                *(f"ld32 {register}, {word}" for register, word in kept),
            ]
            lines.append(f"br {link}")
        return [line if line.endswith(":") else f"  {line}" for line in lines]
