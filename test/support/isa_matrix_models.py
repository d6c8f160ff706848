"""What accumulating instructions, the matrix engine and the sliding window mean: plain loops in f32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.isa_float_models import halves, to_half, to_word
from support.isa_forms import Floats, Inputs, Model, Outputs, Words

f32 = np.float32


def _added(f: Callable[[Floats], Floats], is_half: bool) -> Model:
    """Return: lanes of x through a function, added to the even accumulators."""

    def model(i: Inputs) -> Outputs:
        x = halves(i.words["x"]) if is_half else i.words["x"].view(np.float32)
        i.acc[0 : 2 * len(x) : 2] += f(x)
        return {}

    return model


def _products(i: Inputs) -> Outputs:
    x, y = (i.words[name].view(np.float32) for name in ("x", "y"))
    i.acc[0 : 2 * len(x) : 2] += x * y
    return {}


def _dots(i: Inputs) -> Outputs:
    for lane, (x, y) in enumerate(zip(halves(i.words["x"]), halves(i.words["y"]), strict=True)):
        i.acc[lane // 2 * 2] += x * y
    return {}


def _axpy(i: Inputs) -> Outputs:
    before = to_word(i.acc[:4:2])
    scale = np.array([i.tas], np.uint32).view(np.float32)
    i.acc[:4:2] = scale * i.words["x"].view(np.float32) + i.words["y"].view(np.float32)
    return {"d": before}


def _mix(i: Inputs) -> Outputs:
    before = to_half(i.acc[:8:2])
    low, high = halves(np.array([i.tas], np.uint32))
    i.acc[:8:2] = low * halves(i.words["x"]) + high * halves(i.words["y"])
    return {"d": before}


def _drain(i: Inputs, s: Floats) -> Floats:
    chain = i.acc[i.number("imm") : 16 : 2]
    first = chain[:2].copy()
    chain[:6] = chain[2:].copy()
    chain[6:] = s
    return first


def _dot(sums: Floats, x: Floats, weights: Floats) -> None:
    """Add x . weights (lane, unit) to the sums of units: one product after another."""
    for lane in range(len(x)):
        sums += x[lane] * weights[lane]


def weights16(i: Inputs) -> Floats:
    """Return f16 weights as [unit, phase, lane]."""
    return i.weights.view(np.float16).astype(np.float32).reshape(16, 4, 4)


def _step16(i: Inputs, partials: Floats, sets: int) -> Floats:
    """Take a step of the f16 engine on one set or both; return the results."""
    row, phase = divmod(i.number("flags"), 16)
    units = 8 >> row
    out: list[Floats] = []
    for s in range(sets):
        sums, queue = i.acc[16 * s : 16 * s + 2 * units : 2], i.acc[16 * s + 1 : 16 * s + 2 * units : 2]
        if phase == 0:
            sums[:], queue[:] = queue.copy(), sums.copy()
        out.append(queue[:2].copy())
        queue[:-2] = queue[2:].copy()
        queue[-2:] = partials[2 * s : 2 * s + 2]
        total = sums.copy()
        _dot(total, halves(i.words["x"]), weights16(i)[8 * s : 8 * s + units, phase].T)
        sums[:] = total
    return np.concatenate(out)


def _step32(i: Inputs, sets: int) -> Outputs:
    """Take a step of the f32 engine: word `phase` of every unit's weights, queues moved in turn."""
    row, phase = divmod(i.number("flags") - 64, 16)
    units = 8 >> row
    weights = i.weights.view(np.float32).reshape(16, 8)
    moved = phase % 2 if sets == 2 else 0 if phase % 2 == 0 else None
    out = np.zeros(2, np.float32)
    for s in range(sets):
        sums, queue = i.acc[16 * s : 16 * s + 2 * units : 2], i.acc[16 * s + 1 : 16 * s + 2 * units : 2]
        if phase == 0:
            sums[:], queue[:] = queue.copy(), sums.copy()
        if s == moved:
            out = queue[:2].copy()
            queue[:-2] = queue[2:].copy()
            queue[-2:] = i.words["pin"].view(np.float32)
        sums += i.words["x"].view(np.float32) * weights[8 * s : 8 * s + units, phase]
    return {"d": to_word(out)}


def _slide(i: Inputs, partials: Floats, sets: int) -> Floats:
    """Take a step of the sliding window; stage j of set s is AACC[16s + 4j], AACC[16s + 4j + 2]."""
    row, bank = divmod(i.number("flags") - 128, 16)
    window = 4 - row
    out: list[Floats] = []
    for s in range(sets):
        stages = i.acc[16 * s : 16 * s + 4 * window : 2]
        out.append(stages[:2].copy())
        stages[:-2] = stages[2:].copy()
        stages[-2:] = partials[2 * s : 2 * s + 2]
        total = stages.copy()
        _dot(total, halves(i.words["x"]), weights16(i)[8 * s : 8 * s + 2 * window, bank].T)
        stages[:] = total
    return np.concatenate(out)


def _engine(
    step: Callable[[Inputs, Floats, int], Floats], half_in: bool, half_out: bool, sets: int = 1
) -> Model:
    def model(i: Inputs) -> Outputs:
        pin = i.words["pin"]
        out = step(i, halves(pin) if half_in else pin.view(np.float32), sets)
        return {"d": to_half(out) if half_out else to_word(out)}

    return model


def _same(x: Floats) -> Floats:
    return x


def _square(x: Floats) -> Floats:
    return x * x


def _gina16(i: Inputs) -> Outputs:
    return {"d": to_half(_drain(i, halves(i.words["s"])))}


def _gina32(i: Inputs) -> Outputs:
    return {"d": to_word(_drain(i, i.words["s"].view(np.float32)))}


def _gacc(i: Inputs) -> Outputs:
    return {"d": to_half(i.acc[:8:2])}


MODELS: dict[str, Model] = {
    "f16v4acc": _added(_same, True),
    "f16v8acc": _added(_same, True),
    "f16v4absacc": _added(np.abs, True),
    "f16v8absacc": _added(np.abs, True),
    "f16v8sqacc": _added(_square, True),
    "f32v4acc": _added(_same, False),
    "f32v4absacc": _added(np.abs, False),
    "f32v4sqacc": _added(_square, False),
    "f32mac": _products,
    "f32v2mac": _products,
    "f16v2cmac": _dots,
    "f16v4cmac": _dots,
    "f32v2axpy": _axpy,
    "f16v4mix": _mix,
    "f32v2gina": _gina32,
    "f16v2gina": _gina16,
    "f16v4gacc": _gacc,
    "f16v4hihoamp": _engine(_step16, True, True),
    "f16v4sihoamp": _engine(_step16, False, True),
    "f16v4sisoamp": _engine(_step16, False, False),
    "f16v4hihov4amp": _engine(_step16, True, True, 2),
    "f32sisoamp": lambda i: _step32(i, 1),
    "f32sisov2amp": lambda i: _step32(i, 2),
    "f16v4hihoslic": _engine(_slide, True, True),
    "f16v4sihoslic": _engine(_slide, False, True),
    "f16v4sisoslic": _engine(_slide, False, False),
    "f16v4hihov4slic": _engine(_slide, True, True, 2),
}

__all__ = ["MODELS", "Words"]
