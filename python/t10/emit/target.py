"""Which chips the IPU backend emits code for: those whose tiles execute the instruction set of an IPU Mk2."""

from __future__ import annotations

from collections.abc import Iterator

from t10.chip import ChipSpec, load_chip
from t10.core.tile import ADDRESS_BITS, MOST_ELEMENTS, N_WORKERS
from t10.errors import InputError

INSTRUCTION_SET_CHIP = "ipu-mk2"
"""The bundled chip whose vector widths and matrix units the codelets are written for."""


def check_target(chip: ChipSpec) -> None:
    """Raise `InputError` unless code can be emitted for a chip; the planner takes any chip."""
    problems = tuple(_problems(chip))
    if problems:
        raise InputError(
            f"the IPU backend emits no code for chip '{chip.name}': {'; '.join(problems)}",
            hint="`--no-program` plans and reports without code",
        )


def _problems(chip: ChipSpec) -> Iterator[str]:
    """Yield what of a chip the instruction set does not have."""
    known = load_chip(INSTRUCTION_SET_CHIP)
    expected = {
        "n_workers": N_WORKERS,
        "vector_width_f16": known.vector_width_f16,
        "vector_width_f32": known.vector_width_f32,
    }
    for field, value in expected.items():
        if getattr(chip, field) != value:
            yield f"{field}: found {getattr(chip, field)}, expected {value}, as the instruction set fixes it"
    for unit in chip.matrix_units:
        theirs = known.matrix_unit(unit.in_dtype, unit.acc_dtype)
        if theirs is None or theirs.model_copy(update={"load_cycles": unit.load_cycles}) != unit:
            expectation = (
                "no such unit" if theirs is None else f"{theirs.in_block} x {theirs.out_block} blocks"
            )
            yield (
                f"matrix_units: found {unit.in_dtype} -> {unit.acc_dtype} with {unit.in_block} x {unit.out_block} "
                f"blocks in {unit.row_cycles} cycles per row, expected {expectation}"
                + ("" if theirs is None else f" in {theirs.row_cycles}")
            )
    if chip.links is not None:
        yield "levels: found links between groups of cores, expected one exchange: no code is emitted for several chips"
    if chip.overlaps:
        yield "execution: found overlapped, expected bulk-synchronous: code exchanges and computes in turn"
    if chip.memory is not None:
        yield "memory: found off-chip memory, expected none: no code is emitted that fetches weights"
    memory = chip.tile_memory
    if memory.end > 1 << ADDRESS_BITS:
        yield f"memory_base + sram_bytes: found {memory.end:#x}, expected at most {1 << ADDRESS_BITS:#x}"
    if memory.n_elements > MOST_ELEMENTS:
        yield f"element_bytes: found {memory.n_elements} memory elements, expected at most {MOST_ELEMENTS}"
