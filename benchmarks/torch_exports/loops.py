"""Control flow: loops of scripted functions, scans, and conditions."""

from __future__ import annotations

import importlib
from typing import Any

from torch_exports.sample import Built, Computed, numbers, sample, torch

nn: Any = torch.nn
scripted: Any = importlib.import_module("torch_exports.scripted")


@sample()
def scripted_loop() -> Built:
    run = torch.jit.script(scripted.powers)

    def forward(m: Any, x: Any) -> Any:
        return run(x, m.w)

    return Computed(forward, w=nn.Parameter(numbers(6, 6))), (numbers(3, 6),)


@sample()
def scripted_recurrence() -> Built:
    run = torch.jit.script(scripted.collected)

    def forward(m: Any, x: Any) -> Any:
        return run(x, m.w)

    return Computed(forward, w=nn.Parameter(numbers(6, 6) * 0.3)), (numbers(4, 2, 6),)


@sample()
def scripted_condition() -> Built:
    run = torch.jit.script(scripted.chosen)

    def forward(_: Any, x: Any) -> Any:
        return run(x), run(x[:2, 0])

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
