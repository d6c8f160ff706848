#!/usr/bin/env python3
"""Measure the instruction-set simulator: issue slots per second on one core.

Each loop is the inner loop of a kind of codelet. `python benchmarks/iss.py` prints a table; the bar is 20 M per second.
"""

from __future__ import annotations

import time

import numpy as np

from t10.core.tile import IPU_MEMORY
from t10.isa.assembler import assemble
from t10.isa.tile import Machine

BAR_PER_SECOND = 20e6
STATE = IPU_MEMORY.interleaved_base - 64
FIRST = 0x50000
SECOND = 0x60000
THIRD = 0x70000

_PROLOGUE = """
  ld32 $m0, $mvertex_base, $mzero, 0
  ld32 $m1, $mvertex_base, $mzero, 1
  ld32 $m2, $mvertex_base, $mzero, 2
  ld32 $m3, $mvertex_base, $mzero, 3
  mov $m4, $m0
  mov $m5, $m1
  mov $m6, $m2
  setzi $a0, 8
  uput $FP_CLR, $a0
  zero $a0:1
  zero $a2:3
  zero $a4:5
  zero $a6:7
OUTER:
  tapack $m0:1, $m4, $m5, $m6
  mov $m7, $m4
  mov $m8, $m5
  mov $m9, $m6
"""
_REPEAT = """
  .align 8
  {{ rpt 200, {body}
    fnop }}
{lines}
"""
_EPILOGUE = """
  brnzdec $m3, OUTER
  exitz $mzero
"""


def repeated(*bundles: str) -> str:
    """Return a worker that runs bundles 200 times, over and over."""
    body = _REPEAT.format(body=len(bundles) - 1, lines="\n".join(f"  {{ {bundle} }}" for bundle in bundles))
    return f".align 8\nENTRY:\n{_PROLOGUE}{body}{_EPILOGUE}"


AMP = [
    f"ld2xst64pace $a0:3, $a4:5, $m0:1+=, $mzero, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a2:3, TAMP_F16V4_E4_P{p}"
    for p in range(4)
]
AMP_SINGLE = [
    f"ldst64pace $a0:1, $a2:3, $m0:1+=, $mzero, 0 ; f16v4sisoamp $a2:3, $a0:1, $azeros, TAMP_F16V4_E4_P{p}"
    for p in range(4)
]
AMP_F32 = [
    f"ld2x64pace $a0:1, $a2:3, $m0:1+=, $mzero, 0 ; f32sisov2amp $a4:5, $a0, $a2:3, TAMP_F32_E4_P{p}"
    for p in range(8)
]
LOOPS = {
    "matrix f16, 64 MAC": repeated(*AMP),
    "matrix f16 to f32, 32 MAC": repeated(*AMP_SINGLE),
    "matrix f32, 16 MAC": repeated(*AMP_F32),
    "f16v4 add, in pace": repeated(
        "ld2xst64pace $a0:3, $a4:5, $m0:1+=, $mzero, 0 ; f16v4add $a4:5, $a0:1, $a2:3"
    ),
    "f32v2 multiply and add": repeated(
        "ld64step $a0:1, $mzero, $m7+=, 1 ; f32v2mul $a4:5, $a0:1, $a2:3",
        "ld64step $a2:3, $mzero, $m8+=, 1 ; f32v2add $a6:7, $a4:5, $a0:1",
        "st64step $a6:7, $mzero, $m9+=, 1 ; fnop",
    ),
    "f16v2 exp": repeated("ld64step $a0:1, $mzero, $m7+=, 1 ; f16v2exp $a4, $a0", "nop ; f16v2exp $a5, $a1"),
    "integers and branches": f".align 8\nENTRY:\n{_PROLOGUE}"
    + """
  setzi $m7, 200
1:
  add $m8, $m8, 3
  xor $m9, $m8, $m7
  cmpult $m10, $m9, $m8
  st32 $m9, $m6, $mzero, 0
  brnzdec $m7, 1b
"""
    + _EPILOGUE,
}


def slots_per_second(text: str, seconds: float = 0.1, rounds: int = 5) -> float:
    """Return the issue slots per second of processor time of a code on six workers: the best of some rounds."""
    machine = Machine(1, assemble(text))
    memory = machine.memory(0)
    memory[FIRST - IPU_MEMORY.base : FIRST - IPU_MEMORY.base + 16384].view(np.float16)[:] = 1.0
    memory[SECOND - IPU_MEMORY.base : SECOND - IPU_MEMORY.base + 16384].view(np.float16)[:] = 0.5
    words = memory[STATE - IPU_MEMORY.base : STATE - IPU_MEMORY.base + 16].view(np.uint32)
    words[:] = (FIRST, SECOND, THIRD, 100)
    entry = machine.image.symbols["ENTRY"]
    best = 0.0
    for _ in range(rounds):
        start, before = time.process_time(), machine.slots
        while time.process_time() - start < seconds:
            machine.run_vertex(0, entry, STATE)
        best = max(best, (machine.slots - before) / (time.process_time() - start))
    return best


def main() -> None:
    """Print the table."""
    print(f"{'loop':32} {'M slots/s':>10}   bar {BAR_PER_SECOND / 1e6:.0f}")
    for name, text in LOOPS.items():
        print(f"{name:32} {slots_per_second(text) / 1e6:10.1f}")


if __name__ == "__main__":
    main()
