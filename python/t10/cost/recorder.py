"""`Recorder`: collects the operations of a traced function, every distinct one once, and makes a `Formula` of them."""

from __future__ import annotations

from typing import Literal

from t10.cost.formula import N_OPERANDS, Formula, Instruction, Opcode, folded

Kind = Literal["bool", "int", "float"]
_COMMUTATIVE = frozenset(
    {Opcode.ADD, Opcode.MUL, Opcode.MIN, Opcode.MAX, Opcode.EQ, Opcode.NE, Opcode.AND, Opcode.OR}
)
_LOGIC = frozenset({Opcode.AND, Opcode.OR, Opcode.NOT})
_COMPARED = {Opcode.EQ: 1.0, Opcode.LE: 1.0, Opcode.NE: 0.0, Opcode.LT: 0.0}
"""What comparisons of a number with itself give."""
_ROUNDING = frozenset({Opcode.FLOOR, Opcode.CEIL, Opcode.TRUNC})


class Recorder:
    """Values so far, numbered in order of creation; the first `n_inputs` are the inputs, which are integers."""

    def __init__(self, n_inputs: int) -> None:
        self.n_inputs = n_inputs
        self._kinds: list[Kind] = ["int"] * n_inputs
        self._constants: dict[int, float] = {}
        self._instructions: dict[int, Instruction] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    def kind(self, value: int) -> Kind:
        """Return what numpy would hold a value in."""
        return self._kinds[value]

    def constant(self, number: float, kind: Kind) -> int:
        """Return the value that is the same number in every row."""
        return self._value(("constant", float(number), kind), kind, constant=float(number))

    def operation(self, opcode: Opcode, kind: Kind, *operands: int) -> int:
        """Return the value of an operation, simplified where that changes no bit of it."""
        if opcode in _COMMUTATIVE and operands[0] > operands[1]:
            operands = (operands[1], operands[0])
        numbers = [self._constants.get(v) for v in operands]
        known = [number for number in numbers if number is not None]
        if len(known) == len(operands):
            return self.constant(folded(opcode, *known), kind)
        same = self._simplified(opcode, operands, numbers)
        if same is not None:
            return same
        a, b, c = (*operands, 0, 0)[:3]
        return self._value((opcode, a, b, c), kind, instruction=(int(opcode), a, b, c))

    def formula(self, result: int) -> Formula:
        """Return the program that computes `result`, without what it does not need."""
        needed: set[int] = set()
        todo = [result]
        while todo:
            value = todo.pop()
            if value not in needed:
                needed.add(value)
                todo += self._operands(value)
        constants = sorted(v for v in needed if v in self._constants)
        order = sorted(v for v in needed if v in self._instructions)
        number = {v: i for i, v in enumerate((*range(self.n_inputs), *constants, *order))}
        instructions: list[Instruction] = []
        for value in order:
            operands = [number[v] for v in self._operands(value)]
            a, b, c = (*operands, 0, 0)[:3]
            instructions.append((self._instructions[value][0], a, b, c))
        return Formula(
            n_inputs=self.n_inputs,
            constants=tuple(self._constants[v] for v in constants),
            instructions=tuple(instructions),
            result=number[result],
        )

    def _operands(self, value: int) -> tuple[int, ...]:
        if value not in self._instructions:
            return ()
        one = self._instructions[value]
        return one[1 : 1 + N_OPERANDS[one[0]]]

    def _is(self, value: int, opcode: Opcode) -> bool:
        return value in self._instructions and self._instructions[value][0] == opcode

    def _simplified(
        self, opcode: Opcode, operands: tuple[int, ...], numbers: list[float | None]
    ) -> int | None:
        """Return a value that equals the operation's, None where it needs an instruction."""
        first = operands[0]
        if opcode in _ROUNDING and self._kinds[first] != "float":
            return first
        if opcode is Opcode.NEG:
            return self._negated(first)
        if opcode is Opcode.SELECT:
            if numbers[0] is not None:
                return operands[1] if numbers[0] else operands[2]
            return operands[1] if operands[1] == operands[2] else None
        if opcode in (Opcode.MIN, Opcode.MAX) and operands[0] == operands[1]:
            return first
        if opcode in _LOGIC:
            return self._logical(opcode, operands, numbers)
        if opcode in _COMPARED and operands[0] == operands[1] and self._kinds[first] != "float":
            return self.constant(_COMPARED[opcode], "bool")
        return self._calculated(opcode, operands, numbers)

    def _calculated(
        self, opcode: Opcode, operands: tuple[int, ...], numbers: list[float | None]
    ) -> int | None:
        """Return the value of arithmetic with a neutral or absorbing number; fractions may be no numbers."""
        first, is_int = operands[0], all(self._kinds[v] == "int" for v in operands)
        if opcode in (Opcode.MUL, Opcode.ADD):
            neutral = 1.0 if opcode is Opcode.MUL else 0.0
            same = next((v for v, n in zip(reversed(operands), numbers, strict=True) if n == neutral), None)
            if same is not None and self._kinds[same] != "bool":
                return same
            return self.constant(0.0, "int") if opcode is Opcode.MUL and is_int and 0.0 in numbers else None
        if not is_int:
            return None
        if opcode in (Opcode.FLOOR_DIV, Opcode.CEIL_DIV):
            return first if numbers[1] == 1 or numbers[0] == 0 else None
        if opcode is Opcode.MOD:
            return self.constant(0.0, "int") if numbers[1] == 1 or numbers[0] == 0 else None
        if opcode is Opcode.SUB:
            return first if numbers[1] == 0 else self.constant(0.0, "int") if first == operands[1] else None
        return None

    def _logical(self, opcode: Opcode, operands: tuple[int, ...], numbers: list[float | None]) -> int | None:
        """Return the value of logic with a known side, or of the same side twice."""
        if opcode is Opcode.NOT:
            first = operands[0]
            return self._instructions[first][1] if self._is(first, Opcode.NOT) else None
        absorbing = 0.0 if opcode is Opcode.AND else 1.0
        for number, value, other in zip(numbers, operands, reversed(operands), strict=True):
            if number is not None:
                return value if number == absorbing else other
            if value == other or (self._is(other, opcode) and value in self._operands(other)):
                return other
        return None

    def _negated(self, value: int) -> int | None:
        """Return -(-x) as x and -(-x // y) as the quotient rounded up."""
        if self._is(value, Opcode.NEG):
            return self._instructions[value][1]
        if not self._is(value, Opcode.FLOOR_DIV):
            return None
        _, dividend, divisor, _ = self._instructions[value]
        if not self._is(dividend, Opcode.NEG):
            return None
        return self.operation(Opcode.CEIL_DIV, "int", self._instructions[dividend][1], divisor)

    def _value(
        self,
        key: tuple[object, ...],
        kind: Kind,
        *,
        constant: float | None = None,
        instruction: Instruction | None = None,
    ) -> int:
        if key not in self._numbers:
            value = len(self._kinds)
            self._numbers[key] = value
            self._kinds.append(kind)
            if constant is not None:
                self._constants[value] = constant
            if instruction is not None:
                self._instructions[value] = instruction
        return self._numbers[key]
