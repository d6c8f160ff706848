"""RNN, GRU and LSTM as their steps, one after another.

What depends on the input alone is one product for all steps; every step multiplies the state. Sequences that end
earlier keep their state, and their outputs are 0 from there on. The state of one of length 0 is 0 at the end, not the
initial one: ONNX's text is silent, ONNX Runtime has it so.

DynamicQuantizeLSTM of ONNX Runtime's domain quantises the input as a whole, and the state in every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t10.frontend.rewrites.activations import Activation, activations
from t10.frontend.rewrites.site import KIND, Rule, Shape, Site

MOST_STEPS = 512
"""Longer sequences are left as loops, which are refused by name."""

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@dataclass(frozen=True, slots=True)
class _Weight:
    """Weights as (rows, columns); integers have a scale and a zero point, of all or of each column."""

    values: str
    scale: str = ""
    zero: str = ""

    def times(self, site: Site, x: str) -> str:
        """Write the product of rows with the weights."""
        if not self.scale:
            return site.op("MatMul", x, self.values)
        quantized, scale, zero = site.several("DynamicQuantizeLinear", [x], ("", "", ""))
        total = site.op("MatMulInteger", quantized, self.values, zero, self.zero)
        return site.op("Mul", site.cast(total, KIND.FLOAT), site.op("Mul", scale, self.scale))


@dataclass(frozen=True, slots=True)
class _Direction:
    """One direction: `x` is (T, batch, gates * hidden), weights and biases are those of the state."""

    x: str
    weight: _Weight
    bias: str
    peepholes: str
    activations: tuple[Activation, ...]


@dataclass(frozen=True, slots=True)
class _Cell:
    """What all steps of a node share."""

    site: Site
    operator: str
    hidden: int
    batch: int
    clip: float | None

    def gate(self, x: str, number: int) -> str:
        """Return one gate of a (batch, gates * hidden)."""
        return self.site.slice(x, 1, number * self.hidden, (number + 1) * self.hidden)

    def apply(self, how: Activation, x: str) -> str:
        """Return an activation of a sum that is clipped first."""
        if self.clip is not None:
            bounds = [self.site.scalar(bound, self.site.kind(0)) for bound in (-self.clip, self.clip)]
            x = self.site.op("Min", self.site.op("Max", x, bounds[0]), bounds[1])
        return how.write(self.site, x)


def _recurrent(site: Site) -> bool:
    return _written(site, site.node.op_type)


def _dynamic_lstm(site: Site) -> bool:
    return site.kind(0) == KIND.FLOAT and _written(site, "LSTM")


def _written(site: Site, operator: str) -> bool:
    """Write a node that computes one of `_GATES`; quantised weights are (rows, columns), others (columns, rows)."""
    shape, weight = site.shape(0), site.shape(2)
    is_batch_first = bool(site.option("layout", 0))
    if shape is None or weight is None or site.kind(0) not in (KIND.FLOAT, KIND.FLOAT16):
        return False
    n_steps, batch = (shape[1], shape[0]) if is_batch_first else shape[:2]
    direction = str(site.option("direction", "forward"))
    n_directions, hidden = weight[0], weight[1] if site.input(8) else weight[2]
    functions = activations(site, operator, n_directions)
    if n_steps > MOST_STEPS or functions is None:
        return False
    clip = site.option("clip", None)
    cell = _Cell(site, operator, hidden, batch, None if clip is None else float(clip))
    x = site.transpose(site.input(0), (1, 0, 2)) if is_batch_first else site.input(0)
    alive = _alive(site, n_steps, batch)
    if alive and batch > 1 and site.input(8):
        return False  # Rows that have ended are quantised along with the others.
    rows: list[list[str]] = []
    ends: list[tuple[str, str]] = []
    for number in range(n_directions):
        per = len(functions) // n_directions
        own = _direction(cell, x, number, n_steps, functions[number * per : (number + 1) * per])
        backwards = direction == "reverse" or number == 1
        steps = range(n_steps - 1, -1, -1) if backwards else range(n_steps)
        outputs, end = _unrolled(cell, own, number, steps, alive, is_batch_first=is_batch_first)
        rows.append(outputs)
        ends.append(end)
    _give_outputs(cell, rows, ends, is_batch_first=is_batch_first)
    return True


def _alive(site: Site, n_steps: int, batch: int) -> list[str]:
    """Return per step which sequences still run, (batch, 1); nothing where all run to the end."""
    lengths = site.constant_input(4)
    if not site.input(4) or (lengths is not None and (lengths == n_steps).all()):
        return []
    column = site.reshape(site.input(4), (batch, 1))
    return [site.op("Greater", column, site.constant(np.int32(step))) for step in range(n_steps)]


def _direction(cell: _Cell, x: str, number: int, n_steps: int, functions: Sequence[Activation]) -> _Direction:
    site = cell.site
    n_rows = _GATES[cell.operator] * cell.hidden
    n_inputs = (site.shape(0) or (0, 0, 0))[2]

    def own(place: int, extents: Shape) -> str:
        return site.reshape(site.slice(site.input(place), 0, number, number + 1), extents)

    def weight(place: int, n: int, scale: int) -> _Weight:
        if not site.input(scale):
            return _Weight(site.transpose(own(place, (n_rows, n)), (1, 0)))
        per = (n_rows,) if len(site.shape(scale) or ()) > 1 else ()
        return _Weight(own(place, (n, n_rows)), own(scale, per), own(scale + 1, per))

    flat = weight(1, n_inputs, 8).times(site, site.reshape(x, (n_steps * cell.batch, n_inputs)))
    bias = ""
    if site.input(3):
        both = own(3, (2 * n_rows,))
        flat = site.op("Add", flat, site.slice(both, 0, 0, n_rows))
        bias = site.slice(both, 0, n_rows, 2 * n_rows)
    return _Direction(
        x=site.reshape(flat, (n_steps, cell.batch, n_rows)),
        weight=weight(2, cell.hidden, 10),
        bias=bias,
        peepholes=own(7, (1, 3 * cell.hidden)) if site.input(7) else "",
        activations=tuple(functions),
    )


def _unrolled(
    cell: _Cell, own: _Direction, number: int, steps: range, alive: list[str], *, is_batch_first: bool
) -> tuple[list[str], tuple[str, str]]:
    """Return the outputs in order of time, and the last state and cell."""
    site = cell.site
    step_of = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}[cell.operator]
    n_rows = _GATES[cell.operator] * cell.hidden
    state, memory = (_initial(cell, place, number, is_batch_first=is_batch_first) for place in (5, 6))
    outputs: dict[int, str] = {}
    for step in steps:
        x = site.reshape(site.slice(own.x, 0, step, step + 1), (cell.batch, n_rows))
        new, new_memory = step_of(cell, own, x, state, memory)
        outputs[step] = new
        if alive:
            outputs[step] = site.op("Where", alive[step], new, site.scalar(0, site.kind(0)))
            new = site.op("Where", alive[step], new, state)
            new_memory = site.op("Where", alive[step], new_memory, memory) if new_memory else ""
        state, memory = new, new_memory
    if alive:
        state, memory = (
            each and site.op("Where", alive[0], each, site.scalar(0, site.kind(0)))
            for each in (state, memory)
        )
    return [outputs[step] for step in sorted(outputs)], (state, memory)


def _initial(cell: _Cell, place: int, number: int, *, is_batch_first: bool) -> str:
    site, extents = cell.site, (cell.batch, cell.hidden)
    if place == 6 and cell.operator != "LSTM":
        return ""
    if not site.input(place):
        return site.constant(np.zeros(extents, site.dtype(0)))
    return site.reshape(site.slice(site.input(place), int(is_batch_first), number, number + 1), extents)


def _rnn_step(cell: _Cell, own: _Direction, x: str, state: str, memory: str) -> tuple[str, str]:
    del memory
    return cell.apply(own.activations[0], cell.site.op("Add", x, _product(cell, own, state))), ""


def _gru_step(cell: _Cell, own: _Direction, x: str, state: str, memory: str) -> tuple[str, str]:
    """Gates are update z, reset r and the candidate; the reset acts before or after the product of the candidate."""
    del memory
    site, n = cell.site, cell.hidden
    update, candidate = own.activations
    gates = _product(cell, own, state)
    z = cell.apply(update, site.op("Add", cell.gate(x, 0), cell.gate(gates, 0)))
    r = cell.apply(update, site.op("Add", cell.gate(x, 1), cell.gate(gates, 1)))
    if site.option("linear_before_reset", 0):
        inner = site.op("Mul", r, cell.gate(gates, 2))
    else:
        weight = site.slice(own.weight.values, 1, 2 * n, 3 * n)
        inner = site.op("MatMul", site.op("Mul", r, state), weight)
        if own.bias:
            inner = site.op("Add", inner, site.slice(own.bias, 0, 2 * n, 3 * n))
    new = cell.apply(candidate, site.op("Add", cell.gate(x, 2), inner))
    rest = site.op("Sub", site.scalar(1, site.kind(0)), z)
    return site.op("Add", site.op("Mul", rest, new), site.op("Mul", z, state)), ""


def _lstm_step(cell: _Cell, own: _Direction, x: str, state: str, memory: str) -> tuple[str, str]:
    """Gates are input, output, forget and the candidate; peepholes let the first three see the cell."""
    site = cell.site
    gate_of, candidate_of, output_of = own.activations
    total = site.op("Add", x, _product(cell, own, state))

    def seen(number: int, of: str) -> str:
        gate = cell.gate(total, number)
        if not own.peepholes:
            return gate
        return site.op("Add", gate, site.op("Mul", cell.gate(own.peepholes, number), of))

    taken = cell.apply(gate_of, seen(0, memory))
    if site.option("input_forget", 0):
        kept = site.op("Sub", site.scalar(1, site.kind(0)), taken)
    else:
        kept = cell.apply(gate_of, seen(2, memory))
    candidate = cell.apply(candidate_of, cell.gate(total, 3))
    new = site.op("Add", site.op("Mul", kept, memory), site.op("Mul", taken, candidate))
    shown = cell.apply(gate_of, seen(1, new))
    return site.op("Mul", shown, output_of.write(site, new)), new


def _product(cell: _Cell, own: _Direction, state: str) -> str:
    product = own.weight.times(cell.site, state)
    return cell.site.op("Add", product, own.bias) if own.bias else product


def _give_outputs(
    cell: _Cell, rows: list[list[str]], ends: list[tuple[str, str]], *, is_batch_first: bool
) -> None:
    """Write Y (T, directions, batch, hidden) and the last states (directions, batch, hidden), or the batch first."""
    site, n, batch = cell.site, cell.hidden, cell.batch
    if site.output(0):
        parts = [site.concat([site.reshape(row, (1, 1, batch, n)) for row in one], 0) for one in rows]
        whole = site.concat(parts, 1)
        site.give(site.transpose(whole, (2, 0, 1, 3)) if is_batch_first else whole)
    for place in (1, 2):
        if site.output(place):
            lasts = [site.reshape(end[place - 1], (1, batch, n)) for end in ends]
            whole = site.concat(lasts, 0)
            site.give(site.transpose(whole, (1, 0, 2)) if is_batch_first else whole, place)


RULES: dict[str, Rule] = dict.fromkeys(_GATES, _recurrent)
CONTRIBUTED: dict[str, Rule] = {"DynamicQuantizeLSTM": _dynamic_lstm}
