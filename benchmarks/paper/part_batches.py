"""The largest batch, 1, 2, 3, 4, 6, 8, 12, ..., that every system can hold; batches grow until nothing fits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

from paper.claims import OURS, POPART, PUBLISHED, ROLLER, SPLIT, Claim
from paper.figures import COLOURS
from paper.part_data import MODELLED, Say, chip_and_costs, fill, read, shown, table, unfused
from paper.systems import builder_of, graph_of
from t10.baselines.roller import Roller
from t10.baselines.vgm import least_vgm_bytes, regions_of, room_bytes
from t10.chip import load_chip
from t10.compare import SYSTEMS, compared
from t10.core.graph import Graph
from t10.cost.registry import cost_model, given
from t10.plan.fit.remedies import SMALL_SHIFT_BUFFER_BYTES
from t10.report.plots import new_figure

FILE = "batches.csv"
FIELDS = ("model", "system", "batch", "how", "bytes", "next")
"""`bytes` of a core at `batch`, the largest that fits (0: none does); `next` says why the next larger does not."""
ANY = "any"
"""No system: all that lives while an operator runs, once."""
COUNTED, PLANNED = "counted", "planned"
NOT_TRIED, HOLDS_ALL = "more was not tried", "more than any system can hold"
VGM = {ROLLER: Roller(), SPLIT: Roller(splits_sums=True)}
PLANNERS = (OURS, PUBLISHED, POPART)
COUNTED_MODELS = ("bert-large", "opt-1.3b", "llama2-13b", "resnet18")
"""Models of which planning the largest batches takes too long here: only what can be counted is told."""
PLANNED_MODELS = ("nerf-frame", "opt-13b")
BATCHES = tuple(sorted({factor << shift for shift in range(13) for factor in (1, 3)}))
"""Powers of two, and half as much again."""
PICTURE = "figure-batches"

Need = Callable[[int], tuple[int, int, str]]
"""What a batch needs, what a core has, and why it does not fit (empty: it does, where it needs no more)."""


def plan(say: Say) -> None:
    """Find what is not known yet."""
    fill(FILE, FIELDS, _jobs(), _made, say)


def _jobs() -> list[tuple[str, ...]]:
    counted = [(model, system) for model in COUNTED_MODELS for system in (ANY, *VGM)]
    return counted + [(model, system) for model in PLANNED_MODELS for system in (ANY, *VGM, *PLANNERS)]


def _made(model: str, system: str) -> Iterator[tuple[object, ...]]:
    if system in PLANNERS:
        start = int(
            next(each["batch"] for each in read(FILE) if each["model"] == model and each["system"] == ANY)
        )
        yield largest(lambda batch: _planned(model, system, batch), BATCHES.index(start), PLANNED, HOLDS_ALL)
        return
    need = partial(_counted, model, system)
    yield largest(need, guessed(need), COUNTED, NOT_TRIED)


def guessed(need: Need) -> int:
    """Return the place in `BATCHES` of the largest that fits if every unit of a batch needs as much as the second."""
    (first, room, _), (second, _, _) = need(1), need(2)
    fits = 1 + max(room - first, 0) // max(second - first, 1)
    return max(bisect_right(BATCHES, fits) - 1, 0)


def largest(need: Need, place: int, how: str, reason: str) -> tuple[int, str, int, str]:
    """Return the largest of `BATCHES` that fits, how that is known, its bytes, and why the next does not.

    More never fits where less does not. From `place` it goes down to the first that fits, or if that one does, and
    batches are counted, up to the last. `reason` is said where nothing larger was looked at.
    """
    last: tuple[int, int] | None = None
    while 0 <= place < len(BATCHES):
        n_bytes, room, why = need(BATCHES[place])
        if not why and n_bytes <= room:
            last = BATCHES[place], n_bytes
            if how == PLANNED or reason != NOT_TRIED:
                break
            place += 1
            continue
        reason = why or f"needs {n_bytes:,} bytes per core of {room:,}"
        if last is not None:
            break
        place -= 1
    batch, held = last or (0, 0)
    return batch, how, held, reason


def _counted(model: str, system: str, batch: int) -> tuple[int, int, str]:
    chip = chip_and_costs()[0]
    once, least = _counts(model, batch)
    return (once, chip.capacity_bytes, "") if system == ANY else (least, room_bytes(chip, VGM[system]), "")


@lru_cache(maxsize=64)
def _counts(model: str, batch: int) -> tuple[int, int]:
    """Return the bytes of a core that any system needs, and those that Roller needs."""
    graph, n_cores = unfused(model, batch), chip_and_costs()[0].n_cores
    return once_bytes(graph, n_cores), least_vgm_bytes(graph, n_cores)


def once_bytes(graph: Graph, n_cores: int) -> int:
    """Return what lives while an operator runs, each value once; a sum never replaces what it reads."""
    most = 0
    for spec, regions in zip(graph.operators, regions_of(graph, n_cores), strict=True):
        if spec.combine != "none":
            most = max(most, regions.total_bytes)
    return most


def _planned(model: str, system: str, batch: int) -> tuple[int, int, str]:
    chip, cost = chip_and_costs()
    way = SYSTEMS[system]
    graph = graph_of(builder_of(model)(batch), chip, joins=way.joins) if way.joins else unfused(model, batch)
    found = compared(graph, way, chip, cost)
    if found.reason:
        # What a user would do next: the error says that it may fit so.
        small = load_chip(f"{chip.name}:shift_buffer_bytes={SMALL_SHIFT_BUFFER_BYTES}")
        found = compared(graph, way, small, cost_model(given(cost.name), small))
    return found.peak_bytes, chip.sram_bytes, found.reason


def _largest() -> dict[str, dict[str, int]]:
    """Return the largest batches by model and system."""
    found: dict[str, dict[str, int]] = {}
    for line in read(FILE):
        found.setdefault(line["model"], {})[line["system"]] = int(line["batch"])
    return found


def pictures() -> dict[str, Any]:
    """Return a bar per model and system."""
    found = _largest()
    if not found:
        return {}
    figure = new_figure(9, 3.4)
    axes = figure.add_subplot()
    colours = {ANY: "#cccccc", **{name: COLOURS[name] for name in (*VGM, *PLANNERS)}}
    width = 0.8 / len(colours)
    for place, (system, colour) in enumerate(colours.items()):
        known = [(n, each[system]) for n, each in enumerate(found.values()) if system in each]
        at = [number + (place - len(colours) / 2 + 0.5) * width for number, _ in known]
        axes.bar(at, [batch for _, batch in known], width, color=colour, label=system)
        for x, (_, batch) in zip(at, known, strict=True):
            axes.text(x, max(batch, 1), str(batch) if batch else "x", ha="center", va="bottom", fontsize=7)
    axes.set_yscale("log", base=2)
    axes.set_ylim(bottom=0.5)
    axes.set_xticks(range(len(found)), list(found))
    axes.set_ylabel("largest batch")
    axes.set_title(f"Largest batches that fit ({MODELLED}); x: none")
    axes.legend(frameon=False, ncols=3, fontsize=8)
    return {PICTURE: figure}


def claims() -> list[Claim]:
    """Return whether ours holds larger batches than the others."""
    found = {model: each for model, each in _largest().items() if OURS in each}
    if not found:
        return []
    others = (PUBLISHED, ROLLER, SPLIT, POPART)
    told: list[str] = []
    is_larger = False
    is_least = True
    for model, each in found.items():
        best = max(each[system] for system in others if system in each)
        told.append(f"{model} {each[OURS]} (the others at most {best}, any system {each[ANY]})")
        is_larger |= each[OURS] > best
        is_least &= each[OURS] >= best
    return [
        Claim(
            "larger batches fit than with any other system",
            "yes, for all models",
            ", ".join(told),
            is_larger and is_least,
            _why_not_larger(),
        )
    ]


def _why_not_larger() -> str:
    """Return what ours lacks where another system holds more."""
    found = _largest()
    lacks = [
        f"{line['model']}: {line['next']}"
        for line in read(FILE)
        if line["system"] == OURS and int(line["batch"]) < found[line["model"]][ANY]
    ]
    return f"{'; '.join(lacks)}: {COPIED_OR_PADDED}" if lacks else "no system can hold more"


COPIED_OR_PADDED = (
    "a weight is copied whole, or rests padded as its plan uses it (see below); Roller loads a tile"
)


def section() -> str:
    """Return the part of the page."""
    systems = (ANY, OURS, PUBLISHED, ROLLER, SPLIT, POPART)
    rows = [
        (model, *(str(each[system]) if system in each else "-" for system in systems))
        for model, each in _largest().items()
    ]
    return f"""## Largest batches

{shown(PICTURE)}

The largest of the batches 1, 2, 3, 4, 6, 8, 12, ... that fits. *Any* holds what lives while an operator runs once,
without a tile or a copy. Roller holds a batch if its shares and the smallest aligned tile of every operator fit, which
needs no planning; Ansor holds what Roller with split sums holds, whose shares and tiles it has. Ours, T10 as published
and PopART are planned at the most that any system could hold, then at the next smaller batch, and so on (modelled, f16;
memory does not depend on times); what does not fit is planned once more with a shift buffer of
{SMALL_SHIFT_BUFFER_BYTES:,} bytes, which the error names. -: planning such batches took too long here. Models that are
not listed were left out for the same reason.

OPT-13B's batch 24 fits with that buffer alone, and its plan is slow: memory is full, and parts are computed in turn.

{table(("model", *systems), rows)}
"""
