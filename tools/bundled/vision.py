"""Tiny ViT, ResNet-18 and NeRF, and ResNet-18 in full size."""

from __future__ import annotations

import numpy as np

from bundled.builder import Builder


def vit(dtype: str) -> Builder:
    """Return a vision transformer of one layer on 16x16 pictures."""
    b, picture, patch, width, heads, inner, classes = 1, 16, 8, 32, 2, 64, 10
    size, n_patches = width // heads, (picture // patch) ** 2
    s = n_patches + 1
    g = Builder("vit", dtype, seed=5)
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
    x = g.op("Concat", g.weight("cls_token", b, 1, width, scale=1.0), rows, name="/Concat", axis=1)
    x = g.op("Add", x, g.weight("position", 1, s, width, scale=1.0), name="/Add")
    normed = g.layer_norm(x, "/layernorm_before", width)
    q, k, v = (
        g.heads(g.linear(normed, f"/attention/{n}", width, width), f"/attention/{n}", b, s, heads, size)
        for n in ("query", "key", "value")
    )
    mixed = g.merged(g.attention(q, k, v, "", "/attention", size), "/attention", b, s, width)
    x = g.op("Add", g.linear(mixed, "/attention/output", width, width), x, name="/Add_1")
    hidden = g.gelu(
        g.linear(g.layer_norm(x, "/layernorm_after", width), "/intermediate", width, inner), "/gelu"
    )
    x = g.op("Add", g.linear(hidden, "/output", inner, width), x, name="/Add_2")
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
) -> Builder:
    """Return ResNet-18, narrow and small; `widths=(64, 128, 256, 512), picture=224, classes=1000` is its full size."""
    g = Builder("resnet18", dtype, seed=6)
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


def nerf(dtype: str) -> Builder:
    """Return the radiance field's MLP with a skip connection, narrow."""
    rays, width = 24, 32
    g = Builder("nerf", dtype, seed=7)
    pos, view = g.input("pos", rays, 63), g.input("view", rays, 27)

    def gemm(x: str, name: str, n_in: int, n_out: int) -> str:
        weight, bias = (
            g.weight(f"{name}.weight", n_out, n_in, scale=n_in**-0.5),
            g.weight(f"{name}.bias", n_out, scale=0.1),
        )
        return g.op("Gemm", x, weight, bias, name=f"{name}/Gemm", transB=1)

    x = g.op("Relu", gemm(pos, "/layer0", 63, width), name="/layer0/Relu")
    x = g.op(
        "Relu",
        gemm(g.op("Concat", x, pos, name="/Concat", axis=1), "/layer1", width + 63, width),
        name="/layer1/Relu",
    )
    sigma = gemm(x, "/sigma", width, 1)
    x = g.op("Concat", gemm(x, "/feature", width, width), view, name="/Concat_1", axis=1)
    x = g.op("Relu", gemm(x, "/view", width + 27, 16), name="/view/Relu")
    g.output("rgb", g.op("Sigmoid", gemm(x, "/rgb", 16, 3), name="/Sigmoid"), rays, 3)
    g.output("sigma", sigma, rays, 1)
    return g
