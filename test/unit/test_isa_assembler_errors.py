"""Errors of the assembler: each with its line, column and words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t10.errors import InputError
from t10.isa.assembler import AssemblyError, Diagnostic, assemble
from t10.isa.assembler.lines import MOST_ERRORS


def errors(source: str) -> tuple[Diagnostic, ...]:
    """Return what is wrong with a text."""
    with pytest.raises(AssemblyError) as caught:
        assemble(source)
    return caught.value.diagnostics


CASES = [
    # registers
    ("ld64 $a1:2, $m0, 0", 1, 6, "register group $a1:2 is not aligned: a pair begins at a multiple of 2"),
    ("ld128 $a2:5, $m0, 0", 1, 7, "register group $a2:5 is not aligned: a quad begins at a multiple of 4"),
    ("ld32 $m16, $m0, 0", 1, 6, "unknown register '$m16'"),
    ("add $m0, $mzer, 1", 1, 10, "unknown register '$mzer'; did you mean '$mzero'?"),
    ("add $m0, $m0:9, 1", 1, 10, "$m0:9 is not a register group"),
    ("add $m0:B, $m0, 1", 1, 5, "only a single $a register can be broadcast"),
    ("add $mvertex_base, $m0, 1", 1, 5, "add cannot write read-only $m13"),
    ("ld2x64pace $a0:1, $a0:1, $m0:1+=, $mzero, 0", 1, 19, "ld2x64pace writes one register twice"),
    ("ld32step $m0, $mzero, $m0+=, 1", 1, 23, "ld32step writes one register twice"),
    # instructions and operands
    ("nop\nf16v4ad $a0:1, $a0:1, $a2:3", 2, 1, "unknown instruction or macro 'f16v4ad'; did you mean 'f16v4add'?"),
    ("  add $m0, $a0, 1", 1, 3, "add has no form with these operands; expected add $mD, $mX, $mY | add"),
    ("add $m0, $m1", 1, 1, "add has no form with these operands"),
    ("add $m0, $m1, 70000", 1, 15, "operand 'y' of add is 0x11170; expected 0..65535 or -32768..32767"),
    ("ld64step $a0:1, $mzero, $m0+=, 128", 1, 32, "operand 'k' of ld64step is 128; expected -128..127"),
    ("setzi $m0, 0x100000", 1, 12, "expected 0..1048575"),
    ("or $a0, $azero, 0x3f800001", 1, 17, "expected 0..4095 or multiples of 0x100000"),
    ("bri 6", 1, 5, "expected multiples of 0x4"),
    ("add $m0, $m1, ", 1, 14, "an operand is missing"),
    ("add $m0, $m1, 1 +", 1, 18, "expression ends where a value is expected"),
    ("add $m0, $m1, (1", 1, 17, "')' is missing"),
    ("add $m0, $m1, 1 1", 1, 17, "'1' is not expected here"),
    ("add $m0, $m1, 1 ? 2", 1, 17, "'? 2' is not understood here"),
    ("setzi $m0, 1.5", 1, 12, "'1.5' has no type: write 1.5h for an f16 or 1.5f for an f32"),
    ("setzi $a0, 70000.0h", 1, 12, "'70000.0h' is too large for its type"),
    (".int " + "9" * 5000, 1, 6, "number of 5000 digits is too large"),
    ("setzi $m0, 089", 1, 12, "'089' is not an octal number"),
    (".int 1/0", 1, 7, "division by zero"),
    ("get $m0, $FP_CLR", 1, 1, "$FP_CLR is not a control register of get"),
    ("get $m0, $WRS", 1, 10, "unknown register '$WRS'; did you mean '$WSR'?"),
    (".worker\nput $CCCSLOAD, $m0", 2, 1, "$CCCSLOAD is not a control register of put"),
    # bundles
    ("{ nop ; nop }", 1, 9, "nop cannot be the second half of a bundle: both are of one pipe"),
    ("{ f32add $a0, $a1, $a2 ; fnop }", 1, 3, "f32add cannot be the first half of a bundle"),
    ("{ fnop ; nop }", 1, 3, "the halves are the wrong way round: write { nop ... ; fnop ... }"),
    ("{ nop }", 1, 7, "a bundle holds two instructions, found 1"),
    ("{ nop\n  fnop\n  fnop }", 3, 8, "a bundle holds two instructions, found 3"),
    ("{ exitz $mzero ; fnop }", 1, 3, "exitz cannot stand in a bundle"),
    ("{ ldconst $m0, 0x123456 ; fnop }", 1, 3, "ldconst of this value takes two words"),
    ("{ ld64 $a0:1, $m0, 0 ; f32v2add $a0:1, $a2:3, $a4:5 }", 1, 24, "both halves of the bundle write $a0"),
    ("{ ld32 $a1, $m0, 0 ; f32v2add $a0:1, $a2:3, $a4:5 }", 1, 22, "both halves of the bundle write $a1"),
    ("{ ld64 $azeros, $m0, 0 ; f32v2add $azeros, $a2:3, $a4:5 }", 1, 26, "both halves of the bundle write $azeros"),
    ("{ nop ; fnop\nnop", 1, 1, "'{' has no '}'"),
    ("nop }", 1, 5, "'}' has no '{'"),
    ("{ { nop", 1, 3, "a bundle inside a bundle"),
    ("{ nop ; here: fnop }", 1, 9, "a label cannot stand inside a bundle"),
    ("{ nop ; .int 1 ; fnop }", 1, 9, ".int cannot stand inside a bundle"),
    # modes
    (".worker\nrunall $m0, $m1, 0", 2, 1, "runall is an instruction of the supervisor, this is worker code"),
    (".supervisor\n  f32add $a0, $a1, $a2", 2, 3, "f32add is an instruction of the worker, this is supervisor code"),
    (".supervisor\n{ nop ; nop }", 2, 13, "supervisor code has no bundles"),
    # rpt
    ("  rpt $m0, 0\n{ nop ; fnop }", 1, 3, "the body of rpt begins at 0x4c004, which is not a multiple of 8"),
    ("nop\n{ rpt $m0, 0 ; fnop }\n{ nop ; fnop }", 2, 3, "write a rpt by itself, or .align 8 before it"),
    ("nop\nrpt $m0, 1\n{ nop ; fnop }\nnop\nnop", 4, 1, "nop by itself stands in the body of rpt"),
    ("nop\nrpt $m0, 0\n{ brz $m0, 1f ; fnop }\n1:", 3, 1, "brz cannot stand in the body of rpt"),
    ("nop\nrpt $m0, 0\n{ nop ; uput $FP_CLR, $a0 }", 3, 1, "uput cannot stand in the body of rpt"),
    ("nop\nrpt $m0, 0", 2, 1, "the body of rpt, 1 bundles, goes on behind the end of the section"),
    ("nop\nrpt $m0, (2f-1f)/8-1\n1:\n" + "{ nop ; fnop }\n" * 257 + "2:", 2, 10, "operand 'k' of rpt is 256"),
    ("nop\nrpt 4096, 0\n{ nop ; fnop }", 2, 5, "operand 'count' of rpt is 4096"),
    # labels and symbols
    ("a: nop\nb: nop\n  a: nop", 3, 3, "label 'a' is defined before, at codelets.S:1"),
    ("first: bri frist", 1, 12, "undefined symbol 'frist'; did you mean 'first'?"),
    ("bri 1f\n", 1, 5, "local label '1f' is not defined below"),
    ("1: bri 2b\n", 1, 8, "local label '2b' is not defined above"),
    ("a: nop\n.set a, 1", 2, 6, "'a' is a label, it cannot be set"),
    (".set a, 1\na: nop", 2, 1, "'a' is set before, it cannot be a label"),
    ("a: nop\n.space a * 2", 2, 10, "operand of .space must be known here, but an address is not yet"),
    (".if later\n.endif\n.set later, 1", 1, 5, "a condition must be known here, but 'later' is not yet"),
    (".section .text.x, \"ax\"\na: nop\n.if a\n.endif", 3, 5, "a condition must be a number, found an address"),
    # directives
    (".align 3", 1, 8, "alignment must be a power of two"),
    (".algin 8", 1, 1, "unknown directive '.algin'; did you mean '.align'?"),
    (".byte 256", 1, 7, "256 does not fit 1 bytes"),
    (".byte 1\nnop", 2, 1, "an instruction cannot stand at 1 mod 4; use .align 4"),
    ('.error "not here"', 1, 1, '.error "not here"'),
    ("f: nop\nDEF_STACK_USAGE -8, f", 2, 1, "f takes -8 bytes of stack, expected 0 to 638976"),
    ("f: nop\nDEF_STACK_USAGE 638977, f", 2, 1, "f takes 638977 bytes of stack, expected 0 to 638976"),
    ("f: nop\nDEF_STACK_USAGE 8, f\nDEF_STACK_USAGE 16, f", 3, 1, "f takes 16 bytes of stack, and before 8"),
    (".size f", 1, 7, ".size needs a symbol and a size"),
    ('.ascii ab', 1, 8, "a string in quotes is expected"),
    (".float 1.x", 1, 8, "'1.x' is not a number that fits"),
    # macros and conditions
    (".macro m\nnop", 1, 1, ".macro has no .endm"),
    (".rept 2\nnop", 1, 1, ".rept has no .endr"),
    (".endm", 1, 1, ".endm has no .macro"),
    (".if 1\nnop", 1, 1, ".if has no .endif"),
    (".endif", 1, 1, ".endif has no .if"),
    (".if 1\n.else\n.else\n.endif", 3, 1, ".else stands behind .else"),
    (".macro m\n.endif\n.endm\n.if 1\nm\n.endif", 2, 1, ".endif has no .if"),
    (".macro m a:req\nnop\n.endm\nm", 4, 2, "argument 'a' of macro 'm' is missing"),
    (".macro m a\nnop\n.endm\nm 1, 2", 4, 5, "macro 'm' takes at most 1 arguments"),
    (".macro m a a\n.endm", 1, 8, "macro 'm' has two parameters of one name"),
    # C preprocessor
    ("#if 1\nnop", 1, 1, "unterminated #if"),
    ("#endif", 1, 2, "#endif without #if"),
    ("#error stop here", 1, 2, "#error stop here"),
    ('#include "missing.h"', 1, 10, "missing.h: No such file or directory"),
    ("#define F(a) a\nnop F(1, 2)", 2, 11, 'macro "F" passed 2 arguments, but takes just 1'),
    ("#define F(a) a\nF(1", 2, 4, 'unterminated argument list invoking macro "F"'),
    ("#define 1", 1, 9, "macro names must be identifiers"),
    ("#if 1 +\n#endif", 1, 8, "operator '+' has no right operand"),
    ("nop /* for ever", 1, 5, "unterminated comment"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "line", "column", "message"), CASES, ids=[case[3][:40] for case in CASES])
def test_an_error_says_where_and_what(source: str, line: int, column: int, message: str) -> None:
    first = errors(source)[0]
    assert message in first.message
    assert (first.line, first.column) == (line, column)


def test_an_error_shows_the_line_with_a_caret_under_the_column() -> None:
    first = errors("nop\n  add $m0, $m1, 70000  // too much\n")[0]
    assert first.head == (
        "codelets.S:2:17: error: operand 'y' of add is 0x11170; expected 0..65535 or -32768..32767"
    )
    shown = first.text().split("\n")
    assert shown[2].index("^") == shown[1].index("70000")


def test_an_assembly_error_is_an_input_error_with_all_errors_as_details() -> None:
    with pytest.raises(InputError, match=r"codelets\.S:1:1: error: unknown instruction") as caught:
        assemble("wrong\nnop\nfaulty\n")
    assert caught.value.exit_code == 2
    assert any("codelets.S:3:1: error:" in detail for detail in caught.value.details)


def test_errors_in_macros_say_where_in_the_body_and_who_called() -> None:
    first = errors(".macro load r\n  ld64 \\r, $m0, 0\n.endm\nnop\nload $a1:2\n")[0]
    assert (first.line, first.column) == (2, 3)
    assert first.trail[-1] == "in macro 'load' used at codelets.S:5"
    assert "ld64 $a1:2, $m0, 0" in first.trail[0]


def test_columns_of_expanded_lines_are_those_of_the_word_that_is_wrong() -> None:
    first = errors("#define PTR m3\nadd $PTR, $PTR, wrong\n")[0]
    assert (first.line, first.column) == (2, 17)


def test_columns_of_lines_beside_directives_are_those_of_the_source() -> None:
    first = errors("#define N 1\n  add   $m0,\t$m0,  wrong // N\n")[0]
    assert (first.line, first.column) == (2, 20)
    assert first.trail == ()


def test_errors_in_included_files_say_who_included_them(tmp_path: Path) -> None:
    (tmp_path / "outer.h").write_text("\n" * 20 + '#include "inner.h"\n')
    (tmp_path / "inner.h").write_text("nop\n  wrong\n")
    with pytest.raises(AssemblyError) as caught:
        assemble('nop\n#include "outer.h"\n', source=str(tmp_path / "main.S"))
    (first,) = caught.value.diagnostics
    assert (first.file, first.line, first.column) == (str(tmp_path / "inner.h"), 2, 3)
    assert first.source == "  wrong"
    assert first.trail == (
        f"included at {tmp_path / 'outer.h'}:21",
        f"included at {tmp_path / 'main.S'}:2",
    )


def test_errors_of_the_preprocessor_in_included_files_say_who_included_them(tmp_path: Path) -> None:
    (tmp_path / "outer.h").write_text('\n#include "inner.h"\n')
    (tmp_path / "inner.h").write_text("\n\n#error no\n")
    with pytest.raises(AssemblyError) as caught:
        assemble('#include "outer.h"\n', source=str(tmp_path / "main.S"))
    (first,) = caught.value.diagnostics
    assert (first.file, first.line, first.message) == (str(tmp_path / "inner.h"), 3, "#error no")
    assert first.trail == (
        f"included at {tmp_path / 'outer.h'}:2",
        f"included at {tmp_path / 'main.S'}:1",
    )


def test_all_errors_are_reported_up_to_a_limit() -> None:
    found = errors("\n".join(f"wrong{n}" for n in range(100)))
    assert len(found) == MOST_ERRORS
    assert [error.line for error in found] == list(range(1, MOST_ERRORS + 1))


def test_an_error_in_a_repetition_is_reported_once() -> None:
    assert len(errors(".rept 50\nwrong\n.endr\n")) == 1


def test_the_base_address_is_a_multiple_of_eight() -> None:
    with pytest.raises(AssemblyError, match="base address 0x4c004 is not a multiple of 8"):
        assemble("nop", base_address=0x4C004)


def test_nothing_at_all_is_an_empty_image() -> None:
    assert len(assemble("").words) == 0
    assert len(assemble("// only a comment\n/* and\nanother */").words) == 0


WORDS = r"""
add $m0 $m0, $a0:1 $a1:2 $azeros $ += @ nop fnop label get $WSR rpt ldconst 1.0h 99999999999999999999 é DEF_STACK_USAGE
.macro .endm .rept .endr .if .else .endif .irp .exitm .ifc .set .equ .align .int .byte .section .size .ascii . .. :
# #define #if #else #endif #include ## F( F x = \ \x \@ // /* */ 1 1b 1f 0x ( ) + - / % <<
"""
FRAGMENTS = [*WORDS.split(), " ", "\n", "{", "}", ";", ",", '"', "'", "\t", "\r", "\x00", "m "]


@settings(max_examples=400, deadline=None, database=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40))
def test_any_text_gives_an_image_or_an_error_with_a_place(fragments: list[str]) -> None:
    text = "".join(fragments)
    try:
        assemble(text)
    except AssemblyError as error:
        n_lines = text.count("\n") + 1
        for diagnostic in error.diagnostics:
            assert 1 <= diagnostic.line <= n_lines
            assert diagnostic.column >= 1
            assert diagnostic.message
