#!/usr/bin/env python3
"""A JAX function as a portable artifact of StableHLO, planned and run; needs JAX.

python examples/from_jax.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import t10


def attention(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """Return one head of attention."""
    scores = query @ key.T / jnp.sqrt(query.shape[-1])
    return jax.nn.softmax(scores, axis=-1) @ value


def main() -> None:
    """Export, compile, run, compare."""
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(32, 16)).astype(np.float32) for _ in range(3)]
    exported = jax.export.export(jax.jit(attention))(*arrays)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attention.mlirbc"
        path.write_bytes(exported.mlir_module_serialized)
        executable = t10.compile(path, chip="test-16")
    names = [value.name for value in executable.inputs]
    (found,) = executable.run(dict(zip(names, arrays, strict=True))).values()
    error = np.abs(found - np.asarray(attention(*arrays))).max()
    print(f"{', '.join(names)}: error {error:.1e}, {executable.report().total_cycles:,} cycles (modelled)")


if __name__ == "__main__":
    main()
