"""Functions for `torch.jit.script`, which takes parameters without annotation as tensors."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import importlib
from typing import Any

torch: Any = importlib.import_module("torch")


def powers(x, w):
    y = x
    for i in range(4):
        y = torch.tanh(y @ w) + 0.1 * i
    return y


def collected(x, w):
    state = x[0]
    rows = []
    for i in range(x.size(0)):
        state = torch.tanh(x[i] + state @ w)
        rows.append(state)
    return torch.stack(rows), state


def chosen(x):
    if x.size(0) > 2:
        y = x * 2
    else:
        y = x - 1
    if x.dim() == 3:
        y = y.sum(0)
    return y
