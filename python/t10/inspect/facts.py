"""What a model file holds, as frozen values: ports, nodes, graphs, weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod


@dataclass(frozen=True, slots=True)
class Port:
    """A value with its element type and dims: numbers, symbols, or `?`; `dims` is None if the rank is not known."""

    name: str
    dtype: str
    dims: tuple[int | str, ...] | None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Return the extents, None unless all are known."""
        if self.dims is None or not all(isinstance(dim, int) for dim in self.dims):
            return None
        return tuple(dim for dim in self.dims if isinstance(dim, int))

    @property
    def n_elements(self) -> int | None:
        """Return the number of elements, None where it is not known."""
        return None if self.shape is None else prod(self.shape)

    def type_text(self) -> str:
        """Return element type and dims, such as `f32[1x128]`."""
        if self.dims is None:
            return f"{self.dtype}[?]"
        return f"{self.dtype}[{'x'.join(str(dim) for dim in self.dims)}]"


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """Nodes in the order of the file; `name` says of what (the graph's name, an attribute's)."""

    name: str
    nodes: tuple[NodeFacts, ...]

    def all_nodes(self) -> Iterator[NodeFacts]:
        """Yield every node, those of bodies behind the node that has them."""
        waiting = list(reversed(self.nodes))
        while waiting:
            node = waiting.pop()
            yield node
            for body in reversed(node.bodies):
                waiting.extend(reversed(body.nodes))


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """An operator of the graph: names of what it reads and makes, attributes as short text, bodies of control flow."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    bodies: tuple[GraphFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A file beside the model that holds weights, `n_bytes` of them; `state` is there, absent or refused."""

    location: str
    n_bytes: int
    state: str


@dataclass(frozen=True, slots=True)
class WeightFacts:
    """Constant tensors of a model: how many, their elements, bytes in all and by element type, files beside it."""

    n_tensors: int = 0
    n_parameters: int = 0
    n_bytes: int = 0
    bytes_by_dtype: tuple[tuple[str, int], ...] = ()
    files: tuple[ExternalFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model as its file states it.

    `properties` are label and text (producer, opsets), `functions` name and number of nodes, `values` every value of a
    known type by name, `weight_names` the constants among them, `problems` what keeps the file from being compiled.
    """

    source: str
    form: str
    properties: tuple[tuple[str, str], ...]
    functions: tuple[tuple[str, int], ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    weights: WeightFacts
    graph: GraphFacts
    values: Mapping[str, Port] = field(default_factory=dict[str, Port])
    weight_names: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
