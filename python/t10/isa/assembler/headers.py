"""Headers that assembly files may include: our own versions of those of the Poplar SDK.

Names are public (public codelets use them). The values of flags are ours (`t10.isa.constants`) and never leave the
assembler: the header does not define them, so that they stay names in what the preprocessor writes.
`DEF_STACK_USAGE` and `DEF_STACK_SIZE_OWN` are directives of this assembler, so their header is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from t10.core.tile import N_WORKERS, TileMemory
from t10.isa import constants
from t10.isa.assembler.forms import ADDRESS_BITS


def _constants() -> dict[str, int]:
    """Return the architecture's constants by the names that codelets use."""
    csrs = (
        ("CSR_W", constants.WORKER_CSRS),
        ("CSR_W", constants.UPPER_CSRS),
        ("CSR_S", constants.SUPERVISOR_CSRS),
    )
    indices = {f"{space}_{name}__INDEX": number for space, names in csrs for name, number in names.items()}
    fields = {
        "CSR_W_WSR__CTXTID_M1": (0, constants.WSR_WORKER_MASK),
        "CSR_W_FP_CLR__INV": (0, 1),
        "CSR_W_FP_CLR__DIV0": (1, 1),
        "CSR_W_FP_CLR__OFLO": (2, 1),
        "CSR_W_FP_CLR__ZAACC": (constants.FP_CLR_ZAACC.bit_length() - 1, 1),
        "CSR_W_FP_CTL__INV": (0, 1),
        "CSR_W_FP_CTL__DIV0": (1, 1),
        "CSR_W_FP_CTL__OFLO": (2, 1),
        "CSR_W_FP_CTL__RND": (16, 7),
        "CSR_W_FP_CTL__ESR": (19, 1),
        "CSR_W_FP_CTL__NANOO": (20, 1),
        "CSR_S_FP_ICTL__INV": (0, 1),
        "CSR_S_FP_ICTL__DIV0": (1, 1),
        "CSR_S_FP_ICTL__OFLO": (2, 1),
        "CSR_S_FP_ICTL__RND": (16, 7),
        "CSR_S_FP_ICTL__ESR": (19, 1),
        "CSR_S_FP_ICTL__NANOO": (20, 1),
        "CSR_W_REPEAT_COUNT__VALUE": (0, 0xFFFF),
        "CSR_S_CR__ZCWEI": (2, 1),
    }
    shifts = {f"{name}__SHIFT": shift for name, (shift, _) in fields.items()}
    masks = {f"{name}__MASK": mask for name, (_, mask) in fields.items()}
    workers = {"CTXT_WORKERS": N_WORKERS, "NUM_WORKERS": N_WORKERS}
    return {**workers, **indices, **shifts, **masks, **constants.FLAGS}


CONSTANTS: Final[dict[str, int]] = _constants()
"""Numbers that every assembly knows by name, with or without `#include`; symbols of the text come first."""


@lru_cache(maxsize=16)
def known_constants(memory: TileMemory) -> Mapping[str, int]:
    """Return `CONSTANTS`, and the memory map of the tile that is assembled for.

    The header does not define the memory map, so that it stays names in what the preprocessor writes, like flags.
    """
    return {
        "TMEM_REGION0_BASE_ADDR": memory.base,
        "TMEM_REGION1_BASE_ADDR": memory.interleaved_base,
        "TMEM_REGION0_SIZE": memory.interleaved_base - memory.base,
        "TMEM_REGION1_SIZE": max(memory.end - memory.interleaved_base, 0),
        "TMEM_FULL_SIZE": memory.size_bytes,
        "TMEM_ELEMSIZE": memory.element_bytes,
        "TMEM_BYTE_MAX_ADDRESS_WIDTH": ADDRESS_BITS,
        "TMEM_FULL_ADDRESS_MASK": (1 << ADDRESS_BITS) - 1,
        **CONSTANTS,
    }


def _header() -> str:
    """Return the text of `TileConstants.hpp`."""
    lines = [
        f"#define {name} {number:#x}" for name, number in CONSTANTS.items() if name not in constants.FLAGS
    ]
    return "\n".join([*lines, '#define FUNCTION_IS_WORKER "ax"', ""])


HEADERS: Final[dict[str, str]] = {
    "TileConstants.hpp": _header(),
    "gc_tile_defines.h": _header(),
    "StackSizeDefs.hpp": "",
    "AvailableVTypes.h": "",
}
"""Text of bundled headers by file name; a folder in front (`poplar/TileConstants.hpp`) is ignored."""
