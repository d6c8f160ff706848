"""Figure 2: memory of a core while an operator runs over a virtual global memory, beside the paper's figure 2(b)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from paper.claims import Claim
from paper.part_data import MODELLED, Say, chip_and_costs, fill, read, shown, table, unfused
from t10.baselines.load_compute_store import Shared, tile_bytes
from t10.baselines.roller import Roller
from t10.baselines.vgm import ROOM_BYTES, regions_of, room_bytes
from t10.report.plots import KIB, new_figure

FILE = "regions.csv"
FIELDS = ("model", "batch", "kind", "operator", "idle_bytes", "active_bytes", "sub_bytes")
PAPER = {
    ("bert-large", "8", "MatMul"): (19.6, 67.0),
    ("vit-b32", "128", "MatMul"): (43.4, 197.2),
    ("resnet18", "128", "Conv"): (59.6, 98.7),
    ("nerf-frame", "1", "MatMul"): (352.3, 254.3),
    ("opt-13b", "1", "MatMul"): (143.5, 79.8),
}
"""KiB per core of the active operator and of the sub-operator, from a table in a comment of the paper's text."""
NEAR = 0.05
LOW, HIGH = 0.22, 1.80
"""How much a sub-operator could grow if the active operator's region were its own, says the paper."""
PICTURE = "figure-2-regions"


@dataclass(frozen=True, slots=True)
class Known:
    """An operator's regions in bytes per core, and the paper's in KiB."""

    name: str
    operator: str
    idle_bytes: int
    active_bytes: int
    sub_bytes: int
    paper_active: float
    paper_sub: float

    @property
    def growth(self) -> float:
        """Return by what part the sub-operator could grow without the shared region."""
        return self.active_bytes / self.sub_bytes

    @property
    def is_near(self) -> bool:
        """Return whether the active region is the paper's."""
        return abs(self.active_bytes / KIB / self.paper_active - 1) <= NEAR


def plan(say: Say) -> None:
    """Plan the operators that have no rows yet."""
    fill(FILE, FIELDS, list(PAPER), _made, say)


def _made(model: str, batch: str, kind: str) -> Iterator[tuple[object, ...]]:
    """Yield the operator of a kind whose active region is nearest to the paper's, which names none."""
    chip, cost = chip_and_costs()
    graph, system = unfused(model, int(batch)), Roller()
    wanted = PAPER[model, batch, kind][0] * KIB
    pairs = zip(graph.operators, regions_of(graph, chip.n_cores), strict=True)
    spec, regions = min(
        ((spec, each) for spec, each in pairs if spec.name.endswith(kind)),
        key=lambda pair: (abs(pair[1].active_bytes - wanted), pair[0].name),
    )
    room = (room_bytes(chip, system) - regions.total_bytes) // ROOM_BYTES * ROOM_BYTES
    found = system.best_tile(Shared.of(graph, spec, chip.n_cores), chip, cost, room)
    yield spec.name, regions.idle_bytes, regions.active_bytes, tile_bytes(spec, found.tiling)


def _known() -> list[Known]:
    found: list[Known] = []
    for line in read(FILE):
        n_bytes = [int(line[name]) for name in FIELDS[4:]]
        paper = PAPER[line["model"], line["batch"], line["kind"]]
        name = f"{line['model']}-{line['batch']}"
        found.append(Known(name, line["operator"], n_bytes[0], n_bytes[1], n_bytes[2], *paper))
    return found


def pictures() -> dict[str, Any]:
    """Return two bars per operator: the paper's regions and ours."""
    found = _known()
    if not found:
        return {}
    figure = new_figure(8, 3.4)
    axes = figure.add_subplot()
    places = range(len(found))
    for shift, alpha, whose in ((-0.2, 0.5, "the paper"), (0.2, 1.0, "ours")):
        is_ours = whose == "ours"
        active = [each.active_bytes / KIB if is_ours else each.paper_active for each in found]
        sub = [each.sub_bytes / KIB if is_ours else each.paper_sub for each in found]
        at = [place + shift for place in places]
        axes.bar(at, active, 0.36, color="#d04a4a", alpha=alpha, label=f"active operator, {whose}")
        axes.bar(at, sub, 0.36, bottom=active, color="#3b9bb3", alpha=alpha, label=f"sub-operator, {whose}")
    axes.set_xticks(places, [each.name for each in found])
    axes.set_ylabel("KiB per core")
    axes.set_title(f"Figure 2(b): Roller's memory ({MODELLED})")
    axes.legend(frameon=False, fontsize=8)
    return {PICTURE: figure}


def claims() -> list[Claim]:
    """Return what the paper says of figure 2."""
    found = _known()
    if not found:
        return []
    active = ", ".join(f"{each.name} {each.active_bytes / KIB:.1f}" for each in found)
    growth = ", ".join(f"{each.name} {each.growth:.0%}" for each in found)
    return [
        Claim(
            "active region of Roller's operators, figure 2(b)",
            ", ".join(f"{each.paper_active}" for each in found) + " KiB",
            f"{active} KiB, {sum(each.is_near for each in found)} of {len(found)} within {NEAR:.0%}",
            all(each.is_near for each in found),
            WHY_OTHER_ACTIVE,
        ),
        Claim(
            "a sub-operator could grow without the shared region, figure 2(b)",
            f"by {LOW:.0%} to {HIGH:.0%}",
            growth,
            all(LOW / 1.2 <= each.growth <= HIGH * 1.2 for each in found),
            "other tiles than the paper's are fastest: "
            + ", ".join(
                f"{each.name}'s take {each.sub_bytes / KIB:.1f} KiB ({each.paper_sub})" for each in found
            ),
        ),
    ]


WHY_OTHER_ACTIVE = "the paper does not say which operators; these are the nearest of their kind in our models"


def section() -> str:
    """Return the part of the page."""
    rows = [
        (
            each.name,
            f"`{each.operator}`",
            f"{each.idle_bytes / KIB:.1f}",
            f"{each.active_bytes / KIB:.1f} ({each.paper_active})",
            f"{each.sub_bytes / KIB:.1f} ({each.paper_sub})",
            f"{each.growth:.0%} ({each.paper_active / each.paper_sub:.0%})",
        )
        for each in _known()
    ]
    headings = ("model", "operator", "idle, KiB", "active (paper)", "sub (paper)", "active / sub (paper)")
    return f"""## Memory of a shared region

{shown(PICTURE)}

Roller's regions of a core while one operator runs. The paper names no operators: of each kind the one whose active
region is nearest is taken. Tiles are those that are fastest by modelled time (without split sums).

{table(headings, rows)}
"""
