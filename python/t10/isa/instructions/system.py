"""Control registers, traps, and what only the supervisor may do: launch workers, load weights (§3, §11, §13)."""

from __future__ import annotations

from functools import partial

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction, Mode, Pipe


def _s(
    mnemonic: str,
    operands: str,
    semantics: str,
    code: str = "",
    mode: Mode = "supervisor",
    pipe: Pipe = "main",
    can_bundle: bool = False,
    assumption: str = "",
) -> tuple[Instruction, ...]:
    return forms(
        mnemonic,
        operands,
        semantics,
        code,
        assumption,
        group="system",
        pipe=pipe,
        mode=mode,
        can_bundle=can_bundle,
        can_repeat=False,
    )


_exchange = partial(forms, group="exchange", mode="supervisor", can_bundle=False, can_repeat=False)


_UNSPECIFIED = "operands are not public"

SYSTEM: tuple[Instruction, ...] = (
    *_s("get", "d:m, csr:csr", "d = control register", "d = c.get(csr);", "both", can_bundle=True),
    *_s("put", "csr:csr, s:m", "control register = s", "c.put(csr, s);", "both"),
    *_s(
        "uget",
        "d:a, csr:csr",
        "d = control register of the upper space",
        "d = c.uget(csr);",
        "worker",
        "aux",
        True,
    ),
    *_s("get", "d:a, csr:csr", "another spelling of uget", "d = c.uget(csr);", "worker", "aux", True),
    *_s(
        "uput",
        "csr:csr, s:a",
        "control register of the upper space = s; FP_CLR bit 3 zeroes all accumulators",
        "c.uput(csr, s);",
        "worker",
        "aux",
        True,
    ),
    *_s("trap", "imm:z4", "patched breakpoint", "c.trap(imm);", "both"),
    *_s(
        "run",
        "entry:m, vbase:m, imm:z16",
        "start one worker: vertex base = vbase + 4 * imm + base of region 0; which worker is not public",
    ),
    *_s(
        "runall",
        "entry:m, vbase:m, imm:z16",
        "start worker w = 0..5 at entry with vertex base vbase + 4 * w * imm; all must have ended",
        "c.run_all(entry, vbase, imm);",
        assumption="The workers' first slot comes 6 clocks after issue.",
    ),
    *_s(
        "sync",
        "imm:z8",
        "wait for a zone; the local one: until all workers have ended",
        "c.sync(imm);",
        assumption="Resumes 6 clocks after the last exit; only the local zone is modelled.",
    ),
    *_s(
        "ld64putcs",
        "n:z8",
        "weights[n] = mem64[CCCSLOAD]; CCCSLOAD += 8; n = 4 * unit + phase",
        "c.load_weights(n, 1);",
        assumption="Waits until 6 clocks after put CCCSLOAD.",
    ),
    *_s(
        "ld128putcs",
        "n:z8",
        "weights[n], weights[n + 1] = mem128[CCCSLOAD], interleaved memory; CCCSLOAD += 16",
        "c.load_weights(n, 2);",
        assumption="Waits until 6 clocks after put CCCSLOAD.",
    ),
    *_exchange("delay", "imm:z19", "wait imm + 1 events of the exchange"),
    *_exchange("send", "n:z6, addr:z18, ctl:z3", "send n + 1 words from a word address on"),
    *_exchange("sendoff", "n:z12, delta:z11, ctl:z3", "go on sending with a change of the source"),
    *_exchange("sans", "imm:z8", "declare participation in automatic syncs"),
    *_exchange("delaypic", "", _UNSPECIFIED),
    *_exchange("delayxpic", "", _UNSPECIFIED),
    *_exchange("sendpic", "", _UNSPECIFIED),
    *_exchange("sendpicp", "", _UNSPECIFIED),
)
