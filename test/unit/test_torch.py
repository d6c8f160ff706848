"""Programs of torch.export and graphs of torch.compile compute what PyTorch computes, where that is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t10
from t10.errors import InputError, UnsupportedOpError

torch: Any = pytest.importorskip("torch", reason="PyTorch is optional")


def assert_same(found: Any, wanted: Any) -> None:
    """Compare tensors, or tuples of them."""

    def many(value: Any) -> list[Any]:
        if not isinstance(value, tuple):
            return [value]
        return [*value]  # pyright: ignore[reportUnknownVariableType] - PyTorch is optional

    for got, tensor in zip(many(found), many(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(got), tensor.numpy(), rtol=1e-4, atol=1e-5)


class Block(torch.nn.Module):
    """Attention with a residual, a buffer and a normalisation."""

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - PyTorch is optional
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.norm = torch.nn.LayerNorm(16)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 16))

    def forward(self, x: Any) -> Any:
        normal = self.norm(x)
        mixed, _ = self.attention(normal, normal, normal, need_weights=False)
        return x + mixed * self.scale, x.mean(1)


class Picture(torch.nn.Module):
    """Convolutions, batch normalisation, pooling."""

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - PyTorch is optional
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.second = torch.nn.Conv2d(8, 16, 3, stride=2)

    def forward(self, x: Any) -> Any:
        hidden = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        return self.second(hidden).mean((2, 3))


class Words(torch.nn.Module):
    """A look-up and a product."""

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - PyTorch is optional
        self.table = torch.nn.Embedding(20, 8)
        self.out = torch.nn.Linear(8, 4)

    def forward(self, ids: Any) -> Any:
        return torch.log_softmax(self.out(self.table(ids)), -1)


def case(kind: str) -> tuple[Any, Any]:
    torch.manual_seed(3)
    module, x = {
        "block": (Block, torch.randn(1, 8, 16)),
        "picture": (Picture, torch.randn(1, 3, 12, 12)),
        "words": (Words, torch.randint(0, 20, (2, 5))),
    }[kind]
    return module().eval(), x


@pytest.mark.parametrize("kind", ["block", "picture", "words"])
def test_exported_programs_compute_what_pytorch_computes(kind: str) -> None:
    module, x = case(kind)
    executable = t10.compile(torch.export.export(module, (x,)), chip="test-4")
    assert set(executable.weights) <= set(dict(module.named_parameters()) | dict(module.named_buffers()))
    found = executable.run({executable.inputs[0].name: x.numpy()})
    with torch.no_grad():
        wanted = module(x)
    results = tuple(found[name] for name in executable.output_names)
    assert_same(results, wanted if isinstance(wanted, tuple) else (wanted,))


@pytest.mark.parametrize("kind", ["block", "words"])
def test_compiled_modules_compute_what_pytorch_computes_and_keep_their_weights(kind: str) -> None:
    from t10.torch_backend import backend, executables

    module, x = case(kind)
    compiled = torch.compile(module, backend=backend, options={"chip": "test-4"}, dynamic=False)
    with torch.no_grad():
        found, wanted = compiled(x), module(x)
        again = compiled(x + x if kind == "block" else x)
        wanted_again = module(x + x if kind == "block" else x)
    assert_same(found, wanted)
    assert_same(again, wanted_again)
    assert len(executables()[-1].inputs) == 1
    assert len(executables()[-1].weights) == len(
        dict(module.named_parameters()) | dict(module.named_buffers())
    )


def test_unknown_options_are_named() -> None:
    from t10.torch_backend import backend

    module, x = case("words")
    compiled = torch.compile(module, backend=backend, options={"tiles": 4}, dynamic=False)
    with torch.no_grad(), pytest.raises(Exception, match="unknown options tiles"):
        compiled(x)


def test_dynamic_dims_are_refused_by_the_name_of_the_input() -> None:
    module, x = case("block")
    program = torch.export.export(
        module, (x.repeat(3, 1, 1),), dynamic_shapes=({0: torch.export.Dim("batch")},)
    )
    with pytest.raises(InputError, match="'x' has shape"):
        t10.compile(program, chip="test-4")


def test_programs_that_change_their_state_are_refused() -> None:
    module, x = case("picture")
    with pytest.raises(UnsupportedOpError, match="evaluation mode"):
        t10.compile(torch.export.export(module.train(), (x.repeat(2, 1, 1, 1),)), chip="test-4")


def test_the_backend_is_found_by_its_name_in_the_package() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert 't10 = "t10.torch_backend:backend"' in text
