"""Expressions of declarations: numbers from extents (`n`), strides (`x.n`) and constants of the body (`alpha`).

Python's operators on integers (`/` is not among them, `//` is), comparisons, `and`, `or`, `not`, and the functions
`min`, `max`, `ceil_div(a, b)`, `log2(n)`, `f16_bits(v)` and `f16_pair(low, high)`.
"""

from __future__ import annotations

import ast
import operator
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from t10.errors import InputError

Number = int | float
LARGEST_EXPONENT = 64

_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Number]]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}
_ARGUMENTS: Final = {"min": None, "max": None, "ceil_div": 2, "log2": 1, "f16_bits": 1, "f16_pair": 2}
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def evaluated(text: int | str, names: Mapping[str, Number], where: str) -> Number:
    """Return the value of an expression; raises `InputError`, which names `where` it stands, for what has none."""
    if isinstance(text, int):
        return text
    try:
        return _value(_parsed(text), names)
    except _Wrong as wrong:
        raise InputError(f"{where}: '{text}': {wrong}") from None
    except (ArithmeticError, ValueError, TypeError, RecursionError, struct.error) as error:
        raise InputError(f"{where}: '{text}' has no value: {error}") from None


def check_names(text: int | str, names: Iterable[str], where: str) -> None:
    """Raise `InputError` where an expression names or uses what there is not."""
    if isinstance(text, int):
        return
    known = dict.fromkeys(names, 0)
    try:
        nodes = [_parsed(text)]
        while nodes:
            node = nodes.pop()
            if isinstance(node, (ast.Name, ast.Attribute)):
                _named(ast.unparse(node), known)
            elif isinstance(node, ast.Call):
                _function(node)
                nodes += node.args
            else:
                nodes += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    except _Wrong as wrong:
        raise InputError(f"{where}: '{text}': {wrong}") from None


class _Wrong(Exception):
    """What is wrong with an expression."""


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _Wrong("not an expression") from None


def _value(node: ast.expr, names: Mapping[str, Number]) -> Number:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _named(ast.unparse(node), names)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left, names), _value(node.right, names)
        if isinstance(node.op, ast.LShift) and right > LARGEST_EXPONENT:
            raise _Wrong(f"a shift by {right} is too far")
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return _unary(node, names)
    if isinstance(node, ast.BoolOp):
        values = [bool(_value(each, names)) for each in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.Compare):
        sides = [_value(each, names) for each in (node.left, *node.comparators)]
        if all(type(op) in _COMPARISONS for op in node.ops):
            pairs = zip(node.ops, sides, sides[1:], strict=False)
            return all(_COMPARISONS[type(op)](left, right) for op, left, right in pairs)
    if isinstance(node, ast.Call):
        return _called(_function(node), [_value(each, names) for each in node.args])
    raise _Wrong(f"'{ast.unparse(node)}' is not allowed here")


def _named(name: str, names: Mapping[str, Number]) -> Number:
    if name not in names:
        raise _Wrong(f"there is no '{name}', expected one of {', '.join(sorted(names))}")
    return names[name]


def _unary(node: ast.UnaryOp, names: Mapping[str, Number]) -> Number:
    value = _value(node.operand, names)
    if isinstance(node.op, ast.Not):
        return not value
    if isinstance(node.op, ast.Invert):
        return ~int(value)
    return -value if isinstance(node.op, ast.USub) else value


def _function(node: ast.Call) -> str:
    """Return the name of a function that is called with as many arguments as it takes."""
    name = ast.unparse(node.func)
    if name not in _ARGUMENTS or node.keywords:
        raise _Wrong(f"there is no function '{name}', expected one of {', '.join(_ARGUMENTS)}")
    if not node.args or _ARGUMENTS[name] not in (None, len(node.args)):
        raise _Wrong(f"{name} takes {_ARGUMENTS[name] or 'one or more'} arguments")
    return name


def _called(name: str, arguments: list[Number]) -> Number:
    if name in ("min", "max"):
        return min(arguments) if name == "min" else max(arguments)
    if name == "ceil_div":
        return -(-arguments[0] // arguments[1])
    if name == "log2":
        return _log2(arguments[0])
    halves = [int.from_bytes(struct.pack("<e", each), "little") for each in arguments]
    return halves[0] | (halves[-1] << 16 if name == "f16_pair" else 0)


def _log2(value: Number) -> int:
    if not isinstance(value, int) or value < 1 or value & (value - 1):
        raise _Wrong(f"{value} is not a power of two")
    return value.bit_length() - 1
