"""One record per instruction form: what printer, assembler, simulator and documentation all read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Pipe = Literal["main", "aux"]
Mode = Literal["worker", "supervisor", "both"]
Role = Literal["in", "out", "inout"]


@dataclass(frozen=True, slots=True)
class OperandRecord:
    """An operand of an instruction: its name in `syntax`, its kind, and whether it is read, written or both.

    Kinds: `mreg`, `mreg_pair`, `areg`, `areg_pair`, `areg_quad`; `areg_bcast`, `areg_bcast_lower`, `areg_bcast_upper`
    (written with `:B`, `:BL`, `:BU`); `zimmN` and `simmN` (unsigned and signed immediates of N bits), `immz12` (12 bits
    shifted left by 20), `imm32`; `label` (a code address); `csr`; `flags` (a symbolic constant).
    """

    name: str
    kind: str
    role: Role


@dataclass(frozen=True, slots=True)
class Instruction:
    """One form of an instruction.

    `syntax` is its text with operands as `{name}`. `slots` are issue slots of a worker; `can_bundle` and `can_repeat`
    tell whether it may stand in a bundle and in the body of `rpt`; `semantics` is for people; `code` is the same as C++
    for the simulator ("" where the simulator refuses it); `assumption` says what was assumed where the reference is
    silent.
    """

    mnemonic: str
    syntax: str
    operands: tuple[OperandRecord, ...]
    pipe: Pipe
    mode: Mode
    group: str
    semantics: str
    code: str = ""
    slots: int = 1
    can_bundle: bool = True
    can_repeat: bool = True
    assumption: str = ""
