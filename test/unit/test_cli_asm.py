"""The command `t10 asm`."""

from __future__ import annotations

from pathlib import Path

import pytest

from t10.cli import main
from t10.isa.assembler import assemble


def test_the_listing_assembles_to_the_same_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "size.h").write_text("#define SIZE (2 * COUNT)\n")
    text = (
        '#include "size.h"\nf: setzi $m0, SIZE\n{ nop ; fnop }\nexitz $mzero\n'
        ".size f, . - f\nDEF_STACK_USAGE SIZE, f\n"
    )
    path = tmp_path / "f.S"
    path.write_text(text)
    assert main(["asm", str(path), "-D", "COUNT=4", "-I", str(tmp_path / "inc"), "--base", "0x50000"]) == 0
    listing = capsys.readouterr().out
    assert "// 16 bytes at 0x50000..0x50010: 1 bundles, 2 instructions alone" in listing
    assert "// 0x50000 f, 16 bytes, 8 bytes of stack" in listing
    image = assemble(listing, base_address=0x50000)
    assert image.symbols == {"f": 0x50000}
    assert image.words[0, 3] == 8
    assert image.stack_bytes == {"f": 8}


@pytest.mark.parametrize("wrong", ["bad name=2", "=3", "1a=2", "A B", "F(x=2"])
def test_a_macro_whose_name_is_no_identifier_is_a_wrong_argument(
    wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "f.S"
    path.write_text("nop\n")
    with pytest.raises(SystemExit) as caught:
        main(["asm", str(path), "-D", wrong])
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert "argument -D: found the name" in error
    assert str(path) not in error


def test_a_macro_may_have_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.S"
    path.write_text("#define FOUR 4\nsetzi $m0, TWICE(FOUR)\n")
    assert main(["asm", str(path), "-D", "TWICE(x)=2*x"]) == 0
    assert "setzi $m0, 8" in capsys.readouterr().out


def test_errors_are_shown_with_line_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.S"
    path.write_text("nop\n  add $m0, $a0, 1\n  nothing\n")
    assert main(["asm", str(path)]) == 2
    shown = capsys.readouterr().err
    assert f"{path}:2:3: error: add has no form with these operands" in shown
    assert f"{path}:3:3: error: unknown instruction or macro 'nothing'" in shown


def test_a_file_that_is_missing_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["asm", str(tmp_path / "missing.S")]) == 2
    assert "cannot read assembly file" in capsys.readouterr().err


def test_code_outside_of_the_executable_region_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "far.S"
    path.write_text("nop\n")
    assert main(["asm", str(path), "--base", "0x80000"]) == 0
    assert "warning: code runs only below 0x80000" in capsys.readouterr().out


def test_files_are_linked_and_an_entry_keeps_what_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "main.S").write_text(".globl main\nmain: call $lr, helper\nexitz $mzero\n")
    (tmp_path / "helpers.S").write_text(
        ".globl helper, other\n.section .text.helper\nhelper: br $lr\n.section .text.other\nother: br $lr\n"
    )
    files = [str(tmp_path / "main.S"), str(tmp_path / "helpers.S")]
    assert main(["asm", *files]) == 0
    assert "// 0x4c00c other" in capsys.readouterr().out
    assert main(["asm", *files, "--entry", "main"]) == 0
    listing = capsys.readouterr().out
    assert "call $m10, 0x4c008" in listing
    assert "other" not in listing
    assert main(["asm", files[0]]) == 2
    assert f"{files[0]}:2:17: error: undefined symbol 'helper'" in capsys.readouterr().err


def test_objects_are_listed_without_linking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "part.S"
    path.write_text(
        ".globl part, size\n.weak hook\nsize = 12\n.section .text.part\n.align 8\npart: call $lr, helper\n"
        "local: setzi $m0, table + size\nhook: br $lr\n.Lhidden: nop\n.section .data.table\n.int helper, CTXT_WORKERS\n"
    )
    assert main(["asm", "--objects", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(path),
        "  section .text.part: 16 bytes of code, aligned to 8",
        "  section .data.table: 8 bytes of data, aligned to 4",
        "  global size = 0xc",
        "  global part = .text.part+0x0",
        "  local local = .text.part+0x4",
        "  weak hook = .text.part+0x8",
        f"  needs helper, used at {path}:6",
        f"  needs table, used at {path}:7",
    ]
