"""What the authors' planner predicts under its own cost model for one chip of 1,472 cores: cycles, seconds, operators.

Figures of a run of their released planner on two shared cores; they stand beside ours under `--cost-model t10-paper`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bundled.builder import Builder

from planner import paper_models

DTYPE = paper_models.DTYPE


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A whole model: its predicted cycles, the seconds its planning took, and how many operators were counted."""

    name: str
    build: Callable[[], Builder]
    cycles: int
    planner_seconds: float
    n_operators: int


@dataclass(frozen=True, slots=True)
class PublishedOperator:
    """A single operator and the cycles of the fastest plan that was found for it."""

    name: str
    build: Callable[[], Builder]
    cycles: int


def product(rows: int, depth: int, columns: int) -> Callable[[], Builder]:
    """Return the maker of an activation [rows, depth] times a weight [depth, columns]."""

    def build() -> Builder:
        g = Builder("product", DTYPE, weight_free=True)
        g.output("y", g.linear(g.input("x", rows, depth), "/fc", depth, columns, bias=False), rows, columns)
        return g

    return build


def row_sums(rows: int, length: int) -> Callable[[], Builder]:
    """Return the maker of a sum over the last dim."""

    def build() -> Builder:
        g = Builder("row_sums", DTYPE, weight_free=True)
        made = g.op("ReduceSum", g.input("x", rows, length), g.ints(-1), name="/sum", keepdims=0)
        g.output("y", made, rows)
        return g

    return build


def addition(rows: int, length: int) -> Callable[[], Builder]:
    """Return the maker of the sum of two activations, element by element."""

    def build() -> Builder:
        g = Builder("addition", DTYPE, weight_free=True)
        made = g.op("Add", g.input("a", rows, length), g.input("b", rows, length), name="/add")
        g.output("y", made, rows, length)
        return g

    return build


def scores(heads: int, length: int, size: int) -> Callable[[], Builder]:
    """Return the maker of queries times keys of every head."""

    def build() -> Builder:
        g = Builder("scores", DTYPE, weight_free=True)
        q, k = g.input("q", heads, length, size), g.input("k", heads, size, length)
        g.output("y", g.op("MatMul", q, k, name="/scores"), heads, length, length)
        return g

    return build


PUBLISHED_MODELS = (
    PublishedModel("nerf", paper_models.nerf, 1_200_321, 41.0, 13),
    PublishedModel("vit-b32", paper_models.vit, 1_037_294, 223.0, 581),
    PublishedModel("bert-large", paper_models.bert, 3_656_791, 1_670.0, 1_077),
)

PUBLISHED_OPERATORS = (
    PublishedOperator("NeRF 2073600x64x64", product(2_073_600, 64, 64), 145_958),
    PublishedOperator("ViT 50x768x3072", product(50, 768, 3072), 10_304),
    PublishedOperator("ViT 50x3072x768", product(50, 3072, 768), 8_189),
    PublishedOperator("ViT 50x768x2304", product(50, 768, 2304), 7_135),
    PublishedOperator("ViT 50x768x768", product(50, 768, 768), 5_625),
    PublishedOperator("ViT row sums [50, 768]", row_sums(50, 768), 4_057),
    PublishedOperator("BERT 128x1024x4096", product(128, 1024, 4096), 18_635),
    PublishedOperator("BERT 128x4096x1024", product(128, 4096, 1024), 15_961),
    PublishedOperator("BERT 128x1024x3072", product(128, 1024, 3072), 13_618),
    PublishedOperator("BERT 128x1024x1024", product(128, 1024, 1024), 8_471),
    PublishedOperator("BERT row sums [128, 1024]", row_sums(128, 1024), 2_479),
    PublishedOperator("BERT a + b [128, 1024]", addition(128, 1024), 476),
    PublishedOperator("BERT scores 16 x 128x64x128", scores(16, 128, 64), 3_507),
)

BUILDERS = {each.name: each.build for each in (*PUBLISHED_MODELS, *PUBLISHED_OPERATORS)}
"""How to make each of them, by name."""
