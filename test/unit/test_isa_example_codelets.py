"""The codelets of examples/codelets, assembled and executed, against numpy; and the example of docs/ipu-assembly.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from t10.core.codelet import CodeletKind
from t10.core.tile import IPU_MEMORY
from t10.isa.assembler import assemble
from t10.isa.image import Image
from t10.isa.tile import Machine

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "codelets"
BASE = 0x4C000
STATE = 0x60000
STACK_TOP = 0x70000
CODE_BYTES = 0x14000
FIRST, SECOND, THIRD = 0x80000, 0xA0000, 0xC0000
"""Addresses in three different pairs of interleaved elements."""

FILES = sorted(FOLDER.glob("*.S"))


class Tile:
    """A tile with one codelet in it."""

    def __init__(self, file: str) -> None:
        self.image = assemble((FOLDER / file).read_text(encoding="utf-8"), source=str(FOLDER / file))
        self.machine = Machine(1, self.image)
        self.machine.set_options(
            cycle_limit=1_000_000, watch_writes=True, stack_top=STACK_TOP, worker_stack_bytes=0
        )
        self.memory = self.machine.memory(0)
        assert self.image.size_bytes <= CODE_BYTES
        # What nobody wrote must not look like a result.
        self.memory[CODE_BYTES : IPU_MEMORY.size_bytes] = 0x7B

    def put(self, address: int, values: NDArray[Any]) -> None:
        raw = np.ascontiguousarray(values).view(np.uint8).ravel()
        self.memory[address - BASE : address - BASE + len(raw)] = raw

    def get(self, address: int, like: NDArray[Any]) -> NDArray[Any]:
        raw = self.memory[address - BASE : address - BASE + like.nbytes]
        values: NDArray[Any] = raw.view(like.dtype)
        return values.reshape(like.shape)

    def run(self, kind: CodeletKind, *state: int) -> int:
        """Run the only entry with these words as state; return its cycles."""
        self.put(STATE, np.array(state, np.uint32))
        (entry,) = self.image.symbols.values()
        return self.machine.run_vertex(0, entry, STATE, kind)

    def is_untouched(self, address: int, n_bytes: int = 64) -> bool:
        return bool((self.memory[address - BASE : address - BASE + n_bytes] == 0x7B).all())


def random_floats(dtype: type[np.floating[Any]], *shape: int) -> NDArray[Any]:
    random = np.random.default_rng(sum(shape) + 7)
    return random.standard_normal(shape).astype(dtype)


def test_there_are_examples() -> None:
    assert len(FILES) >= 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_defines_one_entry_with_size_and_stack(path: Path) -> None:
    image: Image = assemble(path.read_text(encoding="utf-8"), source=str(path))
    (entry,) = image.symbols
    assert entry.startswith("__runCodelet_example__")
    assert image.sizes == {entry: image.size_bytes}
    assert list(image.stack_bytes) == [entry]


@pytest.mark.parametrize("n", [*range(27), 100, 1001])
def test_vector_add(n: int) -> None:
    tile = Tile("vector_add_float.S")
    a, b = random_floats(np.float32, n), random_floats(np.float32, n + 1)[:n]
    tile.put(FIRST, a)
    tile.put(SECOND, b)
    tile.run("multi", FIRST, SECOND, THIRD, n)
    assert np.array_equal(tile.get(THIRD, a), a + b)
    assert tile.is_untouched(THIRD + 4 * n)


def test_vector_add_takes_one_bundle_per_pair() -> None:
    def cycles(n: int) -> int:
        tile = Tile("vector_add_float.S")
        return tile.run("multi", FIRST, SECOND, THIRD, n)

    # 600 more pairs are 100 more for every worker, six cycles each.
    assert cycles(2400) - cycles(1200) == 100 * 6


@pytest.mark.parametrize("n_groups", [0, 1, 5, 6, 7, 12, 13, 50])
def test_scaled_add(n_groups: int) -> None:
    tile = Tile("scaled_add_half.S")
    x, y = random_floats(np.float16, 4 * n_groups), random_floats(np.float16, 4 * n_groups + 4)[4:]
    scales = np.array([0.75, -1.5], np.float16)
    tile.put(FIRST, x)
    tile.put(SECOND, y)
    tile.run("multi", FIRST, SECOND, n_groups, int(scales.view(np.uint32)[0]))
    alpha, beta = scales.astype(np.float32)
    expected = alpha * x.astype(np.float32) + beta * y.astype(np.float32)
    assert np.array_equal(tile.get(SECOND, y), expected.astype(np.float16))
    assert tile.is_untouched(SECOND + 8 * n_groups)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 4), (2, 24), (3, 28), (17, 100)])
def test_reduce_add(n_rows: int, n_columns: int) -> None:
    tile = Tile("reduce_add_float.S")
    rows = random_floats(np.float32, n_rows, n_columns)
    tile.put(FIRST, rows)
    tile.run("supervisor", FIRST, SECOND, n_rows, n_columns)
    expected = np.zeros(n_columns, np.float32)
    for row in rows:
        expected = (expected + row).astype(np.float32)
    assert np.array_equal(tile.get(SECOND, expected), expected)
    assert tile.is_untouched(SECOND + 4 * n_columns)


@pytest.mark.parametrize(("n_rows", "n_blocks"), [(1, 1), (5, 1), (6, 2), (7, 3), (64, 2)])
def test_matmul(n_rows: int, n_blocks: int) -> None:
    tile = Tile("matmul_half_float.S")
    random = np.random.default_rng(n_rows)
    # Small integers: every order of summation gives the same.
    x = random.integers(-8, 9, (n_rows, 16)).astype(np.float16)
    w = random.integers(-8, 9, (n_blocks, 8, 16)).astype(np.float16)
    tile.put(FIRST, x)
    tile.put(SECOND, w)
    tile.run("supervisor", FIRST, SECOND, THIRD, n_rows, n_blocks)
    expected = np.einsum("ik,ojk->oij", x.astype(np.float32), w.astype(np.float32))
    assert np.array_equal(tile.get(THIRD, expected.astype(np.float32)), expected)
    assert tile.is_untouched(THIRD + expected.size * 4)


def test_matmul_runs_at_the_rate_of_the_engine() -> None:
    def cycles(n_rows: int) -> int:
        tile = Tile("matmul_half_float.S")
        tile.put(FIRST, np.zeros((n_rows, 16), np.float16))
        tile.put(SECOND, np.zeros((8, 16), np.float16))
        return tile.run("supervisor", FIRST, SECOND, THIRD, n_rows, 1)

    # 128 products per row at 32 per cycle: four cycles for every row, since six workers share the pipeline.
    assert cycles(1200) - cycles(600) == 600 * 4


@pytest.mark.parametrize("n_columns", [0, 4, 20, 24, 28, 200])
def test_transpose(n_columns: int) -> None:
    tile = Tile("transpose_half.S")
    rows = random_floats(np.float16, 4, n_columns)
    tile.put(FIRST, rows)
    tile.run("multi", FIRST, SECOND, n_columns)
    assert np.array_equal(tile.get(SECOND, rows.T), rows.T)
    assert tile.is_untouched(SECOND + 8 * n_columns)


def test_the_example_of_the_documentation_runs() -> None:
    text = (ROOT / "docs" / "ipu-assembly.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```asm\n(.*?)```", text, re.DOTALL)
    image = assemble(example)
    machine = Machine(1, image)
    state = np.array([5, FIRST], np.uint32)
    machine.memory(0)[STATE - BASE : STATE - BASE + 8] = state.view(np.uint8)
    machine.run_vertex(0, image.symbols["__runCodelet_demo__Fill"], STATE)
    written = machine.memory(0)[FIRST - BASE : FIRST - BASE + 24].view(np.uint32)
    assert written.tolist() == [0x3C00] * 5 + [0]
