"""Inputs for a model that nobody gave any: reproducible, and within the ranges its gathers can take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays
from t10.core.dtypes import numpy_dtype
from t10.core.expression import OperatorSpec, Selector
from t10.core.graph import Graph, TensorValue


def random_inputs(graph: Graph, seed: int) -> Arrays:
    """Return one array per input of a graph; the same seed gives the same arrays.

    Floats are standard normal. Integers that select rows of a table are below its length; all others, and booleans,
    are 0 or 1 with a 1 first along the last dim, so that no row of a mask is empty.
    """
    generator = np.random.default_rng(seed)
    bounds = index_bounds(graph)
    return {value.name: _draw(value, bounds.get(value.name), generator) for value in graph.inputs}


def index_bounds(graph: Graph) -> dict[str, int]:
    """Return, for every input that selects elements of tables, the length of the shortest of them."""
    bounds: dict[str, int] = {}
    inputs = {value.name for value in graph.inputs}
    for spec in graph.operators:
        for selector in spec.selectors:
            extent = spec.axes[selector.axis].extent
            for name in _read_by(spec, selector):
                for source in _origins(graph, name) & inputs:
                    bounds[source] = min(extent, bounds.get(source, extent))
    return bounds


def _draw(value: TensorValue, bound: int | None, generator: np.random.Generator) -> NDArray[Any]:
    dtype = numpy_dtype(value.host_dtype)
    if dtype.kind == "f":
        return np.asarray(generator.standard_normal(value.shape)).astype(dtype)
    drawn = np.asarray(generator.integers(0, 2 if bound is None else bound, value.shape)).astype(dtype)
    if bound is None and value.shape:
        drawn[..., 0] = 1
    return drawn


def _read_by(spec: OperatorSpec, selector: Selector) -> set[str]:
    """Return the values of the inputs that a selector's index depends on."""
    function = selector.index
    needed = {function.result}
    for number in range(function.n_inputs + len(function.ops) - 1, function.n_inputs - 1, -1):
        if number in needed:
            needed |= set(function.ops[number - function.n_inputs].operands)
    return {spec.inputs[number].name for number in needed if number < function.n_inputs}


def _origins(graph: Graph, value: str) -> set[str]:
    """Return the inputs and weights a value is computed from, element by element.

    What comes through a sum is not of the size of its terms: a place counted from a mask says nothing about the mask.
    """
    spec_by_value = {spec.output.name: spec for spec in graph.operators}
    found: set[str] = set()
    stack, seen = [value], {value}
    while stack:
        for source in graph.sources_of(stack.pop()):
            spec = spec_by_value.get(source)
            if spec is None:
                found.add(source)
                continue
            names = {operand.name for operand in spec.operands if spec.combine == "none"} - seen
            seen |= names
            stack.extend(names)
    return found
