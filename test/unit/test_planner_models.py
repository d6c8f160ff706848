"""The models of `benchmarks/planner`: the architectures they claim to be, and their plans."""

from __future__ import annotations

from collections import Counter
from math import prod

import pytest
from planner import paper_models
from planner.graphs import graph_of
from planner.models import MODELS, SEVEN
from planner.paper_models import Encoder

from t10.core.expression import OperatorSpec
from t10.core.graph import Graph

OPERATORS = {"nerf": 7, "resnet18": 23, "retnet-1.3b": 17, "opt-13b": 17, "llama2-13b": 17}
"""Rotary embeddings of queries and keys share one negation, that of half of the sines."""
MACS = {
    "nerf": 65_536 * (63 * 64 + 64 * 64 + 127 * 64 + 64 + 64 * 64 + 91 * 32 + 32 * 3),
    "resnet18": 1_814_073_344,
    "retnet-1.3b": 2048 * (2 * 2048 + 3 * 4096 + 2 * 4096) + 8 * 256 * 512,
    # Caches of 4 MiB are read where they lie: what the value of the new token adds comes behind the product.
    "opt-13b": 12 * 5120 * 5120 + (511 + 512) * 5120,
    "llama2-13b": 4 * 5120 * 5120 + 3 * 5120 * 13824 + (511 + 512) * 5120,
    "opt-1.3b": 12 * 2048 * 2048 + 2 * 512 * 2048,
    "llama2-7b": 4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 512 * 4096,
}
"""Multiplications of all products and convolutions at batch 1."""


def macs(graph: Graph) -> int:
    return sum(op.n_points for op in graph.operators if op.kind in ("contraction", "convolution"))


def weight_bytes(graph: Graph) -> int:
    return sum(2 * prod(weight.shape) for weight in graph.weights)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_architecture_has_its_operators(name: str) -> None:
    assert len(graph_of(MODELS[name].build(1)).operators) == OPERATORS[name]


@pytest.mark.parametrize("name", MACS)
def test_an_architecture_has_its_multiplications(name: str) -> None:
    assert macs(graph_of(MODELS[name].build(1), orders="keep")) == MACS[name]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["nerf", "resnet18", "retnet-1.3b", "opt-13b", "llama2-13b"])
def test_batch_scales_multiplications_and_no_weights(name: str) -> None:
    """From 4 on, where the caches of all decoders are large enough to be read where they lie."""
    four, eight = (graph_of(MODELS[name].build(batch), orders="keep") for batch in (4, 8))
    assert macs(eight) == 2 * macs(four)
    assert weight_bytes(eight) == weight_bytes(four)


def test_there_are_seven_architectures_in_f16() -> None:
    assert len({model.name.split("-")[0] for model in SEVEN}) == 7
    graph = graph_of(MODELS["opt-1.3b"].build(2))
    assert {value.dtype for value in (*graph.inputs, *graph.weights)} == {"f16"}


@pytest.mark.slow
def test_vit_in_both_patch_sizes() -> None:
    tokens = {name: graph_of(MODELS[name].build(1)) for name in ("vit-b16", "vit-b32")}
    lengths = {name: Counter(op.output.shape for op in g.operators) for name, g in tokens.items()}
    assert lengths["vit-b16"][(1, 197, 3072)] == 12
    assert lengths["vit-b32"][(1, 50, 3072)] == 12


def sizes_of(op: OperatorSpec) -> tuple[int, ...]:
    """Return the extents of a product, what is summed as one: weights in blocks have two axes there."""
    kept = [extent for number, extent in enumerate(op.extents) if number not in op.reduction_axes]
    return (*kept, prod(op.extents[axis] for axis in op.reduction_axes))


def products(graph: Graph) -> list[OperatorSpec]:
    return [op for op in graph.operators if op.kind == "contraction"]


def test_published_nerf_is_seven_products_in_f16() -> None:
    graph = graph_of(paper_models.nerf(), partials="f16", orders="keep")
    assert [sizes_of(op) for op in products(graph)] == [(2_073_600, 64, 64)] * 6 + [(2_073_600, 3, 64)]
    assert len(graph.operators) == 7
    assert {op.acc_dtype for op in graph.operators} == {"f16"}


def test_published_encoders_fuse_queries_keys_and_values() -> None:
    sizes = Encoder(layers=2, length=128, width=1024, heads=16, inner=4096)
    graph = graph_of(paper_models.bert(sizes), partials="f16")
    shapes = Counter(sizes_of(op) for op in products(graph))
    assert shapes[(128, 3072, 1024)] == shapes[(128, 4096, 1024)] == shapes[(128, 1024, 4096)] == 2
    assert shapes[(16, 128, 128, 64)] == 2
    # The pooler multiplies a matrix by one row, which is quicker with sums in f32.
    assert [sizes_of(op) for op in products(graph) if op.acc_dtype != "f16"] == [(1024, 1024)]


def test_published_vit_has_its_classifier() -> None:
    sizes = Encoder(layers=1, length=50, width=768, heads=12, inner=3072)
    graph = graph_of(paper_models.vit(sizes), partials="f16")
    assert graph.operators[-1].output.shape == (1, 1000)
    assert (50, 2304, 768) in {sizes_of(op) for op in products(graph)}
