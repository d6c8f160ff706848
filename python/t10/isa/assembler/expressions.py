"""Expressions of the assembler: parsed once, evaluated as soon as all their symbols are known.

Operators are those of C; as in the GNU assembler and LLVM, `* / % << >>` bind tightest, then `| & ^`, then `+ -`, then
comparisons (-1 where true), `&&` and `||` (1 where true). Write parentheses where C would differ. Values have 64 bits.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from t10.isa.assembler.lines import Problem

MOST_DEPTH = 100
"""Nesting of parentheses and signs."""
MOST_TOKENS = 400
MOST_DIGITS = 66


class Relative(NamedTuple):
    """An address before sections are placed: bytes from the start of a section."""

    section: int
    offset: int


Value = int | Relative


class Node(NamedTuple):
    """A node of an expression: `kind` is a number, a symbol, a local label, `.`, or an operator with its operands."""

    kind: str
    value: int = 0
    name: str = ""
    column: int = 0
    operands: tuple[Node, ...] = ()


class Unknown(Exception):
    """A symbol has no value yet."""

    def __init__(self, name: str, column: int) -> None:
        """Keep which symbol, and where it stands."""
        super().__init__(name)
        self.name = name
        self.column = column


_TOKEN: Final = re.compile(
    r"\s*(?:"
    r"(?P<hex>0[xX][0-9a-fA-F]+)[uUlL]*(?![\w.])"
    r"|(?P<bin>0[bB][01]+)[uUlL]*(?![\w.])"
    r"|(?P<float>\d+\.\d*(?:[eE][+-]?\d+)?[hf]?|\.\d+(?:[eE][+-]?\d+)?[hf]?|\d+[eE][+-]?\d+[hf]?|\d+h)"
    r"|(?P<local>\d+[bf])(?![\w.])"
    r"|(?P<int>\d+)[uUlL]*(?![\w.])"
    r"|(?P<char>'(?:\\.|[^'\\])')"
    r"|(?P<name>[A-Za-z_.][\w.$]*)"
    r"|(?P<op><<|>>|<=|>=|==|!=|<>|&&|\|\||[-+*/%&|^~!<>()])"
    r")"
)
_PRECEDENCE: Final = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<>": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "+": 4, "-": 4, "|": 5, "&": 5,
    "^": 5, "*": 6, "/": 6, "%": 6, "<<": 6, ">>": 6,
}  # fmt: skip
_COMPARISONS: Final = frozenset(("==", "!=", "<>", "<", "<=", ">", ">="))
_ESCAPES: Final = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, "'": 39, '"': 34}
_HALVES: Final = {"infh": 0x7C00, "nanh": 0x7E00}


class _Parser:
    """A precedence parser over the tokens of one expression."""

    def __init__(self, text: str, column: int) -> None:
        self.text = text
        self.base = column
        self.tokens: list[tuple[str, str, int]] = []
        position = 0
        end = len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                start = position + len(text[position:]) - len(text[position:].lstrip())
                raise Problem(f"'{text[start : start + 12].strip()}' is not understood here", column + start)
            kind = match.lastgroup or ""
            self.tokens.append((kind, match[kind], column + match.start(kind)))
            position = match.end()
            if len(self.tokens) > MOST_TOKENS:
                raise Problem(f"expression has more than {MOST_TOKENS} parts", column)
        self.next = 0

    def peek(self) -> str:
        return self.tokens[self.next][1] if self.next < len(self.tokens) else ""

    def end_column(self) -> int:
        return self.base + len(self.text.rstrip())

    def binary(self, least: int, depth: int) -> Node:
        left = self.unary(depth)
        while self.next < len(self.tokens):
            kind, text, column = self.tokens[self.next]
            power = _PRECEDENCE.get(text, 0) if kind == "op" else 0
            if power < least or not power:
                break
            self.next += 1
            right = self.binary(power + 1, depth + 1)
            left = _fold(Node(text, column=column, operands=(left, right)))
        return left

    def unary(self, depth: int) -> Node:
        if depth > MOST_DEPTH:
            raise Problem(f"expression is nested more than {MOST_DEPTH} deep", self.base)
        if self.next >= len(self.tokens):
            raise Problem("expression ends where a value is expected", self.end_column())
        kind, text, column = self.tokens[self.next]
        self.next += 1
        if kind != "op":
            return _atom(kind, text, column)
        if text == "(":
            inner = self.binary(1, depth + 1)
            if self.peek() != ")":
                raise Problem("')' is missing", self.end_column())
            self.next += 1
            return inner
        if text not in "+-~!":
            raise Problem(f"a value is expected before '{text}'", column)
        operand_kind, operand_text, _ = (
            self.tokens[self.next] if self.next < len(self.tokens) else ("", "", 0)
        )
        operand = self.unary(depth + 1)
        if text == "-" and (operand_kind == "float" or operand_text in _HALVES):
            sign = 31 if operand_text.endswith("f") else 15
            return Node("int", operand.value ^ (1 << sign), column=column)
        return _fold(Node("u" + text, column=column, operands=(operand,)))


def parse_expression(text: str, column: int = 0) -> Node:
    """Return an expression's tree; `column` is where `text` begins in its line. Raises Problem."""
    parser = _Parser(text, column)
    if not parser.tokens:
        raise Problem("a value is expected", column)
    node = parser.binary(1, 0)
    if parser.next < len(parser.tokens):
        _, extra, where = parser.tokens[parser.next]
        raise Problem(f"'{extra}' is not expected here", where)
    return node


def _atom(kind: str, text: str, column: int) -> Node:
    if kind in ("int", "hex", "bin", "local") and len(text) > MOST_DIGITS:
        raise Problem(f"number of {len(text)} digits is too large", column)
    if kind == "hex":
        return Node("int", int(text, 16), column=column)
    if kind == "bin":
        return Node("int", int(text, 2), column=column)
    if kind == "int":
        octal = len(text) > 1 and text[0] == "0"
        if octal and not set(text) <= set("01234567"):
            raise Problem(f"'{text}' is not an octal number", column)
        return Node("int", int(text, 8 if octal else 10), column=column)
    if kind == "float":
        return Node("int", _float_bits(text, column), column=column)
    if kind == "char":
        return Node(
            "int", _ESCAPES.get(text[2], ord(text[2])) if text[1] == "\\" else ord(text[1]), column=column
        )
    if kind == "local":
        return Node("local", int(text[:-1]), text[-1], column)
    if text == ".":
        return Node(".", column=column)
    if text in _HALVES:
        return Node("int", _HALVES[text], column=column)
    return Node("symbol", name=text, column=column)


def _float_bits(text: str, column: int) -> int:
    """Return the bits of `1.5h` (f16) or `1.5f` (f32)."""
    if text[-1] not in "hf":
        raise Problem(f"'{text}' has no type: write {text}h for an f16 or {text}f for an f32", column)
    number, letter = float(text[:-1]), "e" if text[-1] == "h" else "f"
    try:
        return int.from_bytes(struct.pack("<" + letter, number), "little")
    except (OverflowError, struct.error):
        raise Problem(f"'{text}' is too large for its type", column) from None


def _truncated(a: int, b: int) -> int:
    """Return a / b rounded to zero, as C does."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_BINARY: Final[dict[str, Callable[[int, int], int]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _truncated,
    "%": lambda a, b: a - b * _truncated(a, b),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "|": lambda a, b: a | b,
    "&": lambda a, b: a & b,
    "^": lambda a, b: a ^ b,
    "==": lambda a, b: -(a == b),
    "!=": lambda a, b: -(a != b),
    "<>": lambda a, b: -(a != b),
    "<": lambda a, b: -(a < b),
    "<=": lambda a, b: -(a <= b),
    ">": lambda a, b: -(a > b),
    ">=": lambda a, b: -(a >= b),
    "&&": lambda a, b: int(a != 0 and b != 0),
    "||": lambda a, b: int(a != 0 or b != 0),
}
_UNARY: Final[dict[str, Callable[[int], int]]] = {
    "u+": lambda a: a,
    "u-": lambda a: -a,
    "u~": lambda a: ~a,
    "u!": lambda a: int(a == 0),
}


def _wrapped(value: int) -> int:
    """Return the value as a signed number of 64 bits."""
    if -(1 << 63) <= value < 1 << 63:
        return value
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _fold(node: Node) -> Node:
    """Return an operator as a number where its operands are numbers."""
    if all(operand.kind == "int" for operand in node.operands):
        return Node(
            "int", _apply(node, tuple(operand.value for operand in node.operands)), column=node.column
        )
    return node


def _apply(node: Node, values: tuple[int, ...]) -> int:
    if len(values) == 1:
        return _wrapped(_UNARY[node.kind](values[0]))
    a, b = values
    if node.kind in ("/", "%") and b == 0:
        raise Problem("division by zero", node.column)
    if node.kind in ("<<", ">>") and not 0 <= b < 64:
        raise Problem(f"shift by {b} is not in 0..63", node.column)
    return _wrapped(_BINARY[node.kind](a, b))


def evaluate(node: Node, lookup: Callable[[Node], Value]) -> Value:
    """Return an expression's value; `lookup` gives those of symbols, local labels and `.`, or raises Unknown.

    Raises Problem where addresses of different sections are combined in another way than a difference in one section.
    """
    if node.kind == "int":
        return node.value
    if not node.operands:
        return lookup(node)
    values = tuple(evaluate(operand, lookup) for operand in node.operands)
    if len(values) == 2:
        left, right = values
        if isinstance(left, Relative) or isinstance(right, Relative):
            return _relative(node, left, right)
        return _apply(node, (left, right))
    value = values[0]
    if isinstance(value, Relative):
        if node.kind == "u+":
            return value
        raise Unknown("address", node.column)
    return _apply(node, (value,))


def _relative(node: Node, left: Value, right: Value) -> Value:
    """Return the sum or difference of addresses that are not placed yet; raises Unknown for anything else."""
    if isinstance(left, Relative) and isinstance(right, int) and node.kind in "+-":
        offset = right if node.kind == "+" else -right
        return Relative(left.section, left.offset + offset)
    if isinstance(left, int) and isinstance(right, Relative) and node.kind == "+":
        return Relative(right.section, right.offset + left)
    if isinstance(left, Relative) and isinstance(right, Relative) and left.section == right.section:
        if node.kind == "-":
            return left.offset - right.offset
        if node.kind in ("==", "!=", "<", "<=", ">", ">=", "<>"):
            return _BINARY[node.kind](left.offset, right.offset)
    raise Unknown("address", node.column)


def names(node: Node) -> frozenset[str]:
    """Return what an expression's value depends on: symbols, local labels, and `.`."""
    if node.operands:
        return frozenset[str]().union(*map(names, node.operands))
    return frozenset() if node.kind == "int" else frozenset((node.name or node.kind,))


def bind(node: Node, fix: Callable[[Node], Node]) -> Node:
    """Return the tree with local labels and `.`, which mean something else further down, replaced by `fix`."""
    if node.kind in ("local", "."):
        return fix(node)
    if not node.operands:
        return node
    return node._replace(operands=tuple(bind(operand, fix) for operand in node.operands))
