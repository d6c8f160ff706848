#!/usr/bin/env python3
"""Write the pages of the web site: docs/, README, CONTRIBUTING and CHANGELOG, with links that hold there (`make site`).

    python tools/make_site.py FOLDER

Links to other files lead to the repository. The variable `T10_REPOSITORY` holds its address (`https://.../OWNER/NAME`);
without it, only the text of these links stays.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages from outside of docs/, by what they are called on the site."""

_LINK = re.compile(r"(?P<head>!?\[(?P<text>[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\])\((?P<target>[^()\s]+)\)")
_SOURCE = re.compile(r"(?P<head>src=\")(?P<target>[^\"]+)\"")
_MARKER = re.compile(r"^<!-- (?:begin|end) generated.*-->$", re.MULTILINE)


def main() -> int:
    """Write all pages into a folder that is emptied before."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.md"))
    repository = os.environ.get("T10_REPOSITORY", "").rstrip("/")
    for page in (*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in PAGES)):
        target = folder / on_site(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(site_text(page.read_text(encoding="utf-8"), page, repository), encoding="utf-8")
    return 0


def on_site(path: Path) -> str:
    """Return where a file of the repository is on the site, "" where it is not there."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix() if path.is_file() else ""
    return PAGES.get(path.relative_to(ROOT).as_posix(), "") if path.is_relative_to(ROOT) else ""


def site_text(text: str, page: Path, repository: str) -> str:
    """Return the text of a page with its links changed. Code blocks stay as they are."""
    blocks = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(block if block.startswith("```") else _prose(block, page, repository) for block in blocks)


def _prose(text: str, page: Path, repository: str) -> str:
    def link(match: re.Match[str]) -> str:
        found = _target(match["target"], page, repository)
        return f"{match['head']}({found})" if found else match["text"]

    def source(match: re.Match[str]) -> str:
        return f'{match["head"]}{_target(match["target"], page, repository)}"'

    text = _MARKER.sub("", text)  # a table needs an empty line before it
    return _LINK.sub(link, _SOURCE.sub(source, text))


def _target(target: str, page: Path, repository: str) -> str:
    """Return what a link leads to on the site, "" for nothing."""
    name, hash_, anchor = target.partition("#")
    if not name or "://" in name:
        return target
    file = (page.parent / name).resolve()
    there = on_site(file)
    if there:
        here = Path(on_site(page)).parent
        return os.path.relpath(there, here).replace(os.sep, "/") + hash_ + anchor
    kind = "tree" if file.is_dir() else "blob"
    return (
        f"{repository}/{kind}/main/{file.relative_to(ROOT).as_posix()}{hash_}{anchor}" if repository else ""
    )


if __name__ == "__main__":
    sys.exit(main())
