"""Assembly text to images: labels, expressions, sections, data, forms of instructions."""

from __future__ import annotations

import struct
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t10.isa import INSTRUCTIONS
from t10.isa.assembler import assemble
from t10.isa.assembler.expressions import parse_expression
from t10.isa.image import AUX, DATA, MAIN, SECOND, SOLO, Image
from t10.isa.printer import image_text, word_text

BASE = 0x4C000


def texts(source: str, **options: str) -> list[str]:
    """Return the words of assembled text, printed."""
    return [word_text(word) for word in assemble(source, defines=options).words.tolist()]


def data_bytes(source: str) -> bytes:
    """Return assembled data."""
    image = assemble(source)
    assert set(image.words[:, 0].tolist()) <= {DATA}
    return image.words[:, 2].astype("<i4").tobytes()


def value_of(expression: str) -> int:
    """Return what an expression gives as a word of data."""
    return struct.unpack("<q", data_bytes(f".quad {expression}"))[0]


def test_an_image_begins_at_its_base_address_and_names_its_symbols() -> None:
    image = assemble("nop\nmiddle: nop\nlast:\n", base_address=0x50000)
    assert image.base_address == 0x50000
    assert image.symbols == {"middle": 0x50004, "last": 0x50008}
    assert image.size_bytes == 8


def test_lines_of_words_are_those_of_the_source() -> None:
    source = "// nothing\nnop\n\n{ nop ;\n  fnop }\nldconst $m0, 0x12345678\n"
    image = assemble(source)
    assert image.lines.tolist() == [2, 4, 5, 6, 6]
    assert image.text[1] == "nop"


def test_lines_of_macros_of_other_files_are_those_of_the_include() -> None:
    image = assemble('#include "TileConstants.hpp"\n.macro two\nnop\nnop\n.endm\ntwo\n')
    assert image.lines.tolist() == [3, 4]


def test_a_bundle_is_two_words_main_first() -> None:
    image = assemble("{ ld32 $m0, $m1, 2 ; f32add $a0, $a1, $a2 }\nfnop\nnop\n")
    assert image.words[:, 0].tolist() == [MAIN, AUX, SOLO, SOLO]


def test_ldconst_takes_two_words_from_twenty_bits_on() -> None:
    image = assemble("ldconst $m0, 0xfffff\nldconst $m0, 0x100000\nldconst $a0, -1\nldconst $a0, 1.5f\n")
    assert image.words[:, 0].tolist() == [SOLO, SOLO, SECOND, SOLO, SECOND, SOLO, SECOND]
    assert [value & 0xFFFFFFFF for value in image.words[:, 3].tolist()] == [
        0xFFFFF, 0x100000, 0x100000, 0xFFFFFFFF, 0xFFFFFFFF, 0x3FC00000, 0x3FC00000,
    ]  # fmt: skip


def test_ldconst_of_an_address_below_takes_one_word() -> None:
    assert texts("ldconst $m0, below\nbelow: nop\n") == [f"ldconst $m0, {BASE + 4:#x}", "nop"]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("add $m0, $m1, 65535", "add $m0, $m1, 65535"),
        ("add $m0, $m1, -32768", "add $m0, $m1, -32768"),
        ("or $m0, $m1, 0x80000000", "or $m0, $m1, 0x80000000"),
        ("or $m0, $m1, 4095", "or $m0, $m1, 4095"),
        ("setzi $a0, 1.0h", "setzi $a0, 15360"),
        ("setzi $a0, -1.0h", "setzi $a0, 48128"),
        ("setzi $a0, infh", "setzi $a0, 31744"),
        ("or $a0, $azero, -2.0f", "or $a0, $azero, 0xc0000000"),
        ("ld32 $m0, $mvertex_base, 3", "ld32 $m0, $mvertex_base, 3"),
        ("ld32 $m0, $m13, $m15, 3", "ld32 $m0, $mvertex_base, $mzero, 3"),
        ("ld64step $a14:15, $mzero, $m1 +=, -1", "ld64step $azeros, $mzero, $m1+=, -1"),
        ("st32 $lr, $sp, 0", "st32 $m10, $m11, 0"),
        ("f32v2mul $a0:1, $a2:B, $a4:5", "f32v2mul $a0:1, $a2:B, $a4:5"),
        ("ld2x64pace $a0:1, $a2:3, $m2:3+=, $mzero, 0b1101", "ld2x64pace $a0:1, $a2:3, $m2:3+=, $mzero, 13"),
        ("ldd16a32 $a0, $m0++, $m1, $m2@", "ldd16a32 $a0, $m0++, $m1, $m2@"),
        ("get $m0, 1", "get $m0, $WSR"),
        ("br $lr", "br $m10"),
    ],
)
def test_an_instruction_is_read_as(text: str, printed: str) -> None:
    assert texts(text) == [printed]


def test_control_registers_are_numbered_by_mode() -> None:
    image = assemble(".worker\nget $m0, $WSR\n.supervisor\nget $m0, $SSR\nput $CCCSLOAD, $m0\n")
    assert image.words[:, 2:4].tolist() == [[0, 1], [0, 1], [0x50, 0]]


def test_labels_are_absolute_addresses_forwards_and_backwards() -> None:
    image = assemble("start: bri end\nbri start\nend: brnz $m0, start\nsetzi $m0, end\n")
    assert image.words[:, 2].tolist()[:2] == [BASE + 8, BASE]
    assert image.words[2, 3] == BASE
    assert image.words[3, 3] == BASE + 8


def test_local_labels_mean_the_nearest_in_their_direction() -> None:
    image = assemble("1: bri 1f\n1: bri 1b\n bri 1f\n1: bri 1b\n")
    assert ((image.words[:, 2] - BASE) // 4).tolist() == [1, 1, 3, 3]


def test_two_labels_may_stand_before_one_instruction() -> None:
    image = assemble("a: b: 1: nop\nbri 1b\n")
    assert image.symbols == {"a": BASE, "b": BASE}
    assert image.words[1, 2] == BASE


def test_labels_that_begin_with_dot_l_are_not_exported() -> None:
    assert assemble(".Lhidden: nop\nseen: nop\n").symbols == {"seen": BASE + 4}


def test_difference_of_labels_counts_repeated_bundles() -> None:
    body = "{ nop ; fnop }\n" * 5
    image = assemble(f"nop\nrpt $m0, (2f-1f)/8-1\n1:\n{body}2:\n")
    assert image.words[1, 3] == 4


def test_sections_are_aligned_and_follow_in_the_order_of_their_first_line() -> None:
    source = """
.section .text.b, "ax"
.align 8
b: nop
.section .rodata.table, "a"
.align 16
table: .int 5
.section .text.b
.align 8
more: nop
.section .comment, "", @progbits
.ascii "left out"
"""
    image = assemble(source)
    # b at 0, nop for alignment, more at 8; the table at the next multiple of 16.
    assert image.symbols == {"b": BASE, "more": BASE + 8, "table": BASE + 16}
    assert image.words[:, 0].tolist() == [SOLO, SOLO, SOLO, DATA, DATA]


def test_align_fills_code_with_nops_and_data_with_zeros() -> None:
    assert texts("nop\n.align 16\nnop\n") == ["nop"] * 5
    assert data_bytes(".data\n.byte 1\n.p2align 2\n.byte 2\n") == bytes([1, 0, 0, 0, 2, 0, 0, 0])


def test_sizes_and_stack_usage_are_kept_by_symbol() -> None:
    image = assemble("#define SIZE (8 + 8)\nf: nop\nnop\n.size f, . - f\nDEF_STACK_USAGE SIZE f\n")
    assert image.sizes == {"f": 8}
    assert image.stack_bytes == {"f": 16}
    assert assemble("f: nop\nDEF_STACK_USAGE(SIZE, f)\n", defines={"SIZE": "24"}).stack_bytes == {"f": 24}


def test_data_directives_write_little_endian_bytes() -> None:
    assert (
        data_bytes(".byte 1, 2\n.short 0x304\n.int -1, 'A'\n") == b"\x01\x02\x04\x03\xff\xff\xff\xffA\0\0\0"
    )
    assert data_bytes('.asciz "ab\\n"\n') == b"ab\n\0"
    assert data_bytes('.ascii "a;{b", "\\x41\\101"\n.space 2, 7\n') == b"a;{bAA\7\7"
    assert data_bytes(".float 1.5\n.fill 2, 2, 3\n") == struct.pack("<fHH", 1.5, 3, 3)


def test_data_may_hold_addresses_and_differences_of_labels_below() -> None:
    image = assemble("table: .int last, last - table\n.short 2f - 1f, 0\n1: nop\n2:\nlast: nop\n")
    assert image.words[:3, 2].tolist() == [BASE + 16, 16, 4]


def test_a_symbol_keeps_the_value_it_has_at_its_use() -> None:
    assert texts(".set n, 1\nsetzi $m0, n\nn = n + 1\nsetzi $m0, n\n.equ n, n * 10\nsetzi $m0, n\n") == [
        "setzi $m0, 1", "setzi $m0, 2", "setzi $m0, 20",
    ]  # fmt: skip


def test_a_symbol_set_below_has_its_last_value() -> None:
    assert texts("setzi $m0, n\n.set n, m + 1\n.set m, 4\n") == ["setzi $m0, 5"]


def test_a_symbol_set_to_labels_below_is_known_in_the_end() -> None:
    source = ".set bundles, (2f-1f)/8\nnop\nrpt 3, bundles-1\n1: { nop ; fnop }\n2: nop\n1: nop\n2:\n"
    assert texts(source)[1] == "rpt 3, 0"


def test_registers_have_other_names_by_define_and_by_set() -> None:
    source = "#define PTR m3\n#define ACC a4:5\n.set count, $m2\n"
    assert texts(f"{source}ld64step $ACC, $mzero, $PTR+=, $count\n") == ["ld64step $a4:5, $mzero, $m3+=, $m2"]


def test_constants_of_the_architecture_are_known_without_a_header() -> None:
    assert texts("setzi $m0, TMEM_REGION0_BASE_ADDR\nand $m0, $m0, CSR_W_WSR__CTXTID_M1__MASK\n") == [
        f"setzi $m0, {BASE}", "and $m0, $m0, 7",
    ]  # fmt: skip


def test_allowed_optimizations_put_halves_right_and_align_bodies_of_rpt() -> None:
    image = assemble(".allow_optimizations\n{ fnop ; nop }\nrpt $m0, 0\n{ nop ; fnop }\n")
    assert image.words[:, 0].tolist() == [MAIN, AUX, MAIN, AUX, MAIN, AUX]
    assert [INSTRUCTIONS[form].mnemonic for form in (int(word[1]) for word in image.words[:4])] == [
        "nop",
        "fnop",
        "rpt",
        "fnop",
    ]
    image = assemble(".allow_optimizations\nnop\n{ rpt $m0, 0 ; fnop }\n{ nop ; fnop }\n")
    assert image.words[:, 0].tolist() == [SOLO, SOLO, MAIN, AUX]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("1 << 2 + 3", 7),  # << binds tighter than +, as in the GNU assembler
        ("0x10 | 1", 17),
        ("~0", -1),
        ("!5 + !0", 1),
        ("3 > 2", -1),
        ("3 == 2", 0),
        ("1 && 2", 1),
        ("0 || 0", 0),
        ("0b101 ^ 017", 10),
        ("'a'", 97),
        ("- -3", 3),
        ("(((1)))", 1),
    ],
)
def test_an_expression_has_the_value(expression: str, value: int) -> None:
    assert value_of(expression) == value


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=12), st.data())
@settings(max_examples=60, deadline=None, database=None, derandomize=True)
def test_parenthesised_expressions_agree_with_python(numbers: list[int], data: st.DataObject) -> None:
    text, value = str(numbers[0]), numbers[0]
    for number in numbers[1:]:
        operator = data.draw(st.sampled_from("+-*&|^"))
        text = f"({text} {operator} ({number}))"
        value = {
            "+": value + number,
            "-": value - number,
            "*": value * number,
            "&": value & number,
            "|": value | number,
            "^": value ^ number,
        }[operator]
        value = (value + 2**63) % 2**64 - 2**63
    assert parse_expression(text).value == value


def test_the_same_text_gives_the_same_image() -> None:
    source = "f: ld32 $m0, $mvertex_base, 0\n1: brnzdec $m0, 1b\nexitz $mzero\n.size f, .-f\n"
    first, second = assemble(source), assemble(source)
    assert np.array_equal(first.words, second.words)
    assert first.symbols == second.symbols


def test_ten_thousand_lines_take_less_than_a_second() -> None:
    lines = [
        f"{{ ld64step $a0:1, $mzero, $m0+=, {n % 100} ; f32v2add $a4:5, $a0:1, $a2:3 }}\nadd $m1, $m1, {n}"
        for n in range(5000)
    ]
    text = "\n".join(lines)

    def seconds() -> float:
        start = time.process_time()
        image: Image = assemble(text)
        assert len(image.words) == 15000
        return time.process_time() - start

    # The least of several: others work on the machine too, and a long run's garbage is collected sometime.
    assert min(seconds() for _ in range(4)) < 1.0


def test_a_printed_image_begins_with_its_labels() -> None:
    assert image_text(assemble("f: nop\n"), addresses=False).startswith("f:\n  nop")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("10 - 3 - 2", 5),
        ("64 / 4 / 2", 8),
        ("3 >= 3", -1),
        ("3 <= 3", -1),
        ("3 > 3", 0),
        ("(0x7fffffffffffffff + 1) < 0", -1),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("010", 8),
    ],
)
def test_expressions_associate_to_the_left_and_wrap_as_signed_numbers(expression: str, expected: int) -> None:
    assert value_of(expression) == expected


def test_distances_count_what_is_added_to_addresses_and_taken_from_them() -> None:
    assert assemble("a: nop\nnop\nnop\nb: .space b - 4 - a\n").size_bytes == 12 + 8
    assert assemble("a: nop\nnop\nnop\nb: .space b + 4 - a\n").size_bytes == 12 + 16
