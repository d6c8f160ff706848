"""The three models with published predictions of another planner, from their shapes: NeRF, ViT-B/32, BERT-large.

Everything is f16, sums too (`partials=f16`): so were they priced. Normalisation, softmax and GELU are written out, as
they were there; queries, keys and values come from one product. What is in, besides the layers that the published
operator counts stand for:

- NeRF: six products with 64 x 64 weights and one with 64 x 3, a ReLU between each; no biases. 13 operators there.
- ViT-B/32, batch 1: the patch convolution, class token and positions, 12 layers, the last normalisation, and the
  classifier on the class token. 581 operators there.
- BERT-large, batch 1, 128 tokens: three embedding tables and their normalisation, 24 layers with an attention mask, the
  pooler. 1,077 operators there.

So each does at least the work of the published model of its name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from bundled.builder import Builder

NERF_POINTS = 2_073_600
DTYPE = "float16"


@dataclass(frozen=True, slots=True)
class Encoder:
    """The sizes of a stack of encoder layers; `length` in tokens, widths in elements."""

    layers: int
    length: int
    width: int
    heads: int
    inner: int

    @property
    def head(self) -> int:
        """Return the width of one head."""
        return self.width // self.heads


VIT = Encoder(layers=12, length=50, width=768, heads=12, inner=3072)
BERT = Encoder(layers=24, length=128, width=1024, heads=16, inner=4096)


def nerf(points: int = NERF_POINTS) -> Builder:
    """Return the radiance field's MLP over a number of points."""
    g = Builder("nerf", DTYPE, weight_free=True)
    x = g.input("x", points, 64)
    for layer in range(6):
        x = g.linear(x, f"/layer{layer}", 64, 64, bias=False)
        x = g.op("Relu", x, name=f"/layer{layer}/Relu")
    g.output("y", g.linear(x, "/rgb", 64, 3, bias=False), points, 3)
    return g


def vit(sizes: Encoder = VIT, *, picture: int = 224, patch: int = 32, classes: int = 1000) -> Builder:
    """Return the vision transformer on one picture."""
    cells = (picture // patch) ** 2
    g = Builder("vit_b32", DTYPE, weight_free=True)
    pixels = g.input("pixel_values", 1, 3, picture, picture)
    kernel, bias = g.weight("patch.weight", sizes.width, 3, patch, patch), g.weight("patch.bias", sizes.width)
    x = g.op("Conv", pixels, kernel, bias, name="/patch/Conv", strides=[patch, patch])
    x = g.op("Reshape", x, g.ints(1, sizes.width, cells), name="/patch/Reshape")
    x = g.op("Transpose", x, name="/patch/Transpose", perm=[0, 2, 1])
    x = g.op("Concat", g.weight("cls_token", 1, 1, sizes.width), x, name="/Concat", axis=1)
    x = g.op("Add", x, g.weight("position", 1, sizes.length, sizes.width), name="/Add")
    for layer in range(sizes.layers):
        name = f"/layer{layer}"
        normed = _layer_norm(g, x, f"{name}/norm1", sizes.width)
        x = g.op("Add", _attention(g, normed, name, sizes, ""), x, name=f"{name}/Add")
        normed = _layer_norm(g, x, f"{name}/norm2", sizes.width)
        x = g.op("Add", _mlp(g, normed, name, sizes), x, name=f"{name}/Add_1")
    x = _layer_norm(g, x, "/norm", sizes.width)
    first = g.op("Gather", x, g.constant(np.array(0, np.int64)), name="/Gather", axis=1)
    g.output("logits", g.linear(first, "/classifier", sizes.width, classes), 1, classes)
    return g


def bert(sizes: Encoder = BERT, *, words: int = 30522) -> Builder:
    """Return the encoder with its embeddings and pooler on one sequence."""
    s, width = sizes.length, sizes.width
    g = Builder("bert_large", DTYPE, weight_free=True)
    ids, kinds = g.indices("input_ids", 1, s, below=words), g.indices("token_type_ids", 1, s, below=2)
    mask = g.input("mask", 1, 1, 1, s)
    word = g.op("Gather", g.weight("embeddings.word", words, width), ids, name="/embeddings/word")
    kind = g.op("Gather", g.weight("embeddings.type", 2, width), kinds, name="/embeddings/type")
    x = g.op("Add", word, kind, name="/embeddings/Add")
    x = g.op("Add", x, g.weight("embeddings.position", 1, s, width), name="/embeddings/Add_1")
    x = _layer_norm(g, x, "/embeddings/norm", width)
    for layer in range(sizes.layers):
        name = f"/layer{layer}"
        x = g.op("Add", _attention(g, x, name, sizes, mask), x, name=f"{name}/Add")
        x = _layer_norm(g, x, f"{name}/norm1", width)
        x = g.op("Add", _mlp(g, x, name, sizes), x, name=f"{name}/Add_1")
        x = _layer_norm(g, x, f"{name}/norm2", width)
    first = g.op("Gather", x, g.constant(np.array(0, np.int64)), name="/pooler/Gather", axis=1)
    pooled = g.op("Tanh", g.linear(first, "/pooler", width, width), name="/pooler/Tanh")
    g.output("last_hidden_state", x, 1, s, width)
    g.output("pooler_output", pooled, 1, width)
    return g


def _layer_norm(g: Builder, x: str, name: str, width: int) -> str:
    """Add a normalisation of the last dim, written out."""
    mean = g.op("ReduceMean", x, g.ints(-1), name=f"{name}/ReduceMean", keepdims=1)
    centred = g.op("Sub", x, mean, name=f"{name}/Sub")
    square = g.op("Mul", centred, centred, name=f"{name}/Square")
    variance = g.op("ReduceMean", square, g.ints(-1), name=f"{name}/ReduceMean_1", keepdims=1)
    deviation = g.op("Sqrt", g.op("Add", variance, g.scalar(1e-5), name=f"{name}/Add"), name=f"{name}/Sqrt")
    scaled = g.op("Div", centred, deviation, name=f"{name}/Div")
    scaled = g.op("Mul", scaled, g.weight(f"{name}.weight", width), name=f"{name}/Mul")
    return g.op("Add", scaled, g.weight(f"{name}.bias", width), name=f"{name}/Add_1")


def _attention(g: Builder, x: str, name: str, sizes: Encoder, mask: str) -> str:
    """Add the attention of a layer, its output projection included."""
    s, width, heads, head = sizes.length, sizes.width, sizes.heads, sizes.head
    joined = g.linear(x, f"{name}/qkv", width, 3 * width)
    parts = g.op("Split", joined, name=f"{name}/Split", n_outputs=3, axis=-1, num_outputs=3)
    q, k, v = (g.heads(part, f"{name}/{n}", 1, s, heads, head) for n, part in zip("qkv", parts, strict=True))
    keys = g.op("Transpose", k, name=f"{name}/k/Transpose_2", perm=[0, 1, 3, 2])
    scores = g.op("MatMul", q, keys, name=f"{name}/scores")
    scores = g.op("Mul", scores, g.scalar(head**-0.5), name=f"{name}/scale")
    if mask:
        scores = g.op("Add", scores, mask, name=f"{name}/mask")
    greatest = g.op("ReduceMax", scores, g.ints(-1), name=f"{name}/softmax/ReduceMax", keepdims=1)
    raised = g.op(
        "Exp", g.op("Sub", scores, greatest, name=f"{name}/softmax/Sub"), name=f"{name}/softmax/Exp"
    )
    total = g.op("ReduceSum", raised, g.ints(-1), name=f"{name}/softmax/ReduceSum", keepdims=1)
    shares = g.op("Div", raised, total, name=f"{name}/softmax/Div")
    mixed = g.merged(g.op("MatMul", shares, v, name=f"{name}/values"), name, 1, s, width)
    return g.linear(mixed, f"{name}/projection", width, width)


def _mlp(g: Builder, x: str, name: str, sizes: Encoder) -> str:
    """Add the two products of a layer with a GELU between."""
    hidden = g.gelu(g.linear(x, f"{name}/fc1", sizes.width, sizes.inner), f"{name}/gelu")
    return g.linear(hidden, f"{name}/fc2", sizes.inner, sizes.width)
