#!/usr/bin/env python3
"""Search for plans of single operators that beat the one that the planner calls the fastest.

    python benchmarks/regret.py                                        # seven architectures, batches 1 and 8
    python benchmarks/regret.py --models opt-13b --batches 1,2 --pins 60 --timed 4
    python benchmarks/regret.py --files MODEL.onnx ...
    python benchmarks/regret.py --results regret.jsonl                 # goes on where an earlier run ended
    python benchmarks/regret.py --named                                # pins that once won
    python benchmarks/regret.py --whole --files MODEL.onnx ...         # whole models, all other operators chosen again

Pins are drawn for every distinct operator: half of all partitions there are, half of those that occupy most cores, not
only from those that the search's constraints leave. From the fastest of them and from the front's fastest plan,
neighbours are then followed for as long as exact prices fall. The best pins by price, and the front's fastest plan, are
lowered, placed and timed where they lie, alone on the chip. Cycles are modelled.

Regret is how much longer the front's fastest plan takes than the fastest pin that was timed. `price` compares the
prices of the two in the same way: above 0 the search left out the pin. Exits with 1 where a pin wins by more than a
hundredth, or a lower bound is above a price.

With `--whole`, partitions of some operators of a model are pinned, those of chips with fewer cores, and random ones;
the others are chosen again. Regret is how much longer the model's plan takes than the fastest of these.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random

from pydantic import TypeAdapter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from bundled.builder import Builder
from planner.graphs import graph_of
from planner.models import MODELS, SEVEN
from support.random_pins import FtRows, Partition, RandomPins
from support.specs import one_operator_graph

from t10.chip import ChipSpec, load_chip
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.graph import Graph
from t10.core.plan import CostedPlan
from t10.core.schedule import ModulePlan
from t10.cost import CostModel, cost_model
from t10.driver import compile
from t10.emit.lower import lowered_parts
from t10.errors import InfeasiblePlanError, UnsupportedOpError
from t10.passes.program_room import ProgramRoom
from t10.plan.fronts.canonical import canonical
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.schedule import plan_module, restore_module, sum_of_cycles
from t10.plan.search.operator import plan_operator
from t10.plan.search.space import operator_partitions
from t10.profile.steps import timed

MOST_REGRET = 0.01
SMALLER = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75)
"""Parts of a chip's cores; what is chosen on these is pinned on the whole chip."""
MOST_PINNED = 4
MANY_PART = 0.5
Pins = tuple[tuple[str, AxisSizes], ...]
"""Operators and their F_op."""


@dataclass(frozen=True, slots=True)
class Regret:
    """An operator's fastest plan beside pins: cycles as priced and as timed of it and of the fastest pin.

    `is_within` says whether the search's constraints leave that pin; `above` are pins whose bounds are above prices.
    """

    model: str
    operator: str
    kind: str
    extents: AxisSizes
    n_pins: int
    priced: int
    timed: int
    f_op: AxisSizes
    ft: FtRows
    least_price: int
    pin_priced: int
    pin_timed: int
    pin_f_op: AxisSizes = ()
    pin_ft: FtRows = ()
    is_within: bool = True
    above: tuple[tuple[Partition, tuple[int, int]], ...] = ()
    seconds: float = 0.0

    @property
    def regret(self) -> float:
        """Return how much longer the plan takes than the fastest pin."""
        return self.timed / self.pin_timed - 1 if self.pin_timed else 0.0

    @property
    def price_regret(self) -> float:
        """Return how much higher the plan's price is than the least of the pins' prices."""
        return self.priced / self.least_price - 1 if self.least_price else 0.0

    def line(self) -> str:
        """Return the row of the table."""
        off = self.timed / self.priced - 1 if self.timed else 0.0
        marks = ("" if self.is_within else " outside") + (
            f" bounds above: {len(self.above)}" if self.above else ""
        )
        return (
            f"{self.regret:+8.2%} {self.price_regret:+8.2%} {self.timed:10,} {off:+7.2%} {self.pin_timed:10,} "
            f"{self.n_pins:5} {self.seconds:6.1f} s  {self.model}: {self.operator} {self.kind} "
            f"{list(self.extents)}{marks}"
        )


NAMED = (
    ("opt-1.3b", 32, (32, 32, 64, 511), (32, 11, 1, 4)),
    ("opt-1.3b", 8, (8, 32, 64, 511), (8, 32, 1, 5)),
    ("feature-major", 1, (20480, 5120), (46, 32)),
)
"""Models, batches, extents of an operator in them, and parts of a pin that was faster than what was called optimal."""

HEADINGS = "  regret    price      timed  to price  pin timed  pins  seconds  operator"


def timed_cycles(spec: OperatorSpec, chip: ChipSpec, cost: CostModel, plan: CostedPlan) -> int | None:
    """Return what a plan takes as it is emitted and lies, arrivals at their price; None where it does not fit."""
    graph = one_operator_graph(replace(spec, name="operator"))
    try:
        module = ProgramRoom(chip, cost)(restore_module(graph, chip, cost, (plan,), (0,)))
    except (InfeasiblePlanError, UnsupportedOpError):
        return None
    if module.end_bytes > chip.data_end_bytes:
        return None
    measured = timed(lowered_parts(module, chip, cost), module, chip)
    steps = zip(module.operators[0].body, measured["operator"], strict=True)
    return plan.cycles.relayout + sum(
        cycles for statement, cycles in steps if type(statement).__name__ != "Arrive"
    )


def regret(
    spec: OperatorSpec,
    chip: ChipSpec,
    cost: CostModel,
    rng: Random,
    *,
    n_pins: int,
    n_timed: int,
    model: str,
    pinned: AxisSizes = (),
) -> Regret:
    """Return what pins of an operator come to, or the one whose parts are `pinned`."""
    start = time.perf_counter()
    hunt = RandomPins(spec, chip, cost, rng)
    front = plan_operator(spec, chip, cost, PlanOptions())
    # What is called the fastest is what fits beside its program.
    own = next(
        (
            (plan, cycles)
            for plan in reversed(front)
            if (cycles := timed_cycles(spec, chip, cost, plan)) is not None
        ),
        (front[-1], 0),
    )
    best = own[0]
    if pinned:
        pin = hunt.plan((pinned, ((1,) * len(pinned),) * len(spec.rotatable)))
        pins = [pin] if pin is not None else []
    else:
        pins = [pin for pin in hunt.near_the_best(n_pins, [best]) if pin.plan != best.plan]
    times = [
        (cycles, pin) for pin in pins[:n_timed] if (cycles := timed_cycles(spec, chip, cost, pin)) is not None
    ]
    fastest, pin = min(times, key=lambda one: one[0], default=(0, None))
    return Regret(
        model=model,
        operator=spec.name,
        kind=spec.kind,
        extents=spec.extents,
        n_pins=len(pins),
        priced=best.cycles.total,
        timed=own[1],
        f_op=best.plan.f_op,
        ft=best.plan.ft,
        least_price=min((each.cycles.total for _, each in times), default=0),
        pin_priced=pin.cycles.total if pin else 0,
        pin_timed=fastest,
        pin_f_op=pin.plan.f_op if pin else (),
        pin_ft=pin.plan.ft if pin else (),
        is_within=pin is None or hunt.is_within_constraints(pin),
        above=tuple(hunt.above.items()),
        seconds=time.perf_counter() - start,
    )


@dataclass(frozen=True, slots=True)
class WholeRegret:
    """A model's cycles, and the fewest with pins, of which `pins` are the partitions."""

    model: str
    cycles: int
    bound_cycles: int
    n_pinned: int
    pinned_cycles: int
    pins: tuple[tuple[str, AxisSizes], ...]

    @property
    def regret(self) -> float:
        """Return how much longer the plan takes than the fastest with pins."""
        return self.cycles / self.pinned_cycles - 1 if self.n_pinned else 0.0

    def line(self) -> str:
        """Return the row of the table."""
        pins = ", ".join(f"{name} {list(f_op)}" for name, f_op in self.pins)
        return (
            f"{self.regret:+8.2%} {self.cycles:12,} (bound {self.bound_cycles:,}) {self.pinned_cycles:12,} "
            f"{self.n_pinned:4}  {self.model}: {pins}"
        )


def whole_regret(model: str, graph: Graph, chip: ChipSpec, rng: Random, n_pins: int) -> WholeRegret:
    """Return what pins of a model come to: plans of smaller chips, then random partitions of some operators."""

    def planned(chip: ChipSpec, pins: Pins) -> ModulePlan:
        forced = tuple(ForcedPartition(name, f_op) for name, f_op in pins)
        return plan_module(graph, chip, PlanOptions(forced=forced))

    free = planned(chip, ())
    assert free.optimality is not None
    found: list[tuple[int, Pins]] = []
    for number in range(n_pins):
        try:
            if number < len(SMALLER):
                smaller = chip.model_copy(update={"n_cores": max(int(chip.n_cores * SMALLER[number]), 1)})
                pins = tuple((each.name, each.active.plan.f_op) for each in planned(smaller, ()).operators)
            else:
                some = rng.sample(graph.operators, rng.randint(1, min(len(graph.operators), MOST_PINNED)))
                pins = tuple((spec.name, random_partition(spec, chip, rng)) for spec in some)
            found.append((sum_of_cycles(planned(chip, pins)), pins))
        except InfeasiblePlanError:
            continue
    least, pins = min(found, default=(0, ()))
    return WholeRegret(model, sum_of_cycles(free), free.optimality.bound_cycles, len(found), least, pins)


def random_partition(spec: OperatorSpec, chip: ChipSpec, rng: Random) -> AxisSizes:
    """Return an F_op: of all there are, or of those on most cores."""
    rows = operator_partitions(spec, chip.n_cores, parallelism=0.0, padding=0.0)
    cores = rows.prod(axis=1)
    of = rows if rng.random() < MANY_PART else rows[cores * 2 >= cores.max()]
    return tuple(of[rng.randrange(len(of))].tolist())


def whole_models(arguments: argparse.Namespace, chip: ChipSpec) -> Iterator[tuple[str, Graph]]:
    """Yield the models that are asked for."""
    for path in arguments.files:
        yield path.stem, compile(path, chip, program=False).plan.graph
    for name in () if arguments.files else arguments.models.split(","):
        for batch in map(int, arguments.batches.split(",")):
            yield f"{name} batch {batch}", graph_of(MODELS[name].build(batch))


def compare_whole(arguments: argparse.Namespace, chip: ChipSpec) -> int:
    """Print the regret of whole models and return the exit status."""
    print("  regret       cycles                 with pins  pins  model: fastest pins", flush=True)
    worst = 0.0
    for model, graph in whole_models(arguments, chip):
        one = whole_regret(model, graph, chip, Random(f"{arguments.seed} {model}"), arguments.pins)
        worst = max(worst, one.regret)
        print(one.line(), flush=True)
    return 1 if worst > MOST_REGRET else 0


def operators(arguments: argparse.Namespace, chip: ChipSpec) -> dict[OperatorSpec, tuple[str, OperatorSpec]]:
    """Return the distinct operators of what is asked for, each with the model that it was found in first."""
    found: dict[OperatorSpec, tuple[str, OperatorSpec]] = {}
    for path in arguments.files:
        for spec in compile(path, chip, program=False).plan.graph.operators:
            found.setdefault(canonical(spec), (path.stem, spec))
    names = () if arguments.files else arguments.models.split(",")
    for name in names:
        for batch in map(int, arguments.batches.split(",")):
            for spec in graph_of(MODELS[name].build(batch)).operators:
                found.setdefault(canonical(spec), (f"{name} batch {batch}", spec))
    return found


def named_operators() -> Iterator[tuple[str, OperatorSpec, AxisSizes]]:
    """Yield the models, operators and parts of the pins that once won."""
    for name, batch, extents, f_op in NAMED:
        if name not in MODELS:
            yield name, feature_major(), f_op
            continue
        specs = graph_of(MODELS[name].build(batch)).operators
        spec = next(each for each in specs if each.extents == extents)
        yield f"{name} batch {batch}", spec, f_op


def feature_major() -> OperatorSpec:
    """Return W[20480, 5120] @ x[5120, 1], f16."""
    builder = Builder("feature-major", "float16", weight_free=True)
    x = builder.input("x", 5120, 1)
    builder.output("y", builder.op("MatMul", builder.weight("w", 20480, 5120), x), 20480, 1)
    return graph_of(builder).operators[0]


def known(path: Path | None) -> list[Regret]:
    """Return what an earlier run found."""
    if path is None or not path.exists():
        return []
    reader = TypeAdapter(Regret)
    return [reader.validate_json(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> int:
    arguments = _arguments()
    chip = load_chip(arguments.chip)
    if arguments.whole:
        return compare_whole(arguments, chip)
    cost = cost_model("ipu", chip)
    results = known(arguments.results)
    done = {(each.model, each.operator) for each in results}
    found = (
        list(named_operators())
        if arguments.named
        else [(model, spec, ()) for model, spec in operators(arguments, chip).values()]
    )
    todo = [each for each in found if (each[0], each[1].name) not in done]
    print(f"{len(todo)} operators to do, {len(results)} known\n{HEADINGS}", flush=True)
    for model, spec, pinned in todo:
        rng = Random(f"{arguments.seed} {canonical(spec)}")
        one = regret(
            spec,
            chip,
            cost,
            rng,
            n_pins=arguments.pins,
            n_timed=arguments.timed,
            model=model,
            pinned=pinned,
        )
        results.append(one)
        print(one.line(), flush=True)
        if arguments.results:
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(one)) + "\n")
    return report(results)


def report(results: list[Regret]) -> int:
    """Print the operators that pins beat, the worst if none is, and bounds above prices; return the exit status."""
    beaten = [each for each in results if each.regret > MOST_REGRET]
    print(f"{len(results)} operators, {len(beaten)} beaten by more than {MOST_REGRET:.0%}")
    for each in sorted(results, key=lambda each: -each.regret)[: max(len(beaten), 1)]:
        print(
            f"{each.line()}\n    f_op {each.f_op} ft {each.ft}, priced {each.priced:,}; "
            f"pin f_op {each.pin_f_op} ft {each.pin_ft}, priced {each.pin_priced:,}"
        )
    wrong = [(each, *above) for each in results for above in each.above]
    for each, (f_op, ft), (bound, price) in wrong:
        print(
            f"{each.model}: {each.operator} {each.kind} {list(each.extents)}: "
            f"bound {bound:,} is above price {price:,} of f_op {f_op} ft {ft}"
        )
    return 1 if beaten or wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--models",
        default=",".join(model.name for model in SEVEN),
        help=f"comma-separated, of {', '.join(MODELS)} (default: the seven architectures)",
    )
    parser.add_argument("--batches", default="1,8", help="comma-separated (default: %(default)s)")
    parser.add_argument("--files", type=Path, nargs="+", default=[], metavar="MODEL", help="instead of those")
    parser.add_argument("--named", action="store_true", help="instead of those: pins that once won")
    parser.add_argument("--whole", action="store_true", help="compare whole models, not single operators")
    parser.add_argument("--chip", default="ipu-mk2", help="default: %(default)s")
    parser.add_argument("--pins", type=int, default=300, help="per operator (default: %(default)s)")
    parser.add_argument(
        "--timed", type=int, default=20, help="of them, the best by price (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--results", type=Path, help="JSON lines, one per operator; those in it are not done again"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
