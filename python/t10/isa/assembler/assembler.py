"""The assembler: the statements of a file in order, macros and conditions on the way, into words without addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from t10.core.tile import TileMemory
from t10.isa.assembler import conditions, directives
from t10.isa.assembler.conditions import Conditions
from t10.isa.assembler.expressions import parse_expression
from t10.isa.assembler.forms import closest, mnemonics
from t10.isa.assembler.headers import known_constants
from t10.isa.assembler.instruction import Parsed, parse_instruction
from t10.isa.assembler.lines import Line, Problem, Reporter
from t10.isa.assembler.linkage import Unit
from t10.isa.assembler.output import Output, Words
from t10.isa.assembler.preprocessor import Preprocessor
from t10.isa.assembler.registers import NAMES, Register, register_name
from t10.isa.assembler.statement import ASSIGNMENT, Statement, is_constant, statements_of
from t10.isa.assembler.symbols import Symbols
from t10.isa.assembler.text_macros import (
    TextMacro,
    bound_arguments,
    parse_header,
    split_values,
    substituted,
)
from t10.isa.image import AUX, MAIN

MOST_FRAMES = 200
"""Nesting of macros and repetitions."""
MOST_EXPANDED = 500_000
"""Lines that macros and repetitions may expand to."""

_COLLECTING: Final = {".macro": ".endm", ".rept": ".endr", ".irp": ".endr", ".irpc": ".endr"}
_END_WORDS: Final = {".endm": ".macro", ".endmacro": ".macro", ".endr": ".rept"}
_FLAT_AWAY: Final = frozenset((*_COLLECTING, *conditions.WORDS, ".exitm", ".purgem"))
_ALIAS: Final = re.compile(r"\$([A-Za-z_]\w*)")
_ASSIGNING: Final = frozenset((ASSIGNMENT, ".set", ".equ", ".equiv"))
_REGISTER_VALUE: Final = re.compile(r"\s*\$?([A-Za-z]\w*)(?::(\d+))?\s*\Z")


@dataclass(frozen=True, slots=True)
class FlatStatement:
    """One statement without macros: a label, a brace, or a word (instruction, directive, symbol) and its rest.

    `section` is the index of the section that it stands in.
    """

    word: str
    rest: str = ""
    is_label: bool = False
    section: int = 0


T = TypeVar("T")
KEPT_LINES = 65536
_STATEMENTS: Final[dict[str, tuple[Statement, ...]]] = {}
"""Statements of lines, where registers have their own names only."""
_WORDS: Final[dict[str, dict[str, Words]]] = {"": {}, "worker": {}, "supervisor": {}}
"""By mode: the words of lines that are instructions without labels and symbols."""


def _keep(known: dict[str, T], text: str, value: T) -> None:
    if len(known) >= KEPT_LINES:
        known.clear()
    known[text] = value


@dataclass(slots=True)
class _Frame:
    """Text being assembled: the file, or one expansion."""

    statements: Iterator[tuple[Line, Statement]]
    depth: int
    """Conditions that were open around it."""


@dataclass(slots=True)
class _Collection:
    """The body of a macro or a repetition while it is read."""

    opening: Statement
    line: Line
    end: str
    body: list[Line] = field(default_factory=list[Line])
    nested: int = 0


class Assembler:
    """One file, from its text to words without addresses."""

    def __init__(
        self,
        source: str,
        reporter: Reporter,
        defines: Mapping[str, str],
        include_paths: tuple[Path, ...],
        memory: TileMemory,
    ) -> None:
        """Begin; see `t10.isa.assembler.link.link`."""
        self.reporter = reporter
        self.symbols = Symbols(known_constants(memory))
        self.output = Output(self.symbols)
        self._source = source
        self._preprocessor = Preprocessor(self.reporter, defines, include_paths)
        self._conditions = Conditions(self.symbols)
        self._macros: dict[str, TextMacro] = {}
        self._aliases: dict[str, Register] = {}
        self._cache = _STATEMENTS
        self._frames: list[_Frame] = []
        self._collection: _Collection | None = None
        self._bundle: list[tuple[Parsed, Line]] | None = None
        self._bundle_line: Line | None = None
        self.flat: list[FlatStatement] | None = None
        self._serial = 0
        self._expanded = 0

    def read(self, text: str) -> Unit:
        """Return a file's text assembled, without addresses. Errors go to the reporter."""
        lines = self._preprocessor.run(text, self._source)
        self._push(lines)
        self._go()
        self._close(lines[-1] if lines else Line("", "", self._source, 1))
        return Unit(self._source, text, self.output)

    def _push(self, lines: list[Line]) -> None:
        self._frames.append(_Frame(self._statements(lines), self._conditions.depth))

    def _statements(self, lines: list[Line]) -> Iterator[tuple[Line, Statement]]:
        """Yield statements; lines that are known as nothing but instructions go straight to the output."""
        output, is_plain = self.output, self._is_plain()
        for line in lines:
            text = line.text
            words = _WORDS[output.mode].get(text) if is_plain else None
            if words is not None:
                output.put(words, line)
                continue
            mark = output.mark()
            found = self._cache.get(text)
            if found is None:
                found = statements_of(text)
                _keep(self._cache, text, found)
            for statement in found:
                yield line, statement
            was_plain, is_plain = is_plain, self._is_plain()
            if was_plain and is_plain and all(is_constant(statement) for statement in found):
                _keep(_WORDS[output.mode], text, output.since(mark))

    def _is_plain(self) -> bool:
        """Return whether an instruction means what it always does and, so far, all of them are right."""
        return not (
            self._aliases
            or self._macros
            or self._bundle is not None
            or self._collection is not None
            or self.flat is not None
            or self.output.is_special
            or self.symbols.redefines
            or self.reporter.diagnostics
            or not self._conditions.is_active
        )

    def _go(self) -> None:
        """Assemble statement after statement; an expansion goes on top and is finished first."""
        frames, report = self._frames, self.reporter.report
        while frames:
            frame = frames[-1]
            for line, statement in frame.statements:
                try:
                    if self._assemble(line, statement):
                        break
                except Problem as problem:
                    report(line, problem.message, problem.column)
            else:
                opened = self._conditions.cut(frame.depth)
                if opened is not None:
                    report(opened, ".if has no .endif", None)
                frames.pop()

    def _assemble(self, line: Line, statement: Statement) -> bool:
        """Assemble one statement; return whether the frames have changed."""
        word = statement.word
        if self._collection is not None:
            return self._collect(self._collection, line, statement)
        if not self._conditions.is_active:
            if word in conditions.WORDS:
                self._conditions.apply(statement, line, self._frames[-1].depth)
            return False
        if statement.labels:
            self._define_labels(statement, line)
        if self.flat is not None:
            self._flatten(statement, self.flat)
        if not word:
            return False
        if word in self._macros:
            return self._call(self._macros[word], statement, line)
        if word[0] == "." or word in (ASSIGNMENT, "DEF_STACK_USAGE", "DEF_STACK_SIZE_OWN"):
            return self._directive(statement, line)
        if word == "{":
            self._open_bundle(statement, line)
        elif word == "}":
            self._close_bundle(statement, line)
        else:
            self._instruction(statement, line)
        return False

    def _flatten(self, statement: Statement, flat: list[FlatStatement]) -> None:
        """Keep a statement that is no macro's, with the registers' own names."""
        section = self.output.section.index
        flat += [FlatStatement(name, "", True, section) for name, _ in statement.labels]
        word = statement.word
        if not word or word in _FLAT_AWAY or word in self._macros or self._alias(statement) is not None:
            return
        rest = f"= {statement.rest}" if statement.name else statement.rest
        if self._aliases:
            rest = _ALIAS.sub(lambda match: self._register_text(match[0], match[1]), rest)
        flat.append(FlatStatement(statement.name or word, rest, section=section))

    def _register_text(self, text: str, name: str) -> str:
        register = self._aliases.get(name)
        return text if register is None else register_name(register.file, register.number, register.width)

    def _define_labels(self, statement: Statement, line: Line) -> None:
        for name, column in statement.labels:
            if self._bundle is not None:
                raise Problem("a label cannot stand inside a bundle", column)
            self.symbols.define_label(name, self.output.place(), line, column)

    def _instruction(self, statement: Statement, line: Line) -> None:
        parsed = statement.parsed
        if parsed is None:
            if statement.word not in mnemonics():
                known = mnemonics() | frozenset(self._macros)
                raise Problem(
                    f"unknown instruction or macro '{statement.word}'{closest(statement.word, known)}",
                    statement.column,
                )
            parsed = statement.parsed = parse_instruction(
                statement.word, statement.column, statement.rest, statement.rest_column, self._aliases
            )
        mode = parsed.form.record.mode
        if mode != "both" and self.output.mode and mode != self.output.mode:
            raise Problem(
                f"{parsed.mnemonic} is an instruction of the {mode}, this is {self.output.mode} code",
                statement.column,
            )
        if self._bundle is not None:
            self._bundle.append((parsed, line))
            return
        self.symbols.here = self.output.place()
        self.output.solo(parsed, line)

    def _open_bundle(self, statement: Statement, line: Line) -> None:
        if self._bundle is not None:
            raise Problem("a bundle inside a bundle: '}' is missing above", statement.column)
        self._bundle, self._bundle_line = [], line

    def _close_bundle(self, statement: Statement, line: Line) -> None:
        """Check the halves of a bundle and append it."""
        halves, self._bundle = self._bundle, None
        if halves is None:
            raise Problem("'}' has no '{'", statement.column)
        if len(halves) != 2:
            raise Problem(
                f"a bundle holds two instructions, found {len(halves)}; fill up with nop or fnop",
                statement.column,
            )
        if self.output.mode == "supervisor":
            raise Problem("supervisor code has no bundles", statement.column)
        if self.output.allows_optimizations and halves[0][0].pipe == AUX and halves[1][0].pipe == MAIN:
            halves.reverse()
        (main, main_line), (aux, aux_line) = halves
        self._check_halves(main, aux)
        self.symbols.here = self.output.place()
        self.output.bundle(main, aux, (main_line, aux_line))

    def _check_halves(self, main: Parsed, aux: Parsed) -> None:
        """Raise Problem where two instructions cannot issue together."""
        for half in (main, aux):
            if not half.form.record.can_bundle:
                raise Problem(f"{half.mnemonic} cannot stand in a bundle", half.column)
        if main.pipe == AUX and aux.pipe == MAIN:
            raise Problem(
                f"the halves are the wrong way round: write {{ {aux.mnemonic} ... ; {main.mnemonic} ... }}",
                main.column,
            )
        if main.pipe == AUX or aux.pipe == MAIN:
            half, pipe = (main, "first") if main.pipe == AUX else (aux, "second")
            raise Problem(
                f"{half.mnemonic} cannot be the {pipe} half of a bundle: both are of one pipe", half.column
            )
        if main.written & aux.written:
            number = ((main.written & aux.written) & -(main.written & aux.written)).bit_length() - 1
            name = f"$m{number}" if number < 16 else "$azeros" if number >= 30 else f"$a{number - 16}"
            raise Problem(f"both halves of the bundle write {name}", aux.column)

    def _directive(self, statement: Statement, line: Line) -> bool:
        """Do a directive; return whether the frames have changed."""
        word = statement.word
        if word in conditions.WORDS:
            self.symbols.here = self.output.place()
            self._conditions.apply(statement, line, self._frames[-1].depth)
            return False
        if word in _COLLECTING:
            self._collection = _Collection(statement, line, _COLLECTING[word])
            return False
        if word in _ASSIGNING:
            self.symbols.here = self.output.place()
            self._assign(statement)
            return False
        if word == ".exitm":
            self._conditions.cut(self._frames[-1].depth)
            self._frames.pop()
            return True
        if word == ".purgem":
            self._macros.pop(statement.rest.strip(), None)
            return False
        if word in _END_WORDS:
            raise Problem(f"{word} has no {_END_WORDS[word]}", statement.column)
        directive = directives.find_directive(word)
        if directive is None:
            near = closest(word, directives.ALL_WORDS | conditions.WORDS | frozenset(self._macros))
            raise Problem(f"unknown directive '{word}'{near}", statement.column)
        if self._bundle is not None:
            raise Problem(f"{word} cannot stand inside a bundle", statement.column)
        directive(self.output, statement, line)
        return False

    def _assign(self, statement: Statement) -> None:
        """Set a symbol, or give a register another name: `.set ptr, $m0`, then `$ptr`."""
        alias = self._alias(statement)
        if alias is None:
            directives.assign(self.output, statement)
            return
        name, register = alias
        self._aliases[name] = register
        self._cache = {}

    def _alias(self, statement: Statement) -> tuple[str, Register] | None:
        """Return the name that an assignment gives to a register, and the register; None for other statements."""
        if statement.word not in _ASSIGNING:
            return None
        name, _, value = statement.rest.partition(",")
        if statement.name:
            name, value = statement.name, statement.rest
        match = _REGISTER_VALUE.match(value)
        register = NAMES.get(match[1]) if match else None
        if match is None or register is None or match[1] in self.symbols.values:
            return None
        if match[2]:
            register = register._replace(width=int(match[2]) - register.number + 1)
        return name.strip(), register

    def _collect(self, collection: _Collection, line: Line, statement: Statement) -> bool:
        """Keep a statement for a macro or repetition, up to its end; return whether the frames have changed."""
        word = statement.word
        if _COLLECTING.get(word) == collection.end:
            collection.nested += 1
        elif word == collection.end or (word == ".endmacro" and collection.end == ".endm"):
            if collection.nested == 0:
                self._collection = None
                try:
                    return self._use(collection)
                except Problem as problem:
                    self.reporter.report(collection.line, problem.message, problem.column)
                    return False
            collection.nested -= 1
        collection.body.append(line._replace(text=statement.text))
        return False

    def _use(self, collection: _Collection) -> bool:
        """Define the macro that was read, or repeat what is to be repeated; return whether the frames have changed."""
        opening = collection.opening
        rest, column = opening.rest, opening.rest_column
        if opening.word == ".macro":
            name, parameters = parse_header(rest, column)
            self._macros[name] = TextMacro(name, parameters, tuple(collection.body))
            return False
        if opening.word == ".rept":
            self.symbols.here = self.output.place()
            count = self.symbols.number(parse_expression(rest, column), "the count of .rept")
            bindings: list[dict[str, str]] = [{}] * self._bounded(count, collection)
        else:
            name, _, values = rest.partition(",")
            if "," not in rest:
                name, _, values = rest.partition(" ")
            texts = split_values(values) if opening.word == ".irp" else list(values.strip().strip('"'))
            self._bounded(len(texts), collection)
            bindings = [{name.strip(): text} for text in texts]
        lines = [
            line._replace(
                text=substituted(line.text, binding, self._serial), outer=collection.line, how="repeated"
            )
            for binding in bindings
            for line in collection.body
        ]
        return self._expand(lines, collection.line)

    def _bounded(self, count: int, collection: _Collection) -> int:
        """Return a count of repetitions that is neither negative nor hostile."""
        if count < 0 or count * max(len(collection.body), 1) > MOST_EXPANDED:
            raise Problem(f"{count} repetitions are not possible", collection.opening.rest_column)
        return count

    def _call(self, macro: TextMacro, statement: Statement, line: Line) -> bool:
        """Put the body of a macro in place of its call."""
        values = bound_arguments(macro, statement.rest, statement.rest_column)
        serial, self._serial = self._serial, self._serial + 1
        how = f"in macro '{macro.name}' used"
        lines = [
            body._replace(text=substituted(body.text, values, serial), outer=line, how=how)
            for body in macro.body
        ]
        return self._expand(lines, line)

    def _expand(self, lines: list[Line], line: Line) -> bool:
        self._expanded += len(lines) + 1
        if len(self._frames) >= MOST_FRAMES:
            self.reporter.fatal(line, f"macros are nested more than {MOST_FRAMES} deep")
        if self._expanded > MOST_EXPANDED:
            self.reporter.fatal(line, f"macros expand to more than {MOST_EXPANDED:,} lines")
        self._push(lines)
        return True

    def _close(self, last: Line) -> None:
        """Report what is still open at the end."""
        if self._collection is not None:
            opening = self._collection.opening
            self.reporter.report(
                self._collection.line, f"{opening.word} has no {self._collection.end}", opening.column
            )
        if self._bundle is not None:
            self.reporter.report(self._bundle_line or last, "'{' has no '}'", None)
