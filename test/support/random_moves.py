"""Random arrivals: an operand under a random plan, read through random views from values in random layouts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from random import Random

import numpy as np
from numpy.typing import NDArray

from support import random_plans, random_specs
from support.routes import route, traffic
from t10.core import movement
from t10.core.chunks import window_chunk
from t10.core.dtypes import size_bytes
from t10.core.expression import AffineDim, Axis, Operand, OperatorSpec, Term
from t10.core.graph import Graph, GraphOutput, TensorValue, View, ViewKind
from t10.core.laid_out import LayoutOperators
from t10.core.loads import MoveRates
from t10.core.movement import ElementMap, Pricing, Traffic
from t10.core.plan import OperatorPlan
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.schedule import ValueLayout

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Arriving:
    """Operand `number` of `spec` under `plan`, its sources in `layouts`."""

    graph: Graph
    spec: OperatorSpec
    plan: OperatorPlan
    number: int
    layouts: dict[str, ValueLayout]


@dataclass(slots=True)
class _Parts:
    """What a graph is made of while it grows backwards from the operand."""

    inputs: list[TensorValue] = field(default_factory=list[TensorValue])
    operators: list[OperatorSpec] = field(default_factory=list[OperatorSpec])
    views: list[View] = field(default_factory=list[View])
    layouts: dict[str, ValueLayout] = field(default_factory=dict[str, ValueLayout])
    n_names: int = 0

    def name(self, kind: str) -> str:
        self.n_names += 1
        return f"{kind}{self.n_names}"


@lru_cache(maxsize=1024)
def random_arriving(seed: int, largest: int = 300) -> Arriving:
    """Return the arrival that a seed names; its operator has at most so many points."""
    rng = Random(seed)
    n_cores = rng.choice([1, 2, 4, 6, 8, 12, 24])
    spec = random_specs.random_operator(rng, "last", largest=largest)
    plan = random_plans.random_plan(rng, spec, n_cores)
    return _arriving(rng, spec, plan, rng.randrange(len(spec.operands)), n_cores)


def random_arriving_beside(seed: int) -> Arriving:
    """Return the arrival of an epilogue's input that has an element for every one of the result's, in some order."""
    rng = Random(seed)
    n_cores = rng.choice([4, 6, 8, 12, 24])
    spec = _with_beside(rng)
    plan = random_plans.random_plan(rng, spec, n_cores)
    while plan.reduce != "scatter":
        spec = _with_beside(rng)
        plan = random_plans.random_plan(rng, spec, n_cores)
    return _arriving(rng, spec, plan, len(spec.inputs), n_cores)


def _with_beside(rng: Random) -> OperatorSpec:
    """Return an operator that adds a value to its sums."""
    spec = random_specs.random_operator(rng, "last")
    dims = rng.sample(spec.output.dims, len(spec.output.dims))
    if rng.random() < 0.3:
        dims.insert(rng.randrange(len(dims) + 1), AffineDim(()))
    shape = tuple(spec.axes[dim.axes[0]].extent if dim.terms else 1 for dim in dims)
    beside = Operand("beside", "activation", spec.acc_dtype, shape, tuple(dims))
    added = ScalarFunction(2, (ScalarOp("arith.addf", (0, 1), spec.acc_dtype),), 2)
    output = replace(spec.output, dtype=spec.acc_dtype)
    return replace(spec, epilogue=added, epilogue_inputs=(beside,), output=output)


def _arriving(rng: Random, spec: OperatorSpec, plan: OperatorPlan, number: int, n_cores: int) -> Arriving:
    """Return the arrival of an operand from values that lie at random."""
    parts = _Parts()
    wanted = spec.operands[number]
    others = [o for i, o in enumerate(spec.operands) if i != number]
    parts.inputs += [TensorValue(o.name, o.shape, o.dtype) for o in others]
    if rng.random() < 0.3:
        parts.inputs.append(TensorValue(wanted.name, wanted.shape, wanted.dtype))
        parts.layouts[wanted.name] = _own_layout(rng, spec, plan, number, n_cores)
    else:
        name = _value(rng, parts, wanted.shape, wanted.dtype, n_cores, depth=rng.choice([0, 1, 1, 2, 3]))
        spec = _renamed(spec, number, name)
    graph = Graph(
        "moves",
        tuple(parts.inputs),
        (),
        (*parts.operators, spec),
        tuple(parts.views),
        (GraphOutput("result", spec.output.name),),
    )
    return Arriving(graph, spec, plan, number, parts.layouts)


def element_maps(case: Arriving) -> tuple[ElementMap, list[tuple[ElementMap, int]]]:
    """Return what the operand's slots want, and where its sources lie with their numbers of elements."""
    elements = movement.operand_elements(case.spec, case.plan, case.number)
    wanted = ElementMap(elements.reshape(case.plan.n_cores, -1), np.zeros(case.plan.n_cores, np.int64))
    makers = LayoutOperators(case.graph)
    homes: list[tuple[ElementMap, int]] = []
    for source in case.graph.sources_of(case.spec.operands[case.number].name):
        layout, n_elements = case.layouts[source], prod(case.graph.shape_by_value[source])
        homes.append((movement.layout_map(makers.of(layout), layout, n_elements), n_elements))
    return wanted, homes


def arriving_point_by_point(spec: OperatorSpec, plan: OperatorPlan, number: int) -> NDArray[np.int32]:
    """Return the element that every slot of an operand takes, (cores, slots), -1 for none.

    Of an epilogue input that is as large as the result, a core that ends with one chunk of the result takes the
    elements at that chunk's points. All else is taken whole.
    """
    operand, result = spec.operands[number], len(spec.operands)
    elements = movement.operand_elements(spec, plan, number).reshape(plan.n_cores, -1)
    is_epilogue = number >= len(spec.inputs)
    rotates = any(t > 1 for t in plan.ft[-1])
    if not is_epilogue or plan.reduce != "scatter" or rotates or movement.is_padded(spec, operand, plan):
        return elements
    if sorted(operand.axes) != sorted(spec.output.axes) and prod(operand.shape) != prod(spec.output.shape):
        return elements
    if any(not dim.is_simple for dim in operand.dims if dim.terms):
        return elements
    own = movement.operand_elements(spec, plan, result).reshape(plan.n_cores, -1)
    taken = np.full_like(elements, -1)
    seen: dict[bytes, int] = {}
    n_members = random_plans.n_sharing(spec, plan)
    chunk = window_chunk(own.shape[1], n_members)
    for core in range(plan.n_cores):
        rank = seen.get(own[core].tobytes(), 0)
        seen[own[core].tobytes()] = rank + 1
        for element in own[core][rank * chunk : (rank + 1) * chunk]:
            if element < 0:
                continue
            where = [int(i) for i in np.unravel_index(int(element), spec.output.shape)]
            point = dict(zip([d.axes for d in spec.output.dims], where, strict=True))
            index = tuple(point.get(dim.axes, 0) for dim in operand.dims)
            wanted = int(np.ravel_multi_index(index, operand.shape)) if operand.shape else 0
            slots = np.flatnonzero(elements[core] == wanted)
            taken[core, slots] = wanted
    return taken


def reference_traffic(case: Arriving, rates: MoveRates) -> Traffic | None:
    """Return what moves, counted slot by slot; None where a copy of a source lacks an element."""
    operand = case.spec.operands[case.number]
    through = movement.view_elements(case.graph, operand.name)
    numbers = movement.constant_numbers(through.constants, operand.pad_value, operand.dtype)
    is_padded = movement.is_padded(case.spec, operand, case.plan)
    pricing = Pricing(rates, size_bytes(operand.dtype), is_padded, constants=numbers)
    whole, homes = element_maps(case)
    wanted = replace(whole, elements=arriving_point_by_point(case.spec, case.plan, case.number))
    moves = route(wanted, through, homes)
    if ((moves.source >= 0) & (moves.core < 0)).any():
        return None
    found = traffic(moves, homes, pricing)
    if (wanted.elements == whole.elements).all() or is_padded:
        return found
    # What a core does not take it does not copy either.
    n_slots, n_members = whole.elements.shape[1], random_plans.n_sharing(case.spec, case.plan)
    left_out = n_slots - min(window_chunk(n_slots, n_members), n_slots)
    return replace(found, copied_elements=found.copied_elements - left_out)


def _own_layout(
    rng: Random, spec: OperatorSpec, plan: OperatorPlan, number: int, n_cores: int
) -> ValueLayout:
    """Return how an operand rests under its own plan: whole, cut over its replicas, or spread evenly."""
    operand = spec.operands[number]
    if rng.random() < 0.2:
        return ValueLayout("linear", operand.name, rng.randint(1, n_cores), operand.dtype)
    scatter = rng.choice([1, 1, 2, 3, 4, 6])
    return ValueLayout("operand", operand.name, plan.n_cores, operand.dtype, spec.name, number, plan, scatter)


def _renamed(spec: OperatorSpec, number: int, name: str) -> OperatorSpec:
    """Return the operator with another value as operand `number`."""
    operands = [replace(o, name=name) if i == number else o for i, o in enumerate(spec.operands)]
    n_inputs = len(spec.inputs)
    return replace(spec, inputs=tuple(operands[:n_inputs]), epilogue_inputs=tuple(operands[n_inputs:]))


def _value(rng: Random, parts: _Parts, shape: Shape, dtype: str, n_cores: int, depth: int) -> str:
    """Return the name of a new value: a view, or one that lies somewhere."""
    if depth == 0 or not shape:
        return _lying(rng, parts, shape, dtype, n_cores)
    kinds: tuple[ViewKind, ...] = ("reshape", "transpose", "slice", "concat", "pad", "broadcast")
    kind = rng.choice(kinds)
    sources: list[Shape] = [shape]
    view = View("", kind, (), shape, dtype)
    axis = rng.randrange(len(shape))
    if kind == "reshape":
        order = rng.choice([(prod(shape),), tuple(reversed(shape)), (1, *shape)])
        sources = [order]
    elif kind == "transpose":
        permutation = tuple(rng.sample(range(len(shape)), len(shape)))
        turned = [0] * len(shape)
        for i, p in enumerate(permutation):
            turned[p] = shape[i]
        sources, view = [tuple(turned)], replace(view, permutation=permutation)
    elif kind == "slice":
        offsets = tuple(rng.choice([0, 0, 1, 2]) for _ in shape)
        strides = tuple(rng.choice([1, 1, 1, 2]) for _ in shape)
        cut = zip(offsets, shape, strides, strict=True)
        sources = [tuple(o + (n - 1) * s + 1 + rng.choice([0, 1]) for o, n, s in cut)]
        view = replace(view, offsets=offsets, strides=strides)
    elif kind == "concat" and shape[axis] > 1:
        first = rng.randint(1, shape[axis] - 1)
        sources = [
            tuple(n if d == axis else extent for d, extent in enumerate(shape))
            for n in (first, shape[axis] - first)
        ]
        view = replace(view, axis=axis)
    elif kind == "pad" and shape[axis] > 1:
        sources = [tuple(extent - (d == axis) for d, extent in enumerate(shape))]
        low = tuple(int(d == axis and rng.random() < 0.5) for d in range(len(shape)))
        view = replace(view, low=low, value=str(depth % 2))
    elif kind == "broadcast":
        dims = tuple(d for d in range(len(shape)) if rng.random() < 0.6)
        sources, view = [tuple(shape[d] for d in dims)], replace(view, dims=dims)
    else:
        return _value(rng, parts, shape, dtype, n_cores, depth)
    names = tuple(_value(rng, parts, source, dtype, n_cores, depth - 1) for source in sources)
    if len(names) == 2 and sources[0] == sources[1] and rng.random() < 0.3:
        names = (names[0], names[0])
    name = parts.name("view")
    parts.views.append(replace(view, name=name, sources=names))
    return name


def _lying(rng: Random, parts: _Parts, shape: Shape, dtype: str, n_cores: int) -> str:
    """Return the name of a new value that is an input spread evenly, an operator's result, or laid out like one."""
    name = parts.name("value")
    if rng.random() < 0.25:
        parts.inputs.append(TensorValue(name, shape, dtype))
        parts.layouts[name] = ValueLayout("linear", name, rng.randint(1, n_cores), dtype)
        return name
    spec = _producer(rng, parts, name, shape, dtype)
    plan = random_plans.random_plan(rng, spec, n_cores)
    parts.operators.append(spec)
    n_members = prod(f for a, f in enumerate(plan.f_op) if a not in spec.output.axes) // prod(plan.ft[-1])
    # Cut over the cores that summed it, or whole on each of them.
    scatter = rng.choice([n_members, n_members, 1])
    parts.layouts[name] = ValueLayout(
        "operand", name, plan.n_cores, dtype, spec.name, len(spec.operands), plan, scatter
    )
    return name


def _producer(rng: Random, parts: _Parts, name: str, shape: Shape, dtype: str) -> OperatorSpec:
    """Return an operator with a result of a given shape; where it sums, cores share results or results rotate."""
    n_sums = rng.choice([0, 1, 1, 2])
    axes = [Axis(f"p{i}", extent, "parallel") for i, extent in enumerate(shape)]
    axes += [Axis(f"r{i}", rng.choice([2, 3, 4, 6]), "reduction") for i in range(n_sums)]
    rng.shuffle(axes)
    places = {axis.name: i for i, axis in enumerate(axes)}
    dims = tuple(AffineDim((Term(i, 1),)) for i in range(len(axes)))
    source = Operand(parts.name("input"), "activation", dtype, tuple(a.extent for a in axes), dims)
    parts.inputs.append(TensorValue(source.name, source.shape, dtype))
    output = Operand(
        name,
        "output",
        dtype,
        shape,
        tuple(AffineDim((Term(places[f"p{i}"], 1),)) for i in range(len(shape))),
    )
    return OperatorSpec(
        name=parts.name("operator"),
        kind="reduction" if n_sums else "elementwise",
        axes=tuple(axes),
        inputs=(source,),
        output=output,
        combine="sum" if n_sums else "none",
        body=identity(),
        acc_dtype=dtype,
    )
