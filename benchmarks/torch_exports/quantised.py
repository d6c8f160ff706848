"""Quantised modules: fake quantisation, as it is exported after training, and integers between two conversions."""

from __future__ import annotations

import importlib
from typing import Any

from torch_exports.sample import Built, Computed, numbers, sample, torch

nn: Any = torch.nn
F: Any = torch.nn.functional
_FAKE: Any = torch.fake_quantize_per_tensor_affine
_FAKE_ROWS: Any = torch.fake_quantize_per_channel_affine


@sample()
def fake_quantised_linear() -> Built:
    def forward(m: Any, x: Any) -> Any:
        y = F.linear(_FAKE(x, 0.05, 3, -128, 127), _FAKE(m.layer.weight, 0.01, 0, -128, 127), m.layer.bias)
        return _FAKE(F.relu(y), 0.04, 10, 0, 255)

    return Computed(forward, layer=nn.Linear(16, 8)), (numbers(3, 16),)


@sample()
def fake_quantised_convolution() -> Built:
    def forward(m: Any, x: Any) -> Any:
        w = _FAKE_ROWS(m.layer.weight, m.scales, m.zeros, 0, -128, 127)
        y = F.conv2d(_FAKE(x, 0.05, 128, 0, 255), w, m.layer.bias, padding=1)
        return F.max_pool2d(_FAKE(y, 0.03, -4, -128, 127), 2)

    scales = torch.rand(6) * 0.01 + 0.002
    return Computed(
        forward,
        layer=nn.Conv2d(3, 6, 3),
        scales=nn.Buffer(scales),
        zeros=nn.Buffer(torch.zeros(6, dtype=torch.int32)),
    ), (numbers(1, 3, 6, 6),)


@sample()
def quantised_tensors() -> Built:
    importlib.import_module("torch.ao.quantization.fx._decomposed")  # registers the operators
    ops: Any = torch.ops.quantized_decomposed
    i8 = torch.int8

    def forward(m: Any, x: Any) -> Any:
        q = ops.quantize_per_tensor(x, 0.04, -5, -128, 127, i8)
        w = ops.dequantize_per_tensor(m.weight, 0.01, 0, -128, 127, i8)
        y = F.linear(ops.dequantize_per_tensor(q, 0.04, -5, -128, 127, i8), w)
        return ops.dequantize_per_tensor(
            ops.quantize_per_tensor(y, 0.1, 2, -128, 127, i8), 0.1, 2, -128, 127, i8
        )

    weight = torch.randint(-127, 128, (8, 16), dtype=i8)
    return Computed(forward, weight=nn.Buffer(weight)), (numbers(3, 16),)
