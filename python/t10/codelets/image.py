"""Codelets as an image: their texts as one file, assembled, and the stacks they need."""

from __future__ import annotations

from functools import lru_cache

from t10.core.codelet import Codelet
from t10.core.tile import N_WORKERS, TileMemory
from t10.isa.assembler import assemble
from t10.isa.image import Image

SUPERVISOR_STACK_BYTES = 256
KEPT_IMAGES = 4

ASSEMBLY_HEADER = """// Codelets of one program, written by T10, a section each; see docs/ipu-backend.md.
#include "poplar/StackSizeDefs.hpp"
#include "poplar/TileConstants.hpp"

"""


def codelets_text(codelets: tuple[Codelet, ...]) -> str:
    """Return the assembly of codelets as one file."""
    parts = [f"// {c.summary}\n{c.assembly}" for c in codelets]
    return ASSEMBLY_HEADER + "\n".join(parts)


@lru_cache(maxsize=KEPT_IMAGES)
def assembled(codelets: tuple[Codelet, ...], memory: TileMemory) -> Image:
    """Return the assembled codelets, from the bottom of the tile's memory on."""
    return assemble(codelets_text(codelets), memory=memory, source="codelets.S")


def stack_bytes(codelets: tuple[Codelet, ...]) -> int:
    """Return the bytes of the supervisor's and all workers' stacks."""
    supervisor = max((c.stack_bytes for c in codelets if c.kind == "supervisor"), default=0)
    worker = max((c.stack_bytes for c in codelets if c.kind == "multi"), default=0)
    return SUPERVISOR_STACK_BYTES + supervisor + N_WORKERS * worker
