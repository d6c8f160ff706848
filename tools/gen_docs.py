#!/usr/bin/env python3
"""Write the generated pages of docs/, or check with --check that they are up to date.

`docs/dialect-rtensor.md`, `docs/dialect-ipu.md`, `docs/passes.md`, `docs/follow-one-matmul.md`, `docs/isa.md`,
`docs/operators.md` and `docs/*.schema.json` come whole from the definitions. In `docs/t10-opt.md`, `docs/cli.md`,
`docs/ipu-backend.md`, `docs/layout.md` and `docs/benchmarks.md` the text between `<!-- begin generated: NAME -->` and
`<!-- end generated -->` is replaced.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from docstring_tables import packages_table, scripts_table

from t10.artefact import manifest_schema
from t10.chip.schema import chip_schema
from t10.cli.help_page import command_tables
from t10.codelets.user.declaration import codelets_schema
from t10.conformance.document import operators_page
from t10.conformance.expectations import read_expectations
from t10.core.document import plan_schema
from t10.core.document.text import json_text
from t10.dialect.document import ipu_page, rtensor_page
from t10.emit.poplar.description import program_schema
from t10.isa.document import isa_page
from t10.opt.help import help_text
from t10.passes.device.document import backend_regions
from t10.passes.document import passes_page
from t10.passes.follow_one_matmul import follow_one_matmul_page
from t10.plan.fronts.pins import pins_schema
from t10.report import report_schema
from t10.report.stages import stages_schema

ROOT = Path(__file__).resolve().parents[1]

_REGION = re.compile(r"(<!-- begin generated: (\w+) -->\n).*?(<!-- end generated -->)", re.DOTALL)


def pages() -> Iterator[tuple[Path, str]]:
    """Yield path and text of every generated page."""
    docs = ROOT / "docs"
    yield docs / "dialect-rtensor.md", rtensor_page()
    yield docs / "dialect-ipu.md", ipu_page()
    yield docs / "passes.md", passes_page()
    yield docs / "follow-one-matmul.md", follow_one_matmul_page()
    yield docs / "isa.md", isa_page()
    yield docs / "operators.md", operators_page(read_expectations())
    yield docs / "plan.schema.json", json_text(plan_schema())
    yield docs / "manifest.schema.json", json_text(manifest_schema())
    yield docs / "report.schema.json", json_text(report_schema())
    yield docs / "stages.schema.json", json_text(stages_schema())
    yield docs / "program.schema.json", json_text(program_schema())
    yield docs / "pins.schema.json", json_text(pins_schema())
    yield docs / "codelets.schema.json", json_text(codelets_schema())
    yield docs / "chip.schema.json", json_text(chip_schema())
    cli = docs / "cli.md"
    yield cli, with_regions(cli.read_text(encoding="utf-8"), command_tables())
    layout = docs / "layout.md"
    yield layout, with_regions(layout.read_text(encoding="utf-8"), {"packages": packages_table()})
    benchmarks = docs / "benchmarks.md"
    yield benchmarks, with_regions(benchmarks.read_text(encoding="utf-8"), {"scripts": scripts_table()})
    backend = docs / "ipu-backend.md"
    yield backend, with_regions(backend.read_text(encoding="utf-8"), backend_regions())
    opt = docs / "t10-opt.md"
    yield opt, with_regions(opt.read_text(encoding="utf-8"), {"help": f"```text\n{help_text()}```\n"})


def with_regions(text: str, content: dict[str, str]) -> str:
    """Return a page with the content of its generated regions replaced."""
    return _REGION.sub(lambda match: match[1] + content[match[2]] + match[3], text)


def main() -> int:
    """Write or check; return 1 if a page is out of date."""
    check = "--check" in sys.argv[1:]
    stale = 0
    for path, text in pages():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if check:
            print(
                f"{path.relative_to(ROOT)} is out of date: run tools/gen_docs.py (make docs)", file=sys.stderr
            )
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
