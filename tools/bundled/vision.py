"""ViT, ResNet-18 and NeRF; by default tiny."""

from __future__ import annotations

import numpy as np

from bundled.builder import Builder
from bundled.transformers import Sizes


def vit(
    dtype: str,
    sizes: Sizes | None = None,
    *,
    picture: int = 16,
    patch: int = 8,
    classes: int = 10,
    weight_free: bool = False,
) -> Builder:
    """Return a vision transformer; the pictures decide how many tokens there are, `sizes.length` does not."""
    sizes = sizes or Sizes(batch=1)
    b, width, n_patches = sizes.batch, sizes.width, (picture // patch) ** 2
    s = n_patches + 1
    g = Builder("vit", dtype, seed=5, weight_free=weight_free)
    pixels = g.input("pixel_values", b, 3, picture, picture)
    kernel = g.weight("patch.weight", width, 3, patch, patch, scale=0.07)
    cells = g.op(
        "Conv",
        pixels,
        kernel,
        g.weight("patch.bias", width, scale=0.1),
        name="/patch/Conv",
        strides=[patch, patch],
    )
    rows = g.op("Reshape", cells, g.ints(b, width, n_patches), name="/patch/Reshape")
    rows = g.op("Transpose", rows, name="/patch/Transpose", perm=[0, 2, 1])
    token = g.weight("cls_token", 1, 1, width, scale=1.0)
    if b > 1:
        token = g.op("Expand", token, g.ints(b, 1, width), name="/Expand")
    x = g.op("Concat", token, rows, name="/Concat", axis=1)
    x = g.op("Add", x, g.weight("position", 1, s, width, scale=1.0), name="/Add")
    for name in sizes.layer_names():
        x = _vit_layer(g, x, name, sizes, s)
    first = g.op(
        "Gather",
        g.layer_norm(x, "/layernorm", width),
        g.constant(np.array(0, np.int64)),
        name="/Gather",
        axis=1,
    )
    weight, bias = (
        g.weight("classifier.weight", classes, width),
        g.weight("classifier.bias", classes, scale=0.1),
    )
    g.output("logits", g.op("Gemm", first, weight, bias, name="/classifier/Gemm", transB=1), b, classes)
    return g


def _vit_layer(g: Builder, x: str, name: str, sizes: Sizes, n_tokens: int) -> str:
    """Add ViT's layer: a normalisation before attention and MLP, each with a residual."""
    b, width, heads = sizes.batch, sizes.width, sizes.heads
    at = f"{name}/attention"
    normed = g.layer_norm(x, f"{name}/layernorm_before", width)
    q, k, v = (
        g.heads(g.linear(normed, f"{at}/{n}", width, width), f"{at}/{n}", b, n_tokens, heads, sizes.head)
        for n in ("query", "key", "value")
    )
    mixed = g.merged(g.attention(q, k, v, "", at, sizes.head), at, b, n_tokens, width)
    x = g.op("Add", g.linear(mixed, f"{at}/output", width, width), x, name=f"{name}/Add_1")
    normed = g.layer_norm(x, f"{name}/layernorm_after", width)
    hidden = g.gelu(g.linear(normed, f"{name}/intermediate", width, sizes.inner), f"{name}/gelu")
    return g.op("Add", g.linear(hidden, f"{name}/output", sizes.inner, width), x, name=f"{name}/Add_2")


def _convolution(g: Builder, x: str, name: str, n_in: int, n_out: int, kernel: int, stride: int) -> str:
    weight = g.weight(f"{name}.weight", n_out, n_in, kernel, kernel, scale=(n_in * kernel * kernel) ** -0.5)
    bias = g.weight(f"{name}.bias", n_out, scale=0.1)
    pad = kernel // 2
    return g.op("Conv", x, weight, bias, name=f"{name}/Conv", strides=[stride, stride], pads=[pad] * 4)


def _block(g: Builder, x: str, name: str, n_in: int, n_out: int, stride: int) -> str:
    """Add a basic residual block (batch normalisation folded into the convolutions)."""
    inner = g.op("Relu", _convolution(g, x, f"{name}/conv1", n_in, n_out, 3, stride), name=f"{name}/Relu")
    made = _convolution(g, inner, f"{name}/conv2", n_out, n_out, 3, 1)
    if n_in != n_out or stride != 1:
        x = _convolution(g, x, f"{name}/downsample", n_in, n_out, 1, stride)
    return g.op("Relu", g.op("Add", made, x, name=f"{name}/Add"), name=f"{name}/Relu_1")


def resnet18(
    dtype: str,
    *,
    batch: int = 1,
    picture: int = 32,
    widths: tuple[int, ...] = (4, 6, 8, 10),
    classes: int = 10,
    weight_free: bool = False,
) -> Builder:
    """Return ResNet-18, narrow and small; `widths=(64, 128, 256, 512), picture=224, classes=1000` is its full size."""
    g = Builder("resnet18", dtype, seed=6, weight_free=weight_free)
    x = g.input("pixel_values", batch, 3, picture, picture)
    x = g.op("Relu", _convolution(g, x, "/conv1", 3, widths[0], 7, 2), name="/Relu")
    x = g.op("MaxPool", x, name="/MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    n_in = widths[0]
    for stage, n_out in enumerate(widths):
        for block in range(2):
            stride = 2 if stage and not block else 1
            x = _block(g, x, f"/layer{stage + 1}/{block}", n_in, n_out, stride)
            n_in = n_out
    pooled = g.op("ReduceMean", x, g.ints(2, 3), name="/ReduceMean", keepdims=1)
    flat = g.op("Reshape", pooled, g.ints(batch, n_in), name="/Reshape")
    weight, bias = (
        g.weight("fc.weight", classes, n_in, scale=n_in**-0.5),
        g.weight("fc.bias", classes, scale=0.1),
    )
    g.output("logits", g.op("Gemm", flat, weight, bias, name="/fc/Gemm", transB=1), batch, classes)
    return g


def nerf(
    dtype: str, *, rays: int = 24, width: int = 32, before_skip: int = 1, weight_free: bool = False
) -> Builder:
    """Return the radiance field's MLP with a skip connection behind `before_skip` layers."""
    g = Builder("nerf", dtype, seed=7, weight_free=weight_free)
    pos, view = g.input("pos", rays, 63), g.input("view", rays, 27)

    def gemm(x: str, name: str, n_in: int, n_out: int) -> str:
        weight, bias = (
            g.weight(f"{name}.weight", n_out, n_in, scale=n_in**-0.5),
            g.weight(f"{name}.bias", n_out, scale=0.1),
        )
        return g.op("Gemm", x, weight, bias, name=f"{name}/Gemm", transB=1)

    x, n_in = pos, 63
    for layer in range(before_skip):
        x = g.op("Relu", gemm(x, f"/layer{layer}", n_in, width), name=f"/layer{layer}/Relu")
        n_in = width
    last = f"/layer{before_skip}"
    joined = g.op("Concat", x, pos, name="/Concat", axis=1)
    x = g.op("Relu", gemm(joined, last, n_in + 63, width), name=f"{last}/Relu")
    sigma = gemm(x, "/sigma", width, 1)
    x = g.op("Concat", gemm(x, "/feature", width, width), view, name="/Concat_1", axis=1)
    x = g.op("Relu", gemm(x, "/view", width + 27, width // 2), name="/view/Relu")
    g.output("rgb", g.op("Sigmoid", gemm(x, "/rgb", width // 2, 3), name="/Sigmoid"), rays, 3)
    g.output("sigma", sigma, rays, 1)
    return g
