"""Numbers with names: registers of control (CSRs), flags of the matrix engine.

CSR numbers are public facts (ISA reference §3, §4). The values of `FLAGS` are not public: these are
our own, shared by assembler and simulator, and never leave them, since emitted text uses the names.
"""

from __future__ import annotations

from t10.core.tile import N_WORKERS

WORKER_CSRS: dict[str, int] = {
    "PC": 0,
    "WSR": 1,
    "VERTEX_BASE": 2,
    "WORKER_BASE": 3,
    "REPEAT_COUNT": 4,
    "REPEAT_FIRST": 5,
    "REPEAT_END": 6,
    "COUNT_L": 0x60,
    "COUNT_U": 0x61,
    "DBG_DATA": 0x70,
    "DBG_BRK_ID": 0x71,
}
"""Operands of `get` and `put` in worker code."""

UPPER_CSRS: dict[str, int] = {
    "FP_STS": 0,
    "FP_CLR": 1,
    "FP_CTL": 2,
    "PRNG_0_0": 3,
    "PRNG_0_1": 4,
    "PRNG_1_0": 5,
    "PRNG_1_1": 6,
    "PRNG_SEED": 7,
    "TAS": 8,
    "FP_NFMT": 9,
    "FP_SCL": 10,
}
"""Operands of `uget` and `uput`."""

SUPERVISOR_CSRS: dict[str, int] = {
    "PC": 0,
    "SSR": 1,
    "CR": 2,
    "TILE_ID": 3,
    "FP_ICTL": 0x20,
    **{f"WORKER{worker}_BASE": 0x21 + worker for worker in range(N_WORKERS)},
    "FP_INFMT": 0x31,
    "FP_ISCL": 0x33,
    "CCCSLOAD": 0x50,
    "SCOUNT_L": 0x60,
    "SCOUNT_U": 0x61,
    "DBG_DATA": 0x70,
    "DBG_BRK_ID": 0x71,
    "CTXT_STS": 0x72,
    "DBG_CTL": 0x73,
    "DBG_ECSR": 0x74,
    "DBG_ECLR": 0x75,
}
"""Operands of `get` and `put` in supervisor code, without those of breakpoints and exchange."""

FP_CLR_ZAACC = 8
WSR_WORKER_MASK = 7

SYNCZONE_LOCAL = 0

FLAGS: dict[str, int] = {
    **{f"TAMP_F16V4_E{e}_P{p}": 16 * row + p for row, e in enumerate((4, 2, 1)) for p in range(4)},
    **{f"TAMP_F32_E{e}_P{p}": 64 + 16 * row + p for row, e in enumerate((4, 2, 1)) for p in range(8)},
    **{f"TSLIC_F16V4_1x{k}_W{w}": 128 + 16 * row + w for row, k in enumerate((4, 3)) for w in range(2)},
    "TISTACC_P0": 0,
    "TISTACC_P1": 1,
    "TSTACC_P0": 0,
    "TSTACC_P1": 1,
    "TEXCH_SYNCZONE_LOCAL": SYNCZONE_LOCAL,
}
"""Symbolic constants of instructions: private numbers."""
