"""Whole models executed under the plans of the other systems, against ONNX Runtime, before their times are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, log10, prod
from pathlib import Path
from typing import Any

from bundled import transformers, vision
from bundled.builder import Builder
from bundled.transformers import Sizes
from planner.models import CONTEXT, DTYPE, RESNET_WIDTHS

from paper.claims import Claim
from paper.part_data import CHIP, COST, Say, chip_and_costs, fill, read, table
from paper.results import Key, read_operators
from t10.arrays import Arrays
from t10.baselines.execute import run_model
from t10.baselines.vgm import VgmPlan
from t10.chip import ChipSpec, load_chip
from t10.compare import SYSTEMS, Plan
from t10.core.canonical import canonical
from t10.core.graph import Graph
from t10.core.partials import Partials
from t10.core.stored import as_stored
from t10.dialect.mlir import ir
from t10.errors import T10Error
from t10.frontend.importer import import_proto
from t10.passes.pipeline import fused
from t10.reference import OnnxRuntime, compare, default_tolerance
from t10.sim.plan_level import simulate

FILE = "executed.csv"
FIELDS = (
    "model", "system", "digest", "operators", "distinct", "as_printed", "printed", "elements", "error", "tolerance",
)  # fmt: skip
"""`digest` is of the printed cycles of operators: other cycles are of other plans, which are executed anew.
`as_printed` of `printed` operators take the cycles that are printed; `error` is rounded up to one digit."""
ROLLER, SPLIT, ANSOR, POPART = "Roller", "Roller, split sums", "Ansor", "PopART 0.6"


@dataclass(frozen=True, slots=True)
class Model:
    """A model with weights; where it is not whole, `part` of it, beside `kept_bytes` per core of the rest's weights.

    Names of the layer that is executed begin with `layer` in the whole model.
    """

    build: Callable[[], Builder]
    systems: tuple[str, ...] = (ROLLER, SPLIT, ANSOR, POPART)
    part: str = "whole"
    kept_bytes: int = 0
    layer: str = ""


def _sizes(width: int, heads: int, inner: int, length: int = CONTEXT, **more: int) -> Sizes:
    return Sizes(batch=1, length=length, width=width, heads=heads, inner=inner, **more)


def _layer_bytes(width: int, inner: int) -> int:
    """Return the bytes of an encoder layer's weights: four products, two more, two normalisations."""
    return 2 * (4 * (width + 1) * width + (width + 1) * inner + (inner + 1) * width + 4 * width)


MODELS = {
    "retnet-1.3b": Model(
        lambda: transformers.retnet(DTYPE, _sizes(2048, 8, 4096), value_size=512)
    ),
    "opt-1.3b": Model(lambda: transformers.opt(DTYPE, _sizes(2048, 32, 8192)), (SPLIT, ANSOR)),
    "opt-2.7b": Model(lambda: transformers.opt(DTYPE, _sizes(2560, 32, 10240)), (SPLIT,)),
    "resnet18": Model(
        lambda: vision.resnet18(DTYPE, batch=1, picture=224, widths=RESNET_WIDTHS, classes=1000)
    ),
    "bert-large": Model(
        lambda: transformers.bert(DTYPE, _sizes(1024, 16, 4096, 128, layers=1, words=30522)),
        (ROLLER, SPLIT, ANSOR),
        "1 of 24 equal layers",
        23 * _layer_bytes(1024, 4096) // 1472,
        "/layer0",
    ),
    "vit-b32": Model(
        lambda: vision.vit(DTYPE, _sizes(768, 12, 3072, layers=1), picture=224, patch=32, classes=1000),
        part="1 of 12 equal layers",
        kept_bytes=11 * _layer_bytes(768, 3072) // 1472,
        layer="/layer0",
    ),
}  # fmt: skip


def plan(say: Say) -> None:
    """Execute what is not known of the printed plans."""
    fill(FILE, FIELDS, jobs(), _made, say)


def jobs() -> list[tuple[str, ...]]:
    """Return models and systems to execute, with the digest of what is printed of them."""
    operators = read_operators()
    return [
        (name, system, _digest(operators, name, system))
        for name, each in MODELS.items()
        for system in each.systems
    ]


def _printed(operators: Mapping[Key, Mapping[str, int]], model: str, system: str) -> Mapping[str, int]:
    return operators.get((CHIP, COST, model, 1, system), {})


def _digest(operators: Mapping[Key, Mapping[str, int]], model: str, system: str) -> str:
    """Return a digest of the cycles of operators that are printed."""
    return sha256(repr(sorted(_printed(operators, model, system).items())).encode()).hexdigest()[:16]


def _made(name: str, system: str, digest: str) -> Iterator[tuple[object, ...]]:
    del digest
    model = MODELS[name]
    _, cost = chip_and_costs()
    chip = load_chip(CHIP)
    chip = load_chip(f"{CHIP}:sram_bytes={chip.sram_bytes - model.kept_bytes}")
    graph, values, inputs, expected = readied(model.build(), chip)
    found = SYSTEMS[system].plan(graph, chip, cost)
    error, tolerance = executed_error(found, graph, chip, values, inputs, expected, f"{name}, {system}")
    cycles = cycles_of(found)
    printed = {
        each.removeprefix(model.layer): n for each, n in _printed(read_operators(), name, system).items()
    }
    known = cycles.keys() & printed.keys()
    yield (
        len(graph.operators), len({canonical(spec) for spec in graph.operators}),
        sum(cycles[each] == printed[each] for each in known), len(known),
        sum(prod(each.shape) for each in expected.values()), f"{_rounded_up(error):g}", f"{tolerance:g}",
    )  # fmt: skip


def readied(made: Builder, chip: ChipSpec) -> tuple[Graph, Arrays, Arrays, Arrays]:
    """Return a model's graph as the other systems get it, its weights, inputs, and what ONNX Runtime computes."""
    model = made.model()
    expected = OnnxRuntime(model, Path(made.name)).outputs(made.samples)
    imported = import_proto(model, source=made.name)
    with imported.module.context, ir.Location.unknown():
        found = fused(imported.module, chip, None, Partials("f16"), joins=False)
    values = {**as_stored(imported.weights, found.graph.weights), **found.constants}
    return found.graph, values, as_stored(made.samples, found.graph.inputs), expected


def executed_error(
    found: Plan, graph: Graph, chip: ChipSpec, values: Arrays, inputs: Arrays, expected: Arrays, what: str
) -> tuple[float, float]:
    """Execute a plan and return its largest difference from ONNX Runtime and what is tolerated; raise above that."""
    if isinstance(found, VgmPlan):
        tilings = {each.name: each.timed.tiling for each in found.operators}
        outputs: Mapping[str, Any] = run_model(graph, tilings, {**values, **inputs}, chip.n_cores)
    else:
        outputs = simulate(found, chip, chip_and_costs()[1], values, inputs).outputs
    tolerance = default_tolerance(graph)
    compared = compare(outputs, expected, tolerance)
    for each in compared:
        if not each.is_within:
            raise T10Error(
                f"{what}: {each.worst_text}, off by {each.error:.2e} (expected at most {each.tolerance:g})"
            )
    if not compared:
        raise T10Error(f"{what}: no output to compare")
    return max(each.error for each in compared), tolerance


def cycles_of(found: Plan) -> dict[str, int]:
    """Return the cycles of operators by name."""
    if isinstance(found, VgmPlan):
        return {each.name: each.timed.cycles for each in found.operators}
    return {each.name: each.active.cycles.total for each in found.operators}


def _rounded_up(error: float) -> float:
    if not error:
        return 0.0
    digits = -int(ceil(log10(error)) - 1)
    return ceil(error * 10**digits) / 10**digits


def _lines() -> list[dict[str, str]]:
    """Return the lines of the plans that are printed; a number that is wrong is an error, which stops the page."""
    wanted = set(jobs())
    lines = [line for line in read(FILE) if (line["model"], line["system"], line["digest"]) in wanted]
    for line in lines:
        if not float(line["error"]) <= float(line["tolerance"]):
            raise T10Error(f"{FILE}: {line['model']}, {line['system']} is off by {line['error']}")
    return lines


def pictures() -> dict[str, Any]:
    """Return none: a table says it."""
    return {}


def claims() -> list[Claim]:
    """Return how much of the other systems' plans was executed."""
    lines = _lines()
    if not lines:
        return []
    missing = sorted(set(jobs()) - {(each["model"], each["system"], each["digest"]) for each in lines})
    total = sum(int(each["operators"]) for each in lines)
    same = sum(int(each["as_printed"]) for each in lines)
    printed = sum(int(each["printed"]) for each in lines)
    n_models = len({each["model"] for each in lines})
    text = f"{len(lines)} plans of {n_models} models with all their {total} operators; off by at most "
    text += f"{max(float(each['error']) for each in lines):g} of the largest output; "
    text += f"{same} of {printed} take the cycles that are printed"
    why = "not executed: " + ", ".join(f"{each[0]} ({each[1]})" for each in missing) if missing else WHY_OTHER
    return [
        Claim(
            "plans of other systems executed",
            "(not in the paper)",
            text,
            not missing and same == printed,
            why,
        )
    ]


WHY_OTHER = "the others were planned by an earlier version"


def section() -> str:
    """Return the part of the page."""
    rows = [
        (
            each["model"], MODELS[each["model"]].part, each["system"], each["operators"], each["distinct"],
            f"{each['as_printed']} of {each['printed']}", f"{int(each['elements']):,}", each["error"],
            each["tolerance"],
        )
        for each in _lines()
    ]  # fmt: skip
    headings = (
        "model, batch 1", "part", "system", "operators", "different", "with the printed cycles", "outputs",
        "off by at most", "tolerated",
    )  # fmt: skip
    return f"""## What was executed

Models with random weights under the plans whose modelled times are printed here: every operator, all its tiles on all
cores, from the first input to the outputs, which must be those of ONNX Runtime in f32, or nothing is printed.
Differences are parts of the largest output. Of BERT-large and ViT one layer is executed, beside as much memory as the
weights of the others take. Of Roller's and Ansor's other plans (larger language models, NeRF's frame, larger batches)
six tiles of every different operator are executed, of PopART's other plans none.

{table(headings, rows)}
"""
