"""The C preprocessor of assembly files: that of the C++ compiler, as the Poplar SDK does it.

Text without directives, as T10 writes it, is only freed of its comments: no compiler runs.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from t10.errors import InputError
from t10.isa.assembler.headers import HEADERS
from t10.isa.assembler.lines import MOST_ERRORS, Line, Reporter

COMPILER: Final = "g++"
MOST_INCLUDES = 40
"""Depth of nested includes."""
MOST_SECONDS = 5
MOST_KILOBYTES = 1_000_000
"""Memory of the compiler's process: a bound for hostile macros, as is the time."""
MOST_TEXT_BYTES = 8_000_000
"""Text after the preprocessor."""

PREDEFINED: Final = {"__IPU__": "1", "__IPU_ARCH_VERSION__": "21"}

_FLAGS: Final = (
    "-E", "-x", "assembler-with-cpp", "-undef", "-nostdinc", "-w", "-fdiagnostics-color=never",
    "-fno-diagnostics-show-caret", f"-fmax-include-depth={MOST_INCLUDES}", f"-fmax-errors={MOST_ERRORS}",
)  # fmt: skip
_LIMITED: Final = (
    f"ulimit -t {MOST_SECONDS}; ulimit -v {MOST_KILOBYTES}; ulimit -f {MOST_TEXT_BYTES // 512}; "
    'exec "$0" "$@"'
)
_BUNDLED: Final = "|".join(re.escape(name) for name in HEADERS)
_DIRECTIVE: Final = re.compile(
    rf'^[ \t]*#[ \t]*(?!include[ \t]*["<](?:[\w/]*/)?(?:{_BUNDLED})[">])'
    r"(?:define|undef|include|if|ifdef|ifndef|elif|else|endif|error)\b|/\*|\\[ \t\r]*$",
    re.MULTILINE,
)
"""What makes text need the compiler; `#` before any other word begins a comment."""
_MACROS: Final = (*PREDEFINED, "__ASSEMBLER__", "__LINE__", "__FILE__", "FUNCTION_IS_WORKER")
"""Names that are macros without a `#define` in the text; numbers of bundled headers are known anyway."""
_MARK: Final = re.compile(r"[#\\]|/\*")
_FOLDER: Final = re.compile(rf'["<](\w[\w/]{{0,200}}/)(?:{_BUNDLED})[">]')
_COMMENT: Final = re.compile(r'"(?:\\.|[^"\\])*"|//.*\Z|/\*.*?(?:\*/|\Z)')
_MARKER: Final = re.compile(r'# (\d+) "((?:\\.|[^"\\])*)"((?: \d)*)\s*\Z')
_FROM: Final = re.compile(r"(?:In file included from|\s+from) (.+?):(\d+)(?::\d+)?[:,]\Z")
_ERROR: Final = re.compile(r"(.+?)(?::(\d+))?(?::(\d+))?: (?:fatal )?error: (.*)\Z")
_PARTED: Final = re.compile(r"(?<=_)[ \t]+(?=\\\w)|\\[ \t]+(?=\w)")
"""Spaces that the compiler puts into a name of several tokens: before a macro's argument, or behind the backslash of
one whose name is also a macro of the preprocessor."""
_STDIN: Final = "<stdin>"


class Preprocessor:
    """Turns the text of a file, and what it includes, into logical lines."""

    def __init__(
        self, reporter: Reporter, defines: Mapping[str, str], include_paths: tuple[Path, ...]
    ) -> None:
        """Begin with the macros given; `include_paths` are searched after the folder of the including file."""
        self._reporter = reporter
        self._defines = {**PREDEFINED, **defines}
        self._include_paths = include_paths

    def run(self, text: str, file: str) -> list[Line]:
        """Return the logical lines of a file; empty ones are left out. Reports what the preprocessor refuses."""
        has_macros = any(name in text for name in (*_MACROS, *self._defines))
        is_plain = not has_macros and not any(_DIRECTIVE.search(line) for line in _marked(text))
        return list(_plain_lines(text, file) if is_plain else self._compiled(text, file))

    def _compiled(self, text: str, file: str) -> Iterator[Line]:
        """Yield the lines that the compiler's preprocessor leaves."""
        sources = _Sources(text, file)
        with tempfile.TemporaryDirectory(prefix="t10-cpp-") as scratch:
            headers, output = Path(scratch) / "headers", Path(scratch) / "out.S"
            for folder in {"", "poplar/", *_FOLDER.findall(text)}:
                (headers / folder).mkdir(parents=True, exist_ok=True)
                for name, header in HEADERS.items():
                    (headers / folder / name).write_text(header, encoding="utf-8")
            command = [
                *(f"-D{name}={body}" for name, body in self._defines.items()),
                *(f"-I{path.absolute()}" for path in self._include_paths),
                *("-idirafter", str(headers), "-o", str(output), "-"),
            ]
            errors = _run(command, text, sources.folder or scratch)
            if errors is not None:
                self._report(errors, sources)
                return
            marked = output.read_text(encoding="utf-8", errors="replace")
        yield from _marked_lines(marked, sources)

    def _report(self, errors: str, sources: _Sources) -> None:
        """Report the errors that the compiler printed."""
        outer: list[tuple[str, int]] = []
        n_before = len(self._reporter.diagnostics)
        for text in errors.split("\n"):
            if origin := _FROM.match(text):
                outer.insert(0, (origin[1], int(origin[2])))
            elif found := _ERROR.match(text):
                line = None
                for name, number in outer:
                    line = sources.line(name, number, line)
                line = sources.line(found[1], int(found[2] or 1), line)
                self._reporter.report(line, found[4], int(found[3]) - 1 if found[3] else None)
                outer.clear()
        if len(self._reporter.diagnostics) == n_before:
            said = errors.strip().split("\n")[0] or "it was stopped"
            self._reporter.report(
                sources.line(_STDIN, 1, None), f"{COMPILER} cannot preprocess this text: {said}"
            )


class _Sources:
    """The files whose lines the compiler names, as they are written."""

    def __init__(self, text: str, file: str) -> None:
        """Begin with the text that the compiler reads from its standard input."""
        self.file = file
        parent = Path(file).parent
        self.folder = str(parent) if parent.is_dir() else ""
        self._main = text.split("\n")
        self._lines: dict[str, list[str]] = {}

    def line(self, name: str, number: int, outer: Line | None, text: str | None = None) -> Line:
        """Return a line by the compiler's name of its file; `text` is what was made of it."""
        is_main = name == _STDIN or name.startswith("<")
        path = self.file if is_main else str(Path(self.file).parent / name)
        lines = self._main if is_main else self._read(path)
        raw = _without_comments(lines[number - 1]) if 0 < number <= len(lines) else (text or "")
        if text is not None and "\\" in text and not _PARTED.search(raw):
            text = _PARTED.sub("", text)
        # The compiler collapses spaces; columns are those of the source where nothing else was changed.
        if text is None or "".join(text.split()) == "".join(raw.split()):
            text = raw
        return Line(text, raw, path, number, outer, "included")

    def _read(self, path: str) -> list[str]:
        """Return the lines of an included file, none where it is not to be read."""
        if path not in self._lines:
            is_file = Path(path).is_file()
            text = Path(path).read_text(encoding="utf-8", errors="replace") if is_file else ""
            self._lines[path] = text.split("\n")
        return self._lines[path]


def _run(command: list[str], text: str, folder: str) -> str | None:
    """Preprocess a text; return None, or what the compiler said where it failed."""
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _LIMITED, COMPILER, *_FLAGS, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,
        )
    except ValueError as error:
        return str(error)
    with process:
        try:
            _, said = process.communicate(
                text.replace("\r", " ").encode("utf-8", "replace"), 2 * MOST_SECONDS
            )
        except subprocess.TimeoutExpired:
            # The compiler is a process of the one that was started.
            os.killpg(process.pid, signal.SIGKILL)
            return "it takes too long"
    if process.returncode == 127:
        raise InputError(
            f"{COMPILER} is not on the path: it preprocesses assembly with directives",
            hint="install a C++ compiler",
        )
    return said.decode("utf-8", "replace") if process.returncode else None


def _marked(text: str) -> Iterator[str]:
    """Yield the lines of a text that may be directives of the preprocessor."""
    for match in _MARK.finditer(text):
        begin, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
        yield text[begin : end if end >= 0 else len(text)]


def _plain_lines(text: str, file: str) -> Iterator[Line]:
    """Yield the lines of text without directives."""
    for number, written in enumerate(text.split("\n"), 1):
        raw = _without_comments(written) if "//" in written else written
        stripped = raw.lstrip()
        if stripped and stripped[0] != "#":
            yield Line(raw, raw, file, number)


def _marked_lines(text: str, sources: _Sources) -> Iterator[Line]:
    """Yield the lines of preprocessed text, whose line markers say where they come from."""
    name, number = _STDIN, 1
    outer: list[Line] = []
    for written in text.split("\n"):
        if marker := _MARKER.match(written):
            if " 1" in marker[3]:
                outer.append(sources.line(name, number, outer[-1] if outer else None))
            elif " 2" in marker[3] and outer:
                outer.pop()
            name, number = re.sub(r"\\(.)", r"\1", marker[2]), int(marker[1])
            continue
        if written.strip() and written.lstrip()[0] != "#":
            yield sources.line(name, number, outer[-1] if outer else None, written)
        number += 1


def _without_comments(raw: str) -> str:
    """Return a line with comments replaced by spaces, so that columns stay."""
    if '"' not in raw and "/*" not in raw:
        return raw.partition("//")[0].ljust(len(raw))
    return _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " " * len(match[0]), raw)
