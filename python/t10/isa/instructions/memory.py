"""Loads and stores of one address (ISA reference §7), gathers with 16-bit deltas, packing of addresses.

`op d, base, delta, off`: address base + delta + off * size, base and delta in bytes. The spelling without delta has
delta zero. `opstep d, base, delta+=, k`: address base + delta, then delta += k * size.
"""

from __future__ import annotations

from functools import partial

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction, Mode


def _load(name: str, kinds: str, size: int, call: str, what: str, mode: Mode) -> tuple[Instruction, ...]:
    """Return the forms of a load and of its stepping twin, destinations of every kind in `kinds`."""
    records: list[Instruction] = []
    for kind in kinds.split():
        here: Mode = "worker" if kind != "m" else mode
        for off in ("m", "z12"):
            for base, place in (("base:m, delta:m", "base + delta"), ("base:m", "base")):
                records += forms(
                    name,
                    f"d:{kind}, {base}, off:{off}",
                    f"{what} at {place} + {size} * off",
                    f"d = {call.format(f'{place} + off * {size}')};",
                    group="load",
                    mode=here,
                )
    if name == "ldb8":
        return tuple(records)
    for kind in kinds.split():
        for step in ("s8", "m"):
            records += forms(
                f"{name}step",
                f"d:{kind}, base:m, delta:m+=, k:{step}",
                f"{what} at base + delta; delta += {size} * k",
                f"d = {call.format('base + delta')}; delta += k * {size};",
                group="load",
                mode="worker" if kind != "m" else mode,
            )
    return tuple(records)


_store = partial(forms, group="store")
_sparse = partial(forms, group="load-sparse", mode="worker")


def _stores(name: str, kind: str, size: int, call: str) -> tuple[Instruction, ...]:
    """Return the forms of a store of an ARF source: with both kinds of offset, without delta, stepping."""
    value = f"mem{8 * size}"
    both = f"s:{kind}, base:m, delta:m, off:m | s:{kind}, base:m, delta:m, off:z12"
    short = f"s:{kind}, base:m, off:m | s:{kind}, base:m, off:z12"
    step = f"s:{kind}, base:m, delta:m+=, k:s8 | s:{kind}, base:m, delta:m+=, k:m"
    store = partial(_store, mode="worker")
    return (
        *store(
            name,
            both,
            f"{value}[base + delta + {size} * off] = s",
            f"{call}(base + delta + off * {size}, s);",
        ),
        *store(name, short, f"{value}[base + {size} * off] = s", f"{call}(base + off * {size}, s);"),
        *store(
            f"{name}step",
            step,
            f"{value}[base + delta] = s; delta += {size} * k",
            f"{call}(base + delta, s); delta += k * {size};",
        ),
    )


def _gather(name: str, kind: str, what: str, call: str) -> tuple[Instruction, ...]:
    """Return a load at base + delta whose next delta is read at the same time."""
    return _sparse(
        name,
        f"d:{kind}, addr:m++, base:m, delta:m@",
        f"d = {what} at base + delta; delta = u16 at addr; addr += 2",
        f"c.apart(base + delta, addr); d = {call.format('base + delta')}; delta = c.load16(addr); addr += 2;",
    )


MEMORY: tuple[Instruction, ...] = (
    *_load("ld32", "m a", 4, "c.load32({})", "d = 32 bits", "both"),
    *_load("ld64", "aP", 8, "c.load64({})", "d = 64 bits", "worker"),
    *_load("ld128", "aQ", 16, "c.load128({})", "d = 128 bits of interleaved memory", "worker"),
    *_load("ldz8", "m", 1, "c.load8({})", "d = byte, zero extended", "both"),
    *_load("lds8", "m", 1, "sign8(c.load8({}))", "d = byte, sign extended", "both"),
    *_load("ldz16", "m", 2, "c.load16({})", "d = half, zero extended", "both"),
    *_load("lds16", "m", 2, "sign16(c.load16({}))", "d = half, sign extended", "both"),
    *_load("ldb16", "a", 2, "both_halves(c.load16({}))", "d.h = half in both", "worker"),
    *_load("ldb8", "a", 1, "all_bytes(c.load8({}))", "d.b = byte in all four", "worker"),
    *_stores("st32", "a", 4, "c.store32"),
    *_store(
        "st32",
        "s:m, base:m, delta:m, off:z12",
        "mem32[base + delta + 4 * off] = s",
        "c.store32(base + delta + off * 4, s);",
    ),
    *_store("st32", "s:m, base:m, off:z12", "mem32[base + 4 * off] = s", "c.store32(base + off * 4, s);"),
    *_store(
        "st32step",
        "s:m, base:m, delta:m+=, k:s8",
        "mem32[base + delta] = s; delta += 4 * k",
        "c.store32(base + delta, s); delta += k * 4;",
    ),
    *_store("stm32", "s:m, base:m, off:m", "mem32[base + 4 * off] = s", "c.store32(base + off * 4, s);"),
    *_store(
        "stm32step",
        "s:m, base:m+=, k:m",
        "mem32[base] = s; base += 4 * k",
        "c.store32(base, s); base += k * 4;",
    ),
    *_stores("st64", "aP", 8, "c.store64"),
    *_gather("ldd16a32", "a", "32 bits", "c.load32({})"),
    *_gather("ldd16a64", "aP", "64 bits", "c.load64({})"),
    *_gather("ldd16b16", "a", "half, in both halves,", "both_halves(c.load16({}))"),
    *_sparse(
        "ldd16v2a32", "d:a, addr:m++, base:m, delta:m@", "which of two packed deltas is used is not public"
    ),
    *_sparse("ldb16b16", "d:aP, base:m, delta:m++, mini:m>>", "which delta gets which step is not public"),
    *_sparse(
        "ld64a32", "!d:aQ, addr:m++, base:m, delta:m", "written as a register triple; details are not public"
    ),
    *forms(
        "tapack",
        "d:mP, a0:m, a1:m, a2:m",
        "d.lo = a0[20:0] | a2[10:0] << 21; d.hi = a1[20:0] | a2[20:11] << 21",
        "d = packed(a0, a1, a2);",
        group="address",
        mode="worker",
    ),
)
