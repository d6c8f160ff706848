"""What integer, logic and permutation instructions mean, with Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.isa_forms import Inputs, Model, Outputs, words

Binary = Callable[[int, int], int]


def _binary(f: Binary) -> Model:
    def model(i: Inputs) -> Outputs:
        return {"d": words(*(f(int(x), int(y)) for x, y in zip(i.words["x"], i.words["y"], strict=True)))}

    return model


def _unary(f: Callable[[int], int], name: str = "x") -> Model:
    def model(i: Inputs) -> Outputs:
        return {"d": words(*(f(int(x)) for x in i.words[name]))}

    return model


def _bytes(f: Callable[[list[int], list[int]], list[int]]) -> Model:
    def model(i: Inputs) -> Outputs:
        x, y = (list(i.number(name).to_bytes(4, "little")) for name in ("x", "y"))
        return {"d": words(int.from_bytes(bytes(f(x, y)), "little"))}

    return model


def _elements(n_bits: int, f: Callable[[list[int], list[int]], list[int]]) -> Model:
    """Return a model on elements of 16 or 32 bits of two operands."""
    dtype = np.uint16 if n_bits == 16 else np.uint32

    def model(i: Inputs) -> Outputs:
        x = [int(value) for value in i.words["x"].view(dtype)]
        y = [int(value) for value in i.words.get("y", i.words["x"]).view(dtype)]
        return {"d": np.array(f(x, y), dtype).view(np.uint32)}

    return model


def signed(x: int) -> int:
    """Return a 32-bit pattern as a signed integer."""
    return x - (1 << 32) if x >> 31 else x


def _conditional(is_taken: Callable[[int], bool]) -> Model:
    def model(i: Inputs) -> Outputs:
        return {"d": i.words["s"] if is_taken(i.number("q")) else i.words["d"]}

    return model


def _cms(x: int) -> int:
    bits = f"{x:032b}"
    return next((n - 1 for n in range(1, 32) if bits[n] != bits[0]), 31)


def _setzi(i: Inputs) -> Outputs:
    return {"d": words(i.number("imm"))}


def _nothing(i: Inputs) -> Outputs:
    return {}


MODELS: dict[str, Model] = {
    "abs": _unary(lambda x: abs(signed(x))),
    "add": _binary(lambda x, y: x + y),
    "sub": _binary(lambda x, y: x - y),
    "mul": _binary(lambda x, y: x * y),
    "and": _binary(lambda x, y: x & y),
    "andc": _binary(lambda x, y: x & ~y),
    "or": _binary(lambda x, y: x | y),
    "xor": _binary(lambda x, y: x ^ y),
    "xnor": _binary(lambda x, y: ~(x ^ y)),
    "shl": _binary(lambda x, y: x << (y % 32)),
    "shr": _binary(lambda x, y: x >> (y % 32)),
    "shrs": _binary(lambda x, y: signed(x) >> (y % 32)),
    "cmpeq": _binary(lambda x, y: x == y),
    "cmpne": _binary(lambda x, y: x != y),
    "cmpslt": _binary(lambda x, y: signed(x) < signed(y)),
    "cmpult": _binary(lambda x, y: x < y),
    "max": _binary(lambda x, y: max(signed(x), signed(y))),
    "min": _binary(lambda x, y: min(signed(x), signed(y))),
    "movz": _conditional(lambda q: q == 0),
    "movnz": _conditional(lambda q: q != 0),
    "clz": _unary(lambda x: 32 - x.bit_length()),
    "popc": _unary(lambda x: bin(x).count("1")),
    "cms": _unary(_cms),
    "bitrev8": _unary(lambda x: sum(int(f"{x >> 8 * k & 0xFF:08b}"[::-1], 2) << 8 * k for k in range(4))),
    "setzi": _setzi,
    "ldconst": _setzi,
    "mov": _unary(lambda s: s, "s"),
    "atom": _unary(lambda s: s, "s"),
    "nop": _nothing,
    "fnop": _nothing,
    "not": _unary(lambda x: ~x),
    "not64": _unary(lambda x: ~x),
    "and64": _binary(lambda x, y: x & y),
    "andc64": _binary(lambda x, y: x & ~y),
    "or64": _binary(lambda x, y: x | y),
    "roll16": _elements(16, lambda x, y: [x[1], y[0]]),
    "swap16": _elements(16, lambda x, _: [x[1], x[0]]),
    "sort4x16lo": _elements(16, lambda x, y: [x[0], y[0]]),
    "sort4x16hi": _elements(16, lambda x, y: [x[1], y[1]]),
    "roll32": _elements(32, lambda x, y: [x[1], y[0]]),
    "sort4x32lo": _elements(32, lambda x, y: [x[0], y[0]]),
    "sort4x32hi": _elements(32, lambda x, y: [x[1], y[1]]),
    "roll8l": _bytes(lambda x, y: [x[3], y[0], y[1], y[2]]),
    "roll8r": _bytes(lambda x, y: [x[1], x[2], x[3], y[0]]),
    "shuf8x8lo": _bytes(lambda x, y: [x[0], y[0], x[1], y[1]]),
    "shuf8x8hi": _bytes(lambda x, y: [x[2], y[2], x[3], y[3]]),
    "sort8x8lo": _bytes(lambda x, y: [x[0], x[2], y[0], y[2]]),
    "sort8x8hi": _bytes(lambda x, y: [x[1], x[3], y[1], y[3]]),
}
