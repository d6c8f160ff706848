"""`--t10-place`: the byte address of every buffer, the same on all cores, from lifetimes and wishes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from t10.chip import ChipSpec
from t10.core.schedule import Buffer, ModulePlan, most_bytes
from t10.core.tile import ALIGNMENT_BYTES
from t10.dialect.compute_shift import PLACE
from t10.dialect.layout_attr import MemoryRange, place_attr, read_place
from t10.dialect.location import source_text
from t10.dialect.ods import Invalid
from t10.errors import InputError, VerifyError
from t10.passes.bridge.annotate import CHIP
from t10.passes.bridge.read_program import ReadProgram, read_program
from t10.passes.planning import PlanningPass, is_lowered
from t10.passes.program_room import ProgramRoom
from t10.plan.memory.allocation import Request, placed
from t10.plan.memory.buffers import buffer_requests
from t10.plan.memory.room import DataRoom
from t10.plan.memory.wishes import Wishes
from t10.plan.schedule import check_room, costed_arrivals

Placing = Callable[[ModulePlan], ModulePlan]
"""Gives the buffers of a plan their places."""
SHIFT_BUFFER = "rtensor.shift_buffer"
"""Attribute of a function: where the buffer lies through which shifts and reductions pass (`#rtensor.place`)."""
PROGRAM = "rtensor.program"
"""Attribute of a function: the bytes of every core that are kept for code, vertex state, stacks and exchanges."""


@dataclass(frozen=True, slots=True)
class Place(PlanningPass):
    """Give every buffer its address on the device, the same on all cores.

    With `program`, data lies beside the program, which is lowered and counted for that; else behind the bytes that the
    chip reserves.
    """

    name: ClassVar[str] = "t10-place"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-expand",)
    reads: ClassVar[str] = "the compute-shift level"
    leaves: ClassVar[str] = (
        "`rtensor.place` on residents, relayouts, set-ups and accumulators, on operators with second windows, "
        "`rtensor.shift_buffer` and `rtensor.program` on the function: address and bytes of everything in a "
        "core's memory"
    )

    def apply(self, module: Any) -> None:
        """Place every buffer of the function; raises `InfeasiblePlanError` where there is no room."""
        if not is_lowered(module):
            place_module(module, self.target_chip(module), self._room(module))

    def _room(self, module: Any) -> Placing:
        """Return what places the data: beside the program, if that is asked for."""
        chip, cost = self.target(module)
        if not self.program:
            return DataRoom(chip, Wishes(cost))
        room = ProgramRoom(chip, cost)
        return lambda plan: room(costed_arrivals(plan, chip, cost))

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether a function has its buffers, or is lowered."""
        functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
        return any(SHIFT_BUFFER in function.attributes for function in functions) or is_lowered(module)


def place_module(module: Any, chip: ChipSpec, room: Placing) -> None:
    """Give everything in a module at the compute-shift level that owns memory its address, as `room` says.

    Raises `InfeasiblePlanError` where there is no room.
    """
    program = read_program(module)
    plan = room(_plan_of(program, chip, tuple(placed(request, 0) for request in _requests(program, chip))))
    check_room(plan, chip)
    write_places(program, plan)


def write_places(program: ReadProgram, plan: ModulePlan) -> None:
    """State in a program's module where the buffers of its plan lie."""
    attributes = program.model.function.attributes
    attributes[PROGRAM] = place_attr(MemoryRange(0, plan.reserved_bytes))
    for buffer in plan.buffers:
        attribute = place_attr(MemoryRange(buffer.address_bytes, buffer.size_bytes))
        if buffer.name == "shift":
            attributes[SHIFT_BUFFER] = attribute
        else:
            for op in program.owners[buffer.name]:
                op.attributes[PLACE] = attribute


def program_plan(program: ReadProgram, chip: ChipSpec) -> ModulePlan:
    """Return what a module at the compute-shift level does, as values; addresses are those it states, or none.

    What arrivals move and take is left out. Raises `VerifyError` where places do not fit the program, `InputError`
    for a module that names no chip.
    """
    if CHIP not in program.model.function.parent.attributes:
        raise InputError(f"the module has no {CHIP}", hint="it says for which chip it is planned")
    requests = _requests(program, chip)
    if SHIFT_BUFFER in program.model.function.attributes:
        buffers = _stated(program, requests)
    else:
        buffers = tuple(placed(request, 0) for request in requests)
    return _plan_of(program, chip, buffers)


def check_places(plan: ModulePlan, chip: ChipSpec) -> None:
    """Raise `VerifyError` for a buffer that is not aligned or lies outside of a core's memory."""
    for buffer in plan.buffers:
        begin, end = buffer.address_bytes, buffer.address_bytes + buffer.size_bytes
        if begin % ALIGNMENT_BYTES or begin < plan.reserved_bytes or end > chip.data_end_bytes:
            raise VerifyError(
                f"{buffer.name} lies at bytes [{begin}, {end}), expected a multiple of {ALIGNMENT_BYTES} "
                f"within [{plan.reserved_bytes}, {chip.data_end_bytes})"
            )


def _plan_of(program: ReadProgram, chip: ChipSpec, buffers: tuple[Buffer, ...]) -> ModulePlan:
    reserved = _reserved_bytes(program, chip)
    return ModulePlan(
        chip=chip.name,
        graph=program.graph,
        operators=program.operators,
        weight_layouts=program.weight_layouts,
        input_layouts=program.input_layouts,
        buffers=buffers,
        peak_bytes=most_bytes(buffers, reserved),
        capacity_bytes=chip.sram_bytes,
        reserved_bytes=reserved,
        fetches=program.fetches,
    )


def _reserved_bytes(program: ReadProgram, chip: ChipSpec) -> int:
    """Return the bytes at the bottom of the memory that a module keeps for its program."""
    attributes = program.model.function.attributes
    if PROGRAM not in attributes:
        return chip.reserved_bytes
    place = _place_of(program.model.function, PROGRAM)
    if place.address_bytes or place.size_bytes < chip.reserved_bytes or place.size_bytes % ALIGNMENT_BYTES:
        raise VerifyError(
            f"{PROGRAM} is {place.size_bytes} bytes at {place.address_bytes}, expected a multiple of "
            f"{ALIGNMENT_BYTES} from {chip.reserved_bytes} on at 0: what the chip reserves, or more"
        )
    return place.size_bytes


def _requests(program: ReadProgram, chip: ChipSpec) -> list[Request]:
    """Return every buffer that a program needs, with its lifetime."""
    layouts = {layout.value: layout for layout in (*program.weight_layouts, *program.input_layouts)}
    requests = buffer_requests(program.graph, program.operators, layouts, chip, program.fetches)
    unknown = [each.name for each in requests if each.name != "shift" and each.name not in program.owners]
    if unknown:
        raise VerifyError(f"nothing owns the memory of {unknown[0]}")
    return requests


def _stated(program: ReadProgram, requests: list[Request]) -> tuple[Buffer, ...]:
    """Return where every buffer lies by the places that operations state."""
    found: list[Buffer] = []
    for request in requests:
        empty = placed(request, 0)
        attribute, owners = _owners(program, empty.name)
        places = {_place_of(op, attribute) for op in owners}
        where = source_text(owners[0]) or None
        if len(places) > 1:
            raise VerifyError(f"{empty.name} is one buffer, but has two places", location=where)
        place = places.pop()
        if place.size_bytes != empty.size_bytes:
            problem = f"{empty.name} has a place of {place.size_bytes} bytes, expected {empty.size_bytes}"
            raise VerifyError(problem, location=where)
        found.append(replace(empty, address_bytes=place.address_bytes))
    _check_apart(program, found, requests)
    return tuple(found)


def _owners(program: ReadProgram, buffer: str) -> tuple[str, tuple[Any, ...]]:
    """Return the attribute that states a buffer's place, and the operations that have it."""
    return (SHIFT_BUFFER, (program.model.function,)) if buffer == "shift" else (PLACE, program.owners[buffer])


def _place_of(op: Any, name: str) -> MemoryRange:
    """Return the place that an operation states."""
    if name not in op.attributes:
        raise InputError(
            f"{op.name} has no {name}", location=source_text(op) or None, hint="run --t10-place first"
        )
    try:
        return read_place(op.attributes[name])
    except Invalid as problem:
        raise VerifyError(str(problem), location=source_text(op) or None) from None


def _check_apart(program: ReadProgram, buffers: list[Buffer], requests: list[Request]) -> None:
    """Raise `VerifyError` where two buffers that live at once share bytes, but for a result in its operand's place."""
    lives = np.array([(b.first_moment, b.last_moment) for b in buffers], np.int64).reshape(-1, 2)
    bytes_ = np.array([(b.address_bytes, b.address_bytes + b.size_bytes) for b in buffers], np.int64).reshape(
        -1, 2
    )
    meet = (lives[:, None, 0] <= lives[None, :, 1]) & (lives[None, :, 0] <= lives[:, None, 1])
    meet &= (bytes_[:, None, 0] < bytes_[None, :, 1]) & (bytes_[None, :, 0] < bytes_[:, None, 1])
    for i, j in np.argwhere(np.triu(meet, 1)).tolist():
        pair = {requests[i].takes_over: j, requests[j].takes_over: i}
        same_bytes = (bytes_[i] == bytes_[j]).all()
        if same_bytes and any(name == buffers[other].name for name, other in pair.items()):
            continue
        at = max(int(bytes_[i, 0]), int(bytes_[j, 0]))
        raise VerifyError(
            f"{buffers[i].name} and {buffers[j].name} live at once and overlap at address {at}",
            location=source_text(_owners(program, buffers[j].name)[1][0]) or None,
        )
