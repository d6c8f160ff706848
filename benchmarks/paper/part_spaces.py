"""Figure 18: how many plans operators have, how many of them the constraints leave, and how many are on the front."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from paper.claims import Claim
from paper.part_data import (
    MODELLED,
    Say,
    chip_and_costs,
    fill,
    note_seconds,
    noted_seconds,
    operator_of,
    read,
    searched,
    shown,
    table,
    unfused,
)
from paper.space_sizes import legal_plans, plans_on_any_number_of_cores, unrestricted_plans
from t10.core.expression import OperatorSpec
from t10.report.plots import new_figure

FILE, SECONDS = "spaces.csv", "seconds-spaces.csv"
FIELDS = (
    "model",
    "batch",
    "operator",
    "kind",
    "axes",
    "boxes",
    "unlimited",
    "complete",
    "filtered",
    "priced",
    "front",
)
"""Plans by what limits them. `boxes`: each number at most its axis; `unlimited`: rings divide sharers, each axis has
at most as many parts as there are cores (0: not counted); `complete`: legal on the chip; `filtered`: at most those
within the constraints; `priced`: exactly; `front`: on the Pareto front."""
OPERATORS = (
    # ResNet's convolution of most plans, at the largest batch that the paper shows.
    ("resnet18", "128", "/layer1/0/conv1/Conv"),
    ("resnet18", "32", "/layer2/0/conv2/Conv"),
    ("resnet18", "1", "/layer4/0/conv2/Conv"),
    ("bert-large", "1", "/layer0/intermediate/MatMul"),
    ("bert-large", "1", "/layer0/attention/MatMul"),
    ("nerf-frame", "1", "/layer1/MatMul"),
    ("opt-13b", "1", "/fc1/MatMul"),
    ("bert-large", "1", "/embeddings/word.gather"),
)
NAMES = {"contraction": "MatMul", "convolution": "Conv", "gather": "Gather"}
PICTURE = "figure-18-spaces"
STEPS = {
    "complete": ("complete: legal on the chip", "#bbbbbb"),
    "filtered": ("filtered by the constraints", "#e0a500"),
    "priced": ("priced exactly", "#3b9bb3"),
    "front": ("on the Pareto front", "#3a923a"),
}
PAPER_COMPLETE, PAPER_FILTERED, PAPER_FRONT = 10**19, 10**4, 50
PAPER_PLAN_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Space:
    """The plans of an operator, step by step; see `FIELDS`."""

    boxes: int
    unlimited: int
    complete: int
    filtered: int
    priced: int
    front: int


Key = tuple[str, str, str, str]
"""Model, batch, operator and kind."""


def plan(say: Say) -> None:
    """Count what has no row yet."""
    fill(FILE, FIELDS, list(OPERATORS), _made, say)


def _made(model: str, batch: str, operator: str) -> Iterator[tuple[object, ...]]:
    chip, _ = chip_and_costs()
    spec = operator_of(unfused(model, int(batch)), operator)
    found, seconds = searched(model, int(batch), operator)
    note_seconds(SECONDS, (model, batch, operator), seconds)
    yield (
        NAMES[spec.kind], len(spec.axes), *_counted(spec, chip.n_cores), found.statistics.n_plans,
        found.statistics.n_priced, len(found.front),
    )  # fmt: skip


def _counted(spec: OperatorSpec, n_cores: int) -> tuple[int, int, int]:
    unlimited = plans_on_any_number_of_cores(spec, n_cores) or 0
    return unrestricted_plans(spec), unlimited, legal_plans(spec, n_cores)


def _spaces() -> dict[Key, Space]:
    return {
        (line["model"], line["batch"], line["operator"], line["kind"]): Space(
            *(int(line[name]) for name in FIELDS[5:])
        )
        for line in read(FILE)
    }


def _title(key: Key) -> str:
    return f"{key[3]} ({key[0]}-{key[1]})"


def pictures() -> dict[str, Any]:
    """Return bars of every step, per operator."""
    spaces = _spaces()
    if not spaces:
        return {}
    figure = new_figure(10, 3.8)
    axes = figure.add_subplot()
    width = 0.8 / len(STEPS)
    for place, (name, (text, colour)) in enumerate(STEPS.items()):
        at = [number + (place - len(STEPS) / 2 + 0.5) * width for number in range(len(spaces))]
        axes.bar(at, [getattr(each, name) for each in spaces.values()], width, color=colour, label=text)
    axes.set_yscale("log")
    axes.set_ylabel("plans")
    axes.set_xticks(range(len(spaces)), [_title(key).replace(" ", "\n") for key in spaces])
    axes.set_title(f"plans of an operator ({MODELLED})", loc="left")
    axes.legend(frameon=False, ncols=len(STEPS), fontsize=8, loc="upper right")
    axes.set_ylim(top=max(each.complete for each in spaces.values()) * 100)
    return {PICTURE: figure}


def claims() -> list[Claim]:
    """Return what the paper says of figure 18."""
    spaces = _spaces()
    if not spaces:
        return []
    return [_complete(spaces), _filtered(spaces), *_speed(spaces), _front(spaces)]


def _complete(spaces: dict[Key, Space]) -> Claim:
    key = max(spaces, key=lambda each: spaces[each].unlimited)
    space = spaces[key]
    return Claim(
        "complete space, figure 18",
        "up to 10^19, a convolution of 7 axes",
        f"{_power(space.unlimited)}, {_title(key)}, if each axis has at most as many parts as there are cores; "
        f"{space.complete:,} are legal, as all axes together have",
        PAPER_COMPLETE / 10 < space.unlimited < PAPER_COMPLETE * 10,
        "the paper does not say which rules its complete space keeps",
    )


def _filtered(spaces: dict[Key, Space]) -> Claim:
    sizes = [each.filtered for each in spaces.values()]
    within = sum(each < PAPER_FILTERED for each in sizes)
    return Claim(
        "filtered space, figure 18",
        "less than 10^4",
        f"{min(sizes):,} to {max(sizes):,}, {within} of {len(sizes)} below 10^4",
        within == len(sizes),
        "F_op with every f_t under them are counted: 886 F_op of BERT's product are within 0.9, 12,950 of the largest "
        "convolution, and each has tens to hundreds of f_t; bounds leave few to price",
    )


def _speed(spaces: dict[Key, Space]) -> list[Claim]:
    seconds = noted_seconds(SECONDS)
    spent = {key: seconds[key[:3]] for key in spaces if key[:3] in seconds}
    if not spent:
        return []
    slowest = max(spent, key=lambda key: spent[key])
    each = spent[slowest] / max(spaces[slowest].filtered, 1)
    return [
        Claim(
            "time of a plan, figure 18",
            "< 100 ms; 10^4 plans in 30 s on 32 cores",
            f"{1e6 * each:.2g} microseconds for each plan within the constraints, {spent[slowest]:.1f} CPU seconds "
            f"for the slowest search, {_title(slowest)} (measured)",
            each <= PAPER_PLAN_SECONDS,
            "a search takes longer",
        )
    ]


def _front(spaces: dict[Key, Space]) -> Claim:
    sizes = [each.front for each in spaces.values()]
    within = sum(each < PAPER_FRONT for each in sizes)
    return Claim(
        "plans on the Pareto front, figure 18",
        "fewer than 50 for most operators",
        f"{min(sizes)} to {max(sizes)}, {within} of {len(sizes)} below {PAPER_FRONT}",
        within > len(sizes) / 2,
        "fronts are longer",
    )


def _power(number: int) -> str:
    """Return a number by its power of ten."""
    text = f"{number:.1e}"
    digits, _, power = text.partition("e+")
    return f"{digits} x 10^{int(power)}"


def section() -> str:
    """Return the part of the page."""
    rows = [
        (
            _title(key), _power(each.boxes), _power(each.unlimited) if each.unlimited else "-", f"{each.complete:,}",
            f"{each.filtered:,}", f"{each.priced:,}", str(each.front),
        )
        for key, each in _spaces().items()
    ]  # fmt: skip
    headings = (
        "operator",
        "each number at most its axis",
        "cores not counted",
        "legal",
        "filtered",
        "priced",
        "front",
    )
    return f"""## Sizes of search spaces

{shown(PICTURE)}

Legal plans are all F_op and f_t that the planner's checker would accept on 1,472 cores, counted without
listing them. *Cores not counted*: each axis has at most 1,472 parts, but not all axes together, which is what
the paper's 10^19 amounts to. *Filtered* are within `--parallelism` and `--padding`, which are relaxed for
small operators; a search goes through all of these and prices those that no bound excludes. Fronts are of
modelled costs.

{table(headings, rows)}
"""
