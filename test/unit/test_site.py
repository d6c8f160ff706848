"""The pages of docs/: their links and anchors hold, and all of them are on the site (`make site`)."""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md")))
_CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def _script() -> Any:
    spec = importlib.util.spec_from_file_location("make_site", ROOT / "tools" / "make_site.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page, as GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", _CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return frozenset(
        "".join(c for c in heading.lower() if c in " -_" or unicodedata.category(c)[0] in "LN").replace(
            " ", "-"
        )
        for heading in headings
    )


def _links(page: Path) -> list[str]:
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in re.findall(r"\]\(([^()\s]+)\)", text) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files_and_headings_that_there_are(page: Path) -> None:
    wrong: list[str] = []
    for link in _links(page):
        name, _, anchor = link.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in _anchors(file)):
            wrong.append(link)
    assert wrong == []


def test_every_page_is_on_the_site() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = re.findall(r"[\w/-]+\.md", text[text.index("\nnav:\n") :])

    script = _script()
    there = [script.on_site(page) for page in (*DOCS.rglob("*.md"), *(ROOT / name for name in script.PAGES))]
    assert sorted(nav) == sorted(there)


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("README.md", "[p](docs/planner.md#algorithm-1)", "[p](planner.md#algorithm-1)"),
        ("README.md", '<img src="docs/images/plan.png">', '<img src="images/plan.png">'),
        ("docs/index.md", "[r](../README.md)", "[r](readme.md)"),
        ("docs/adr/0001-one-package-from-three-folders.md", "[l](../layout.md)", "[l](../layout.md)"),
        ("docs/layout.md", "[`a`](../passes/fuse.py)", "[`a`](https://host/o/n/blob/main/passes/fuse.py)"),
        ("docs/layout.md", "[`t10.passes`](../passes)", "[`t10.passes`](https://host/o/n/tree/main/passes)"),
        ("docs/layout.md", "```\n[a](../passes)\n```", "```\n[a](../passes)\n```"),
        ("docs/layout.md", "[w](https://elsewhere)", "[w](https://elsewhere)"),
    ],
)
def test_links_are_changed_for_the_site(page: str, text: str, shown: str) -> None:
    assert _script().site_text(text, ROOT / page, "https://host/o/n") == shown


def test_links_to_sources_are_text_where_no_repository_is_known() -> None:
    assert _script().site_text("[`fuse.py`](../passes/fuse.py)", DOCS / "layout.md", "") == "`fuse.py`"
