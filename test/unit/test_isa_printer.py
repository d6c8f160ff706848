"""Instructions as text: every record survives text -> image -> text -> image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t10.isa import INSTRUCTIONS
from t10.isa.assembler import assemble
from t10.isa.assembler.forms import WIDTHS, is_register, range_of
from t10.isa.image import AUX, DATA, MAIN, SECOND, SOLO
from t10.isa.printer import image_text, instruction_text
from t10.isa.record import Instruction


def values_of(record: Instruction) -> list[st.SearchStrategy[int]]:
    """Return what the operands of a form can be; registers written are drawn without overlap by their position."""
    strategies: list[st.SearchStrategy[int]] = []
    n_outs = 0
    for operand in record.operands:
        if not is_register(operand.kind):
            strategies.append(immediates(operand.kind))
            continue
        width = WIDTHS.get(operand.kind, 1)
        if operand.role == "in":
            strategies.append(st.sampled_from(range(0, 16, width)))
            continue
        # Four registers for every operand that is written, so that none is written twice.
        strategies.append(st.sampled_from(range(4 * n_outs, 4 * n_outs + 4, width)))
        n_outs += 1
    return strategies


def immediates(kind: str) -> st.SearchStrategy[int]:
    allowed = range_of(kind)
    count = (allowed.most - allowed.least) // allowed.multiple
    return st.integers(0, count).map(lambda n: allowed.least + n * allowed.multiple)


@pytest.mark.parametrize("number", range(len(INSTRUCTIONS)))
@settings(max_examples=12, deadline=None, database=None, derandomize=True)
@given(data=st.data())
def test_every_form_is_printed_as_it_is_read(number: int, data: st.DataObject) -> None:
    record = INSTRUCTIONS[number]
    operands = [data.draw(strategy) for strategy in values_of(record)]
    text = instruction_text(number, operands)
    # A rpt by itself stands before its body, which begins at a multiple of eight.
    before, body = (1, "{ nop ; fnop }\n" * 256) if record.mnemonic == "rpt" else (0, "")
    found = assemble(f"{'nop' * before}\n{text}\n{body}").words[before]
    # A number may fit two forms (a small one is zimm16 and simm16): they print alike.
    assert instruction_text(int(found[1]), found[2:]) == text
    assert found[2 : 2 + len(operands)].tolist() == np.array(operands, np.int64).astype(np.int32).tolist()
    assert INSTRUCTIONS[int(found[1])].mnemonic == record.mnemonic


PROGRAM = """
#define PTR m0
.section .text.first, "ax"
.align 8
.worker
first:
  ldconst $m1, 0x12345678
  ld64step $a0:1, $mzero, $PTR+=, 1
  .align 8
  { rpt $m1, (2f-1f)/8-1 ; fnop }
1:
  { ld64step $a0:1, $mzero, $PTR+=, -1 ; f16v4mul $a2:3, $a0:BL, $a2:3 }
  { nop ; f16v4sisoamp $a4:5, $a0:1, $azeros, TAMP_F16V4_E4_P3 }
2:
  or $a0, $azero, 0x3f800000
  uput $FP_CLR, $a0
  get $m1, $WSR
  brnz $m1, second
  exitz $mzero
.size first, . - first
DEF_STACK_USAGE 24, first
.section .data.table
table: .int 1, -2, table
.section .text.second, "ax"
.align 8
.supervisor
second:
  setzi $m4, first
  runall $m4, $sp, 0
  sync TEXCH_SYNCZONE_LOCAL
  br $lr
"""


def test_an_image_is_printed_as_text_that_makes_it_again() -> None:
    image = assemble(PROGRAM)
    again = assemble(image_text(image))
    assert again.words.tolist() == image.words.tolist()
    assert again.symbols == image.symbols
    assert again.sizes == image.sizes
    assert again.stack_bytes == image.stack_bytes == {"first": 24}
    assert set(image.words[:, 0].tolist()) == {SOLO, MAIN, AUX, SECOND, DATA}


def test_flags_and_control_registers_are_printed_by_name() -> None:
    image = assemble(
        "{ nop ; f32sisoamp $a0:1, $a2, $azeros, TAMP_F32_E4_P5 }\nget $m0, $WSR\nuput $TAS, $a0\n"
    )
    text = image_text(image, addresses=False)
    assert "TAMP_F32_E4_P5" in text
    assert "get $m0, $WSR" in text
    assert "uput $TAS, $a0" in text
