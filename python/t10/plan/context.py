"""What every step of the schedule needs to know of a model: who decides where its weights and inputs lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.graph import Graph
from t10.cost import CostModel
from t10.plan.memory.input_readers import InputReader, readers_by_input
from t10.plan.memory.liveness import Liveness, liveness, reshapes_of, unshaped
from t10.plan.movement.arrivals import Mover
from t10.plan.options import ForcedPartition

FEW_OPERATORS, SMALL_BYTES = 64, 1 << 16
"""In models of more operators, smaller weights that several operators read stay spread out, to save time."""


@dataclass(frozen=True, slots=True)
class Context:
    """What every step of the schedule needs.

    `owned` are the operands per operator that are weights whose rest it decides: those it alone reads, and those of
    `shared_weights` that it is the first to read. `reader_by_input` is, per input of the model, what decides where it
    lies, if anything. `level_by_operator` are idle levels that are given: the user's, and of operators that decide
    where a shared weight rests (see `with_shared`).
    """

    graph: Graph
    chip: ChipSpec
    cost: CostModel
    lives: Liveness
    owned: tuple[tuple[int, ...], ...]
    weight_by_owner: Mapping[tuple[int, int], str]
    reader_by_input: Mapping[str, InputReader]
    reshapes: Mapping[str, str]
    mover: Mover
    level_by_operator: Mapping[str, int]
    shared_weights: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    def readings(self, *, of_inputs: bool) -> dict[tuple[int, int], tuple[int, int]]:
        """Return the operand whose layout decides where a weight rests, by each other operand that reads it there.

        If asked for those of inputs, also the operand whose layout decides where an input lies.
        """
        deciding = dict(self.resting)
        if of_inputs:
            readers = self.reader_by_input.items()
            deciding |= {value: (each.step, each.number) for value, each in readers if each.is_plain}
        return {
            (step, number): deciding[value]
            for step, spec in enumerate(self.graph.operators)
            for number, operand in enumerate(spec.operands)
            if (value := unshaped(operand.name, self.reshapes)) in deciding
            and deciding[value] != (step, number)
        }

    def lies_as_read(self, value: str, step: int, number: int) -> bool:
        """Return whether an input lies as this operand, which reads it directly, is read, but for replicas."""
        reader = self.reader_by_input.get(value)
        return reader is not None and reader.is_plain and (reader.step, reader.number) == (step, number)

    @property
    def resting(self) -> dict[str, tuple[int, int]]:
        """Return the shared weights that rest as their first reader has them: other readers may use them there."""
        names = [spec.name for spec in self.graph.operators]
        return {w: at for w, at in self.shared_weights.items() if self.level_by_operator.get(names[at[0]], 0)}

    def with_shared(self, level: int, forced: Sequence[ForcedPartition]) -> Context:
        """Return the context in which shared weights are spread out (0), or whole where their first reader runs (1).

        What the user pins goes before.
        """
        names = [self.graph.operators[step].name for step, _ in self.shared_weights.values()]
        return replace(self, level_by_operator=dict.fromkeys(names, level) | _pinned_levels(forced))


def _pinned_levels(forced: Sequence[ForcedPartition]) -> dict[str, int]:
    return {each.operator: each.idle_level for each in forced if each.idle_level is not None}


def context_of(
    graph: Graph, chip: ChipSpec, cost: CostModel, forced: Sequence[ForcedPartition] = ()
) -> Context:
    """Return what every step of the schedule needs; `forced` may pin idle levels.

    Shared weights are spread out unless a pin says otherwise.
    """
    lives = liveness(graph)
    least_bytes = SMALL_BYTES if len(graph.operators) > FEW_OPERATORS else 0
    large = {w.name for w in graph.weights if prod(w.shape) * size_bytes(w.dtype) >= least_bytes}
    shared = {weight: first for weight, first in lives.first_by_shared.items() if weight in large}
    owned: list[list[int]] = [[] for _ in graph.operators]
    owners = {owner: weight for weight, owner in (lives.owner_by_weight | shared).items()}
    for step, number in owners:
        owned[step].append(number)
    context = Context(
        graph=graph,
        chip=chip,
        cost=cost,
        lives=lives,
        owned=tuple(tuple(sorted(numbers)) for numbers in owned),
        weight_by_owner=owners,
        reader_by_input=readers_by_input(graph),
        reshapes=reshapes_of(graph),
        mover=Mover(graph, cost, chip.n_cores),
        level_by_operator={},
        shared_weights=shared,
    )
    return context.with_shared(0, forced)
