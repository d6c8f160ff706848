"""The architectures of the paper's evaluation at any batch, in f16 and without weights: they are planned, not run.

`batch` counts pictures, sequences or, in a decoding step, requests; NeRF's unit is 65,536 points. Language models that
do not fit one chip as a whole are one layer of a decoding step, as in the paper, with 512 tokens in sight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bundled import transformers, vision
from bundled.builder import Builder
from bundled.transformers import Sizes

DTYPE = "float16"
NERF_POINTS = 65_536
CONTEXT = 512
RESNET_WIDTHS = (64, 128, 256, 512)


@dataclass(frozen=True, slots=True)
class Model:
    """An architecture: `build` makes it for a batch; import and planning have to end within `limit_seconds`."""

    name: str
    build: Callable[[int], Builder]
    limit_seconds: float = 5.0


def nerf(batch: int) -> Builder:
    """Return NeRF's MLP, 64 wide, on 65,536 points per unit of batch."""
    return vision.nerf(DTYPE, rays=batch * NERF_POINTS, width=64, before_skip=2, weight_free=True)


def vit_b16(batch: int) -> Builder:
    """Return ViT-B/16: 197 tokens."""
    return _vit(batch, 16)


def vit_b32(batch: int) -> Builder:
    """Return ViT-B/32: 50 tokens."""
    return _vit(batch, 32)


def bert_large(batch: int) -> Builder:
    """Return BERT-large on sequences of 128 tokens."""
    sizes = Sizes(batch=batch, length=128, width=1024, heads=16, inner=4096, layers=24, words=30522)
    return transformers.bert(DTYPE, sizes, weight_free=True)


def resnet18(batch: int) -> Builder:
    """Return ResNet-18 on 224 x 224 pictures."""
    return vision.resnet18(
        DTYPE, batch=batch, picture=224, widths=RESNET_WIDTHS, classes=1000, weight_free=True
    )


def retnet(batch: int) -> Builder:
    """Return one layer of RetNet-1.3B in its recurrent form."""
    sizes = Sizes(batch=batch, width=2048, heads=8, inner=4096)
    return transformers.retnet(DTYPE, sizes, value_size=512, weight_free=True)


def opt_1_3b(batch: int) -> Builder:
    """Return one layer of OPT-1.3B."""
    return transformers.opt(DTYPE, _decoder(batch, 2048, 32, 8192), weight_free=True)


def opt_2_7b(batch: int) -> Builder:
    """Return one layer of OPT-2.7B."""
    return transformers.opt(DTYPE, _decoder(batch, 2560, 32, 10240), weight_free=True)


def opt_6_7b(batch: int) -> Builder:
    """Return one layer of OPT-6.7B."""
    return transformers.opt(DTYPE, _decoder(batch, 4096, 32, 16384), weight_free=True)


def opt_13b(batch: int) -> Builder:
    """Return one layer of OPT-13B."""
    return transformers.opt(DTYPE, _decoder(batch, 5120, 40, 20480), weight_free=True)


def llama2_7b(batch: int) -> Builder:
    """Return one layer of Llama2-7B."""
    return transformers.llama2(DTYPE, _decoder(batch, 4096, 32, 11008), weight_free=True)


def llama2_13b(batch: int) -> Builder:
    """Return one layer of Llama2-13B."""
    return transformers.llama2(DTYPE, _decoder(batch, 5120, 40, 13824), weight_free=True)


def _vit(batch: int, patch: int) -> Builder:
    sizes = Sizes(batch=batch, width=768, heads=12, inner=3072, layers=12)
    return vision.vit(DTYPE, sizes, picture=224, patch=patch, classes=1000, weight_free=True)


def _decoder(batch: int, width: int, heads: int, inner: int) -> Sizes:
    return Sizes(batch=batch, length=CONTEXT, width=width, heads=heads, inner=inner)


SEVEN = (
    Model("nerf", nerf),
    Model("vit-b16", vit_b16),
    Model("bert-large", bert_large, limit_seconds=10.0),
    Model("resnet18", resnet18),
    Model("retnet-1.3b", retnet),
    Model("opt-13b", opt_13b),
    Model("llama2-13b", llama2_13b),
)
"""One model per architecture; the bars are for these."""

OTHER_SIZES = (
    Model("vit-b32", vit_b32),
    Model("opt-1.3b", opt_1_3b),
    Model("opt-2.7b", opt_2_7b),
    Model("opt-6.7b", opt_6_7b),
    Model("llama2-7b", llama2_7b),
)

MODELS = {model.name: model for model in (*SEVEN, *OTHER_SIZES)}
