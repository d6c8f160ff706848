"""The linker: symbols across files, what two files define, sections that entries need, stacks along calls."""

from __future__ import annotations

import re

import numpy as np
import pytest

from t10.errors import InputError
from t10.isa import INSTRUCTIONS
from t10.isa.assembler import AssemblyError, Source, assemble, link
from t10.isa.image import Image
from t10.isa.tile import Machine, Trap

BASE = 0x4C000


def linked(*texts: str, entries: tuple[str, ...] = ()) -> Image:
    """Return files a.S, b.S, ... linked."""
    return link([Source(text, f"{'abcdef'[i]}.S") for i, text in enumerate(texts)], entries=entries)


def errors(*texts: str, entries: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(AssemblyError) as raised:
        linked(*texts, entries=entries)
    return [diagnostic.head for diagnostic in raised.value.diagnostics]


def operand(image: Image, word: int, position: int) -> int:
    """Return an operand of a word, counted from the first."""
    return int(image.words[word, 2 + position])


@pytest.mark.parametrize(
    ("instruction", "position"),
    [
        ("setzi $m0, there", 1),
        ("ldconst $m0, there", 1),
        ("bri there", 0),
        ("brz $m0, there", 1),
        ("brnzdec $m0, there", 1),
        ("call $lr, there", 1),
    ],
)
def test_an_operand_may_be_a_symbol_of_another_file(instruction: str, position: int) -> None:
    image = linked(f".extern there\n{instruction}\nnop\n", "nop\n.globl there\nthere: nop\n")
    assert operand(image, 0, position) == image.symbols["there"] == BASE + 12


@pytest.mark.parametrize(
    ("use", "value"),
    [
        ("ld32 $m0, $m1, count - 1", 6),
        ("add $m0, $m1, -count", -7),
        ("setzi $m0, there + 4 * count", BASE + 40),
    ],
)
def test_expressions_hold_symbols_of_other_files(use: str, value: int) -> None:
    image = linked(f"{use}\nnop\nnop\n", ".globl count, there\ncount = 7\nthere: nop\n")
    assert value in image.words[0].tolist()


def test_data_holds_addresses_of_other_files() -> None:
    image = linked(".section .data.table\n.int there, there + 4\n", ".globl there\nthere: nop\n")
    assert [operand(image, word, 0) for word in range(2)] == [BASE + 8, BASE + 12]


def test_labels_that_are_not_exported_belong_to_their_file() -> None:
    image = linked("same: bri same\nonly: nop\n", "same: bri same\n")
    assert [operand(image, word, 0) for word in (0, 2)] == [BASE, BASE + 8]
    # A name that means two addresses is left out.
    assert image.symbols == {"only": BASE + 4}


def test_a_symbol_may_be_set_to_one_of_another_file() -> None:
    image = linked(".globl alias\n.set alias, there\nnop\n", ".globl there\nthere: bri alias\n")
    assert operand(image, 1, 0) == BASE + 4


def test_symbols_set_to_each_other_across_files_are_refused() -> None:
    found = errors(".globl x\n.set x, y\nsetzi $m0, x\n", ".globl y\n.set y, x\n")
    assert any("is set to itself" in error for error in found)


def test_sections_are_aligned_behind_those_of_the_files_before() -> None:
    image = linked("nop\n", ".globl far\n.section .text.far\n.align 16\nfar: nop\n")
    assert image.symbols["far"] == BASE + 16


def test_a_section_with_rpt_begins_at_a_multiple_of_eight() -> None:
    assert linked("nop\n", "{ rpt $m0, 0 ; fnop }\n{ nop ; fnop }\n").size_bytes == 8 + 16
    (error,) = errors("nop\n", "rpt $m0, 0\n{ nop ; fnop }\n")
    assert error.startswith("b.S:1:1: error: the body of rpt begins at 0x4c00c")


# --- weak symbols ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_weak_symbol_yields_in_its_own_file_too(order: tuple[int, int]) -> None:
    texts = (".weak f\nf: nop\nbri f\n", ".globl f\nf: fnop\n")
    image = linked(*(texts[index] for index in order))
    forms: list[int] = image.words[:, 1].tolist()
    names = [INSTRUCTIONS[form].mnemonic for form in forms]
    assert names[(image.symbols["f"] - BASE) // 4] == "fnop"
    assert operand(image, names.index("bri"), 0) == image.symbols["f"]


def test_of_two_weak_symbols_the_first_counts() -> None:
    assert linked(".weak f\nf: nop\n", ".weak f\nf: nop\n").symbols == {"f": BASE}


def test_a_weak_symbol_that_no_file_defines_is_zero() -> None:
    assert operand(linked(".weak f\nsetzi $m0, f\n", "nop\n"), 0, 1) == 0


def test_a_weak_number_cannot_be_replaced() -> None:
    (error,) = errors(".weak n\nn = 1\nsetzi $m0, n\n", ".globl n\nn: nop\n")
    assert error == "a.S:1:1: error: weak symbol 'n' is no label here: the definition in b.S comes too late"


# --- errors ----------------------------------------------------------------------------------------------------------


def test_an_undefined_symbol_is_reported_with_file_and_line() -> None:
    found = errors("nop\ncall $lr, nowhere\n", "setzi $m0, nowhere\n")
    assert found == [
        "a.S:2:11: error: undefined symbol 'nowhere'",
        "b.S:1:12: error: undefined symbol 'nowhere'",
    ]


def test_a_symbol_of_another_file_is_suggested() -> None:
    assert errors("bri zeroOutput\n", ".globl zeroOutputs\nzeroOutputs: nop\n") == [
        "a.S:1:5: error: undefined symbol 'zeroOutput'; did you mean 'zeroOutputs'?"
    ]


def test_a_symbol_that_another_file_does_not_export_is_named() -> None:
    assert errors("bri f\n", "nop\nf: nop\n") == [
        "a.S:1:5: error: undefined symbol 'f'; b.S:2 defines it without .globl"
    ]


def test_a_symbol_that_two_files_export_is_reported_with_both_places() -> None:
    assert errors(".globl f\nnop\nf: nop\n", ".globl f\nf: nop\n") == [
        "b.S:2:1: error: symbol 'f' is defined before, at a.S:3"
    ]


def test_an_address_that_does_not_fit_its_operand_is_reported() -> None:
    (error,) = errors("and $m0, $m1, far\n", ".globl far\nfar: nop\n")
    assert error.startswith("a.S:1:15: error: operand 'y' of and is 0x4c004; expected 0..4095")


def test_errors_of_all_files_are_reported_together() -> None:
    assert [error.split(":")[0] for error in errors("wrong\n", "nop\nwrong\n")] == ["a.S", "b.S"]


# --- only what is needed ---------------------------------------------------------------------------------------------

LIBRARY = (
    ".globl f, g, table\n"
    ".section .text.f\nf: call $lr, helper\n1: bri 1b\n"
    ".section .text.g\ng: bri missing\n"
    ".section .text.helper\nhelper: setzi $m0, table\nbr $lr\n"
    ".section .data.table\ntable: .int f\n"
)


def test_only_sections_that_an_entry_needs_are_kept() -> None:
    image = linked("nop\n", LIBRARY, entries=("f",))
    assert set(image.symbols) == {"f", "helper", "table"}
    assert image.size_bytes == 4 * 5


def test_what_is_not_needed_may_refer_to_what_there_is_not() -> None:
    assert errors("nop\n", LIBRARY) == ["b.S:6:8: error: undefined symbol 'missing'"]
    assert errors("nop\n", LIBRARY, entries=("g",)) == ["b.S:6:8: error: undefined symbol 'missing'"]


def test_data_needs_what_it_points_to() -> None:
    image = linked(LIBRARY, ".globl start\n.section .data.start\nstart: .int table\n", entries=("start",))
    assert set(image.symbols) == {"start", "table", "f", "helper"}


def test_a_needed_symbol_may_be_set_to_an_address() -> None:
    texts = ("start: bri alias\n", ".globl alias\n.set alias, f + 4\n.section .text.f\nf: nop\nnop\n")
    image = linked(*texts, entries=("start",))
    assert image.symbols == {"start": BASE, "f": BASE + 4}
    assert operand(image, 0, 0) == BASE + 8


def test_an_entry_that_is_not_there_is_refused() -> None:
    said = "a.S defines no symbol 'helpr' (its symbols: f, g, helper, table); did you mean 'helper'?"
    with pytest.raises(InputError, match=re.escape(said)):
        linked(LIBRARY, entries=("helpr",))
    with pytest.raises(InputError, match=re.escape("none of a.S, b.S defines the symbol 'other' (")):
        linked(LIBRARY, "f: nop\n", entries=("other",))
    with pytest.raises(InputError, match="entry 'f' is a label of 2 files, and none exports it"):
        linked("f: nop\n", "f: nop\n", entries=("f",))


# --- stacks ----------------------------------------------------------------------------------------------------------


def test_a_stack_of_its_own_is_added_to_the_most_of_what_is_called() -> None:
    caller = ".section .text.f\nf: call $lr, g\ncall $lr, h\nbr $lr\nDEF_STACK_SIZE_OWN (8 + 8) f\n"
    called = (
        ".globl g, h\n.section .text.g\ng: br $lr\n.section .text.h\nh: br $lr\n"
        "DEF_STACK_USAGE 24, .text.g\nDEF_STACK_SIZE_OWN 4 h\n"
    )
    assert linked(caller, called).stack_bytes == {"f": 16 + 24, "g": 24, "h": 4}
    with pytest.raises(AssemblyError, match="f takes 16 bytes of stack, and before 8"):
        linked("f: br $lr\nDEF_STACK_USAGE 8, f\n", "DEF_STACK_USAGE 16, f\n")


def test_functions_of_a_section_call_what_stands_behind_their_label() -> None:
    text = (
        "f: call $lr, g\nbr $lr\ng: call $lr, h\nbr $lr\nh: br $lr\nDEF_STACK_SIZE_OWN 16 f\n"
        "DEF_STACK_SIZE_OWN 8 g\nDEF_STACK_SIZE_OWN 4 h\n"
    )
    assert linked(text).stack_bytes == {"f": 28, "g": 12, "h": 4}


def test_a_cycle_of_calls_has_no_stack_unless_one_is_stated() -> None:
    caller = ".section .text.f\nf: call $lr, g\nbr $lr\nDEF_STACK_SIZE_OWN 16 f\n.globl f\n"
    called = ".section .text.g\n.globl g\ng: call $lr, f\nbr $lr\nDEF_STACK_SIZE_OWN 8 g\n"
    with pytest.raises(
        AssemblyError, match=r"a\.S:4:1: .* no stack is known: f -> g -> f; .* DEF_STACK_USAGE"
    ):
        linked(caller, called)
    with pytest.raises(AssemblyError, match="no stack is known: f -> f;"):
        linked("f: call $lr, f\nbr $lr\nDEF_STACK_SIZE_OWN 16 f\n")
    stated = called.replace("DEF_STACK_SIZE_OWN 8 g", "DEF_STACK_USAGE 80, g")
    assert linked(caller, stated).stack_bytes == {"f": 96, "g": 80}


# --- running ---------------------------------------------------------------------------------------------------------


def test_linked_files_run_and_a_trap_names_file_and_line() -> None:
    main = ".globl main\n.worker\nmain:\n  ld32 $m0, $mvertex_base, 0\n  call $lr, twice\n  exitz $mzero\n"
    helper = (
        "// doubles $m0\n.globl twice\n.worker\ntwice:\n  add $m0, $m0, $m0\n  ld32 $m1, $m0, 0\n  br $lr\n"
    )
    image = linked(main, helper)
    assert image.place_in_source(int(image.lines[3])) == "b.S:5: add $m0, $m0, $m0"
    assert image.place_in_source(int(image.lines[0])) == "a.S:4: ld32 $m0, $mvertex_base, 0"
    assert assemble(helper).place_in_source(5) == "line 5: add $m0, $m0, $m0"
    machine = Machine(1, image)
    state = 0x5C000
    machine.memory(0)[state - BASE : state - BASE + 4] = np.array([0x28000], np.uint32).view(np.uint8)
    machine.run_vertex(0, image.symbols["main"], state)
    assert machine.registers(0, 0).m[0] == 0x50000
    machine.memory(0)[state - BASE : state - BASE + 4] = 0
    with pytest.raises(Trap, match=r"b\.S:6: ld32 \$m1, \$m0, 0"):
        machine.run_vertex(0, image.symbols["main"], state)


# --- spellings of public codelets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "means"),
    [
        ("ld32 $a0, $m4, $azero, 0", "ld32 $a0, $m4, $mzero, 0"),
        ("{ nop ; put $TAS, $a0 }", "{ nop ; uput $TAS, $a0 }"),
        ("f16v4mul $a2:3, $a0:B, $a4:5", "f16v4mul $a2:3, $a0:BL, $a4:5"),
        ("f32v2mul $a2:3, $a0:BL, $a4:5", "f32v2mul $a2:3, $a0:B, $a4:5"),
        ("st64pace $a0:1, $m2:3+=, $m4, 0b1010", "st64pace $a0:1, $m2:3+=, $m4, 0b10"),
        ("or $m0, $mzero, ~((1 << 24) - 1)", "or $m0, $mzero, 0xff000000"),
        ("setzi $m0, 0x10U", "setzi $m0, 16"),
        ("shr $m0, $m1, TMEM_BYTE_MAX_ADDRESS_WIDTH", "shr $m0, $m1, 21"),
        (".size gone, . - gone_begin\nnop", "nop"),
    ],
)
def test_spellings_of_public_codelets(spelled: str, means: str) -> None:
    assert assemble(spelled + "\n").words.tolist() == assemble(means + "\n").words.tolist()


def test_a_selector_of_two_pointers_that_differ_is_refused() -> None:
    with pytest.raises(AssemblyError, match=r"operand 'sel' of st64pace is 6; expected 0\.\.3"):
        assemble("st64pace $a0:1, $m2:3+=, $m4, 0b0110\n")


def test_the_header_of_the_architecture_is_bundled() -> None:
    text = (
        '#include "arch/gc_tile_defines.h"\n#if CTXT_WORKERS == 0x6U\n'
        "setzi $m0, CSR_W_WSR__CTXTID_M1__MASK\n#endif\n"
    )
    assert operand(assemble(text), 0, 1) == 7


def test_names_of_several_tokens_are_one_name() -> None:
    text = (
        "#define ONE a6\n#define NAME(a, b) f_ ## a ## _ ## b\n.macro use, kind\n.globl NAME(half, \\kind\\())\n"
        "NAME(half, \\kind\\()): mov $a0, $\\ONE\n.endm\nuse true\n"
    )
    assert assemble(text).symbols == {"f_half_true": BASE}
