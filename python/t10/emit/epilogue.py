"""What follows the accumulation: the epilogue on the output elements each core owns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from t10.core.epilogue_nest import epilogue_work as nests
from t10.core.fused_ends import fused, names_of
from t10.core.vertex_nest import VertexNest, Work, renamed
from t10.cost import CostModel
from t10.cost.operator import epilogue_cycles
from t10.emit.builder import Builder
from t10.emit.lowering_context import OperatorContext


def epilogue_work(
    builder: Builder, cost: CostModel, context: OperatorContext
) -> Iterator[tuple[VertexNest, Work, int]]:
    """Yield the nests of an operator's epilogue (a copy where it has none), what cores do in them, and cycles.

    None where accumulators are results: of a bias that sums begin with nothing may be left.
    """
    spec, plan = context.run, context.plan
    if spec.epilogue is None and context.accumulator == context.result:
        return
    reduced = "scatter" if context.is_scattered else "none" if plan.reduce == "none" else "all"
    charged = replace(plan, reduce=reduced)
    positions, is_scattered, pending = context.output_positions, context.is_scattered, context.pending
    key = ("epilogue", builder.kind_of(spec), charged, positions, pending is None)

    def make() -> tuple[tuple[VertexNest, Work], ...]:
        alone = nests(spec, plan, positions, is_scattered=is_scattered)
        return tuple(alone if pending is None else fused(spec, alone, pending))

    made = builder.once(key, make)
    cycles = epilogue_cycles(cost, spec, charged)
    names = (context.accumulator, *context.epilogue_inputs, context.result)
    if pending is not None:
        names = (builder.shift_buffer(spec.acc_dtype), *names)
    for number, (nest, work) in enumerate(made):
        own = names if pending is None else names_of(nest, names)
        yield *next(iter(renamed([(nest, work)], own))), 0 if number else cycles
