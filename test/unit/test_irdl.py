"""What our dialects in IRDL say of the versions of LLVM that read them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from t10.dialect.irdl import LEAST_LLVM, irdl_text

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["rtensor", "ipu"])
def test_irdl_states_the_oldest_llvm_that_reads_it(name: str) -> None:
    first = irdl_text(name).splitlines()[0]
    assert first == f"// Dialect {name} for mlir-opt --irdl-file of LLVM {LEAST_LLVM} and newer."


@pytest.mark.parametrize("file", ["test/lit.cfg.py", "python/t10/opt/options.py", "docs/t10-opt.md"])
def test_tests_help_and_docs_mean_the_same_version(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.findall(r"^LEAST_LLVM = (\d+)|of LLVM (\d+) and newer", text, re.MULTILINE)
    assert found
    assert {int(a or b) for a, b in found} == {LEAST_LLVM}
