"""Where a model goes wrong: the first operator with a wrong result, and the smallest part of the model that is wrong.

Parts are compiled by themselves, with the inputs that ONNX Runtime has for them; an error that only a fusion makes is
found with the operators that are fused, because a part is fused as any model is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t10.arrays import Arrays
from t10.attack.cutting import Part, Whole, ancestors, part
from t10.attack.engines import prepared
from t10.attack.judging import Judge
from t10.attack.partials import Allowance
from t10.backend import Engine
from t10.core.partials import allowed_errors
from t10.driver import Executable, checked_inputs
from t10.errors import T10Error
from t10.reference import Comparison, OnnxRuntime

Compile = Callable[[Path], Executable]
MOST_PARTS = 200
"""Parts that are tried before the smallest so far is taken."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The result of a node of the model that is wrong: `node` says which, `comparison` by how much."""

    node: str
    operator: str
    comparison: Comparison
    is_fused: bool
    """Found only where the operators before it are fused, not with every value visible."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What is looked through, and how parts are compiled and executed."""

    given: Whole
    compile: Compile
    engines: tuple[Engine, ...]
    tolerance: float
    allows_partials: bool = True
    """Whether outputs may be off by what sums in f16 are, besides the tolerance."""

    def visible(self) -> Layer | None:
        """Return the first node in order whose result is wrong where every value is an output, if there is one.

        Raises `T10Error` where the model cannot be compiled so.
        """
        inner = self._inner
        wrong = self._compared(part(self.given, range(len(self.given.nodes)), inner))
        order = {name: number for number, name in enumerate(inner)}
        return self._layer(min(wrong, key=lambda each: order[each.name]), is_fused=False) if wrong else None

    def fused(self) -> Layer | None:
        """Return the first node whose result is wrong where the nodes before it are fused, if there is one."""
        inner = self._inner
        low, high, found = 0, len(inner) - 1, None
        while low <= high:
            middle = (low + high) // 2
            wrong = self._wrong(part(self.given, ancestors(self.given, inner[middle]), [inner[middle]]))
            if wrong:
                high, found = middle - 1, wrong[0]
            else:
                low = middle + 1
        return None if found is None else self._layer(found, is_fused=True)

    def smallest_wrong(self, layer: Layer) -> Part | None:
        """Return the smallest wrong part that holds a wrong layer's node, or what it is computed from."""
        value = layer.comparison.name
        last = self._maker(value)
        n_tried = 0

        def is_wrong(numbers: Collection[int]) -> bool:
            nonlocal n_tried
            n_tried += 1
            return n_tried <= MOST_PARTS and bool(self._wrong(part(self.given, numbers)))

        if is_wrong([last]):
            return part(self.given, [last])
        numbers = list(ancestors(self.given, value))
        if not self._wrong(part(self.given, numbers, [value])):
            return None
        if not is_wrong(numbers):
            return part(self.given, numbers, [value])
        size = len(numbers) // 2
        while size:
            start = 0
            while start < len(numbers):
                rest = numbers[:start] + numbers[start + size :]
                if rest and is_wrong(rest):
                    numbers = rest
                else:
                    start += size
            size //= 2
        return part(self.given, numbers)

    @property
    def _inner(self) -> list[str]:
        """Return what the nodes give, in order; what has no elements cannot be wrong."""
        values = self.given.values
        made = [name for node in self.given.nodes for name in node.output]
        return [name for name in made if name in values and values[name].size]

    def _wrong(self, cut: Part | None) -> tuple[Comparison, ...]:
        """Return what a part gets wrong on any engine; nothing where it cannot be compiled or executed."""
        try:
            return self._compared(cut)
        except T10Error:
            return ()

    def _compared(self, cut: Part | None) -> tuple[Comparison, ...]:
        """Return what a part gets wrong on any engine; raises `T10Error` where it cannot be compiled or executed."""
        if cut is None:
            return ()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "part.onnx"
            path.write_bytes(cut.model.SerializeToString())
            executable = self.compile(path)
            inputs = checked_inputs(executable.inputs, fitting(executable, cut.inputs))
            model, given = OnnxRuntime(cut.model, path), {**cut.inputs, **inputs}
            references = model.outputs(given)
            errors = allowed_errors(executable.plan) if self.allows_partials else ()
            more = Allowance(model, errors).of(given)
            with prepared(executable, self.engines) as engines:
                outputs, _ = engines.run(inputs)
        judge = Judge(model, self.tolerance)
        compared = (
            each for found in outputs.values() for each in judge.compared(found, references, given, more)
        )
        return tuple(each for each in compared if not each.is_within)

    def _maker(self, value: str) -> int:
        return next(number for number, node in enumerate(self.given.nodes) if value in node.output)

    def _layer(self, comparison: Comparison, *, is_fused: bool) -> Layer:
        node: Any = self.given.nodes[self._maker(comparison.name)]
        return Layer(node.name or comparison.name, node.op_type, comparison, is_fused)


def fitting(executable: Executable, inputs: Arrays) -> Arrays:
    """Return the inputs that a compiled model takes; floats as it takes them, which `--dtype` may have changed."""
    from t10.core.dtypes import numpy_dtype

    taken = {value.name: numpy_dtype(value.dtype) for value in executable.inputs}
    with np.errstate(over="ignore"):
        return {
            name: array.astype(taken[name]) if array.dtype.kind == taken[name].kind == "f" else array
            for name, array in inputs.items()
            if name in taken
        }
