"""The C preprocessor of assembly files: comments, continuations, macros, conditions, includes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from t10.isa.assembler.cpp_macros import IDENTIFIER, Expander, Macro, is_call_open, parse_definition
from t10.isa.assembler.expressions import evaluate_condition
from t10.isa.assembler.headers import HEADERS
from t10.isa.assembler.lines import Line, Problem, Reporter

MOST_INCLUDES = 40
"""Depth of nested includes."""
MOST_JOINED = 2000
"""Lines a macro call may span."""

PREDEFINED: Final = {"__IPU__": "1", "__IPU_ARCH_VERSION__": "21", "__ASSEMBLER__": "1"}

_DIRECTIVE: Final = re.compile(r"\s*#\s*(\w*)(.*)\Z", re.DOTALL)
_COMMENT: Final = re.compile(r'"(?:\\.|[^"\\])*"|//.*\Z|/\*.*?(?:\*/|\Z)', re.DOTALL)
_DEFINED: Final = re.compile(r"\bdefined\s*(?:\(\s*([A-Za-z_]\w*)\s*\)|([A-Za-z_]\w*))")
_INCLUDE: Final = re.compile(r'\s*(?:"([^"]+)"|<([^>]+)>)\s*\Z')


class Preprocessor:
    """Turns the text of a file, and what it includes, into logical lines."""

    def __init__(
        self, reporter: Reporter, defines: Mapping[str, str], include_paths: tuple[Path, ...]
    ) -> None:
        """Begin with the macros given; `include_paths` are searched after the folder of the including file."""
        self._reporter = reporter
        self._include_paths = include_paths
        self._macros: dict[str, Macro] = {}
        self._has_calls = False
        self._expander = Expander(self._macros)
        self._expanded: dict[str, str] = {}
        self._once: set[str] = set()
        self._out: list[Line] = []
        self._directives: dict[str, Callable[[str, Line], None]] = {
            "define": self._define,
            "undef": self._undef,
            "error": self._error,
        }
        for name, body in {**PREDEFINED, **defines}.items():
            self._define(f" {name} {body}")

    def run(self, text: str, file: str) -> list[Line]:
        """Return the logical lines of a file; empty ones are left out."""
        self._file(text, file, None, 0)
        return self._out

    def _file(self, text: str, file: str, outer: Line | None, depth: int) -> None:
        """Go through the lines of one file."""
        conditions = _Conditions()
        lines = text.split("\n")
        position = 0
        while position < len(lines):
            number = position + 1
            raw = lines[position]
            position += 1
            while raw.endswith("\\") and position < len(lines):
                raw = raw[:-1] + lines[position]
                position += 1
            if "/" in raw:
                while _leaves_comment_open(raw) and position < len(lines):
                    raw = raw + "\n" + lines[position]
                    position += 1
                raw = _without_comments(raw)
            stripped = raw.lstrip()
            if not stripped:
                continue
            if stripped[0] == "#":
                line = Line(raw, raw, file, number, outer, "included")
                self._guarded(lambda line=line: self._directive(line, conditions, depth), line)
                continue
            if not conditions.is_active:
                continue
            plain = self._expanded.get(raw)
            if plain is None:
                if self._has_calls:
                    raw, position = self._joined(raw, lines, position)
                line = Line(raw, raw, file, number, outer, "included")
                plain = self._expansion(raw, line)
            self._out.append(Line(plain, raw, file, number, outer, "included"))
        if conditions.opened:
            line = conditions.opened[-1]
            self._reporter.report(line, "#if has no #endif", 0)

    def _joined(self, raw: str, lines: list[str], position: int) -> tuple[str, int]:
        """Return a line with the next ones while the arguments of a macro call stay open, and where to go on."""
        joined = 0
        while position < len(lines) and joined < MOST_JOINED and is_call_open(raw, self._macros):
            raw = raw + " " + _without_comments(lines[position]).strip()
            position += 1
            joined += 1
        return raw, position

    def _expansion(self, raw: str, line: Line) -> str:
        """Return a line with its macros expanded, from memory where the same text was seen since the last `#define`."""
        macros = self._macros
        text = raw
        if any(name in macros for name in IDENTIFIER.findall(raw)):
            try:
                text = self._expander.expand_text(raw)
            except Problem as problem:
                self._reporter.report(line, problem.message, problem.column)
                return ""
        self._expanded[raw] = text
        return text

    def _guarded(self, action: Callable[[], None], line: Line) -> None:
        try:
            action()
        except Problem as problem:
            self._reporter.report(line, problem.message, problem.column)

    def _directive(self, line: Line, conditions: _Conditions, depth: int) -> None:
        """Do what a line beginning with `#` says. Unknown words are comments, as in the C preprocessor for assembly."""
        match = _DIRECTIVE.match(line.text)
        word, rest = (match[1], match[2]) if match else ("", "")
        if word in ("if", "ifdef", "ifndef"):
            active = conditions.is_active
            conditions.open(line, active and self._holds(word, rest))
        elif word == "elif":
            conditions.otherwise("#elif", lambda: self._holds("if", rest))
        elif word == "else":
            conditions.otherwise("#else", lambda: True)
        elif word == "endif":
            conditions.close()
        elif not conditions.is_active:
            return
        elif word == "include":
            self._include(rest, line, depth)
        elif word == "pragma":
            if rest.strip() == "once":
                self._once.add(line.file)
        elif word in self._directives:
            self._directives[word](rest, line)

    def _holds(self, word: str, rest: str) -> bool:
        """Return whether a condition holds. Raises Problem."""
        if word != "if":
            name = rest.strip().split()[0] if rest.strip() else ""
            if not IDENTIFIER.fullmatch(name):
                raise Problem(f"#{word} needs a name")
            return (name in self._macros) == (word == "ifdef")
        replaced = _DEFINED.sub(lambda match: str(int((match[1] or match[2]) in self._macros)), rest)
        return evaluate_condition(self._expander.expand_text(replaced)) != 0

    def _define(self, rest: str, line: Line | None = None) -> None:
        macro = parse_definition(rest)
        self._macros[macro.name] = macro
        self._has_calls = self._has_calls or macro.parameters is not None
        self._expanded.clear()

    def _undef(self, rest: str, line: Line) -> None:
        self._macros.pop(rest.strip(), None)
        self._expanded.clear()

    def _error(self, rest: str, line: Line) -> None:
        raise Problem(f"#error {rest.strip()}")

    def _include(self, rest: str, line: Line, depth: int) -> None:
        """Go through an included file: beside the including one, on the include path, or one of our own headers."""
        match = _INCLUDE.match(rest) or _INCLUDE.match(self._expander.expand_text(rest))
        if match is None:
            raise Problem('#include needs "file" or <file>')
        if depth >= MOST_INCLUDES:
            self._reporter.fatal(line, f"includes are nested more than {MOST_INCLUDES} deep")
        name = match[1] or match[2]
        for folder in (Path(line.file).parent, *self._include_paths):
            path = folder / name
            if path.is_file():
                if str(path) not in self._once:
                    self._file(path.read_text(encoding="utf-8"), str(path), line, depth + 1)
                return
        text = HEADERS.get(name.rpartition("/")[2])
        if text is None:
            known = ", ".join(HEADERS)
            raise Problem(f"'{name}' is not found (bundled headers: {known})", line.text.find(name))
        if name not in self._once:
            self._once.add(name)
            self._file(text, name, line, depth + 1)


class _Conditions:
    """The `#if`s that are open in one file."""

    def __init__(self) -> None:
        self.is_active = True
        self.opened: list[Line] = []
        self._states: list[tuple[bool, bool, bool]] = []  # active outside, taken before, `#else` seen

    def open(self, line: Line, holds: bool) -> None:
        self._states.append((self.is_active, holds, False))
        self.opened.append(line)
        self.is_active = holds

    def otherwise(self, word: str, holds: Callable[[], bool]) -> None:
        if not self._states:
            raise Problem(f"{word} has no #if")
        outside, taken, seen_else = self._states[-1]
        if seen_else:
            raise Problem(f"{word} stands behind #else")
        self.is_active = outside and not taken and holds()
        self._states[-1] = (outside, taken or self.is_active, word == "#else")

    def close(self) -> None:
        if not self._states:
            raise Problem("#endif has no #if")
        self.is_active = self._states.pop()[0]
        self.opened.pop()


def _leaves_comment_open(raw: str) -> bool:
    """Return whether a block comment goes on in the next line."""
    if "/*" not in raw:
        return False
    last = ""
    for match in _COMMENT.finditer(raw):
        last = match[0]
    return last.startswith("/*") and (not last.endswith("*/") or last == "/*/")


def _without_comments(raw: str) -> str:
    """Return a line with comments replaced by spaces, so that columns stay; a comment of several lines becomes one."""
    if "//" not in raw and "/*" not in raw:
        return raw

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        return text if text[0] == '"' else " " if "\n" in text else " " * len(text)

    return _COMMENT.sub(blank, raw)
