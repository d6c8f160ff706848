"""Small modules with inputs, kept by name: what a file of modules writes with `@sample()`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

torch: Any = importlib.import_module("torch")

WEIGHTS_SEED = 0
Tolerance = tuple[float, float]
F32: Tolerance = (1e-4, 1e-5)
F16: Tolerance = (5e-3, 5e-3)
"""An element y may differ from a reference r by `rtol * |r| + atol`."""

Built = tuple[Any, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Sample:
    """A module and its inputs, made anew at each call of `build`; `open_axes`: the open axis, by number of an input."""

    name: str
    build: Callable[[], Built]
    tolerance: Tolerance = F32
    open_axes: Mapping[int, int] = field(default_factory=dict[int, int])


SAMPLES: dict[str, Sample] = {}


def sample(
    tolerance: Tolerance = F32, open_axes: Mapping[int, int] | None = None
) -> Callable[[Callable[[], Built]], Callable[[], Built]]:
    """Keep what a function builds under the function's name."""

    def keep(build: Callable[[], Built]) -> Callable[[], Built]:
        name = build.__name__

        def seeded() -> Built:
            torch.manual_seed(WEIGHTS_SEED)
            module, inputs = build()
            return module.eval(), inputs

        SAMPLES[name] = Sample(name, seeded, tolerance, open_axes or {})
        return build

    return keep


class Computed(torch.nn.Module):
    """A module of named parts and a function `compute(module, *inputs)`."""

    def __init__(self, compute: Callable[..., Any], **parts: Any) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - PyTorch is optional
        self.compute = compute
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        """Return what `compute` makes of the inputs."""
        return self.compute(self, *inputs)


def numbers(*shape: int) -> Any:
    """Return normally distributed f32."""
    return torch.randn(*shape)


def integers(low: int, high: int, *shape: int, dtype: Any = None) -> Any:
    """Return integers from `low` to `high` - 1, of 64 bits unless told."""
    return torch.randint(low, high, shape, dtype=dtype or torch.int64)
