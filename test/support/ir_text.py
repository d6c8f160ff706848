"""The text of MLIR's generic form as operations: where they stand, what they read and make, what they can see.

%r:2 = "name"(%operand, ...) <{properties}> ({ regions }) {attributes} : (types) -> types
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

VALUE = re.compile(r"%[\w$.]+(?:#\d+)?")
OPERATION = re.compile(r'^(\s*)(?:(%[^=]*?) = )?"([\w.]+)"\(([^()]*)\)')
BLOCK = re.compile(r"^\s*\^\w+\((.*)\):$")
LABEL = re.compile(r"^\s*\^\w+(\(.*\))?:$")


@dataclass(slots=True)
class Operation:
    """An operation of the text: its lines, results and operands with their types, and what it can see."""

    name: str
    first: int
    last: int
    results: list[tuple[str, str]]
    operands: list[tuple[str, str]]
    visible: list[tuple[str, str]]
    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Where the operands stand in the first line."""


def split_top(text: str) -> list[str]:
    """Return what commas outside brackets separate."""
    parts: list[str] = []
    depth, start = 0, 0
    for i, letter in enumerate(text):
        if letter in "([{<":
            depth += 1
        elif letter in ")]}" or (letter == ">" and text[i - 1] != "-"):
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def stated_types(trailer: str) -> tuple[list[str], list[str]]:
    """Return the types of operands and results that the end of an operation states."""
    at = trailer.rfind(" : (")
    inputs, _, outputs = trailer[at + 3 :].rpartition(" -> ")
    outputs = outputs.strip()
    if outputs.startswith("("):
        outputs = outputs[1:-1]
    return split_top(inputs.strip()[1:-1]), split_top(outputs)


def operations_of(lines: list[str]) -> list[Operation]:
    """Return all operations inside the module, in their order."""
    found: list[Operation] = []
    stack: list[Operation] = []
    scopes: list[list[tuple[str, str]]] = [[]]
    for number, line in enumerate(lines):
        stripped = line.strip()
        opened = OPERATION.match(line)
        if opened:
            results = [part.strip() for part in (opened[2] or "").split(",") if part.strip()]
            operands = VALUE.findall(opened[4])
            spans = [
                (opened.start(4) + m.start(), opened.start(4) + m.end()) for m in VALUE.finditer(opened[4])
            ]
            visible = [value for scope in scopes for value in scope]
            op = Operation(
                opened[3], number, -1, [(r, "") for r in results], [(o, "") for o in operands], visible, spans
            )
            found.append(op)
            if stripped.endswith("({"):
                stack.append(op)
                scopes.append([])
            else:
                _close(op, number, line, scopes[-1])
        elif LABEL.match(line):
            block = BLOCK.match(line)
            for argument in split_top(block[1]) if block else ():
                name, _, kind = argument.partition(": ")
                scopes[-1].append((name, kind))
        elif stripped == "}, {":
            scopes[-1] = []
        elif stripped.startswith("})") and stack:
            scopes.pop()
            _close(stack.pop(), number, line, scopes[-1])
    return [op for op in found if op.name not in ("builtin.module", "func.func", "ipu.graph")]


def _close(op: Operation, number: int, line: str, scope: list[tuple[str, str]]) -> None:
    """Note where an operation ends and what types it states; its results can be seen from there on."""
    op.last = number
    inputs, outputs = stated_types(line)
    op.operands = [(name, kind) for (name, _), kind in zip(op.operands, inputs, strict=True)]
    names = [name for name, _ in op.results]
    if len(names) == 1 and ":" in names[0]:
        base = names[0].split(":")[0]
        op.results = [(f"{base}#{i}", kind) for i, kind in enumerate(outputs)]
    else:
        op.results = list(zip(names, outputs, strict=True))
    scope.extend(op.results)
