"""Control flow: loops of scripted functions, scans, and conditions."""

from __future__ import annotations

import importlib
from typing import Any

from torch_exports.sample import Built, Computed, numbers, sample, torch

nn: Any = torch.nn


_SCRIPTS: Any = torch.jit.CompilationUnit("""
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
""")


@sample()
def scripted_loop() -> Built:
    def forward(m: Any, x: Any) -> Any:
        return _SCRIPTS.powers(x, m.w)

    return Computed(forward, w=nn.Parameter(numbers(6, 6))), (numbers(3, 6),)


@sample()
def scripted_recurrence() -> Built:
    def forward(m: Any, x: Any) -> Any:
        return _SCRIPTS.collected(x, m.w)

    return Computed(forward, w=nn.Parameter(numbers(6, 6) * 0.3)), (numbers(4, 2, 6),)


@sample()
def scripted_condition() -> Built:
    def forward(_: Any, x: Any) -> Any:
        return _SCRIPTS.chosen(x), _SCRIPTS.chosen(x[:2, 0])

    return Computed(forward), (numbers(3, 2, 4),)


@sample()
def scan() -> Built:
    scan_of: Any = importlib.import_module("torch._higher_order_ops.scan").scan

    def step(state: Any, row: Any) -> Any:
        state = torch.tanh(state * 0.5 + row)
        return state, state * 2

    def forward(_: Any, start: Any, rows: Any) -> Any:
        return scan_of(step, start, rows)

    return Computed(forward), (numbers(2, 4), numbers(5, 2, 4))
