"""From a builder to the graph that is planned: the real front end, without a file."""

from __future__ import annotations

from typing import Literal

from bundled.builder import Builder

from t10.chip import DEFAULT_CHIP
from t10.core.graph import Graph
from t10.dialect.mlir import ir
from t10.frontend.importer import import_proto
from t10.passes.read_graph import read_graph
from t10.passes.registry import make, run


def graph_of(
    made: Builder,
    *,
    partials: Literal["f32", "f16"] = "f32",
    chip: str = DEFAULT_CHIP,
    orders: Literal["matrix", "keep"] = "matrix",
) -> Graph:
    """Return a model imported and fused for a chip; `partials` is the type in which sums of 16-bit floats are kept.

    With the `orders` that it has, tensors are as large as the model says: nothing is padded for the matrix engine.
    """
    imported = import_proto(made.model(), source=made.name)
    with imported.module.context, ir.Location.unknown():
        run(make("t10-fuse", f"partials={partials} chip={chip} orders={orders}"), imported.module)
        return read_graph(imported.module).graph
