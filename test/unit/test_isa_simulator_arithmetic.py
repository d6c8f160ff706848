"""Arithmetic in bulk against numpy: every f16, random pairs of f16 and f32 with denormals, infinities and NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.isa_float_models import (
    MODELS,
    larger,
    one_over,
    one_over_root,
    sigmoid,
    smaller,
    to_half,
    to_word,
)
from support.isa_forms import Inputs
from support.isa_programs import Bench

Array = NDArray[Any]
X, Y, OUT = 0x50000, 0x60000, 0x70000
N_WORDS = 8192
"""Words of each operand: 32 KiB."""

LOOP = """
ENTRY:
  ld32 $m0, $mvertex_base, 0
  ld32 $m1, $mvertex_base, 1
  ld32 $m2, $mvertex_base, 2
  ld32 $m3, $mvertex_base, 3
  get $m4, $WSR
  and $m4, $m4, 7
  brnz $m4, 2f
1:
  ld64step $a0:1, $mzero, $m0+=, 1
  ld64step $a2:3, $mzero, $m1+=, 1
  {instruction}
  st64step $a4:5, $mzero, $m2+=, 1
  brnzdec $m3, 1b
2:
  exitz $mzero
"""


def applied(instruction: str, x: Array, y: Array) -> NDArray[np.uint32]:
    """Return $a4:5 of an instruction on $a0:1 and $a2:3 from arrays of words, pair by pair."""
    bench = Bench(LOOP.format(instruction=instruction))
    out = [np.zeros(0, np.uint32)]
    for first in range(0, len(x), N_WORDS):
        part = slice(first, first + N_WORDS)
        bench.put(X, x[part])
        bench.put(Y, y[part])
        bench.run(X, Y, OUT, len(x[part]) // 2 - 1)
        out.append(bench.get(OUT, len(x[part]), np.uint32))
    return np.concatenate(out)


def random_words(seed: int, n: int) -> NDArray[np.uint32]:
    """Return uniform bits, a quarter of them of moderate exponent as f32, a quarter as f16."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 1 << 32, n, np.uint32)
    bits[: n // 4] = random.normal(0, 100, n // 4).astype(np.float32).view(np.uint32)
    bits[n // 4 : n // 2] = random.normal(0, 30, n // 2 - n // 4 << 1).astype(np.float16).view(np.uint32)
    return random.permutation(bits)


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": larger,
    "min": smaller,
}

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "ln": np.log,
    "log2": np.log2,
    "tanh": np.tanh,
    "sigm": sigmoid,
    "oox": one_over,
    "oorx": one_over_root,
    "sqrt": np.sqrt,
}


@pytest.mark.parametrize("op", BINARY)
def test_f16_arithmetic_rounds_as_ieee_754_says(op: str) -> None:
    x, y = random_words(1, 2 * N_WORDS), random_words(2, 2 * N_WORDS)
    with np.errstate(all="ignore"):
        exact = BINARY[op](x.view(np.float16).astype(np.float64), y.view(np.float16).astype(np.float64))
    assert np.array_equal(applied(f"f16v4{op} $a4:5, $a0:1, $a2:3", x, y), to_half(exact))


@pytest.mark.parametrize("op", BINARY)
def test_f32_arithmetic_rounds_as_ieee_754_says(op: str) -> None:
    x, y = random_words(3, 2 * N_WORDS), random_words(4, 2 * N_WORDS)
    with np.errstate(all="ignore"):
        expected = to_word(BINARY[op](x.view(np.float32), y.view(np.float32)))
    assert np.array_equal(applied(f"f32v2{op} $a4:5, $a0:1, $a2:3", x, y), expected)


def test_every_f16_becomes_the_f32_of_the_same_value_and_comes_back() -> None:
    every = np.arange(1 << 16, dtype=np.uint32)
    pairs = np.repeat(every, 2)
    wide = applied("f16v2tof32 $a4:5, $a0", pairs, pairs)[::2]
    with np.errstate(all="ignore"):
        expected = to_word(every.astype(np.uint16).view(np.float16).astype(np.float32))
    assert np.array_equal(wide, expected)
    back = applied("f32v4tof16 $a4:5, $a0:3", np.repeat(wide, 2), np.repeat(wide, 2))[::2] & 0xFFFF
    is_nan = np.isnan(expected.view(np.float32))
    assert np.array_equal(back[~is_nan], every[~is_nan])
    assert set(back[is_nan].tolist()) == {0x7E00}


def test_f32_becomes_the_nearest_f16() -> None:
    random = np.random.default_rng(5)
    exponents = random.integers(90, 146, 4 * N_WORDS).astype(np.uint32) << 23
    x = exponents | random.integers(0, 1 << 23, 4 * N_WORDS, np.uint32)
    ties = x[:N_WORDS] & ~np.uint32(0x1FFF) | np.uint32(0x1000)
    x = np.concatenate([x, ties, x[:N_WORDS] | np.uint32(1 << 31)])
    found = applied("f32v2tof16 $a4, $a0:1\n f32v2tof16 $a5, $a0:1", x, x)[::2]
    assert np.array_equal(found, to_half(x.view(np.float32)))


@pytest.mark.parametrize("mnemonic", FUNCTIONS)
def test_functions_are_the_f32_nearest_to_the_value_in_double(mnemonic: str) -> None:
    function = FUNCTIONS[mnemonic]
    x = np.abs(random_words(6, N_WORDS).view(np.float32))
    found = applied(f"f32{mnemonic} $a4, $a0\n f32{mnemonic} $a5, $a1", x.view(np.uint32), x.view(np.uint32))
    with np.errstate(all="ignore"):
        expected = to_word(function(x.astype(np.float64)))
    # Two libraries of functions may differ in the last bit of a double, and so, rarely, in that of an f32.
    distance = np.abs(found.astype(np.int64) - expected.astype(np.int64))
    assert distance.max() <= 1
    assert np.count_nonzero(distance) <= 2


@pytest.mark.parametrize("mnemonic", ["exp", "exp2", "ln", "log2", "tanh", "sigm"])
def test_functions_of_every_f16_are_rounded_once(mnemonic: str) -> None:
    # Rounded to f32 first, some of them would come to lie halfway between two f16.
    every = np.arange(1 << 16, dtype=np.uint16).view(np.uint32)
    function = f"f16v2{mnemonic}"
    found = applied(f"{function} $a4, $a0\n {function} $a5, $a1", every, every)
    assert np.array_equal(found, MODELS[function](Inputs({"x": every}))["d"])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 0xFFFFFFFF))
def test_division_rounds_once(x: int, y: int) -> None:
    pair = np.array([[x, x], [y, y]], np.uint32)
    with np.errstate(all="ignore"):
        expected = to_word(pair[0].view(np.float32) / pair[1].view(np.float32))
    found = applied("f32div $a4, $a0, $a2\n f32div $a5, $a1, $a3", pair[0], pair[1])
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("operation", "mixed"), [("max", 0x0000), ("min", 0x8000)])
def test_plus_zero_is_above_minus_zero(operation: str, mixed: int) -> None:
    plus, minus = 0x0000, 0x8000
    x, y = np.array([[plus, minus, plus, minus], [minus, plus, plus, minus]], np.uint32)
    due = np.array([mixed, mixed, plus, minus], np.uint32)
    words = applied(f"f32v2{operation} $a4:5, $a0:1, $a2:3", x << 16, y << 16)
    assert words.tolist() == (due << 16).tolist()
    halves = applied(f"f16v4{operation} $a4:5, $a0:1, $a2:3", x | x << 16, y | y << 16)
    assert halves.tolist() == (due | due << 16).tolist()
