"""`docs/evaluation.md`: claims, tables and pictures from the rows there are."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any

from paper import (
    part_accuracy,
    part_batches,
    part_constraints,
    part_executed,
    part_fronts,
    part_gpu,
    part_hbm,
    part_idle,
    part_reasons,
    part_regions,
    part_seconds,
    part_spaces,
    part_trajectory,
)
from paper.claims import (
    ANSOR,
    CHIP,
    COST,
    OURS,
    POPART,
    PUBLISHED,
    PUBLISHED_CYCLES,
    ROLLER,
    SPLIT,
    Claim,
    Known,
    claims_of,
)
from paper.figures import FIGURES
from paper.part_data import svg
from paper.results import read_operators, read_rows
from paper.systems import SYSTEMS

TEXT = Path(__file__).resolve().parent / "text.md"
"""What is written by hand; lines `<!-- NAME -->` are replaced."""
FOLDER = "evaluation"
PARTS: tuple[ModuleType, ...] = (
    part_fronts,
    part_spaces,
    part_constraints,
    part_trajectory,
    part_idle,
    part_accuracy,
    part_seconds,
    part_gpu,
    part_hbm,
    part_regions,
    part_batches,
    part_executed,
    part_reasons,
)
"""What has rows of its own: each has `plan(say)`, `pictures()`, `claims()` and `section()`."""


def known_rows() -> Known:
    """Return what was planned so far."""
    return Known(read_rows(), read_operators())


def check() -> int:
    """Print every claim; 1 where nothing is known."""
    claims = _all_claims(known_rows())
    for claim in claims:
        print(f"{claim.verdict:<8} {claim.what}: paper {claim.paper}; ours {claim.ours}")
        if claim.why and not claim.agrees:
            print(f"         {claim.why}")
    papers = [claim for claim in claims if not claim.paper.startswith("(")]
    agreeing = sum(claim.agrees is True for claim in papers)
    print(f"{agreeing} of {len(papers)} claims agree; all times are modelled")
    return 0 if claims else 1


def _say(text: str) -> None:
    print(text, flush=True)


def plan_parts() -> None:
    """Work out what the parts lack."""
    for part in PARTS:
        part.plan(_say)


def _all_claims(known: Known) -> list[Claim]:
    return [*claims_of(known), *(claim for part in PARTS for claim in part.claims())]


def write_picture(folder: Path, name: str, picture: Any) -> None:
    """Write a picture as SVG, and as PNG where it is not text already."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.svg").write_text(svg(picture).rstrip("\n") + "\n", encoding="utf-8")
    if not isinstance(picture, str):
        picture.savefig(folder / f"{name}.png", dpi=100, metadata={"Software": None})


def page_pictures(known: Known) -> dict[str, Any]:
    """Return the pictures of the page by name."""
    drawn = {name: draw(known) for name, draw in FIGURES.items()}
    pictures = {name: picture for name, picture in drawn.items() if picture is not None}
    for part in PARTS:
        pictures |= part.pictures()
    return pictures


def write_page(docs: Path) -> None:
    """Write the page and its pictures."""
    known = known_rows()
    pictures = page_pictures(known)
    for name, picture in pictures.items():
        write_picture(docs / FOLDER, name, picture)
    (docs / "evaluation.md").write_text(page_text(known, pictures), encoding="utf-8")


def page_text(known: Known, pictures: Collection[str]) -> str:
    """Return the text of the page, which shows these pictures."""
    parts = {
        "claims": _claims(_all_claims(known)),
        "parts": "\n".join(part.section().rstrip("\n") + "\n" for part in PARTS).rstrip("\n"),
        "latency": _latency(known),
        "exchange": _exchange(known),
        "popart": _popart(known),
        "memory": _memory(known),
        "published": _published(known),
        **{
            name: f"![{name}]({FOLDER}/{name}.svg)" if name in pictures else "(not planned yet)"
            for name in FIGURES
        },
    }
    text = TEXT.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    return text


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return "(not planned yet)"
    lines = [headings, tuple("---" for _ in headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _claims(claims: list[Claim]) -> str:
    rows = [
        (each.what, each.paper, each.ours, each.verdict, "" if each.agrees else each.why) for each in claims
    ]
    return _table(("claim", "paper", "ours (modelled)", "", "why"), rows)


def _latency(known: Known) -> str:
    names = (OURS, "ours unfused", PUBLISHED, SPLIT, ROLLER, ANSOR, POPART)
    rows: list[tuple[str, ...]] = []
    for model, batch in known.points():
        cells: list[str] = []
        for name in names:
            row = known.row(model, batch, name)
            tried = known.rows.get((CHIP, COST, model, batch, name))
            cells.append(f"{row.cycles:,}" if row else "-" if tried is None else "x")
        rows.append((model, str(batch), *cells))
    return _table(("model", "batch", *names), rows)


def _exchange(known: Known) -> str:
    names = tuple(name for name in SYSTEMS if name.startswith("Roller"))
    rows: list[tuple[str, ...]] = []
    for model, batch in known.points():
        found = [known.row(model, batch, name) for name in names]
        if all(found):
            rows.append((model, str(batch), *(f"{row.cycles:,}" for row in found if row)))
    return _table(("model", "batch", *names), rows)


def _popart(known: Known) -> str:
    names = tuple(name for name in SYSTEMS if name.startswith("PopART"))
    rows: list[tuple[str, ...]] = []
    for model, batch in known.points():
        found = [known.rows.get((CHIP, COST, model, batch, name)) for name in names]
        cells = ["-" if row is None else f"{row.cycles:,}" if row.status == "ok" else "x" for row in found]
        rows.append((model, str(batch), *cells))
    return _table(("model", "batch", *names), rows)


def _published(known: Known) -> str:
    rows: list[tuple[str, ...]] = []
    for model, (cycles, compute) in PUBLISHED_CYCLES.items():
        row = known.row(model, 1, PUBLISHED, cost="t10-paper")
        if row is not None:
            rows.append((model, f"{cycles:,}", f"{row.cycles:,}", f"{compute:,}", f"{row.compute_cycles:,}"))
    headings = ("model", "published", "ours as published", "compute, published", "compute, ours")
    return _table(headings, rows)


def _memory(known: Known) -> str:
    rows: list[tuple[str, ...]] = []
    for key, row in sorted(known.rows.items(), key=lambda each: (each[1].system, _size(each[1].chip))):
        if ":sram_bytes=" in row.chip and key[1] == COST:
            shown = f"{row.cycles:,}" if row.status == "ok" else "x"
            rows.append((row.system, row.chip.split("=")[1], shown, f"{row.rotating} of {row.operators}"))
    return _table(("system", "memory of a core", "cycles", "operators that rotate"), rows)


def _size(chip: str) -> int:
    return int(chip.split("=")[1].removesuffix("KiB")) if ":sram_bytes=" in chip else 0
