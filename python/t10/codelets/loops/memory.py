"""Loading and storing one element of any type."""

from __future__ import annotations

from t10.codelets.loops.floats import is_float_type
from t10.codelets.loops.virtual import Value, VirtualCode
from t10.codelets.loops.wide import Pair, Word

LOADS = {
    "i8": "lds8",
    "i1": "ldz8",
    "ui8": "ldz8",
    "i16": "lds16",
    "ui16": "ldz16",
    "i32": "ld32",
    "ui32": "ld32",
}
PART_MASKS = {"i1": 0xFF, "i8": 0xFF, "ui8": 0xFF, "i16": 0xFFFF, "ui16": 0xFFFF, "f16": 0xFFFF}


def load(code: VirtualCode, dtype: str, pointer: Value | str) -> Word:
    """Add a load from the address in `pointer` (a value, or a register outside the pools)."""
    uses, p = _pointer(pointer)
    if dtype == "f32":
        return code.a(f"ld32 {{d}}, {p}, $mzero, 0", **uses)
    if dtype == "f16":
        return code.a(f"ldb16 {{d}}, {p}, $mzero, 0", "f16tof32 {d}, {d}", **uses)
    if dtype in LOADS:
        return code.m(f"{LOADS[dtype]} {{d}}, {p}, $mzero, 0", **uses)
    return Pair(*(code.m(f"ld32 {{d}}, {p}, $mzero, {i}", **uses) for i in range(2)))


def store(code: VirtualCode, dtype: str, x: Word, pointer: Value | str) -> None:
    """Add a store to the address in `pointer`; parts of a word are merged into what is there."""
    uses, p = _pointer(pointer)
    if isinstance(x, Pair):
        code.effect(f"st32 {{x}}, {p}, $mzero, 0", f"st32 {{h}}, {p}, $mzero, 1", x=x.low, h=x.high, **uses)
        return
    if dtype in ("f32", "i32", "ui32"):
        code.effect(f"st32 {{x}}, {p}, $mzero, 0", x=x, **uses)
        return
    if dtype not in PART_MASKS:
        high = "setzi {t0}, 0" if dtype == "ui64" else "shrs {t0}, {x}, 31"
        lines = (f"st32 {{x}}, {p}, $mzero, 0", high, f"st32 {{t0}}, {p}, $mzero, 1")
        code.effect(*lines, x=x, **uses)
        return
    if is_float_type(dtype):
        x = code.m("mov {d}, {x}", x=code.a("f32tof16 {d}, {x}", x=x))
    mask = PART_MASKS[dtype]
    lines = (f"and {{t0}}, {p}, 3", "shl {t0}, {t0}, 3", f"andc {{t1}}, {p}, 3", f"setzi {{t2}}, {mask:#x}",
             "and {t3}, {x}, {t2}", "shl {t3}, {t3}, {t0}", "shl {t2}, {t2}, {t0}", "ld32 {t0}, {t1}, $mzero, 0",
             "andc {t0}, {t0}, {t2}", "or {t0}, {t0}, {t3}", "st32 {t0}, {t1}, $mzero, 0")  # fmt: skip
    code.effect(*lines, x=x, **uses)


def _pointer(pointer: Value | str) -> tuple[dict[str, Value], str]:
    return ({}, pointer) if isinstance(pointer, str) else ({"p": pointer}, "{p}")
