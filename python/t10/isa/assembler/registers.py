"""Names of registers and register groups."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from t10.isa.assembler.lines import Problem

File = Literal["m", "a"]


class Register(NamedTuple):
    """A register or group: file, number of its lowest register, how many, and broadcast (`B`, `BL`, `BU` or "")."""

    file: File
    number: int
    width: int
    broadcast: str = ""


N_REGISTERS: Final = 16
ALIASES: Final[dict[str, Register]] = {
    "mworker_base": Register("m", 12, 1),
    "mvertex_base": Register("m", 13, 1),
    "mzero": Register("m", 15, 1),
    "azero": Register("a", 15, 1),
    "azeros": Register("a", 14, 2),
    "bp": Register("m", 8, 1),
    "fp": Register("m", 9, 1),
    "lr": Register("m", 10, 1),
    "sp": Register("m", 11, 1),
}
NAMES: Final[dict[str, Register]] = {
    **{f"{file}{n}": Register(file, n, 1) for file in ("m", "a") for n in range(N_REGISTERS)},
    **ALIASES,
}
READ_ONLY: Final = frozenset((12, 13))
"""MRF registers that instructions cannot write; m14 and m15 swallow what is written."""

REGISTER: Final = re.compile(r"\$([A-Za-z_]\w*)(?:\s*:\s*(\w+))?\s*(\+=|\+\+|>>|@)?\Z")
GROUPS: Final = {2: "pair", 4: "quad", 3: "triple"}


def group(base: Register, tail: str, text: str, column: int) -> Register:
    """Return register `base` with what stands behind its colon: the last register of a group, or a broadcast.

    Raises Problem where the group is not a naturally aligned pair or quad (ISA reference §2).
    """
    if tail in ("B", "BL", "BU"):
        if base.file != "a" or base.width != 1:
            raise Problem(f"{text}: only a single $a register can be broadcast", column)
        return base._replace(broadcast=tail)
    if not tail.isdigit() or base.width != 1:
        raise Problem(f"{text} is not a register group; expected e.g. $a0:1, $a0:3 or $a0:B", column)
    last = int(tail)
    width = last - base.number + 1
    if last >= N_REGISTERS or width not in GROUPS or (width == 4 and base.file == "m"):
        raise Problem(f"{text} is not a register group; groups are pairs, and quads of $a registers", column)
    aligned = 4 if width == 3 else width
    if width != 3 and base.number % aligned:
        raise Problem(
            f"register group {text} is not aligned: a {GROUPS[width]} begins at a multiple of {aligned}",
            column,
        )
    return Register(base.file, base.number, width)


def register_name(file: File, number: int, width: int = 1) -> str:
    """Return a register or group as written, e.g. `$m0`, `$a4:5`, `$azeros`."""
    if file == "a" and number == 14 and width == 2:
        return "$azeros"
    if width > 1:
        return f"${file}{number}:{number + width - 1}"
    names = {("m", 12): "mworker_base", ("m", 13): "mvertex_base", ("m", 15): "mzero", ("a", 15): "azero"}
    return "$" + names.get((file, number), f"{file}{number}")
