"""Bodies of declarations: expressions over MLIR operations, matched against the scalar functions of tasks.

`arith.maximumf(x, 0.0)`; `arith.cmpf["ugt"](x, y)` with a predicate; `arith.extf(x, dtype="f32")` where the type of a
result matters; `const(alpha)` is any constant, which expressions then call `alpha`; operations that commute match both
ways round.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from t10.codelets.cpp_reference import OPERATIONS
from t10.core.scalar import ScalarFunction, ScalarOp, parse_constant
from t10.errors import InputError

COMMUTATIVE = frozenset(
    f"arith.{name}"
    for name in ("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf", "addi", "muli", "andi", "ori", "xori",
                 "maxsi", "minsi", "maxui", "minui")
)  # fmt: skip
"""Operations whose operands may be exchanged."""

DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Pattern:
    """A node: an input's `name`, a constant (a number, or a name it gets), or an operation on `operands`."""

    name: str = ""
    number: float | int | bool | None = None
    captured: str = ""
    opcode: str = ""
    attribute: str = ""
    dtype: str = ""
    operands: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """How a pattern fits a function: the number of every input by its name, and the values of captured constants."""

    inputs: tuple[tuple[str, int], ...] = ()
    constants: tuple[tuple[str, float | int | bool], ...] = ()

    def with_input(self, name: str, number: int) -> Match | None:
        """Return it with an input bound, None where that contradicts what is bound."""
        bound = dict(self.inputs)
        if name in bound:
            return self if bound[name] == number else None
        if number in bound.values():
            return None
        return Match((*self.inputs, (name, number)), self.constants)

    def with_constant(self, name: str, value: float | int | bool) -> Match | None:
        """Return it with a constant's value, None where it has another."""
        bound = dict(self.constants)
        if name in bound:
            return self if bound[name] == value else None
        return Match(self.inputs, (*self.constants, (name, value)))


def parse_body(text: str, inputs: tuple[str, ...], where: str) -> Pattern:
    """Return a body as a pattern; raises `InputError`, which names `where` it stands."""
    try:
        node = ast.parse(" ".join(text.split()), mode="eval").body
        return _pattern(node, inputs)
    except (SyntaxError, RecursionError, MemoryError):
        raise InputError(f"{where}: body '{text}' is not an expression") from None
    except ValueError as error:
        raise InputError(f"{where}: body '{text}': {error}") from None


def matches(pattern: Pattern, function: ScalarFunction) -> Iterator[Match]:
    """Yield every way in which a pattern is a function, all its inputs bound."""
    for found in _matches(pattern, function.result, function, Match(), 0):
        if len(found.inputs) == function.n_inputs:
            yield found


def captured_names(pattern: Pattern) -> tuple[str, ...]:
    """Return the names that a pattern gives to constants."""
    below = (name for operand in pattern.operands for name in captured_names(operand))
    return tuple(dict.fromkeys((*((pattern.captured,) if pattern.captured else ()), *below)))


def _pattern(node: ast.expr, inputs: tuple[str, ...]) -> Pattern:
    if isinstance(node, ast.Name):
        if node.id not in inputs:
            raise ValueError(f"there is no input '{node.id}', expected one of {', '.join(inputs) or 'none'}")
        return Pattern(name=node.id)
    number = _number(node)
    if number is not None:
        return Pattern(number=number)
    if not isinstance(node, ast.Call):
        raise ValueError(f"'{ast.unparse(node)}' is not allowed here")
    function, attribute = node.func, ""
    if isinstance(function, ast.Subscript) and isinstance(function.slice, ast.Constant):
        function, attribute = function.value, str(function.slice.value)
    opcode = ast.unparse(function)
    if opcode == "const":
        if len(node.args) != 1 or not isinstance(node.args[0], ast.Name):
            raise ValueError("const takes the name that the constant gets")
        return Pattern(captured=node.args[0].id)
    if opcode not in OPERATIONS:
        near = get_close_matches(opcode, sorted(OPERATIONS), 1)
        known = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"'{opcode}' is not an operation of arith or math that codelets know{known}")
    dtype = ""
    for keyword in node.keywords:
        if keyword.arg != "dtype" or not isinstance(keyword.value, ast.Constant):
            raise ValueError(f"'{ast.unparse(node)}': only dtype=\"...\" can be given by name")
        dtype = str(keyword.value.value)
    operands = tuple(_pattern(argument, inputs) for argument in node.args)
    return Pattern(opcode=opcode, attribute=attribute, dtype=dtype, operands=operands)


def _number(node: ast.expr) -> float | int | bool | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        below = _number(node.operand)
        return None if below is None else -below
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    return None


def _matches(
    pattern: Pattern, value: int, function: ScalarFunction, so_far: Match, depth: int
) -> Iterator[Match]:
    """Yield how a pattern is value number `value` of a function, given what is bound already."""
    if depth > DEEPEST:
        return
    if value < function.n_inputs:
        found = so_far.with_input(pattern.name, value) if pattern.name else None
        if found is not None:
            yield found
        return
    op = function.ops[value - function.n_inputs]
    if op.opcode == "const":
        found = _constant(pattern, op, so_far)
        if found is not None:
            yield found
        return
    if (
        pattern.opcode != op.opcode
        or len(pattern.operands) != len(op.operands)
        or (pattern.attribute and pattern.attribute != op.attribute)
        or (pattern.dtype and pattern.dtype != op.dtype)
    ):
        return
    yield from _operands(pattern.operands, op.operands, function, so_far, depth)
    if op.opcode in COMMUTATIVE:
        yield from _operands(pattern.operands, op.operands[::-1], function, so_far, depth)


def _operands(
    patterns: tuple[Pattern, ...],
    values: tuple[int, ...],
    function: ScalarFunction,
    so_far: Match,
    depth: int,
) -> Iterator[Match]:
    if not patterns:
        yield so_far
        return
    for found in _matches(patterns[0], values[0], function, so_far, depth + 1):
        yield from _operands(patterns[1:], values[1:], function, found, depth)


def _constant(pattern: Pattern, op: ScalarOp, so_far: Match) -> Match | None:
    value = parse_constant(op.attribute)
    if pattern.captured:
        return so_far.with_constant(pattern.captured, value)
    return so_far if pattern.number is not None and pattern.number == value else None


@lru_cache(maxsize=256)
def parsed_bodies(bodies: tuple[str, ...], inputs: tuple[str, ...], where: str) -> tuple[Pattern, ...]:
    """Return several bodies as patterns."""
    return tuple(parse_body(body, inputs, where) for body in bodies)
