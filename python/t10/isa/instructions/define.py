"""A compact notation for instruction records.

Operands are written `name:kind`, separated by commas, forms by `|`. Kinds: `m`, `mP` (pair), `a`, `aP`, `aQ` (quad),
`zN` and `sN` (immediates of N bits), `hi12` (12 bits shifted left by 20), `i32`, `label`, `csr`, `flags`. Marks behind
a kind are part of the text: `:B`, `:BL`, `:BU` (one element for all lanes), `+=`, `++`, `@`, `>>` (read and changed).
Operands named `d` or `d1` are written; `!` in front makes any operand read and written.
"""

from __future__ import annotations

import re
from typing import Final

from t10.isa.record import Instruction, Mode, OperandRecord, Pipe, Role

_OPERAND: Final = re.compile(r"(!?)(\w+):(\w+)(:B[LU]?|\+=|\+\+|@|>>)?$")
_REGISTERS: Final = {
    "m": "mreg",
    "mP": "mreg_pair",
    "a": "areg",
    "aP": "areg_pair",
    "aQ": "areg_quad",
    "i32": "imm32",
}
_BROADCASTS: Final = {":B": "areg_bcast", ":BL": "areg_bcast_lower", ":BU": "areg_bcast_upper"}
_CHANGED: Final = ("+=", "++", "@", ">>")


def forms(
    mnemonic: str,
    operands: str,
    semantics: str,
    code: str = "",
    assumption: str = "",
    slots: int = 1,
    *,
    group: str,
    pipe: Pipe = "main",
    mode: Mode = "both",
    can_bundle: bool = True,
    can_repeat: bool = True,
) -> tuple[Instruction, ...]:
    """Return the records of the forms of an instruction; raises ValueError where an operand is not in the notation."""
    records: list[Instruction] = []
    for one in operands.split("|"):
        parsed = tuple(_operand(text.strip()) for text in one.split(",") if text.strip())
        records.append(
            Instruction(
                mnemonic=mnemonic,
                syntax=f"{mnemonic} {', '.join(text for text, _ in parsed)}".strip(),
                operands=tuple(operand for _, operand in parsed),
                pipe=pipe,
                mode=mode,
                group=group,
                semantics=semantics,
                code=code,
                slots=slots,
                can_bundle=can_bundle,
                can_repeat=can_repeat,
                assumption=assumption,
            )
        )
    return tuple(records)


def _operand(text: str) -> tuple[str, OperandRecord]:
    """Return the text of an operand in `syntax`, and its record."""
    match = _OPERAND.match(text)
    if match is None:
        raise ValueError(f"operand {text!r} is not written as name:kind")
    changed, name, kind, mark = match[1], match[2], match[3], match[4] or ""
    role: Role = "inout" if changed or mark in _CHANGED else "out" if name in ("d", "d1") else "in"
    return f"{{{name}}}{mark}", OperandRecord(name=name, kind=_kind(kind, mark), role=role)


def _kind(kind: str, mark: str) -> str:
    """Return the full name of a kind: `z12` is `zimm12`, `a` with `:BL` is `areg_bcast_lower`."""
    if mark in _BROADCASTS:
        return _BROADCASTS[mark]
    if kind in _REGISTERS:
        return _REGISTERS[kind]
    if kind == "hi12":
        return "immz12"
    if kind in ("label", "csr", "flags"):
        return kind
    if re.fullmatch(r"[zs]\d+", kind):
        return f"{kind[0]}imm{kind[1:]}"
    raise ValueError(f"unknown kind of operand {kind!r}")
