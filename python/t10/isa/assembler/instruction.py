"""One instruction of the text: operands read, form chosen, immediates checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from t10.isa import constants
from t10.isa.assembler.expressions import Node, parse_expression
from t10.isa.assembler.forms import Form, closest, forms_of, mnemonics, usage
from t10.isa.assembler.lines import Problem
from t10.isa.assembler.registers import NAMES, READ_ONLY, REGISTER, Register, group
from t10.isa.image import AUX, MAIN, MOST_OPERANDS

Row = tuple[int, int, int, int, int, int, int, int, int, int]
"""A word of an image: kind, form, operands."""

ZEROS: Final = (0, 0, 0, 0, 0, 0, 0, 0)
assert len(ZEROS) == MOST_OPERANDS
PACED_STORE: Final = "st64pace"
"""It moves one pointer; public codelets write the selector of `ldst64pace`, which moves two, for it too."""


@dataclass(slots=True)
class Parsed:
    """An instruction whose operands are known up to the values of symbols.

    `forms` are those that fit the shape; which of them it is depends on the immediates. `values` are registers and
    numbers, 0 where an expression of `nodes` (position and tree) is still to be evaluated. `written` is a mask of
    registers: bit n for $mn, bit 16 + n for $an. `rows` keeps the finished words by kind.
    """

    mnemonic: str
    forms: tuple[Form, ...]
    values: tuple[int, ...]
    nodes: tuple[tuple[int, Node], ...]
    written: int
    columns: tuple[int, ...]
    column: int
    csr: str = ""
    rows: dict[int, Row] = field(default_factory=dict[int, Row])

    @property
    def form(self) -> Form:
        """Return the first form: all share pipe, mode and registers written."""
        return self.forms[0]

    @property
    def pipe(self) -> int:
        """Return MAIN or AUX."""
        return MAIN if self.form.record.pipe == "main" else AUX

    def row(self, kind: int, values: tuple[int, ...]) -> Row:
        """Return the word for given values of all operands. Raises Problem where an immediate is out of range."""
        if self.mnemonic == PACED_STORE:
            values = (*values[:-1], _one_selector(values[-1]))
        form = self.chosen(values)
        padded = (*(_signed(value) for value in values), *ZEROS[len(values) :])
        return (kind, form.number, *padded)  # pyright: ignore[reportReturnType] - ten numbers

    def constant_row(self, kind: int) -> Row:
        """Return the word of an instruction without symbols, made once."""
        row = self.rows.get(kind)
        if row is None:
            row = self.rows[kind] = self.row(kind, self.values)
        return row

    def chosen(self, values: tuple[int, ...]) -> Form:
        """Return the first form whose immediates take these values."""
        for form in self.forms:
            if all(within.holds(values[position]) for position, within in form.immediates):
                return form
        position = next(p for p, within in self.forms[-1].immediates if not within.holds(values[p]))
        ranges = dict.fromkeys(str(dict(form.immediates)[position]) for form in self.forms)
        name = self.form.record.operands[position].name
        raise Problem(
            f"operand '{name}' of {self.mnemonic} is {_number(values[position])}; expected {' or '.join(ranges)}",
            self.columns[position],
        )


def parse_instruction(
    mnemonic: str, column: int, text: str, text_column: int, aliases: dict[str, Register]
) -> Parsed:
    """Return an instruction; `text` are its operands, which begin at `text_column`. Raises Problem."""
    if mnemonic not in mnemonics():
        raise Problem(f"unknown instruction '{mnemonic}'{closest(mnemonic, mnemonics())}", column)
    parts = split_operands(text, text_column)
    shapes: list[str] = []
    values: list[int] = []
    nodes: list[tuple[int, Node]] = []
    csr = ""
    for position, (part, where) in enumerate(parts):
        shape, value = _operand(part, where, aliases)
        shapes.append(shape)
        if isinstance(value, Node):
            values.append(value.value if value.kind == "int" else 0)
            if value.kind != "int":
                nodes.append((position, value))
        elif isinstance(value, str):
            csr = value
            values.append(0)
        else:
            values.append(value)
    columns = tuple(where for _, where in parts)
    forms = forms_of(mnemonic, " ".join(shapes)) or _respelled(mnemonic, shapes, [part for part, _ in parts])
    if not forms:
        raise Problem(f"{mnemonic} has no form with these operands; expected {usage(mnemonic)}", column)
    written = _written(forms[0], tuple(values), columns)
    return Parsed(forms[0].record.mnemonic, forms, tuple(values), tuple(nodes), written, columns, column, csr)


def _respelled(mnemonic: str, shapes: list[str], texts: list[str]) -> tuple[Form, ...]:
    """Return the forms that operands mean in spellings which public codelets use and no record has; () for others.

    `$azero` as the base or delta of a load or store is `$mzero`; `put` of an $a register is `uput`; a register's low
    half (`:BL`) and its only element (`:B`) are spelled alike.
    """
    if mnemonic.startswith(("ld", "st")) and "$azero" in texts[1:]:
        found = [
            "m" if text == "$azero" and i else shape
            for i, (shape, text) in enumerate(zip(shapes, texts, strict=True))
        ]
        return forms_of(mnemonic, " ".join(found))
    if mnemonic == "put":
        return forms_of("uput", " ".join(shapes))
    other = {"a:B": "a:BL", "a:BL": "a:B"}
    return forms_of(mnemonic, " ".join(other.get(shape, shape) for shape in shapes))


def csr_number(parsed: Parsed, mode: str) -> int:
    """Return the number of the control register an instruction names; raises Problem where its space has none such."""
    record = parsed.form.record
    if record.pipe == "aux":
        known = constants.UPPER_CSRS
    elif mode == "supervisor":
        known = constants.SUPERVISOR_CSRS
    elif mode == "worker":
        known = constants.WORKER_CSRS
    else:
        known = {**constants.SUPERVISOR_CSRS, **constants.WORKER_CSRS}
    if parsed.csr not in known:
        near = closest(parsed.csr, frozenset(known)) or f"; expected one of {', '.join(sorted(known))}"
        raise Problem(f"${parsed.csr} is not a control register of {parsed.mnemonic}{near}", parsed.column)
    return known[parsed.csr]


def split_operands(text: str, column: int) -> list[tuple[str, int]]:
    """Return comma-separated parts of a text with the columns they begin at; commas in parentheses do not part."""
    if not text or text.isspace():
        return []
    parts: list[tuple[str, int]] = []
    depth = start = 0
    if "(" in text:
        for position, char in enumerate(text):
            if char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
            elif char == "," and depth == 0:
                parts.append((text[start:position], column + start))
                start = position + 1
        parts.append((text[start:], column + start))
    else:
        for piece in text.split(","):
            parts.append((piece, column + start))
            start += len(piece) + 1
    return [(part.strip(), where + len(part) - len(part.lstrip())) for part, where in parts]


def _operand(text: str, column: int, aliases: dict[str, Register]) -> tuple[str, int | str | Node]:
    """Return an operand's shape, and its register number, tree, or name of a control register."""
    if not text:
        raise Problem("an operand is missing", column)
    known = _seen.get(text)
    if known is not None:
        return known
    if text[0] != "$":
        alias = aliases.get(text)
        if alias is None:
            return "i", parse_expression(text, column)
        return _register_shape(alias, ""), alias.number
    match = REGISTER.match(text)
    if match is None:
        raise Problem(f"'{text}' is not a register", column)
    name, tail, mark = match[1], match[2], match[3] or ""
    register = NAMES.get(name) or aliases.get(name)
    if register is None:
        if tail is None and not mark and name in _ALL_CSRS:
            return "c", name
        known = frozenset(f"${one}" for one in (*NAMES, *_ALL_CSRS, *aliases))
        raise Problem(f"unknown register '${name}'{closest(f'${name}', known)}", column)
    if tail is not None:
        register = group(register, tail, text, column)
    result = _register_shape(register, mark), register.number
    if name in NAMES and len(_seen) < MOST_SEEN:
        _seen[text] = result
    return result


MOST_SEEN: Final = 4096
_seen: Final[dict[str, tuple[str, int]]] = {}
"""Shape and number of registers by their text: there are few, and all the time the same ones."""

_ALL_CSRS: Final = frozenset((*constants.WORKER_CSRS, *constants.UPPER_CSRS, *constants.SUPERVISOR_CSRS))


def _register_shape(register: Register, mark: str) -> str:
    if register.broadcast:
        return f"a:{register.broadcast}{mark}"
    return register.file + (str(register.width) if register.width > 1 else "") + mark


def _written(form: Form, values: tuple[int, ...], columns: tuple[int, ...]) -> int:
    """Return the mask of registers an instruction writes; $mzero and $m14 swallow, so they do not count."""
    written = 0
    for position, file, width in form.outs:
        number = values[position]
        if file == "m" and number in READ_ONLY and width == 1:
            raise Problem(f"{form.record.mnemonic} cannot write read-only $m{number}", columns[position])
        mask = ((1 << width) - 1) << (number + (16 if file == "a" else 0))
        if written & mask:
            raise Problem(f"{form.record.mnemonic} writes one register twice", columns[position])
        written |= mask & ~_SWALLOWED
    return written


_SWALLOWED: Final = (1 << 14) | (1 << 15) | (1 << 16 + 13)


def _one_selector(value: int) -> int:
    """Return a selector of two bits; one of four bits that says the same for two pointers is that of either."""
    low, high = value & 3, value >> 2
    return low if low == high else value


def _signed(value: int) -> int:
    """Return a number as the signed 32 bits an image holds."""
    return value - (1 << 32) if value >= 1 << 31 else value


def _number(value: int) -> str:
    return str(value) if -0x10000 < value < 0x10000 else f"{value:#x}"
