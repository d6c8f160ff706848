"""The page of the evaluation says what its rows say."""

from __future__ import annotations

from pathlib import Path

import pytest
from paper.claims import claims_of, mean
from paper.figures import FIGURES
from paper.page import known_rows, page_pictures, page_text, write_picture
from paper.sweep import POINTS, key_of
from support.draw import drawn

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_what_the_rows_make_of_it(tmp_path: Path) -> None:
    """All of its text, and a file for every picture; two of the pictures are written."""
    known = known_rows()
    pictures = page_pictures(known)
    text = page_text(known, pictures)
    assert text == (DOCS / "evaluation.md").read_text(encoding="utf-8"), "run python benchmarks/paper"
    there = {path.name for path in (DOCS / "evaluation").iterdir()}
    assert {name.partition(".")[0] for name in there} == set(pictures) >= set(FIGURES)
    for name in drawn(sorted(pictures), 2):
        write_picture(tmp_path, name, pictures[name])
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {name for name in there if (tmp_path / f"{name.partition('.')[0]}.svg").exists()}


def test_every_row_is_of_a_point_that_is_planned() -> None:
    planned = {key_of(point, system) for point in POINTS for system in point.systems}
    assert set(known_rows().rows) <= planned


def test_every_claim_has_a_verdict_and_a_reason_where_it_differs() -> None:
    claims = claims_of(known_rows())
    assert claims
    assert all(claim.agrees is not None for claim in claims)
    assert [claim.what for claim in claims if not claim.agrees and not claim.why] == []


def test_means_are_geometric() -> None:
    assert mean([1.0, 4.0]) == pytest.approx(2.0)
