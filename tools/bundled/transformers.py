"""BERT, OPT, Llama 2 and RetNet in the operators that PyTorch's exporter writes; by default tiny, of one layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bundled.builder import Builder


@dataclass(frozen=True, slots=True)
class Sizes:
    """What sets the size of a transformer; `length` counts tokens in sight, cached ones included."""

    batch: int = 2
    length: int = 8
    width: int = 32
    heads: int = 2
    inner: int = 64
    layers: int = 1
    words: int = 40

    @property
    def head(self) -> int:
        """Return the width of one head."""
        return self.width // self.heads

    def layer_names(self) -> list[str]:
        """Return what the names of each layer's nodes start with."""
        return [""] if self.layers == 1 else [f"/layer{i}" for i in range(self.layers)]


def bert(dtype: str, sizes: Sizes | None = None, *, weight_free: bool = False) -> Builder:
    """Return encoder layers between embeddings and a pooler."""
    sizes = sizes or Sizes(batch=1)
    b, s, width, words = sizes.batch, sizes.length, sizes.width, sizes.words
    g = Builder("bert", dtype, seed=1, weight_free=weight_free)
    ids, kinds = g.indices("input_ids", b, s, below=words), g.indices("token_type_ids", b, s, below=2)
    mask = g.input("mask", b, 1, 1, s)
    word = g.op("Gather", g.weight("embeddings.word", words, width, scale=1.0), ids, name="/embeddings/word")
    kind = g.op("Gather", g.weight("embeddings.type", 2, width, scale=1.0), kinds, name="/embeddings/type")
    x = g.op(
        "Add",
        g.op("Add", word, kind, name="/embeddings/Add"),
        g.weight("embeddings.position", 1, s, width, scale=1.0),
    )
    x = g.layer_norm(x, "/embeddings/LayerNorm", width)
    for name in sizes.layer_names():
        x = _encoder_layer(g, x, mask, name, sizes)
    first = g.op("Gather", x, g.constant(np.array(0, np.int64)), name="/pooler/Gather", axis=1)
    pooled = g.op(
        "Gemm",
        first,
        g.weight("pooler.weight", width, width),
        g.weight("pooler.bias", width, scale=0.1),
        transB=1,
    )
    g.output("last_hidden_state", x, b, s, width)
    g.output("pooler_output", g.op("Tanh", pooled, name="/pooler/Tanh"), b, width)
    return g


def _encoder_layer(g: Builder, x: str, mask: str, name: str, sizes: Sizes) -> str:
    """Add BERT's layer: attention and MLP, each followed by a residual and a normalisation."""
    b, s, width, heads = sizes.batch, sizes.length, sizes.width, sizes.heads
    at = f"{name}/attention"
    q, k, v = (
        g.heads(g.linear(x, f"{at}/{n}", width, width), f"{at}/{n}", b, s, heads, sizes.head)
        for n in ("query", "key", "value")
    )
    mixed = g.merged(g.attention(q, k, v, mask, at, sizes.head), at, b, s, width)
    x = g.layer_norm(g.op("Add", g.linear(mixed, f"{at}/output", width, width), x), f"{at}/LayerNorm", width)
    hidden = g.gelu(g.linear(x, f"{name}/intermediate", width, sizes.inner), f"{name}/intermediate/gelu")
    made = g.linear(hidden, f"{name}/output", sizes.inner, width)
    return g.layer_norm(g.op("Add", made, x), f"{name}/output/LayerNorm", width)


def opt(dtype: str, sizes: Sizes | None = None, *, weight_free: bool = False) -> Builder:
    """Return a decoder layer that makes one token with a key/value cache."""
    sizes = sizes or Sizes()
    b, width, heads, inner, past = sizes.batch, sizes.width, sizes.heads, sizes.inner, sizes.length - 1
    size = sizes.head
    g = Builder("opt", dtype, seed=2, weight_free=weight_free)
    x, mask = g.input("hidden", b, 1, width), g.input("mask", b, 1, 1, past + 1)
    past_k, past_v = g.input("past_k", b, heads, past, size), g.input("past_v", b, heads, past, size)
    normed = g.layer_norm(x, "/self_attn_layer_norm", width)
    q, k, v = (
        g.heads(g.linear(normed, f"/self_attn/{n}", width, width), f"/self_attn/{n}", b, 1, heads, size)
        for n in ("q_proj", "k_proj", "v_proj")
    )
    keys = g.op("Concat", past_k, k, name="/self_attn/Concat", axis=2)
    values = g.op("Concat", past_v, v, name="/self_attn/Concat_1", axis=2)
    mixed = g.merged(g.attention(q, keys, values, mask, "/self_attn", size), "/self_attn", b, 1, width)
    x = g.op("Add", x, g.linear(mixed, "/self_attn/out_proj", width, width), name="/Add")
    hidden = g.op(
        "Relu", g.linear(g.layer_norm(x, "/final_layer_norm", width), "/fc1", width, inner), name="/Relu"
    )
    g.output("out", g.op("Add", x, g.linear(hidden, "/fc2", inner, width), name="/Add_1"), b, 1, width)
    g.output("present_k", keys, b, heads, past + 1, size)
    g.output("present_v", values, b, heads, past + 1, size)
    return g


def _rotated(g: Builder, x: str, name: str, cos: str, sin: str, half: int) -> str:
    """Add the rotary embedding x * cos + rotate_half(x) * sin."""
    first = g.op("Slice", x, g.ints(0), g.ints(half), g.ints(3), name=f"{name}/Slice")
    second = g.op("Slice", x, g.ints(half), g.ints(2 * half), g.ints(3), name=f"{name}/Slice_1")
    turned = g.op("Concat", g.op("Neg", second, name=f"{name}/Neg"), first, name=f"{name}/Concat", axis=-1)
    left = g.op("Mul", x, cos, name=f"{name}/Mul")
    return g.op("Add", left, g.op("Mul", turned, sin, name=f"{name}/Mul_1"), name=f"{name}/Add")


def llama2(dtype: str, sizes: Sizes | None = None, *, weight_free: bool = False) -> Builder:
    """Return a decoder layer with rotary embeddings, RMS normalisation and a gated MLP."""
    sizes = sizes or Sizes(inner=48)
    g = Builder("llama2", dtype, seed=3, weight_free=weight_free)
    x, mask = g.input("hidden", sizes.batch, 1, sizes.width), g.input("mask", sizes.batch, 1, 1, sizes.length)
    x, *present = _llama_layer(g, x, mask, _rotations(g, sizes), "", sizes)
    g.output("out", x, sizes.batch, 1, sizes.width)
    _present(g, present, "", sizes)
    return g


def llama2_whole(dtype: str, sizes: Sizes | None = None, *, weight_free: bool = False) -> Builder:
    """Return a decoding step of all layers: from the last token to the scores of the next."""
    sizes = sizes or Sizes(inner=48, layers=4)
    b, width, words = sizes.batch, sizes.width, sizes.words
    g = Builder("llama2_whole", dtype, seed=5, weight_free=weight_free)
    ids, mask = g.indices("input_ids", b, 1, below=words), g.input("mask", b, 1, 1, sizes.length)
    rotations = _rotations(g, sizes)
    x = g.op("Gather", g.weight("embed_tokens.weight", words, width, scale=1.0), ids, name="/embed_tokens")
    for number in range(sizes.layers):
        x, *present = _llama_layer(g, x, mask, rotations, f"/layers.{number}", sizes)
        _present(g, present, f".{number}", sizes)
    logits = g.linear(g.rms_norm(x, "/norm", width), "/lm_head", width, words, bias=False)
    g.output("logits", logits, b, 1, words)
    return g


def _rotations(g: Builder, sizes: Sizes) -> tuple[str, str]:
    """Add the cosines and sines of the rotary embedding, as inputs."""
    cos, sin = (
        g.op("Unsqueeze", g.input(n, sizes.batch, 1, sizes.head), g.ints(1), name=f"/{n}/Unsqueeze")
        for n in ("cos", "sin")
    )
    return cos, sin


def _present(g: Builder, present: list[str], suffix: str, sizes: Sizes) -> None:
    """Name the keys and values of a layer as outputs."""
    for name, value in zip(("present_k", "present_v"), present, strict=True):
        g.output(f"{name}{suffix}", value, sizes.batch, sizes.heads, sizes.length, sizes.head)


def _llama_layer(
    g: Builder, x: str, mask: str, rotations: tuple[str, str], name: str, sizes: Sizes
) -> tuple[str, str, str]:
    """Add Llama 2's layer with a key/value cache; return what it makes, its keys and its values."""
    b, width, heads, inner, past = sizes.batch, sizes.width, sizes.heads, sizes.inner, sizes.length - 1
    size, (cos, sin), at = sizes.head, rotations, f"{name}/self_attn"
    suffix = name.removeprefix("/layers")
    past_k, past_v = (g.input(f"{n}{suffix}", b, heads, past, size) for n in ("past_k", "past_v"))
    normed = g.rms_norm(x, f"{name}/input_layernorm", width)
    q, k, v = (
        g.heads(g.linear(normed, f"{at}/{n}", width, width, bias=False), f"{at}/{n}", b, 1, heads, size)
        for n in ("q_proj", "k_proj", "v_proj")
    )
    q = _rotated(g, q, f"{at}/rotary_q", cos, sin, size // 2)
    k = _rotated(g, k, f"{at}/rotary_k", cos, sin, size // 2)
    keys = g.op("Concat", past_k, k, name=f"{at}/Concat", axis=2)
    values = g.op("Concat", past_v, v, name=f"{at}/Concat_1", axis=2)
    mixed = g.merged(g.attention(q, keys, values, mask, at, size), at, b, 1, width)
    x = g.op("Add", x, g.linear(mixed, f"{at}/o_proj", width, width, bias=False), name=f"{name}/Add")
    normed = g.rms_norm(x, f"{name}/post_attention_layernorm", width)
    gate = g.linear(normed, f"{name}/mlp/gate_proj", width, inner, bias=False)
    gated = g.op("Mul", gate, g.op("Sigmoid", gate, name=f"{name}/mlp/Sigmoid"), name=f"{name}/mlp/Mul")
    up = g.linear(normed, f"{name}/mlp/up_proj", width, inner, bias=False)
    down = g.linear(
        g.op("Mul", gated, up, name=f"{name}/mlp/Mul_1"), f"{name}/mlp/down_proj", inner, width, bias=False
    )
    return g.op("Add", x, down, name=f"{name}/Add_1"), keys, values


def retnet(
    dtype: str, sizes: Sizes | None = None, *, value_size: int = 24, weight_free: bool = False
) -> Builder:
    """Return a layer in its recurrent form: state = gamma * state + k^T v, out = q state."""
    sizes = sizes or Sizes()
    b, width, heads, inner = sizes.batch, sizes.width, sizes.heads, sizes.inner
    size, value_width = sizes.head, heads * value_size
    g = Builder("retnet", dtype, seed=4, weight_free=weight_free)
    x = g.input("hidden", b, 1, width)
    cos, sin = (
        g.op("Unsqueeze", g.input(n, b, 1, size), g.ints(2), name=f"/{n}/Unsqueeze") for n in ("cos", "sin")
    )
    state = g.input("state", b, heads, size, value_size)
    normed = g.layer_norm(x, "/retention_layer_norm", width)
    q = g.op(
        "Reshape",
        g.linear(normed, "/q_proj", width, width),
        g.ints(b, 1, heads, size),
        name="/q_proj/Reshape",
    )
    k = g.linear(normed, "/k_proj", width, width)
    k = g.op(
        "Reshape", g.op("Mul", k, g.scalar(size**-0.5)), g.ints(b, 1, heads, size), name="/k_proj/Reshape"
    )
    v = g.op("Reshape", g.linear(normed, "/v_proj", width, value_width), g.ints(b, heads, 1, value_size))
    q, k = (_rotated(g, each, f"/rotary_{n}", cos, sin, size // 2) for n, each in (("q", q), ("k", k)))
    columns = g.op("Reshape", k, g.ints(b, heads, size, 1), name="/k_proj/Reshape_1")
    decay = g.constant(
        (1 - 2.0 ** -(5 + np.arange(heads, dtype=np.float64))).reshape(1, heads, 1, 1).astype(dtype)
    )
    kept = g.op("Mul", state, decay, name="/decay")
    new_state = g.op("Add", kept, g.op("Mul", columns, v, name="/outer"), name="/state")
    rows = g.op("Reshape", q, g.ints(b, heads, 1, size), name="/q_proj/Reshape_1")
    read = g.op("MatMul", rows, new_state, name="/read")
    normed_heads = g.layer_norm(
        g.op("Reshape", read, g.ints(b, 1, heads, value_size)), "/group_norm", value_size
    )
    flat = g.op("Reshape", normed_heads, g.ints(b, 1, value_width), name="/group_norm/Reshape")
    gate = g.linear(normed, "/g_proj", width, value_width)
    gated = g.op(
        "Mul", g.op("Mul", gate, g.op("Sigmoid", gate, name="/Sigmoid"), name="/silu"), flat, name="/gate"
    )
    x = g.op("Add", x, g.linear(gated, "/out_proj", value_width, width), name="/Add")
    hidden = g.gelu(g.linear(g.layer_norm(x, "/final_layer_norm", width), "/fc1", width, inner), "/gelu")
    g.output("out", g.op("Add", x, g.linear(hidden, "/fc2", inner, width), name="/Add_1"), b, 1, width)
    g.output("new_state", new_state, b, heads, size, value_size)
    return g
