"""Branches, calls, repetition and the end of a worker (ISA reference §5, §6)."""

from __future__ import annotations

from functools import partial

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction

_c = partial(forms, group="control", can_repeat=False)


def _exit(mnemonic: str, condition: str) -> tuple[Instruction, ...]:
    what = f"end of the worker, status {condition}"
    return _c(mnemonic, "s:m", what, f"c.exit({condition});", mode="worker", can_bundle=False)


_COUNTED = (
    "n = count & 0xffff; the body, K + 1 bundles from the next address on, runs n times, not at all for n = 0"
)

CONTROL: tuple[Instruction, ...] = (
    *_c("br", "s:m", "jump to s", "c.jump(s);"),
    *_c("bri", "target:label", "jump", "c.jump(target);"),
    *_c("brz", "s:m, target:label", "jump if s == 0", "if (s == 0) c.jump(target);"),
    *_c("brnz", "s:m, target:label", "jump if s != 0", "if (s != 0) c.jump(target);"),
    *_c("brneg", "s:m, target:label", "jump if s < 0", "if (s >> 31 != 0) c.jump(target);"),
    *_c("brpos", "s:m, target:label", "jump if s >= 0", "if (s >> 31 == 0) c.jump(target);"),
    *_c(
        "brnzdec",
        "!s:m, target:label",
        "if s != 0: s -= 1 and jump",
        "if (s != 0) { s -= 1; c.jump(target); }",
    ),
    *_c(
        "call",
        "d:m, target:label",
        "d = address of what follows; jump",
        "d = c.next_address(); c.jump(target);",
    ),
    *_c(
        "rpt", "count:m, k:z8 | count:z12, k:z8", _COUNTED, "c.repeat(count & 0xffff, k + 1);", mode="worker"
    ),
    *_exit("exitz", "s == 0"),
    *_exit("exitnz", "s != 0"),
    *_exit("exitneg", "s >> 31 != 0"),
    *_exit("exitpos", "s >> 31 == 0"),
)
