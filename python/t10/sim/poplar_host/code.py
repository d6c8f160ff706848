"""The assembly of a program's vertices, assembled and written to a file that the host's tiles load."""

from __future__ import annotations

import re
import struct

import numpy as np

from t10.core.tile import ALIGNMENT_BYTES, N_WORKERS, TileMemory
from t10.isa.assembler import assemble

MAGIC = b"T10IMAGE"
STACK_USAGE = re.compile(r"^DEF_STACK_USAGE (\d+)", re.MULTILINE)


def code_bytes(assembly: str, memory: TileMemory) -> bytes:
    """Return codelets.S, assembled, as `source/tiles.hpp` reads it; raises `AssemblyError` where it is no assembly."""
    image = assemble(assembly, memory=memory, source="codelets.S")
    stack = max((int(text) for text in STACK_USAGE.findall(assembly)), default=0)
    stack = -(-stack // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    parts = [
        MAGIC
        + struct.pack("<4I", image.base_address, len(image.words), stack, len(image.symbols))
        + struct.pack(
            "<5I", memory.base, memory.end, memory.interleaved_base, memory.element_bytes, N_WORKERS
        ),
        np.ascontiguousarray(image.words, "<i4").tobytes(),
        np.ascontiguousarray(image.lines, "<i4").tobytes(),
    ]
    for name, address in image.symbols.items():
        text = name.encode()
        parts.append(struct.pack("<2I", address, len(text)) + text + b"\0" * (-len(text) % 4))
    return b"".join(parts)
