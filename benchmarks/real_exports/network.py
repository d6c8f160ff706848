"""Networks kept by name: what a library builds of a small configuration, and the inputs it is exported with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from torch_exports.sample import SAMPLES, Built, Computed, Sample, Tolerance, integers, numbers, torch

LIBRARIES: dict[str, str] = {}
"""By name of a network, the library that it needs besides PyTorch; those of none are written here."""

NEAR: Tolerance = (2e-3, 2e-4)
"""Layers add up in another order here than in ONNX Runtime, and networks of random weights amplify it."""
WORDS = 64
"""Entries of vocabularies."""
SMALL: Mapping[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
"""What most configurations of transformers call alike."""


def network(name: str, build: Callable[[], Built], library: str = "", tolerance: Tolerance = NEAR) -> None:
    """Keep a network by name."""

    def seeded() -> Built:
        torch.manual_seed(0)
        module, inputs = build()
        return module.eval(), inputs

    SAMPLES[name] = Sample(name, seeded, tolerance)
    LIBRARIES[name] = library


def library(name: str) -> Any:
    """Return a library, imported when a network is built."""
    return importlib.import_module(name)


def tokens(length: int = 6) -> Any:
    """Return words of one sentence."""
    return integers(3, WORDS, 1, length)


def image(size: int = 32, channels: int = 3) -> Any:
    """Return pixels of one image."""
    return numbers(1, channels, size, size)


def first_of(made: Any) -> Any:
    """Return the tensor that a model of transformers is asked for."""
    for word in ("logits", "last_hidden_state", "prediction_logits", "predicted_depth", "image_embeds"):
        found = getattr(made, word, None)
        if found is not None:
            return found
    return made[0]


def of_config(
    name: str,
    family: str,
    options: Mapping[str, Any],
    inputs: Callable[[], Mapping[str, Any]],
    *,
    head: str = "Model",
    result: Callable[[Any], Any] = first_of,
    call: Mapping[str, Any] | None = None,
    config: str = "",
) -> None:
    """Keep the network `FAMILY + head` of transformers, of the configuration `FAMILY + Config` with some options.

    Attention is written out, and the experts of a mixture are chosen by products: exporters know no others.
    """

    def build() -> Built:
        transformers = library("transformers")
        made = getattr(transformers, f"{config or family}Config")(**options)
        made._attn_implementation = "eager"
        made._experts_implementation = "batched_mm"
        module = getattr(transformers, f"{family}{head}")(made)
        given = inputs()
        names, fixed = tuple(given), dict(call or {})

        def forward(m: Any, *arrays: Any) -> Any:
            return result(m.model(**dict(zip(names, arrays, strict=True)), **fixed))

        return Computed(forward, model=module), tuple(given.values())

    network(name, build, "transformers")
