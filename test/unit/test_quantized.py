"""Quantised operators and networks: on every engine the integers of ONNX Runtime.

ONNX Runtime runs without its own fusions: these replace QDQ pairs by integer kernels, which round elsewhere. Sums in
f32 (of QDQ pairs with any scales) depend on their order, and so may the integer they round to: by one, no more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.engines import by_runtime, on_every_engine, on_simulators
from support.quantized_models import IMAGE, KINDS, TOKENS, WIDTH, Kind, residual_network, transformer_block

Array = NDArray[Any]
QUANTUM = 1


def check(found: dict[str, dict[str, Array]], due: dict[str, Array], n_quanta: int) -> None:
    """Compare the integers of all engines."""
    for engine, outputs in found.items():
        for name, expected in due.items():
            assert outputs[name].dtype == expected.dtype
            distance = np.abs(outputs[name].astype(np.int64) - expected.astype(np.int64))
            assert distance.max() <= n_quanta, (
                f"{engine} {name}: {np.count_nonzero(distance)} of {distance.size}"
            )


def is_spread(values: Array) -> bool:
    """Return whether a network says anything: most of its integers are not at the ends of their range."""
    limits = np.iinfo(values.dtype)
    return float(np.mean((values > limits.min) & (values < limits.max))) > 0.4 and len(np.unique(values)) > 8


@pytest.mark.parametrize("with_operators", [False, True], ids=["qdq", "qlinear"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_residual_networks(kind: Kind, with_operators: bool, tmp_path: Path) -> None:
    model = residual_network(kind, with_operators=with_operators)
    inputs = {"x": np.random.default_rng(5).standard_normal(IMAGE).astype(np.float32)}
    due = by_runtime(model, inputs)
    assert all(is_spread(values) for values in list(due.values())[:2])
    check(on_simulators(model, inputs, tmp_path), due, 0 if kind.is_exact else QUANTUM)


@pytest.mark.parametrize("with_operators", [False, True], ids=["qdq", "qlinear"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_transformer_blocks(kind: Kind, with_operators: bool, tmp_path: Path) -> None:
    model = transformer_block(kind, with_operators=with_operators)
    inputs = {"x": np.random.default_rng(6).standard_normal((TOKENS, WIDTH)).astype(np.float32)}
    due = by_runtime(model, inputs)
    assert all(is_spread(values) for values in due.values())
    found = on_simulators(model, inputs, tmp_path)
    check(found, due, QUANTUM)
    # Before the first exponential everything is exact.
    check(found, dict(list(due.items())[:2]), 0 if kind.is_exact else QUANTUM)


@pytest.mark.parametrize("of", [residual_network, transformer_block])
def test_networks_as_poplar_programs(of: Any, tmp_path: Path) -> None:
    kind = KINDS[1]
    model = of(kind, with_operators=True)
    shape = IMAGE if of is residual_network else (TOKENS, WIDTH)
    inputs = {"x": np.random.default_rng(7).standard_normal(shape).astype(np.float32)}
    check(on_every_engine(model, inputs, tmp_path), by_runtime(model, inputs), QUANTUM)
