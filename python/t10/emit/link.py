"""Codelets assembled, vertex state and stacks placed: the last step from parts to a device program."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from t10.chip import ChipSpec
from t10.core.codelet import Codelet
from t10.core.device import (
    ComputeSet,
    DeviceProgram,
    HostTensor,
    MemoryMap,
    OperatorProgram,
    Reference,
    Variable,
    VertexGroup,
)
from t10.core.tile import ALIGNMENT_BYTES, N_WORKERS, TileMemory
from t10.emit.builder import Builder
from t10.emit.exchange_code import exchange_code_bytes
from t10.emit.placement import TileRange
from t10.emit.vertices import SCRATCH
from t10.errors import InfeasiblePlanError
from t10.isa.assembler import assemble
from t10.isa.image import Image

WORD_BYTES = 4
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


def link(
    builder: Builder,
    chip: ChipSpec,
    *,
    name: str,
    operators: tuple[OperatorProgram, ...],
    weights: tuple[HostTensor, ...],
    inputs: tuple[HostTensor, ...],
    outputs: tuple[HostTensor, ...],
) -> DeviceProgram:
    """Return the device program of what `builder` collected, with every vertex's words at an address."""
    codelets = tuple(builder.codelets[key] for key in sorted(builder.codelets))
    tile = chip.tile_memory
    code = tile.base
    state = _aligned(code + (assembled(codelets, tile).size_bytes if codelets else 0))
    sets, scratch = vertex_state(builder, state)
    stack = _aligned(scratch + builder.scratch_bytes)
    exchange = _aligned(stack + stack_bytes(codelets))
    free = _aligned(exchange + exchange_bytes(builder))
    memory = MemoryMap(
        base=tile.base,
        code=code,
        state=state,
        scratch=scratch,
        stack=stack,
        exchange=exchange,
        free=free,
        data=tile.base + chip.reserved_bytes,
        end=tile.end,
    )
    if builder.scratch_bytes:
        builder.places[SCRATCH] = TileRange(scratch, builder.scratch_bytes, tile)
        comment = "what codelets use while they run"
        builder.variables[SCRATCH] = Variable(
            SCRATCH, "scratch", "ui8", (builder.scratch_bytes,), builder.n_tiles, scratch, comment
        )
    return DeviceProgram(
        name=name,
        chip=chip.name,
        n_tiles=builder.n_tiles,
        memory=memory,
        variables=tuple(builder.variables.values()),
        codelets=codelets,
        compute_sets=sets,
        patterns=tuple(builder.patterns.values()),
        copies=tuple(builder.copies.values()),
        operators=operators,
        weights=weights,
        inputs=inputs,
        outputs=outputs,
    )


def check_fits(program: DeviceProgram, tile: TileMemory) -> None:
    """Raise `InfeasiblePlanError` unless code, state and stacks fit below the data, code where it can be fetched."""
    memory = program.memory
    if memory.state > tile.interleaved_base:
        raise InfeasiblePlanError(
            f"codelets take {memory.state - memory.code:,} bytes, instructions can be fetched from "
            f"{tile.interleaved_base - tile.base:,}"
        )
    if memory.free > memory.data:
        raise InfeasiblePlanError(
            f"code, vertex state, stacks and exchanges take {memory.program_bytes:,} bytes of every tile, the chip "
            f"reserves {memory.data - memory.base:,}",
            hint="compile with a chip whose reserved_bytes covers them",
        )


def stack_bytes(codelets: tuple[Codelet, ...]) -> int:
    """Return the bytes of the supervisor's and all workers' stacks."""
    supervisor = max((c.stack_bytes for c in codelets if c.kind == "supervisor"), default=0)
    worker = max((c.stack_bytes for c in codelets if c.kind == "multi"), default=0)
    return SUPERVISOR_STACK_BYTES + supervisor + N_WORKERS * worker


def exchange_bytes(builder: Builder) -> int:
    """Return the estimated bytes of exchange code on the tile that has most."""
    addresses = {name: place.address_bytes for name, place in builder.places.items()}
    by_kind = exchange_code_bytes(builder.copies.values(), builder.patterns, addresses, builder.n_tiles)
    total = sum(by_kind.values(), np.zeros(builder.n_tiles, np.int64))
    return int(total.max(initial=0))


def vertex_state(builder: Builder, first: int) -> tuple[tuple[ComputeSet, ...], int]:
    """Return the compute sets with an address for every group's words, and the first address after them.

    Sets whose vertices have equal words on the same tiles share them: equal layers mostly do.
    """
    address = first
    address_by_words: dict[object, int] = {}
    result: list[ComputeSet] = []
    for one in builder.compute_sets.values():
        words = tuple((group.tiles, _addressed(group, builder)) for group in one.groups)
        # A tile runs one vertex of a compute set: its groups share the same bytes.
        here = address_by_words.setdefault(words, address)
        result.append(
            replace(one, groups=tuple(replace(group, state_address_bytes=here) for group in one.groups))
        )
        if here == address:
            most = max((len(group.words) for group in one.groups), default=0)
            address = _aligned(address + most * WORD_BYTES)
    return tuple(result), address


def _addressed(group: VertexGroup, builder: Builder) -> tuple[object, ...]:
    """Return the words of a group's vertices with addresses for names; what is not placed yet keeps its name."""
    places = builder.places
    return tuple(
        (places[word.variable].address_bytes if word.variable in places else word.variable, word.offset_bytes)
        if isinstance(word, Reference)
        else word
        for word in group.words
    )


def _aligned(address: int) -> int:
    return -(-address // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
