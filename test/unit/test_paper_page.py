"""The page of the evaluation says what its rows say."""

from __future__ import annotations

from pathlib import Path

import pytest
from paper.claims import claims_of, mean
from paper.figures import FIGURES
from paper.page import known_rows, write_page
from paper.sweep import POINTS, key_of

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_what_the_rows_make_of_it(tmp_path: Path) -> None:
    write_page(tmp_path)
    made = (tmp_path / "evaluation.md").read_text(encoding="utf-8")
    assert made == (DOCS / "evaluation.md").read_text(encoding="utf-8"), "run python benchmarks/paper"
    drawn = {path.name for path in (tmp_path / "evaluation").iterdir()}
    assert drawn == {path.name for path in (DOCS / "evaluation").iterdir()}
    assert {path.removesuffix(".svg") for path in drawn if path.endswith(".svg")} >= set(FIGURES)


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
