"""The architectures as PyTorch modules with random weights; shapes are those of `planner.models`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

torch: Any = importlib.import_module("torch")
nn: Any = torch.nn
functional: Any = nn.functional
CONTEXT = 512
Built = tuple[Any, list[Any]]
"""A module and its inputs."""


class _Layer(nn.Module):
    """A transformer layer on whole sequences: `is_before` says where it normalises."""

    def __init__(self, width: int, heads: int, inner: int, *, is_before: bool) -> None:
        nn.Module.__init__(self)
        self.heads, self.is_before = heads, is_before
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def attended(self, x: Any) -> Any:
        b, n, width = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(b, n, width))

    def forward(self, x: Any) -> Any:
        if self.is_before:
            x = x + self.attended(self.first(x))
            return x + self.down(functional.gelu(self.up(self.second(x))))
        x = self.first(x + self.attended(x))
        return self.second(x + self.down(functional.gelu(self.up(x))))


class _Bert(nn.Module):
    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.words, self.places = nn.Embedding(30522, 1024), nn.Embedding(128, 1024)
        self.norm = nn.LayerNorm(1024)
        self.layers = nn.Sequential(*(_Layer(1024, 16, 4096, is_before=False) for _ in range(24)))

    def forward(self, words: Any) -> Any:
        return self.layers(self.norm(self.words(words) + self.places.weight))


class _Vit(nn.Module):
    def __init__(self, patch: int) -> None:
        nn.Module.__init__(self)
        self.patches = nn.Conv2d(3, 768, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, 768))
        self.places = nn.Parameter(torch.randn(1, 1 + (224 // patch) ** 2, 768))
        self.layers = nn.Sequential(*(_Layer(768, 12, 3072, is_before=True) for _ in range(12)))
        self.norm, self.head = nn.LayerNorm(768), nn.Linear(768, 1000)

    def forward(self, picture: Any) -> Any:
        x = self.patches(picture).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x)[:, 0]))


class _Block(nn.Module):
    """Two convolutions of ResNet-18, normalisation folded, and the way around them."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        nn.Module.__init__(self)
        self.first = nn.Conv2d(n_in, n_out, 3, stride, 1)
        self.second = nn.Conv2d(n_out, n_out, 3, 1, 1)
        self.around = nn.Identity() if n_in == n_out else nn.Conv2d(n_in, n_out, 1, stride)

    def forward(self, x: Any) -> Any:
        return functional.relu(self.around(x) + self.second(functional.relu(self.first(x))))


class _Resnet18(nn.Module):
    def __init__(self) -> None:
        nn.Module.__init__(self)
        widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
        self.first = nn.Conv2d(3, 64, 7, 2, 3)
        self.blocks = nn.Sequential(*(_Block(a, b, 1 if a == b else 2) for a, b in pairwise(widths)))
        self.head = nn.Linear(512, 1000)

    def forward(self, picture: Any) -> Any:
        x = functional.max_pool2d(functional.relu(self.first(picture)), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


class _Nerf(nn.Module):
    def __init__(self) -> None:
        nn.Module.__init__(self)
        sizes = {
            "a": (63, 64),
            "b": (64, 64),
            "c": (127, 64),
            "feature": (64, 64),
            "view": (91, 32),
            "rgb": (32, 3),
        }
        for name, (n_in, n_out) in sizes.items():
            setattr(self, name, nn.Linear(n_in, n_out))
        self.sigma = nn.Linear(64, 1)

    def forward(self, place: Any, view: Any) -> Any:
        x = functional.relu(self.b(functional.relu(self.a(place))))
        x = functional.relu(self.c(torch.cat([x, place], 1)))
        seen = functional.relu(self.view(torch.cat([self.feature(x), view], 1)))
        return torch.sigmoid(self.rgb(seen)), self.sigma(x)


class _Decoder(nn.Module):
    """One layer that makes one token per request; the caches hold `CONTEXT` tokens, the new one is written last."""

    def __init__(self, width: int, heads: int, inner: int, *, is_gated: bool) -> None:
        nn.Module.__init__(self)
        self.heads, self.is_gated, bias = heads, is_gated, not is_gated
        self.qkv, self.out = nn.Linear(width, 3 * width, bias), nn.Linear(width, width, bias)
        self.up, self.down = nn.Linear(width, inner * (1 + is_gated), bias), nn.Linear(inner, width, bias)
        norm = nn.RMSNorm if is_gated else nn.LayerNorm
        self.first, self.second = norm(width), norm(width)

    def forward(self, x: Any, keys: Any, values: Any, cos: Any, sin: Any) -> Any:
        b, _, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, 1, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.is_gated:
            q, k = (each * cos + each.roll(each.shape[-1] // 2, -1) * sin for each in (q, k))
        keys[:, :, -1:], values[:, :, -1:] = k, v
        mixed = functional.scaled_dot_product_attention(q, keys, values)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, 1, width))
        h = self.up(self.second(x))
        if self.is_gated:
            gate, up = h.chunk(2, -1)
            return x + self.down(functional.silu(gate) * up)
        return x + self.down(functional.relu(h))


def _decoder(width: int, heads: int, inner: int, *, is_gated: bool) -> Callable[[int], Built]:
    def build(batch: int) -> Built:
        cache = (batch, heads, CONTEXT, width // heads)
        turns = [torch.rand(width // heads) for _ in range(2)]
        inputs = [torch.randn(batch, 1, width), torch.randn(cache), torch.randn(cache), *turns]
        return _Decoder(width, heads, inner, is_gated=is_gated), inputs

    return build


def _pictures(batch: int) -> list[Any]:
    return [torch.randn(batch, 3, 224, 224)]


BUILDERS: dict[str, Callable[[int], Built]] = {
    "nerf": lambda batch: (_Nerf(), [torch.randn(batch * 65_536, n) for n in (63, 27)]),
    "vit-b16": lambda batch: (_Vit(16), _pictures(batch)),
    "vit-b32": lambda batch: (_Vit(32), _pictures(batch)),
    "bert-large": lambda batch: (_Bert(), [torch.randint(0, 30522, (batch, 128))]),
    "resnet18": lambda batch: (_Resnet18(), _pictures(batch)),
    "opt-1.3b": _decoder(2048, 32, 8192, is_gated=False),
    "opt-13b": _decoder(5120, 40, 20480, is_gated=False),
    "llama2-7b": _decoder(4096, 32, 11008, is_gated=True),
    "llama2-13b": _decoder(5120, 40, 13824, is_gated=True),
}
"""What makes a model and its inputs for a batch."""
