#!/usr/bin/env python3
"""A PyTorch module, exported and planned, then behind `torch.compile`; needs PyTorch.

python examples/from_torch.py
"""

from __future__ import annotations

import torch

import t10
from t10.torch_backend import backend


def main() -> None:
    """Compile a small network both ways and compare with PyTorch."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10)).eval()
    x = torch.randn(8, 64)
    with torch.no_grad():
        wanted = module(x)

        executable = t10.compile(torch.export.export(module, (x,)), chip="test-16")
        (found,) = executable.run({executable.inputs[0].name: x.numpy()}).values()
        print(f"torch.export: error {abs(found - wanted.numpy()).max():.1e}, "
              f"{executable.report().total_cycles:,} cycles (modelled)")  # fmt: skip

        # Where t10 is installed, backend="t10" finds the same function.
        compiled = torch.compile(module, backend=backend, options={"chip": "test-16"}, dynamic=False)
        print(f"torch.compile: error {(compiled(x) - wanted).abs().max():.1e}")


if __name__ == "__main__":
    main()
