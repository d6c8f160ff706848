"""Codelets assembled, vertex state and stacks placed: the last step from parts to a device program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from t10.chip import ChipSpec
from t10.codelets.image import assembled, stack_bytes
from t10.core.codelet import Codelet, by_name
from t10.core.device import (
    ComputeSet,
    DeviceProgram,
    Execute,
    MemoryMap,
    OperatorProgram,
    Reference,
    Step,
    Variable,
    VertexGroup,
)
from t10.core.schedule import ModulePlan
from t10.core.tile import ALIGNMENT_BYTES, TileMemory, TileRange
from t10.core.vertex_nest import Lie
from t10.emit.arrive import Host
from t10.emit.builder import SHIFT_BUFFER, Builder
from t10.emit.compiled_sets import named
from t10.emit.exchange_code import exchange_code_bytes
from t10.emit.loop_rolling import rolled
from t10.emit.vertices import SCRATCH
from t10.errors import InfeasiblePlanError, naming

WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class LoweredOperator:
    """The steps of an operator, by statement of its body; they name jobs of a builder."""

    operator: str
    statements: tuple[tuple[Step, ...], ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return all steps in order."""
        return tuple(step for steps in self.statements for step in steps)


@dataclass(frozen=True, slots=True)
class Parts:
    """A model lowered, before anything has its place: what `builder` collected, steps by operator, the host's side."""

    name: str
    builder: Builder
    operators: tuple[LoweredOperator, ...]
    host: Host


def link(
    parts: Parts, chip: ChipSpec, address_by_buffer: Mapping[str, int], reserved_bytes: int
) -> DeviceProgram:
    """Return the device program of parts whose buffers lie at addresses (bytes, from the first of a core's memory on).

    Code is compiled for how operands lie. Everything that is no buffer is put at the bottom of the memory, into the
    `reserved_bytes` that data leave there, if they are enough (`check_fits`).
    """
    made = _arranged(parts, chip, address_by_buffer, reserved_bytes)
    weights, inputs = parts.host.filled()
    return DeviceProgram(
        name=parts.name,
        chip=chip.name,
        n_tiles=parts.builder.n_tiles,
        memory=made.memory,
        variables=made.variables,
        codelets=made.codelets,
        compute_sets=made.compute_sets,
        patterns=tuple(parts.builder.patterns.values()),
        copies=tuple(parts.builder.copies.values()),
        operators=_rolled(parts, made.set_by_job),
        weights=weights,
        inputs=inputs,
        outputs=parts.host.outputs(),
    )


def program_bytes(
    parts: Parts, chip: ChipSpec, address_by_buffer: Mapping[str, int], *, is_granted: bool = False
) -> int:
    """Return the bytes that code, vertex state, stacks and exchanges of parts take, rounded up to where data may begin.

    With `is_granted`, the code is that for operands which lie as it wishes.
    """
    made = _arranged(parts, chip, address_by_buffer, chip.reserved_bytes, is_granted=is_granted)
    return _aligned(made.memory.program_bytes)


@dataclass(frozen=True, slots=True)
class _Arranged:
    """Compute sets with their code and everything in memory at an address; `set_by_job` names the set of every job."""

    memory: MemoryMap
    variables: tuple[Variable, ...]
    codelets: tuple[Codelet, ...]
    compute_sets: tuple[ComputeSet, ...]
    set_by_job: dict[str, str]


def _arranged(
    parts: Parts,
    chip: ChipSpec,
    address_by_buffer: Mapping[str, int],
    reserved_bytes: int,
    *,
    is_granted: bool = False,
) -> _Arranged:
    builder, tile = parts.builder, chip.tile_memory
    places = {
        name: TileRange(tile.base + address, builder.sizes[name], tile)
        for name, address in address_by_buffer.items()
    }
    variables = {
        name: replace(variable, address_bytes=places[buffer_of(name)].address_bytes)
        for name, variable in builder.variables.items()
    }
    compiled = _compiled(parts, None if is_granted else {name: places[buffer_of(name)] for name in variables})
    codelets = tuple(compiled.codelets[key] for key in sorted(compiled.codelets))
    code = tile.base
    state = _aligned(code + (assembled(codelets, tile).size_bytes if codelets else 0))
    address_by_name = {name: variable.address_bytes for name, variable in variables.items()}
    sets, scratch = vertex_state(compiled.compute_sets, address_by_name, state)
    stack = _aligned(scratch + compiled.scratch_bytes)
    exchange = _aligned(stack + stack_bytes(codelets))
    memory = MemoryMap(
        base=tile.base,
        code=code,
        state=state,
        scratch=scratch,
        stack=stack,
        exchange=exchange,
        free=_aligned(exchange + exchange_bytes(builder, address_by_name)),
        data=tile.base + reserved_bytes,
        end=tile.end,
    )
    if compiled.scratch_bytes:
        comment = "what codelets use while they run"
        variables[SCRATCH] = Variable(
            SCRATCH, "scratch", "ui8", (compiled.scratch_bytes,), builder.n_tiles, scratch, comment
        )
    return _Arranged(memory, tuple(variables.values()), codelets, sets, compiled.set_by_job)


def linked(parts: Parts, plan: ModulePlan, chip: ChipSpec) -> DeviceProgram:
    """Return the device program of parts with its buffers where a plan has them.

    Raises `InfeasiblePlanError` where the plan leaves too little room for what is no data.
    """
    addresses = {buffer.name: buffer.address_bytes for buffer in plan.buffers}
    program = link(parts, chip, addresses, plan.reserved_bytes)
    check_fits(program, chip.tile_memory)
    return program


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What compiling all jobs comes to: compute sets and codelets by name, the compute set of every job."""

    compute_sets: dict[str, ComputeSet]
    codelets: dict[str, Codelet]
    set_by_job: dict[str, str]
    scratch_bytes: int


def _compiled(parts: Parts, places: Mapping[str, TileRange] | None) -> _Compiled:
    """Return all jobs compiled for how their operands lie, equal compute sets of one operator once.

    Without `places`, operands lie as is best.
    """
    compiled = parts.builder.kept.compiled
    sets: dict[str, ComputeSet] = {}
    codelets: dict[str, Codelet] = {}
    set_by_content: dict[tuple[str, str, int, tuple[str, ...]], str] = {}
    set_by_job: dict[str, str] = {}
    scratch_bytes = 0
    for name, job in parts.builder.jobs.items():
        n_operands = len(job.names)
        lie = Lie.best(n_operands) if places is None else Lie.of([places[each] for each in job.names])
        with naming(job.operator):
            number, made = compiled.of(job.number, lie)
        if any(codelets.get(codelet.name) is not codelet for codelet in made.codelets):
            codelets = by_name((*codelets.values(), *made.codelets))
        scratch_bytes = max(scratch_bytes, made.scratch_bytes)
        content = (job.operator, job.kind, number, job.names)
        known = set_by_content.setdefault(content, name)
        set_by_job[name] = known
        if known == name:
            groups = tuple(replace(named(group, job.names), cycles=job.cycles) for group in made.groups)
            sets[name] = ComputeSet(name, job.operator, job.kind, groups, job.cycles, job.comment)
    return _Compiled(sets, codelets, set_by_job, scratch_bytes)


def _rolled(parts: Parts, set_by_job: Mapping[str, str]) -> tuple[OperatorProgram, ...]:
    """Return the steps of all operators on compute sets, loops rolled."""
    return tuple(
        OperatorProgram(each.operator, rolled(tuple(_renamed(step, set_by_job) for step in each.steps)))
        for each in parts.operators
    )


def _renamed(step: Step, set_by_job: Mapping[str, str]) -> Step:
    return Execute(set_by_job[step.compute_set]) if isinstance(step, Execute) else step


def buffer_of(variable: str) -> str:
    """Return the buffer that a variable lies in: the shift buffer has one per type of elements."""
    return SHIFT_BUFFER if variable.startswith(f"{SHIFT_BUFFER}:") else variable


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
            hint="plan and place the data beside the program (program=True; program for t10-reconcile and t10-place), "
            "or take a chip whose reserved_bytes covers it",
        )


def exchange_bytes(builder: Builder, address_by_name: Mapping[str, int]) -> int:
    """Return the estimated bytes of exchange code on the tile that has most."""
    by_kind = exchange_code_bytes(
        builder.copies.values(), builder.patterns, address_by_name, builder.n_tiles, builder.kept.row_bytes
    )
    total = sum(by_kind.values(), np.zeros(builder.n_tiles, np.int64))
    return int(total.max(initial=0))


def vertex_state(
    compute_sets: Mapping[str, ComputeSet], address_by_name: Mapping[str, int], first: int
) -> tuple[tuple[ComputeSet, ...], int]:
    """Return the compute sets with an address for every group's words, and the first address after them.

    Sets whose vertices have equal words on the same tiles share them: equal layers mostly do.
    """
    address = first
    address_by_words: dict[object, int] = {}
    result: list[ComputeSet] = []
    for one in compute_sets.values():
        words = tuple((group.tiles, _addressed(group, address_by_name)) for group in one.groups)
        # A tile runs one vertex of a compute set: its groups share the same bytes.
        here = address_by_words.setdefault(words, address)
        result.append(
            replace(one, groups=tuple(replace(group, state_address_bytes=here) for group in one.groups))
        )
        if here == address:
            most = max((len(group.words) for group in one.groups), default=0)
            address = _aligned(address + most * WORD_BYTES)
    return tuple(result), address


def _addressed(group: VertexGroup, address_by_name: Mapping[str, int]) -> tuple[object, ...]:
    """Return the words of a group's vertices with addresses for names; what is not placed yet keeps its name."""
    return tuple(
        (address_by_name.get(word.variable, word.variable), word.offset_bytes)
        if isinstance(word, Reference)
        else word
        for word in group.words
    )


def _aligned(address: int) -> int:
    return -(-address // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
