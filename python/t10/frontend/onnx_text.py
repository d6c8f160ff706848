"""What onnx-mlir prints, made readable for MLIR: its custom assembly rewritten to the generic form.

onnx-mlir prints four operations in a form of their own; everything else is generic already:

```
%0 = onnx.Constant dense<1> : T                   %0 = "onnx.Constant"() {value = dense<1> : T} : () -> T
%0 = onnx.Constant {value_int = 7 : si64} : T     %0 = "onnx.Constant"() {value_int = 7 : si64} : () -> T
%1 = onnx.ConstantOfShape(%0) {...} : ...         %1 = "onnx.ConstantOfShape"(%0) {...} : ...
onnx.Return {...} %a, %b : T, U                   "onnx.Return"(%a, %b) {...} : (T, U) -> ()     (onnx.Yield alike)
```

Lines stay where they are, so that file:line of a diagnostic is true. Strings and comments are not touched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from t10.errors import InputError

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'  # without a state to return to for each of its characters
_COMMENT = r"//[^\n]*"
_OPERATION = r'(?<![\w.$#!"@%^-])onnx\.(?:ConstantOfShape|Constant|Return|Yield)\b(?!\s*")'
_NEXT = re.compile(f"{_STRING}|{_COMMENT}|{_OPERATION}", re.DOTALL)
_BRACKET = re.compile(rf"{_STRING}|{_COMMENT}|->|[<>(){{}}\[\]]", re.DOTALL)
_SPACE = re.compile(rf"(?:\s|{_COMMENT})*")
_WORD = re.compile(r"[#!]?[\w$.]+")
_OPERANDS = re.compile(r"%[\w$.#-]+(?:\s*,\s*%[\w$.#-]+)*")
_HOLDS_ONNX = re.compile(
    r'(?<![\w.$#!@%^-])"?onnx\.[A-Z]\w*"?\s*[({]|(?<![\w.$#!"@%^-])onnx\.(?:Constant|Return)\b'
)


_HOLDS_KRNL = re.compile(r'"?krnl\.[a-z_]\w*"?\s*[({]')


class _Malformed(Exception):
    """The text at hand is not of the expected form."""


def holds_onnx(text: str) -> bool:
    """Return whether MLIR text holds operations of the onnx dialect."""
    return "onnx." in text and _HOLDS_ONNX.search(text) is not None


def refuse_krnl(text: str, source: str) -> None:
    """Raise `InputError` for text that onnx-mlir has lowered to loops already."""
    if "krnl." in text and _HOLDS_KRNL.search(text) is not None:
        raise InputError(
            f"{source} holds krnl operations: onnx-mlir has lowered the model to loops (expected the onnx dialect)",
            hint="let onnx-mlir stop earlier: --EmitONNXIR instead of --EmitMLIR",
        )


def normalize(text: str) -> str:
    """Return MLIR text with onnx-mlir's custom assembly in generic form; what is malformed is left to MLIR's parser."""
    parts: list[str] = []
    position = 0
    while (match := _NEXT.search(text, position)) is not None:
        token = match.group()
        parts.append(text[position : match.start()])
        position = match.end()
        if token[0] in '"/':
            parts.append(token)
            continue
        cursor = _Cursor(text, position)
        try:
            parts.append(_generic(token, cursor))
            position = cursor.position
        except _Malformed:
            parts.append(token)
    parts.append(text[position:])
    return "".join(parts)


@dataclass
class _Cursor:
    """A place in the text that moves over what is read."""

    text: str
    position: int

    def peek(self, wanted: str) -> bool:
        """Skip white space and comments; return whether `wanted` follows."""
        found = _SPACE.match(self.text, self.position)
        assert found is not None
        self.position = found.end()
        return self.text.startswith(wanted, self.position)

    def expect(self, wanted: str) -> None:
        """Read `wanted`."""
        if not self.peek(wanted):
            raise _Malformed
        self.position += len(wanted)

    def balanced(self) -> str:
        """Read from an opening bracket to its partner."""
        start, depth = self.position, 0
        for match in _BRACKET.finditer(self.text, start):
            token = match.group()
            if token in ("<", "(", "{", "["):
                depth += 1
            elif token in (">", ")", "}", "]"):
                depth -= 1
            if depth == 0:
                self.position = match.end()
                return self.text[start : self.position]
        raise _Malformed

    def item(self) -> str:
        """Read a type or attribute: a word and what it has in angle brackets."""
        self.peek("")
        start = self.position
        match = _WORD.match(self.text, start)
        if match is None:
            raise _Malformed
        self.position = match.end()
        if self.text.startswith("<", self.position):
            self.balanced()
        return self.text[start : self.position]

    def attributes(self) -> str:
        """Read an attribute dictionary, empty if none follows."""
        return self.balanced() if self.peek("{") else ""


def _generic(name: str, cursor: _Cursor) -> str:
    """Return the generic form of the operation `name` whose text follows the cursor, with as many line breaks."""
    start = cursor.position
    if name == "onnx.ConstantOfShape":
        return f'"{name}"'
    made = _constant(cursor) if name == "onnx.Constant" else _terminator(name, cursor)
    missing = cursor.text.count("\n", start, cursor.position) - made.count("\n")
    return made + "\n" * missing


def _constant(cursor: _Cursor) -> str:
    attributes = cursor.attributes()
    if attributes or cursor.peek(":"):
        cursor.expect(":")
        body = f"{attributes} " if attributes else ""
        return f'"onnx.Constant"() {body}: () -> {cursor.item()}'
    value = cursor.item()
    cursor.expect(":")
    kind = cursor.item()
    key = "sparse_value" if value.startswith("sparse<") else "value"
    return f'"onnx.Constant"() {{{key} = {value} : {kind}}} : () -> {kind}'


def _terminator(name: str, cursor: _Cursor) -> str:
    attributes = cursor.attributes()
    body = f"{attributes} " if attributes else ""
    cursor.peek("")
    operands = _OPERANDS.match(cursor.text, cursor.position)
    if operands is None:
        return f'"{name}"() {body}: () -> ()'
    cursor.position = operands.end()
    cursor.expect(":")
    types = [cursor.item()]
    while cursor.peek(","):
        cursor.expect(",")
        types.append(cursor.item())
    return f'"{name}"({operands.group()}) {body}: ({", ".join(types)}) -> ()'
