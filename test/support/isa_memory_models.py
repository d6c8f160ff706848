"""What loads and stores mean, on a numpy array of bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.isa_forms import Inputs, Model, Outputs, Words, words
from t10.core.tile import IPU_MEMORY

MASK = 0xFFFFFFFF


def _read(i: Inputs, address: int, n_bytes: int) -> bytes:
    at = (address & MASK) - IPU_MEMORY.base
    return i.memory[at : at + n_bytes].tobytes()


def _write(i: Inputs, address: int, value: Words) -> None:
    at = (address & MASK) - IPU_MEMORY.base
    i.memory[at : at + 4 * len(value)] = value.view(np.uint8)


def _plain(data: bytes) -> Words:
    return np.frombuffer(data, np.uint32).copy()


def _zero(data: bytes) -> Words:
    return words(int.from_bytes(data, "little"))


def _sign(data: bytes) -> Words:
    return words(int.from_bytes(data, "little", signed=True))


def _both(data: bytes) -> Words:
    return _plain(data * (4 // len(data)))


_LOADS: dict[str, tuple[int, Callable[[bytes], Words]]] = {
    "ld32": (4, _plain),
    "ld64": (8, _plain),
    "ld128": (16, _plain),
    "ldz8": (1, _zero),
    "lds8": (1, _sign),
    "ldz16": (2, _zero),
    "lds16": (2, _sign),
    "ldb16": (2, _both),
    "ldb8": (1, _both),
}
SIZES = {**{name: size for name, (size, _) in _LOADS.items()}, "st32": 4, "st64": 8, "stm32": 4}


def _address(i: Inputs, size: int) -> int:
    delta = i.signed("delta") if "delta" in i.words else 0
    return i.number("base") + delta + size * i.signed("off")


def _load(size: int, shape: Callable[[bytes], Words]) -> Model:
    return lambda i: {"d": shape(_read(i, _address(i, size), size))}


def _load_step(size: int, shape: Callable[[bytes], Words]) -> Model:
    def model(i: Inputs) -> Outputs:
        delta = i.number("delta")
        value = shape(_read(i, i.number("base") + delta, size))
        return {"d": value, "delta": words(delta + size * i.signed("k"))}

    return model


def _store(size: int) -> Model:
    def model(i: Inputs) -> Outputs:
        _write(i, _address(i, size), i.words["s"])
        return {}

    return model


def _store_step(size: int) -> Model:
    def model(i: Inputs) -> Outputs:
        moved = "delta" if "delta" in i.words else "base"
        address = i.number("base") + (i.number("delta") if moved == "delta" else 0)
        _write(i, address, i.words["s"])
        return {moved: words(i.number(moved) + size * i.signed("k"))}

    return model


def _gather(size: int, shape: Callable[[bytes], Words]) -> Model:
    def model(i: Inputs) -> Outputs:
        at = i.number("addr")
        value = shape(_read(i, i.number("base") + i.number("delta"), size))
        return {"d": value, "delta": _zero(_read(i, at, 2)), "addr": words(at + 2)}

    return model


def unpacked(pair: Words) -> list[int]:
    """Return three packed addresses."""
    both = int(pair[0]) | int(pair[1]) << 32
    low, high = both & MASK, both >> 32
    return [low & 0x1FFFFF, high & 0x1FFFFF, low >> 21 | (high >> 21 & 0x3FF) << 11]


def packed(addresses: list[int]) -> Words:
    """Return three addresses in a pair."""
    a0, a1, a2 = (address & 0x1FFFFF for address in addresses)
    return words(a0 | a2 << 21, a1 | a2 >> 11 << 21)


def _steps(i: Inputs, places: tuple[int, ...]) -> Words:
    """Return the packed addresses after those at `places` moved, selectors from the lowest bits on."""
    addresses = unpacked(i.words["tri"])
    for n, place in enumerate(places):
        selector = i.number("sel") >> (2 * n) & 3
        bits = i.number("stride") >> (10 * (selector - 1)) & 0x3FF if selector else 1
        addresses[place] += 8 * (bits - 1024 if bits >= 512 else bits)
    return packed(addresses)


def _pace(destinations: dict[str, tuple[int, ...]], stores: bool, places: tuple[int, ...]) -> Model:
    def model(i: Inputs) -> Outputs:
        addresses = unpacked(i.words["tri"])
        out = {
            name: _plain(b"".join(_read(i, addresses[place], 8) for place in loaded))
            for name, loaded in destinations.items()
        }
        if stores:
            _write(i, addresses[2], i.words["s"])
        return {**out, "tri": _steps(i, places)}

    return model


def _tapack(i: Inputs) -> Outputs:
    return {"d": packed([i.number("a0"), i.number("a1"), i.number("a2")])}


MODELS: dict[str, Model] = {
    **{name: _load(size, shape) for name, (size, shape) in _LOADS.items()},
    **{f"{name}step": _load_step(size, shape) for name, (size, shape) in _LOADS.items()},
    "st32": _store(4),
    "st64": _store(8),
    "stm32": _store(4),
    "st32step": _store_step(4),
    "st64step": _store_step(8),
    "stm32step": _store_step(4),
    "ldd16a32": _gather(4, _plain),
    "ldd16a64": _gather(8, _plain),
    "ldd16b16": _gather(2, _both),
    "ld2x64pace": _pace({"d": (0,), "d1": (1,)}, False, (0, 1)),
    "ldst64pace": _pace({"d": (0,)}, True, (0, 2)),
    "ld2xst64pace": _pace({"d": (0, 1)}, True, (0, 1, 2)),
    "st64pace": _pace({}, True, (2,)),
    "tapack": _tapack,
}
