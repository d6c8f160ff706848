"""The floating-point mode is stated once: the instruction-set simulator begins with it and program.cpp sets it."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
from support.device_programs import ring

from t10.core.codelet import ENTRY_PREFIX
from t10.core.floating_point import FLOATING_POINT, FloatingPointMode
from t10.core.tile import IPU_MEMORY
from t10.emit.poplar.write import write_program
from t10.isa.assembler import assemble
from t10.isa.assembler.headers import CONSTANTS
from t10.isa.tile import Machine

ENTRY = f"{ENTRY_PREFIX}Mode"
READ = f"""\
.section .text.{ENTRY}, "ax"
.globl {ENTRY}
.type {ENTRY}, @function
.align 8
.worker
{ENTRY}:
  uget $a0, $FP_CTL
  ld32 $m0, $mvertex_base, $mzero, 0
  st32 $a0, $m0, $mzero, 0
  exitz $mzero
.size {ENTRY}, . - {ENTRY}
DEF_STACK_USAGE 0, {ENTRY}
"""
STATE, RESULT = 0x80000, 0x80040


def test_the_simulator_begins_with_the_mode() -> None:
    image = assemble(READ)
    machine = Machine(1, image)
    memory = machine.memory(0)
    at = STATE - IPU_MEMORY.base
    memory[at : at + 4].view("<u4")[0] = RESULT
    memory[RESULT - IPU_MEMORY.base : RESULT - IPU_MEMORY.base + 4] = 0xFF
    machine.run_vertex(0, image.symbols[ENTRY], STATE)
    assert int(memory[RESULT - IPU_MEMORY.base :][:4].view("<u4")[0]) == FLOATING_POINT.register


@pytest.mark.parametrize("field", [field.name for field in fields(FloatingPointMode)])
def test_bits_of_the_register_are_those_of_the_headers(field: str) -> None:
    name = f"CSR_W_FP_CTL__{field.upper()}"
    assert CONSTANTS[f"{name}__MASK"] == 1
    assert replace(FloatingPointMode(), **{field: True}).register == 1 << CONSTANTS[f"{name}__SHIFT"]


def test_the_program_sets_the_mode(tmp_path: Path) -> None:
    case = ring()
    write_program(case.program, tmp_path, case.weights)
    flags = ", ".join(
        f"/*{field.name}*/ {str(getattr(FLOATING_POINT, field.name)).lower()}"
        for field in fields(FLOATING_POINT)
    )
    text = (tmp_path / "program.cpp").read_text(encoding="utf-8")
    assert f"const FloatingPointBehaviour floating_point({flags});" in text
    assert "floating_point, build});" in text
