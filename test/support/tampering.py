"""Edits of the text of IR, generated one by one: every operation, operand, number, name, attribute and alias in turn.

    for edit in edits(text):
        ...                       # edit.kind, edit.what, edit.text

The text is MLIR's generic form with aliases, in which all operations look alike:

    %r:2 = "name"(%operand, ...) <{properties}> ({ regions }) {attributes} : (types) -> types
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from support.ir_text import BLOCK, VALUE, Operation, operations_of, split_top, stated_types

ALIAS_USE = re.compile(r"#(map|set|grid|linear|layout|plan)\d*\b")
NUMBER = re.compile(r"(?<![\w%#.^:!+-])-?\d+(?![\w.]|\s*x)")
FLOAT = re.compile(r"(?<![\w.])-?\d+\.\d+(?:[eE][+-]?\d+)?|\b0x[0-9A-Fa-f]+\b(?! *>)")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
LIST = re.compile(r"\[([^\[\]{}<>]+)\]")
MAP_DIM = re.compile(r"\bd(\d+)\b")
ENTRY = re.compile(r"([{,] ?)([\w.$]+) = ")
WORDS = re.compile(r"#linalg\.iterator_type<(\w+)>|#arith\.(?:fastmath|overflow)<(\w+)>")
"""Keywords of upstream attributes."""

ENUMERATIONS: tuple[tuple[str, ...], ...] = (
    ("sum", "prod", "max", "min", "maxnum", "minnum", "and", "or"),
    ("contraction", "elementwise", "reduction", "gather", "convolution", "pooling"),
    ("shift", "copy_out", "relayout", "setup", "reduce"),
    ("fill", "sub_task", "combine", "epilogue"),
    ("input", "output", "weight", "activation", "partial", "buffer", "scratch"),
    ("in", "out", "inout", "u32", "i32", "f32"),
    ("multi", "supervisor", "single"),
)
SIBLINGS: tuple[tuple[str, ...], ...] = (
    ("rtensor.relayout", "rtensor.setup", "rtensor.cast"),
    ("arith.addf", "arith.subf", "arith.mulf", "arith.maximumf"),
    ("arith.addi", "arith.subi", "arith.muli", "arith.maxsi"),
)
ADDED = {
    "layout": ("scatter = 2", 'partial = "sum"', "unknown = 1"),
    "grid": ("unknown = 1",),
    "linear": ("unknown = 1",),
}
MOST_REPLACED = 4
"""Of the values that could stand in place of a deleted one, so many are tried."""


MOST_KEY = 100
"""Letters of a key, at most."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a text: its kind, what was changed, and the whole changed text."""

    kind: str
    what: str
    text: str

    def chance(self, salt: str) -> float:
        """Return a number from 0 to 1 that depends on nothing but the edit."""
        digest = hashlib.blake2b(f"{salt}\0{self.kind}\0{self.what}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) / 2**64


def edits(text: str) -> Iterator[Edit]:
    """Yield every edit of a text, each different from it and from those before."""
    seen = {text}
    lines = text.split("\n")
    operations = operations_of(lines)
    for make in (_deleted, _duplicated, _moved, _other_operands, _other_names):
        for op in operations:
            for edit in make(lines, op, operations):
                if edit.text not in seen:
                    seen.add(edit.text)
                    yield edit
    for make in EDITS_OF_LINES:
        for number, line in enumerate(lines):
            for kind, what, changed in make(line, lines):
                edit = Edit(kind, f"line {number + 1}: {what}", _joined(lines, {number: changed}))
                if edit.text not in seen:
                    seen.add(edit.text)
                    yield edit
    for edit in _aliases_everywhere(text):
        if edit.text not in seen:
            seen.add(edit.text)
            yield edit


def _joined(lines: list[str], changed: dict[int, str | None]) -> str:
    rows = (changed.get(i, line) for i, line in enumerate(lines))
    return "\n".join(row for row in rows if row is not None)


def _renamed(lines: list[str], names: dict[str, str]) -> list[str]:
    """Return lines with values replaced by others."""
    return [VALUE.sub(lambda m: names.get(m[0], m[0]), line) for line in lines]


def _scope_end(lines: list[str], op: Operation) -> int:
    """Return the line behind the block that an operation stands in."""
    indent = len(lines[op.first]) - len(lines[op.first].lstrip())
    for number in range(op.last + 1, len(lines)):
        line = lines[number]
        if line.strip() and len(line) - len(line.lstrip()) < indent:
            return number
    return len(lines)


def _label(op: Operation) -> str:
    results = ", ".join(name for name, _ in op.results)
    return f"line {op.first + 1}: {results + ' = ' if results else ''}{op.name}"


def _deleted(lines: list[str], op: Operation, _: list[Operation]) -> Iterator[Edit]:
    """Yield the text without an operation, with values of the same type in place of its results."""
    end = _scope_end(lines, op)
    before, behind, rest = lines[: op.first], lines[op.last + 1 : end], lines[end:]
    if not op.results:
        yield Edit("delete", _label(op), "\n".join([*before, *behind, *rest]))
        return
    first_type = op.results[0][1]
    own = [name for name, kind in op.operands if kind == first_type]
    others = [name for name, kind in op.visible if kind == first_type and name not in own]
    for other in [*dict.fromkeys(own), *reversed(others)][:MOST_REPLACED]:
        names = dict.fromkeys((name for name, kind in op.results if kind == first_type), other)
        for (name, kind), (operand, stated) in zip(op.results[::-1], op.operands[::-1], strict=False):
            if len(op.results) > 1 and kind == stated:
                names[name] = operand
        yield Edit(
            "delete", f"{_label(op)}, {other} instead", "\n".join([*before, *_renamed(behind, names), *rest])
        )


def _duplicated(lines: list[str], op: Operation, _: list[Operation]) -> Iterator[Edit]:
    """Yield the text with an operation twice: unused, used in place of the first, and after the first."""
    end = _scope_end(lines, op)
    head, own = lines[: op.first], lines[op.first : op.last + 1]
    behind, rest = lines[op.last + 1 : end], lines[end:]
    bases = {name.split("#")[0] for name, _ in op.results}
    again = {name: name.replace("%", "%again_") for name in (*bases, *(name for name, _ in op.results))}
    copy = [re.sub(r"^(\s*)%", r"\1%again_", own[0]) if op.results else own[0], *own[1:]]
    yield Edit("duplicate", f"{_label(op)} unused", "\n".join([*head, *own, *copy, *behind, *rest]))
    if not op.results:
        return
    used = _renamed(behind, again)
    yield Edit("duplicate", f"{_label(op)} used", "\n".join([*head, *own, *copy, *used, *rest]))
    for number, kind in enumerate(kind for _, kind in op.operands):
        same = [name for name, found in op.results if found == kind]
        if same:
            start, stop = op.spans[number]
            shift = len(copy[0]) - len(own[0])
            line = copy[0]
            chained = [line[: start + shift] + same[0] + line[stop + shift :], *copy[1:]]
            what = f"{_label(op)} after itself, operand {number}"
            yield Edit("duplicate", what, "\n".join([*head, *own, *chained, *used, *rest]))


def _moved(lines: list[str], op: Operation, operations: list[Operation]) -> Iterator[Edit]:
    """Yield the text with an operation behind the next one of its block."""
    following = next((o for o in operations if o.first == op.last + 1), None)
    if following is not None:
        first, second = lines[op.first : op.last + 1], lines[following.first : following.last + 1]
        made = [*lines[: op.first], *second, *first, *lines[following.last + 1 :]]
        yield Edit("move", f"{_label(op)} behind the next", "\n".join(made))


def _other_operands(lines: list[str], op: Operation, _: list[Operation]) -> Iterator[Edit]:
    """Yield the text with every operand replaced by every other value of its type, and neighbours exchanged."""
    line = lines[op.first]
    for (name, kind), (start, stop) in zip(op.operands, op.spans, strict=True):
        for other, found in op.visible:
            if found == kind and other != name:
                changed = line[:start] + other + line[stop:]
                yield Edit("operand", f"{_label(op)}: {name} -> {other}", _joined(lines, {op.first: changed}))
    for number, ((one, two), (a, b)) in enumerate(
        zip(pairwise(op.operands), pairwise(op.spans), strict=True)
    ):
        changed = line[: a[0]] + two[0] + line[a[1] : b[0]] + one[0] + line[b[1] :]
        end = changed if op.first == op.last else lines[op.last]
        at = end.rfind(" : (")
        inputs, outputs = stated_types(end)
        inputs[number], inputs[number + 1] = inputs[number + 1], inputs[number]
        arrow = end[at:].rpartition(" -> ")[2]
        end = f"{end[:at]} : ({', '.join(inputs)}) -> {arrow}"
        del outputs
        made = {op.first: end} if op.first == op.last else {op.first: changed, op.last: end}
        what = f"{_label(op)}: {one[0]} and {two[0]} exchanged"
        yield Edit("operand order", what, _joined(lines, dict(made)))


def _other_names(lines: list[str], op: Operation, _: list[Operation]) -> Iterator[Edit]:
    """Yield the text with an operation replaced by one of the same form."""
    for group in SIBLINGS:
        if op.name in group:
            for other in group:
                if other != op.name:
                    changed = lines[op.first].replace(f'"{op.name}"', f'"{other}"', 1)
                    yield Edit("operation", f"{_label(op)} -> {other}", _joined(lines, {op.first: changed}))
    if op.name == "rtensor.fill":
        changed = re.sub(r'combine = "\w+", ?', "", lines[op.first]).replace(
            "rtensor.fill", "rtensor.allocate"
        )
        yield Edit("operation", f"{_label(op)} -> rtensor.allocate", _joined(lines, {op.first: changed}))
    if op.name == "rtensor.allocate":
        changed = (
            lines[op.first].replace("rtensor.allocate", "rtensor.fill").replace("{", '{combine = "sum", ', 1)
        )
        yield Edit("operation", f"{_label(op)} -> rtensor.fill", _joined(lines, {op.first: changed}))


Changes = Iterator[tuple[str, str, str]]
"""Kind, description and the changed line."""


def _key(line: str, at: int) -> str:
    """Return the key of the dictionary entry that a place in a line belongs to, or the operation it stands in."""
    depth = lowest = 0
    for i in range(at - 1, -1, -1):
        if line[i] in "]})>" and line[i - 1 : i + 1] != "->":
            depth += 1
        elif line[i] in "[{(<":
            depth -= 1
        lowest = min(depth, lowest)
        if depth == lowest and line[i] in " [<":
            # A search of the whole line for its end takes time in the square of its length: it may hold a codelet.
            before, equals, value = line[: i + 1].rpartition(" = ")
            found = re.search(r"[\w.$]+$", before[-MOST_KEY:])
            if equals and found and re.fullmatch(r"[\[<#\w]*", value):
                return found[0]
    found = re.match(r'^\s*(?:%.* = )?"([\w.]+)"', line)
    return found[1] if found else ""


def _outside_strings(line: str) -> str:
    """Return a line of the same length with the contents of strings blanked."""
    return STRING.sub(lambda m: '"' + "_" * (len(m[0]) - 2) + '"', line)


def _numbers(line: str, _: list[str]) -> Changes:
    """Change every integer by one, to zero and to one."""
    for match in NUMBER.finditer(_outside_strings(line)):
        value = int(match[0])
        for new in dict.fromkeys((value + 1, value - 1, 0, 1, 2 * value, 2)):
            if new != value:
                changed = line[: match.start()] + str(new) + line[match.end() :]
                key = _key(line, match.start())
                yield f"number {key}", f"column {match.start()} {key}: {value} -> {new}", changed


def _floats(line: str, _: list[str]) -> Changes:
    for match in FLOAT.finditer(_outside_strings(line)):
        if match[0].startswith("0x") and len(match[0]) not in (6, 10, 18):
            continue
        for new in ("1.0", "-2.5", "0.0"):
            if not match[0].startswith("0x") and float(match[0]) == float(new):
                continue
            changed = line[: match.start()] + new + line[match.end() :]
            yield "constant", f"column {match.start()}: {match[0]} -> {new}", changed


def _lists(line: str, _: list[str]) -> Changes:
    """Exchange neighbours of a list, take the last away, repeat it, and leave nothing."""
    for match in LIST.finditer(_outside_strings(line)):
        whole = line[match.start() + 1 : match.end() - 1]
        parts = split_top(whole)
        key = _key(line, match.start())

        def made(new: list[str], match: re.Match[str] = match) -> str:
            return f"{line[: match.start()]}[{', '.join(new)}]{line[match.end() :]}"

        for i in range(len(parts) - 1):
            swapped = [*parts[:i], parts[i + 1], parts[i], *parts[i + 2 :]]
            yield f"list {key}", f"column {match.start()} {key}: {i} and {i + 1} exchanged", made(swapped)
        if len(parts) > 1:
            yield f"list {key}", f"column {match.start()} {key}: without its last", made(parts[:-1])
        yield f"list {key}", f"column {match.start()} {key}: its last twice", made([*parts, parts[-1]])
        # An empty group of dims ends the process in MLIR's own verifier; t10-opt says so (t10.core.guard).
        if key != "reassociation" and not line[: match.start()].rstrip("[ ,0123456789]").endswith(
            "reassociation ="
        ):
            yield f"list {key}", f"column {match.start()} {key}: empty", made([])


def _strings(line: str, _: list[str]) -> Changes:
    for match in STRING.finditer(line):
        if line[match.end() : match.end() + 1] == "(" or len(match[1]) > 60:
            continue
        key = _key(line, match.start())
        others = [word for group in ENUMERATIONS if match[1] in group for word in group if word != match[1]]
        for new in [*dict.fromkeys(others), "tampered", ""]:
            changed = f'{line[: match.start()]}"{new}"{line[match.end() :]}'
            yield f"string {key}", f'column {match.start()} {key}: "{match[1]}" -> "{new}"', changed


def _keywords(line: str, _: list[str]) -> Changes:
    for match in WORDS.finditer(line):
        others = ("parallel", "reduction", "window") if match[1] else ("fast", "nsw", "none")
        for new in others:
            start, stop = match.span(1) if match[1] else match.span(2)
            if line[start:stop] != new:
                changed = line[:start] + new + line[stop:]
                yield "keyword", f"column {start}: {line[start:stop]} -> {new}", changed


def _entries(line: str, _: list[str]) -> Changes:
    """Take every entry of a dictionary away; add entries to grids and layouts; add an unknown attribute."""
    plain = _outside_strings(line)
    for match in ENTRY.finditer(plain):
        end, depth = match.end(), 0
        while end < len(plain) and not (depth == 0 and plain[end] in ",}"):
            depth += (plain[end] in "[{(<") - (
                plain[end] in "]})" or (plain[end] == ">" and plain[end - 1] != "-")
            )
            end += 1
        if match[1].startswith("{"):
            tail = line[end:]
            changed = line[: match.start() + 1] + (tail[1:].lstrip() if tail.startswith(",") else tail)
        else:
            changed = line[: match.start()] + line[end:]
        yield f"without {match[2]}", f"column {match.start()}: without {match[2]}", changed
    for kind, added in ADDED.items():
        if re.match(rf"#{kind}\d* = ", line):
            for entry in added:
                at = line.rfind("}")
                yield "added entry", f"with {entry}", f"{line[:at]}, {entry}{line[at:]}"


def _aliases(line: str, lines: list[str]) -> Changes:
    """Use every other alias of the same kind."""
    body = re.match(r"#\w+ = ", line)
    for match in ALIAS_USE.finditer(line, body.end() if body else 0):
        for other in _defined(lines, match[1]):
            if other != match[0]:
                changed = line[: match.start()] + other + line[match.end() :]
                yield f"alias {match[1]}", f"column {match.start()}: {match[0]} -> {other}", changed


def _maps(line: str, _: list[str]) -> Changes:
    """Index by every other axis, in the result of an affine map."""
    if not line.startswith(("#map", "#set")):
        return
    arrow = line.index("->")
    dims = dict.fromkeys(MAP_DIM.findall(line[:arrow]))
    for match in MAP_DIM.finditer(line, arrow):
        for other in dims:
            if other != match[1]:
                changed = f"{line[: match.start()]}d{other}{line[match.end() :]}"
                yield "map", f"column {match.start()}: {match[0]} -> d{other}", changed


def _element_types(line: str, _: list[str]) -> Changes:
    for match in re.finditer(r"\b(f16|f32|i32|i64)\b", _outside_strings(line)):
        for new in ("f16", "f32", "i64"):
            if new != match[0]:
                changed = line[: match.start()] + new + line[match.end() :]
                yield "type", f"column {match.start()}: {match[0]} -> {new}", changed


def _weights(line: str, _: list[str]) -> Changes:
    if '"func.func"' in line and "arg_attrs" not in line:
        n = len(split_top(line.partition("function_type = (")[2].partition(") -> ")[0]))
        for i in range(n):
            attrs = ", ".join("{t10.weight}" if k == i else "{}" for k in range(n))
            yield "t10.weight", f"argument {i}", line.replace("<{", f"<{{arg_attrs = [{attrs}], ", 1)
    for match in re.finditer(r"\{t10\.weight\}|(?<=[\[ ])\{\}(?=[,\]])", line):
        new = "{}" if "weight" in match[0] else "{t10.weight}"
        yield (
            "t10.weight",
            f"column {match.start()}: {new}",
            line[: match.start()] + new + line[match.end() :],
        )


def _arguments(line: str, _: list[str]) -> Changes:
    """Exchange the names of neighbouring block arguments of one type."""
    block = BLOCK.match(line)
    arguments = split_top(block[1]) if block else []
    for i, (one, two) in enumerate(pairwise(arguments)):
        a, b = one.partition(": "), two.partition(": ")
        if a[2] == b[2]:
            new = [*arguments[:i], f"{b[0]}: {a[2]}", f"{a[0]}: {b[2]}", *arguments[i + 2 :]]
            changed = f"{line[: line.index('(')]}({', '.join(new)}):"
            yield "argument order", f"{a[0]} and {b[0]} exchanged", changed


EDITS_OF_LINES: tuple[Callable[[str, list[str]], Changes], ...] = (
    _numbers, _floats, _lists, _strings, _keywords, _entries, _aliases, _maps, _element_types, _weights, _arguments,
)  # fmt: skip


def _defined(lines: list[str], kind: str) -> list[str]:
    found = (re.match(rf"#{kind}\d* = ", line) for line in lines)
    return [match[0][:-3] for match in found if match]


def _aliases_everywhere(text: str) -> Iterator[Edit]:
    """Yield the text with one alias used wherever another was."""
    lines = text.split("\n")
    n_aliases = sum(line.startswith("#") for line in lines)
    head, body = lines[:n_aliases], "\n".join(lines[n_aliases:])
    for kind in ("map", "grid", "linear", "layout"):
        names = _defined(lines, kind)
        for name in names:
            use = re.compile(rf"{name}(?!\d)")
            for other in names:
                if other == name:
                    continue
                new = "\n".join([*head, use.sub(other, body)])
                yield Edit(f"every {kind}", f"{name} -> {other} below the aliases", new)
                if kind in ("map", "grid"):
                    defined = [
                        line if line.startswith(f"{name} =") else use.sub(other, line) for line in head
                    ]
                    yield Edit(
                        f"every {kind}", f"{name} -> {other}", "\n".join([*defined, use.sub(other, body)])
                    )
                    if kind == "map":
                        partly = [line.replace(f"map = {name},", f"map = {other},") for line in head]
                        yield Edit("every map", f"{name} -> {other} in layouts", "\n".join([*partly, body]))
