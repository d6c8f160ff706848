"""How partial sums that lie on several cores become results: exchanges into the shift buffer and additions."""

from __future__ import annotations

from dataclasses import replace

from t10.core.device import Pattern, Step
from t10.core.dtypes import size_bytes
from t10.core.partial_sums import round_nest
from t10.core.program import ReduceMode
from t10.core.reduction import Round, all_rounds, groups, scatter_rounds
from t10.core.vertex_nest import renamed
from t10.cost import CostModel
from t10.cost.operator import combine_cycles, fused_saving, output_chunk
from t10.emit.builder import Builder
from t10.emit.lowering_context import OperatorContext
from t10.emit.patterns import moved
from t10.errors import T10Error


def combine_partials(
    builder: Builder, cost: CostModel, context: OperatorContext, mode: ReduceMode
) -> tuple[list[Step], Round | None]:
    """Return how the partial sums of several cores are combined, and the round whose parts the epilogue adds."""
    spec, plan = context.spec, context.plan
    n_members, _ = output_chunk(spec, plan)
    if n_members == 1 or spec.combine == "none":
        raise T10Error(
            "a reduction where no two cores hold partial results of one element", operator=spec.name
        )
    item_bytes = size_bytes(spec.acc_dtype)
    buffer = builder.shift_buffer(spec.acc_dtype)
    n_buffer = builder.variables[buffer].shape[0]
    make = all_rounds if mode == "all" else scatter_rounds

    def rounds() -> list[tuple[Pattern, Round]]:
        made = make(
            groups(spec, plan, context.output_positions), context.n_output_slots, n_buffer, item_bytes
        )
        return [(moved(one.moves, item_bytes), one) for one in made]

    kind = builder.kind_of(spec)
    charged = replace(plan, reduce=mode)
    cycles = combine_cycles(cost, spec, charged)
    is_fused = fused_saving(cost, spec, charged) > 0
    steps: list[Step] = []
    one: Round | None = None
    key = ("reduce", kind, plan, mode, context.output_positions, n_buffer)
    every = builder.once(key, rounds)
    for number, (made, one) in enumerate(every):
        note = f"partial results of {n_members} cores"
        steps.append(
            builder.exchange(
                spec.name, "reduce", "", (context.accumulator,), buffer, made, 0 if number else cycles, note
            )
        )
        if number < len(every) - 1 or not is_fused:
            # Its cycles are counted with the reduction's, as the cost model does.
            steps.append(_combine(builder, context, one, buffer))
    return steps, one if is_fused else None


def _combine(builder: Builder, context: OperatorContext, one: Round, buffer: str) -> Step:
    """Return the execution that combines what arrived with the accumulators."""
    spec = context.spec
    ((nest, work),) = renamed([round_nest(spec.acc_dtype, spec.combine, one)], (buffer, context.accumulator))
    return builder.execute(spec.name, "combine", nest, work, 0)
