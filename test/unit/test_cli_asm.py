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
