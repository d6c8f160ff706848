"""What might make a model fit that does not, and what each would do: the least memory it would then take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from t10.chip import ChipSpec, bundled_chips, load_chip
from t10.chip.spec import MAX_CORES
from t10.core.expression import Operand, OperatorSpec
from t10.core.graph import Graph, TensorValue, View
from t10.core.plan import CostedPlan
from t10.core.products import SUMS_BYTES, hands_on_rounded
from t10.core.scalar import identity
from t10.cost import CostModel
from t10.errors import InfeasiblePlanError, VerifyError
from t10.plan.fit.model_bound import ModelBound, least_plans, model_bound
from t10.plan.memory.allocation import aligned_size
from t10.plan.options import PlanOptions
from t10.plan.search.operator import least_plan

SMALL_SHIFT_BUFFER_BYTES = 1024
MORE_CORES = (2, 4)
LEAST_BATCH = 1
MOST_CHIPS = 3
OF_TESTS = "test-"
"""How the names of bundled chips begin that are for tests."""
NOTABLE = 0.99
"""A model that has a few wide floats does not shrink noticeably without them."""
WIDE_FLOATS = ("f32", "f64")


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change, what it is called, and the bytes of a core that are then needed and there."""

    change: str
    need_bytes: int
    capacity_bytes: int

    @property
    def fits(self) -> bool:
        """Return whether the model fits after the change."""
        return self.need_bytes <= self.capacity_bytes


@dataclass(frozen=True, slots=True)
class Case:
    """A model that does not fit: what it was planned with, its smallest plans, and what those need."""

    graph: Graph
    chip: ChipSpec
    cost: CostModel
    options: PlanOptions
    plans: tuple[CostedPlan, ...]
    bound: ModelBound


def remedies(case: Case) -> Iterator[Remedy]:
    """Yield the changes that apply, the least intrusive first; each is computed when it is asked for."""
    for tried in (_unconstrained, _small_buffer, _narrow, _smaller_batch, _more_cores, _other_chips):
        try:
            yield from tried(case)
        except InfeasiblePlanError:
            continue  # what it asks for cannot be planned at all


def _unconstrained(case: Case) -> Iterator[Remedy]:
    """The fullest operator on the smallest of all plans, whatever part of the cores it uses."""
    spec = case.graph.operators[case.bound.step]
    if case.options.exhaustive or case.options.forced_for(spec.name) is not None:
        return
    free = replace(case.options, exhaustive=True, forced=())
    plans = [*case.plans]
    plans[case.bound.step] = least_plan(spec, case.chip, case.cost, free)
    need = model_bound(case.graph, case.chip, case.cost, plans).n_bytes
    yield Remedy("search without constraints (--exhaustive)", need, case.chip.sram_bytes)


def _small_buffer(case: Case) -> Iterator[Remedy]:
    # Sums may need room in it.
    least = SUMS_BYTES if any(map(hands_on_rounded, case.graph.operators)) else SMALL_SHIFT_BUFFER_BYTES
    saved = case.chip.shift_buffer_bytes - least
    if saved > 0:
        change = f"a shift buffer of {least:,} instead of {case.chip.shift_buffer_bytes:,} bytes"
        yield Remedy(change, case.bound.n_bytes - saved, case.chip.sram_bytes)


def _narrow(case: Case) -> Iterator[Remedy]:
    """All floats of 16 bits; sums are kept as they are."""
    graph = narrowed(case.graph)
    need = case.bound.n_bytes if graph == case.graph else _least(case, graph, case.chip)
    if need < NOTABLE * case.bound.n_bytes:
        yield Remedy("fp16 instead of wider floats", need, case.chip.sram_bytes)


def _smaller_batch(case: Case) -> Iterator[Remedy]:
    """The largest batch, of halvings, for which what grows with it would fit: an estimate."""
    batch = batch_of(case.graph)
    if batch is None:
        return
    scaling = activation_bytes(case.graph, case.bound)
    fixed = case.bound.n_bytes - scaling
    smaller = batch
    while smaller > LEAST_BATCH:
        smaller = -(-smaller // 2)
        need = fixed + -(-scaling * smaller // batch)
        if need <= case.chip.sram_bytes:
            break
    yield Remedy(
        f"a batch of {smaller} instead of {batch} (estimated)",
        fixed + -(-scaling * smaller // batch),
        case.chip.sram_bytes,
    )


def _more_cores(case: Case) -> Iterator[Remedy]:
    for factor in MORE_CORES:
        n_cores = factor * case.chip.n_cores
        if n_cores <= MAX_CORES:
            chip = case.chip.model_copy(update={"n_cores": n_cores})
            remedy = Remedy(
                f"{factor} x the cores ({n_cores:,})", _least(case, case.graph, chip), chip.sram_bytes
            )
            yield remedy
            if remedy.fits:
                return


def _other_chips(case: Case) -> Iterator[Remedy]:
    """The smallest bundled chips on which the model fits, or the largest chips if it fits on none.

    Chips for tests are no remedy, except for another of them.
    """
    own = _total_bytes(case.chip)
    known = [load_chip(name) for name in bundled_chips()]
    if not case.chip.name.startswith(OF_TESTS):
        known = [chip for chip in known if not chip.name.startswith(OF_TESTS)]
    larger = [chip for chip in known if chip.name != case.chip.name and _total_bytes(chip) > own]
    fitting: list[Remedy] = []
    others: list[Remedy] = []
    for chip in sorted(larger, key=lambda chip: (_total_bytes(chip), chip.name)):
        # What is pinned for one chip may be no plan of another.
        with suppress(VerifyError, InfeasiblePlanError):
            remedy = Remedy(f"--chip {chip.name}", _least(case, case.graph, chip), chip.sram_bytes)
            (fitting if remedy.fits else others).append(remedy)
        if len(fitting) == MOST_CHIPS:
            break
    yield from fitting or others[-MOST_CHIPS:]


def _total_bytes(chip: ChipSpec) -> int:
    return chip.n_cores * chip.capacity_bytes


def _least(case: Case, graph: Graph, chip: ChipSpec) -> int:
    """Return the least bytes of a core that another graph or chip comes to."""
    plans = least_plans(graph, chip, case.cost, case.options)
    return model_bound(graph, chip, case.cost, plans).n_bytes


def narrowed(graph: Graph) -> Graph:
    """Return a graph with floats of 16 bits for wider ones, good for counting bytes: scalar functions stay."""

    def dtype(old: str) -> str:
        return "f16" if old in WIDE_FLOATS else old

    def operand(old: Operand) -> Operand:
        return replace(old, dtype=dtype(old.dtype))

    def operator(old: OperatorSpec) -> OperatorSpec:
        is_sum = old.epilogue is not None or old.combine == "sum"
        return replace(
            old,
            inputs=tuple(map(operand, old.inputs)),
            epilogue_inputs=tuple(map(operand, old.epilogue_inputs)),
            output=operand(old.output),
            acc_dtype=old.acc_dtype if is_sum else dtype(old.acc_dtype),
            epilogue=old.epilogue
            or (identity() if is_sum and dtype(old.acc_dtype) != old.acc_dtype else None),
        )

    def tensors(old: tuple[TensorValue, ...]) -> tuple[TensorValue, ...]:
        return tuple(replace(value, dtype=dtype(value.dtype)) for value in old)

    def view(old: View) -> View:
        return replace(old, dtype=dtype(old.dtype))

    return replace(
        graph,
        inputs=tensors(graph.inputs),
        weights=tensors(graph.weights),
        operators=tuple(map(operator, graph.operators)),
        views=tuple(map(view, graph.views)),
    )


def batch_of(graph: Graph) -> int | None:
    """Return the extent that is clearly a batch: the first of every input, it divides the first of every output."""
    firsts = {value.shape[0] if value.shape else 1 for value in graph.signature[0]}
    if len(firsts) != 1 or (batch := firsts.pop()) == 1:
        return None
    outputs = [value.shape for value in graph.signature[1]]
    return batch if all(shape and shape[0] % batch == 0 for shape in outputs) else None


def activation_bytes(graph: Graph, bound: ModelBound) -> int:
    """Return the bytes held that grow with what is computed at a time: all but weights and the shift buffer."""
    spec = graph.operators[bound.step]
    weights = {
        f"operand:{spec.name}:{i}" for i, operand in enumerate(spec.operands) if operand.role == "weight"
    }
    return sum(
        aligned_size(request.size_bytes)
        for request in bound.held
        if request.name != "shift" and not request.name.startswith("idle:") and request.name not in weights
    )
