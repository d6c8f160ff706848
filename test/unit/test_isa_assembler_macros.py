"""What the text of an assembly goes through: the C preprocessor, `.macro`, `.rept`, `.if`."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from t10.errors import InputError
from t10.isa.assembler import AssemblyError, Source, assemble, flattened, preprocessor
from t10.isa.printer import word_text


def texts(source: str) -> list[str]:
    """Return the words of assembled text, printed."""
    return [word_text(word) for word in assemble(source).words.tolist()]


def numbers(source: str) -> list[int]:
    """Return the words of assembled data."""
    return assemble(source).words[:, 2].tolist()


# --- C preprocessor --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definitions", "text", "value"),
    [
        ("#define N 3", ".int N", 3),
        ("#define N (M + 1)\n#define M 4", ".int N", 5),
        ("#define ADD(a, b) ((a) + (b))", ".int ADD(1, ADD(2, 3))", 6),
        ("#define ID(x) x\n#define N ID(ID(7))", ".int N", 7),
        ("#define JOIN(a, b) a##b\n#define N12 9", ".int JOIN(N, 12)", 9),
        ("#define JOIN(a, b) a ## b\n#define N 5\n#define NN 6", ".int JOIN(N, N)", 6),
        ("#define INNER(x) x + 1\n#define OUTER(f, x) f(x)", ".int OUTER(INNER, 2)", 3),
        ("#define LONG 1 + \\\n  2 + \\\n  3", ".int LONG", 6),
        ("#define N 1\n#undef N\n#define N 2", ".int N", 2),
        ("#define F(x, ...) __VA_ARGS__", ".int F(1, 2)", 2),
        ("#define F() 4", ".int F()", 4),
        ("#define F(x) 8", ".int F(\n 1\n)", 8),
        ("#define SELF SELF\n.set SELF, 3", ".int SELF", 3),
        ("#define F 1 // comment\n#define G /* two\nlines */ 2", ".int F + G", 3),
    ],
)
def test_a_macro_of_the_preprocessor_expands(definitions: str, text: str, value: int) -> None:
    assert numbers(f"{definitions}\n{text}\n") == [value]


def test_an_argument_becomes_a_string() -> None:
    image = assemble('#define NAME(x) .ascii #x\nNAME(ab + "c")\n.byte 0\n')
    assert image.words[:, 2].astype("<i4").tobytes() == b'ab + "c"\0\0\0\0'


def test_a_macro_of_several_statements_is_cut_at_semicolons() -> None:
    source = "#define SUM(d, x) { nop ; f32add d, d, x } ; \\\n  fnop\nSUM($a0, $a1)\n"
    assert texts(source) == ["nop", "f32add $a0, $a0, $a1", "fnop"]


def test_names_in_strings_and_comments_are_not_expanded() -> None:
    image = assemble('#define ab 1\n.ascii "ab//" // ab\n')
    assert image.words[0, 2].astype("<i4").tobytes() == b"ab//"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("#if 1", True),
        ("#if 0", False),
        ("#if defined(A) && !defined(B)", True),
        ("#if defined B", False),
        ("#ifdef A", True),
        ("#ifndef A", False),
        ("#if A == 2 || (A >= 5)", True),
        ("#if B", False),
        ("#if __IPU_ARCH_VERSION__ == 21", True),
        ("#if (1 << 2 + 3) == 32", True),
        ("#if (2 > 1) + (3 == 3) == 2", True),
        ("#if UNKNOWN || 0", False),
        ("#if __LINE__ == 2", True),
    ],
)
def test_a_condition_of_the_preprocessor(condition: str, holds: bool) -> None:
    source = f"#define A 2\n{condition}\n.int 1\n#else\n.int 2\n#endif\n"
    assert numbers(source) == [1 if holds else 2]


def test_only_the_first_branch_that_holds_is_taken() -> None:
    nested = "#if 1\n.int 3\n#endif\n"
    source = f"#if 0\n#error no\n.int 1\n#elif 1\n.int 2\n{nested}#elif 1\n.int 4\n#else\n.int 5\n#endif\n"
    assert numbers(source) == [2, 3]


def test_files_are_included_beside_the_source_and_from_include_paths(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "near.h").write_text('#pragma once\n#include "far.h"\n#define NEAR 1\n.int 5\n')
    (tmp_path / "inc" / "far.h").write_text("#ifndef FAR\n#define FAR 2\n#endif\n")
    source = '#include "near.h"\n#include "near.h"\n#include <far.h>\n.int NEAR + FAR\n'
    image = assemble(source, source=str(tmp_path / "main.S"), include_paths=(tmp_path / "inc",))
    assert image.words[:, 2].tolist() == [5, 3]
    assert image.lines.tolist() == [1, 4]


def test_bundled_headers_stand_for_those_of_the_sdk() -> None:
    names = ('"poplibs_support/TileConstants.hpp"', "<poplar/StackSizeDefs.hpp>", '"AvailableVTypes.h"')
    source = "".join(f"#include {name}\n" for name in names)
    flags = "f16v4hihoamp $a0, $a2:3, $a1, TAMP_F16V4_E4_P2"
    assert texts(f"{source}.section .text.f, FUNCTION_IS_WORKER\n{flags}\n") == [flags]


def test_lines_that_begin_with_a_hash_and_no_directive_are_comments() -> None:
    assert numbers("# 12 apples, don't\n #\n#nothing\n.int 1\n") == [1]
    assert numbers("#define N 2\n# 12 apples, don't\n #\n#nothing N\n.int N\n") == [2]


def test_macros_of_the_machine_that_assembles_are_not_defined() -> None:
    assert numbers(".set linux, 5\n#ifdef __x86_64__\n.int 0\n#endif\n.int linux\n") == [5]


def test_defines_given_are_macros_without_any_directive() -> None:
    assert assemble(".int N\n", defines={"N": "7"}).words[:, 2].tolist() == [7]


def test_text_without_directives_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    source = '// made\n#include "poplar/TileConstants.hpp"\n# comment\n.int CTXT_WORKERS // workers\n'
    assert numbers(source) == [6]
    with pytest.raises(InputError, match=r"g\+\+ is not on the path"):
        assemble("#define N 1\n")


# --- .macro ----------------------------------------------------------------------------------------------------------


def test_arguments_are_given_by_position_by_name_or_by_default() -> None:
    source = (
        ".macro put a, b=2, c=3\n.int \\a\\()0, \\b, \\c\n.endm\nput 1\nput 1, 5\nput 4, c=6\nput b=7, a=8\n"
    )
    assert numbers(source) == [10, 2, 3, 10, 5, 3, 40, 2, 6, 80, 7, 3]


def test_arguments_may_be_parted_by_spaces_and_hold_expressions() -> None:
    source = ".macro put a b c\n.int \\a, \\b, \\c\n.endm\nput 1 2 3\nput 1 + 1 (2 + 2), 5\n"
    assert numbers(source) == [1, 2, 3, 2, 4, 5]


def test_the_rest_of_the_arguments_goes_to_a_vararg() -> None:
    source = ".macro all first:req, rest:vararg\n.int \\first\n.ifnb \\rest\nall \\rest\n.endif\n.endm\nall 1, 2, 3\n"
    assert numbers(source) == [1, 2, 3]


def test_every_expansion_has_a_number_for_its_labels() -> None:
    source = ".macro wait\n.Lagain\\@: brnzdec $m0, .Lagain\\@\n.endm\nwait\nwait\n"
    assert len(assemble(source).words) == 2


def test_names_and_registers_are_joined_with_arguments() -> None:
    source = ".macro load n, type\nload_\\type\\()_\\n: ld32 $a\\n, $m\\n, 0\n.endm\nload 3, half\n"
    image = assemble(source)
    assert list(image.symbols) == ["load_half_3"]
    assert texts(source) == ["ld32 $a3, $m3, 0"]


def test_an_argument_may_be_a_whole_instruction_of_a_bundle() -> None:
    source = (
        '.macro both main, aux\n{ \\main\n \\aux }\n.endm\nboth "ld32 $m0, $m1, 0", "f32add $a0, $a1, $a2"\n'
    )
    assert texts(source) == ["ld32 $m0, $m1, 0", "f32add $a0, $a1, $a2"]


def test_a_macro_may_define_and_call_macros() -> None:
    source = ".macro outer n\n.macro inner\\n x\n.int \\n, \\x\n.endm\ninner\\n 5\n.endm\nouter 1\nouter 2\ninner1 6\n"
    # `\\x` of the inner macro is no parameter of the outer one, so it is left to the inner one.
    assert numbers(source) == [1, 5, 2, 5, 1, 6]


def test_a_macro_may_be_left_early_and_forgotten() -> None:
    first = ".macro m n\n.if \\n\n.int 1\n.exitm\n.endif\n.int 2\n.endm\nm 1\nm 0\n"
    assert numbers(f"{first}.purgem m\n.macro m\n.int 3\n.endm\nm\n") == [1, 2, 3]


def test_a_macro_that_ends_in_a_condition_leaves_the_conditions_around_it() -> None:
    source = ".if 1\n.macro m\n.if 0\n.exitm\n.endif\n.int 1\n.endm\nm\n.int 2\n.else\n.int 3\n.endif\n"
    assert numbers(source) == [1, 2]


def test_macros_see_names_that_the_preprocessor_put_into_their_bodies() -> None:
    source = (
        "#define NAME f_\\type\\()_x\n.macro entry type\nNAME: nop\n.size NAME, .-NAME\n.endm\nentry half\n"
    )
    assert assemble(source).sizes == {"f_half_x": 4}


# --- repetition and conditions ---------------------------------------------------------------------------------------


def test_repetitions_nest() -> None:
    assert numbers(".set n, 0\n.rept 2\n.rept 2\n.int n\n.set n, n + 1\n.endr\n.endr\n.rept 0\n.int 9\n.endr\n") == [
        0, 1, 2, 3,
    ]  # fmt: skip


def test_irp_goes_through_values_and_irpc_through_letters() -> None:
    assert numbers(".irp n, 1, 2, 3\n.int \\n\n.endr\n.irpc c, 45\n.int \\c\n.endr\n") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (".if 2 > 1", True),
        (".if n == 3 && 1", True),
        (".ifeq n - 3", True),
        (".ifne 0", False),
        (".iflt -1", True),
        (".ifge 0", True),
        (".ifdef n", True),
        (".ifndef n", False),
        (".ifdef nothing", False),
        (".ifc half, half", True),
        (".ifc half, float", False),
        (".ifnc half, float", True),
        (".ifb ", True),
        (".ifnb x", True),
        ('.ifeqs "a", "a"', True),
        (".if . - start == 0", True),
    ],
)
def test_a_condition(condition: str, holds: bool) -> None:
    source = f"start:\n.set n, 3\n{condition}\n.int 1\n.else\n.int 2\n.endif\n"
    assert numbers(source) == [1 if holds else 2]


def test_only_the_first_condition_that_holds_is_assembled() -> None:
    source = ".if 0\n.int 1\nwrong instruction\n.elseif 1\n.int 2\n.elseif undefined\n.int 3\n.else\n.int 4\n.endif\n"
    assert numbers(source) == [2]


# --- hostile input ---------------------------------------------------------------------------------------------------


LETTERS = "ABCDEFGHIJKLMNOPQRSTU"
DOUBLING = "".join(f"#define {a} {b} {b}\n" for a, b in pairwise(LETTERS)) + ".int A\n"


@pytest.mark.parametrize(
    "source",
    [
        ".macro m\nm\n.endm\nm\n",
        ".macro m\nm\nm\n.endm\nm\n",
        ".rept 1000000000\nnop\n.endr\n",
        ".rept 100000\n.rept 100000\nnop\n.endr\n.endr\n",
        ".space 0x7fffffff\n",
        ".set a, b\n.set b, a\n.int a\n",
        ".set a, a + 1\n.int a\n",
        DOUBLING,
        DOUBLING.replace("U\n", "A1\n") + "#define A1 " + "A2 " * 100 + "\n#define A2 " + "A3 " * 100 + "\n.int A\n",
        "#define F(x) x x\n.int " + "F(" * 45 + "1" + ")" * 45 + "\n",
        '#include "/dev/zero"\n',
        "#define F(x) F(x) F(x)\n.int F(F(F(F(1))))\n",
        ".int " + "(" * 5000 + "1" + ")" * 5000 + "\n",
        ".int " + "-" * 5000 + "1\n",
        ".int " + "x+" * 100000 + "1\n",
        ".int 1 << 99999999999\n",
        ".align 0x40000000\n",
    ],
)  # fmt: skip
def test_hostile_text_is_refused_and_soon(source: str) -> None:
    with pytest.raises(AssemblyError):
        assemble(source)


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "main.S"
    path.write_text('#include "main.S"\n')
    with pytest.raises(AssemblyError, match="nested depth 40 exceeds"):
        assemble(path.read_text(), source=str(path))


def test_a_file_that_includes_itself_twice_is_refused_soon(tmp_path: Path) -> None:
    path = tmp_path / "main.S"
    path.write_text('#include "main.S"\n#include "main.S"\n')
    with pytest.raises(AssemblyError, match="nested depth 40 exceeds"):
        assemble(path.read_text(), source=str(path))


def test_an_include_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preprocessor, "MOST_SECONDS", 0.25)
    os.mkfifo(tmp_path / "endless.h")
    with pytest.raises(AssemblyError, match="takes too long"):
        assemble('#include "endless.h"\n', source=str(tmp_path / "main.S"))


def test_a_flat_text_has_no_macros_and_conditions_and_makes_the_same_image() -> None:
    source = (
        '#include "TileConstants.hpp"\n#define ACC a0:1\n.set ptr, $m3\n.macro step p, n\n.set k, \\n\n'
        "{ ld64step $ACC, $mzero, $ptr+=, k\n  f16v4sisoamp $a2:3, $ACC, $azeros, TAMP_F16V4_E4_P\\p }\n.endm\n"
        "entry: 1: setzi $m0, TMEM_REGION0_BASE_ADDR\n.if 1\nstep 2, 5\n.else\nstep 1, 2\n.endif\n"
        ".rept 2\nbri 1b\n.endr\nother = entry\n"
    )
    (file,), image = flattened([Source(source)])
    statements = file.statements
    text = "\n".join(f"{s.word}:" if s.is_label else f"{s.word} {s.rest}" for s in statements)
    assert assemble(text).words.tolist() == image.words.tolist()
    words = [statement.word for statement in statements]
    assert not {".macro", ".if", ".rept", "step"} & set(words)
    assert words.count("bri") == 2
    # Flags stay names, for their numbers are our own; registers have their own names.
    assert "TAMP_F16V4_E4_P2" in text
    assert "$m3+=" in text
