"""The graph of a whole model, from those of its stages and what their values are called in the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from t10.core.expression import Operand
from t10.core.graph import Graph, GraphOutput, View
from t10.core.schedule import ModulePlan
from t10.core.staged import Stage
from t10.errors import VerifyError


def joined(stages: Sequence[Stage], plans: Sequence[ModulePlan]) -> Graph:
    """Return the graph that stages make up; outputs stand in the order in which stages make them.

    Raises `VerifyError` where a stage's names are not as many as its plan has, and for hand-overs that nobody takes.
    """
    parts = [_named(number, stage, plans[stage.plan].graph) for number, stage in enumerate(stages)]
    for number, stage in enumerate(stages):
        sent = tuple(each.value for each in stage.sends)
        following = stages[number + 1].inputs if number + 1 < len(stages) else ()
        if stage.outputs[len(stage.outputs) - len(sent) :] != sent or not set(sent) <= set(following):
            raise VerifyError(f"stage {number} sends {', '.join(sent)}, which is not what the next one takes")
    handed = {each.value for stage in stages for each in stage.sends}
    inputs = {value.name: value for part in parts for value in part.inputs if value.name not in handed}
    weights = {value.name: value for part in parts for value in part.weights}
    # What a later stage needs again passes a stage as its input and as its output.
    outputs = [
        output
        for stage, part in zip(stages, parts, strict=True)
        for output in part.outputs[: len(part.outputs) - len(stage.sends)]
    ]
    return Graph(
        name=plans[stages[0].plan].graph.name,
        inputs=tuple(inputs.values()),
        weights=tuple(weights.values()),
        operators=tuple(spec for part in parts for spec in part.operators),
        views=tuple(view for part in parts for view in part.views),
        outputs=tuple(outputs),
    )


def _named(number: int, stage: Stage, graph: Graph) -> Graph:
    """Return a stage's graph with the names of the model; views, which have none there, are called by the stage."""
    counts = [
        (graph.inputs, stage.inputs),
        (graph.weights, stage.weights),
        (graph.operators, stage.operators),
    ]
    if any(len(own) != len(names) for own, names in (*counts, (graph.outputs, stage.outputs))):
        raise VerifyError(f"stage {number} names other values than its plan has")
    names = {value.name: name for own, given in counts[:2] for value, name in zip(own, given, strict=True)}
    names |= {view.name: f"stage {number}: {view.name}" for view in graph.views}
    n_own = len(graph.outputs) - len(stage.sends)
    results = dict(
        zip((output.value for output in graph.outputs[n_own:]), stage.outputs[n_own:], strict=True)
    )
    for spec, name in zip(graph.operators, stage.operators, strict=True):
        names[spec.output.name] = results.get(spec.output.name, f"{name}:0")

    def operand(each: Operand) -> Operand:
        return replace(each, name=names[each.name])

    def view(each: View) -> View:
        return replace(each, name=names[each.name], sources=tuple(names[source] for source in each.sources))

    return Graph(
        name=graph.name,
        inputs=tuple(replace(value, name=names[value.name]) for value in graph.inputs),
        weights=tuple(replace(value, name=names[value.name]) for value in graph.weights),
        operators=tuple(
            replace(
                spec,
                name=name,
                inputs=tuple(map(operand, spec.inputs)),
                epilogue_inputs=tuple(map(operand, spec.epilogue_inputs)),
                output=operand(spec.output),
                first=spec.first and operand(spec.first),
            )
            for spec, name in zip(graph.operators, stage.operators, strict=True)
        ),
        views=tuple(map(view, graph.views)),
        outputs=tuple(
            GraphOutput(name, names[output.value], output.declared)
            for output, name in zip(graph.outputs, stage.outputs, strict=True)
        ),
    )
