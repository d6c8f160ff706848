"""Elementwise tasks: one operation on dense arrays, and random bodies over random strides."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from t10.core.dtypes import size_bytes
from t10.core.expression import Combine
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand

EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17)
MOST_POINTS = 2000
FLOATS = ("f16", "f32")
INTEGERS = ("i32", "i8", "i16", "i64", "ui8", "i1")


def elementwise(
    opcode: str, dtypes: Sequence[str], n: int, attribute: str = "", align_bytes: int = 8
) -> Task:
    """Return one operation on dense arrays of `n` elements; `dtypes` ends with the output's."""
    n_inputs = len(dtypes) - 1
    body = ScalarFunction(
        n_inputs, (ScalarOp(opcode, tuple(range(n_inputs)), dtypes[-1], attribute),), n_inputs
    )
    operands = [TaskOperand(dtype, (1,), max(size_bytes(dtype), align_bytes)) for dtype in dtypes]
    return Task((n,), tuple(operands[:-1]), operands[-1], "none", body)


def dense_task(seed: int) -> Task:
    """Return a random body over up to three dense inputs, some of them broadcast, with rows of whole vectors or not."""
    drawn = RandomTask(seed)
    rng = random.Random(seed)
    drawn.extents = tuple(rng.choice((1, 3, 8, 16, 17, 24, 64, 128)) for _ in range(rng.randint(1, 3)))
    drawn.n_inputs = rng.randint(1, 3)
    task = drawn.task()
    dense = tuple(prod(task.extents[axis + 1 :]) for axis in range(len(task.extents)))

    def lying(operand: TaskOperand) -> TaskOperand:
        strides = [0 if rng.random() < 0.12 else stride for stride in dense]
        return replace(operand, strides=tuple(strides), align_bytes=8)

    output = replace(task.output, strides=dense, align_bytes=8)
    return replace(task, inputs=tuple(lying(operand) for operand in task.inputs), output=output)


class RandomTask:
    """Draws one task: what it computes, over which extents, and how its operands lie."""

    def __init__(self, seed: int) -> None:
        """Draw the extents and the kind of arithmetic."""
        self.rng = random.Random(seed)
        self.extents = tuple(self.rng.choice(EXTENTS) for _ in range(self.rng.randint(1, 4)))
        while np.prod(self.extents) > MOST_POINTS:
            self.extents = tuple(max(1, extent // 2) for extent in self.extents)
        self.kind = self.rng.choice(("f16", "f32", "mixed", "integer"))
        self.target = self.kind
        if self.kind == "mixed":
            self.target = self.rng.choice(FLOATS)
        elif self.kind == "integer":
            self.target = self.rng.choice(INTEGERS)
        self.ops: list[ScalarOp] = []
        self.dtypes: list[str] = []
        self.n_inputs = self.rng.randint(0, 3)

    def task(self) -> Task:
        """Return the task."""
        order = list(range(len(self.extents)))
        if self.rng.random() < 0.2:
            self.rng.shuffle(order)
        inputs = tuple(self._input(order) for _ in range(self.n_inputs))
        self.dtypes = [operand.dtype for operand in inputs]
        result = self._body()
        output = TaskOperand(self.target, self._strides(order), self._alignment(self.target))
        combine: Combine = "none"
        if self.rng.random() < 0.2:
            combine = "or" if self.target == "i1" else self.rng.choice(("sum", "max", "prod"))
        n = self.n_inputs + 1
        apart = frozenset((i, j) for i in range(n) for j in range(i + 1, n))
        return Task(
            self.extents, inputs, output, combine, ScalarFunction(self.n_inputs, tuple(self.ops), result),
            initial=combine == "none", apart=apart if self.rng.random() < 0.5 else frozenset(),
        )  # fmt: skip

    def _strides(self, order: list[int]) -> tuple[int, ...]:
        strides, step = [0] * len(order), 1
        has_gaps = self.rng.random() < 0.5
        for axis in reversed(order):
            strides[axis] = step
            step *= self.extents[axis]
            if has_gaps and self.rng.random() < 0.5:
                step += self.rng.choice((1, 2, 3, 4, 8))
        return tuple(strides)

    def _alignment(self, dtype: str) -> int:
        return max(size_bytes(dtype), self.rng.choice((16, 8, 8, 4, 1)))

    def _input(self, order: list[int]) -> TaskOperand:
        dtype = self.rng.choice(FLOATS) if self.kind == "mixed" else self.target
        own = list(order)
        if self.rng.random() < 0.2:
            self.rng.shuffle(own)
        strides = [0 if self.rng.random() < 0.3 else stride for stride in self._strides(own)]
        return TaskOperand(dtype, tuple(strides), self._alignment(dtype))

    def _add(self, opcode: str, operands: tuple[int, ...], dtype: str, attribute: str = "") -> int:
        self.ops.append(ScalarOp(opcode, operands, dtype, attribute))
        self.dtypes.append(dtype)
        return len(self.dtypes) - 1

    def _as(self, value: int, dtype: str) -> int:
        if self.dtypes[value] == dtype:
            return value
        return self._add("arith.extf" if dtype == "f32" else "arith.truncf", (value,), dtype)

    def _body(self) -> int:
        values = list(range(self.n_inputs))
        is_integer = self.kind == "integer"
        if not values:
            text = "True" if self.target == "i1" else "1" if is_integer else "1.5"
            values = [self._add("const", (), self.target, text)]
        for _ in range(self.rng.randint(0, 5)):
            a, b = self.rng.choice(values), self.rng.choice(values)
            values.append(self._integer(a, b) if is_integer else self._float(a, b))
        return values[-1] if is_integer else self._as(values[-1], self.target)

    def _integer(self, a: int, b: int) -> int:
        logic = ("arith.andi", "arith.ori", "arith.xori")
        opcodes = logic if self.target == "i1" else (*logic, "arith.addi", "arith.subi", "arith.muli")
        return self._add(self.rng.choice(opcodes), (a, b), self.target)

    def _float(self, a: int, b: int) -> int:
        dtype = self.rng.choice((self.dtypes[a], self.dtypes[b]))
        kind = self.rng.random()
        if kind < 0.5:
            opcode = self.rng.choice(
                ("arith.addf", "arith.subf", "arith.mulf", "arith.maximumf", "arith.minnumf")
            )
            return self._add(opcode, (self._as(a, dtype), self._as(b, dtype)), dtype)
        if kind < 0.6:
            constant = self._add("const", (), dtype, self.rng.choice(("0.0", "0.5", "-1.25")))
            return self._add("arith.addf", (self._as(a, dtype), constant), dtype)
        if kind < 0.8:
            x, y = self._as(a, dtype), self._as(b, dtype)
            holds = self._add(
                "arith.cmpf", (x, y), "i1", self.rng.choice(("ugt", "olt", "oge", "une", "one"))
            )
            other = self.rng.choice((y, self._add("const", (), dtype, "0.0")))
            return self._add("arith.select", (holds, x, other), dtype)
        return self._add("arith.negf" if kind < 0.9 else "math.absf", (a,), self.dtypes[a])
