"""What an assembly writes into: sections with words, and what must be looked at once all addresses are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from t10.isa.assembler.expressions import Node, Relative, Unknown, evaluate
from t10.isa.assembler.forms import SHORT_BITS, forms_of
from t10.isa.assembler.instruction import ZEROS, Parsed, Row, csr_number
from t10.isa.assembler.lines import Line, Problem
from t10.isa.assembler.section import WORD_BYTES, Section, make_section
from t10.isa.assembler.symbols import Symbols
from t10.isa.image import AUX, MAIN, SECOND, SOLO

BUNDLE_BYTES: Final = 8
KINDS: Final = {SOLO: "alone", MAIN: "as the first half of a bundle", AUX: "as the second half of a bundle"}


@dataclass(slots=True)
class Fixup:
    """A word whose operands are not all known yet: row `index` of `section`."""

    section: Section
    index: int
    parsed: Parsed
    kind: int
    values: tuple[int, ...]
    nodes: tuple[tuple[int, Node], ...]
    line: Line


@dataclass(slots=True)
class DataFixup:
    """Bytes of data whose value is not known yet."""

    section: Section
    offset: int
    size: int
    node: Node
    line: Line


@dataclass(slots=True)
class RepeatSite:
    """A `rpt`: its row, and how many words it occupies with its other half."""

    section: Section
    index: int
    n_words: int
    line: Line
    column: int


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a line of instructions; `repeat_words` are those of a `rpt` among them, which begins in `column`."""

    rows: tuple[Row, ...]
    repeat_words: int
    column: int


class Output:
    """Sections, and the lists of what is left to do."""

    def __init__(self, symbols: Symbols) -> None:
        """Begin in an empty `.text`."""
        self.symbols = symbols
        self.sections: list[Section] = []
        self.fixups: list[Fixup] = []
        self.data_fixups: list[DataFixup] = []
        self.repeats: list[RepeatSite] = []
        self.sizes: list[tuple[str, Node, Line]] = []
        self.stacks: list[tuple[str, Node, Line]] = []
        self.own_stacks: list[tuple[str, Node, Line]] = []
        self.exported: dict[str, Line] = {}
        self.weak: set[str] = set()
        self.mode = ""
        self.allows_optimizations = False
        self.section = make_section(".text", None, 0)
        self.sections.append(self.section)
        self._previous = self.section

    def enter(self, name: str, flags: str | None) -> None:
        """Go on in a section, a new one where there is none of this name yet."""
        found = next((section for section in self.sections if section.name == name), None)
        if found is None:
            found = make_section(name, flags, len(self.sections))
            self.sections.append(found)
        self._previous, self.section = self.section, found

    def enter_previous(self) -> None:
        """Go back to the section before the last change."""
        self.section, self._previous = self._previous, self.section

    def place(self) -> Relative:
        """Return where the next byte goes."""
        return Relative(self.section.index, self.section.n_bytes)

    def filler(self) -> Row:
        """Return the instruction that fills gaps in code."""
        return (SOLO, forms_of("nop", "")[0].number, *ZEROS)

    @property
    def is_special(self) -> bool:
        """Return whether an instruction here may be refused, or written in another way than it stands."""
        return self.allows_optimizations or bool(self.section.partial)

    def mark(self) -> tuple[int, int]:
        """Return how much there is in this section, for `since`."""
        return len(self.section.rows), len(self.repeats)

    def since(self, mark: tuple[int, int]) -> Words:
        """Return the words that were added to this section since then."""
        repeats = self.repeats[mark[1] :]
        rows = tuple(self.section.rows[mark[0] :])
        return Words(rows, repeats[0].n_words, repeats[0].column) if repeats else Words(rows, 0, 0)

    def put(self, words: Words, line: Line) -> None:
        """Append the words of a line."""
        section = self.section
        if words.repeat_words:
            section.alignment = max(section.alignment, BUNDLE_BYTES)
            self.repeats.append(
                RepeatSite(section, len(section.rows), words.repeat_words, line, words.column)
            )
        section.rows += words.rows
        section.origins += [line] * len(words.rows)

    def solo(self, parsed: Parsed, line: Line) -> None:
        """Append an instruction by itself."""
        section = self._code_section()
        if parsed.form.is_repeat:
            self._repeat(section, parsed, 1, line)
            if self.allows_optimizations and section.n_bytes % BUNDLE_BYTES == 0:
                # The body would begin between two multiples of eight: as a bundle, rpt takes eight bytes itself.
                self._put(section, parsed, MAIN, line)
                section.rows.append((AUX, forms_of("fnop", "")[0].number, *ZEROS))
                section.origins.append(line)
                self.repeats[-1].n_words = 2
                return
        if parsed.form.is_two_words_long:
            self._long(section, parsed, line)
        else:
            self._put(section, parsed, SOLO, line)

    def bundle(self, main: Parsed, aux: Parsed, lines: tuple[Line, Line]) -> None:
        """Append two instructions that issue together. Raises Problem where a half is too long."""
        section = self._code_section()
        for half, line in zip((main, aux), lines, strict=True):
            if half.form.is_two_words_long and self._n_words(half) > 1:
                raise Problem(
                    f"{half.mnemonic} of this value takes two words, which cannot stand in a bundle",
                    half.column,
                )
            if half.form.is_repeat:
                unaligned = section.n_bytes % BUNDLE_BYTES != 0
                if self.allows_optimizations and unaligned and aux.mnemonic == "fnop":
                    self._repeat(section, half, 1, line)
                    self._put(section, half, SOLO, line)
                    return
                self._repeat(section, half, 2, line)
        self._put(section, main, MAIN, lines[0])
        self._put(section, aux, AUX, lines[1])

    def _code_section(self) -> Section:
        section = self.section
        if section.partial:
            raise Problem(
                f"an instruction cannot stand at {section.n_bytes % WORD_BYTES} mod 4; use .align 4"
            )
        return section

    def _repeat(self, section: Section, parsed: Parsed, n_words: int, line: Line) -> None:
        section.alignment = max(section.alignment, BUNDLE_BYTES)
        self.repeats.append(RepeatSite(section, len(section.rows), n_words, line, parsed.column))

    def _put(self, section: Section, parsed: Parsed, kind: int, line: Line) -> None:
        """Append one word, to be fixed later where a symbol has no value yet."""
        if not parsed.nodes and not parsed.csr:
            row = parsed.constant_row(kind)
        else:
            values, left = self._values(parsed)
            if left:
                self.fixups.append(Fixup(section, len(section.rows), parsed, kind, values, left, line))
                row = (kind, parsed.form.number, *ZEROS)
            else:
                row = parsed.row(kind, values)
        section.rows.append(row)
        section.origins.append(line)

    def _values(self, parsed: Parsed) -> tuple[tuple[int, ...], tuple[tuple[int, Node], ...]]:
        """Return the operands as far as they are known, and the expressions that are not, bound to this place."""
        values = list(parsed.values)
        left: list[tuple[int, Node]] = []
        if parsed.csr:
            position = next(i for i, o in enumerate(parsed.form.record.operands) if o.kind == "csr")
            values[position] = csr_number(parsed, self.mode)
        for position, node in parsed.nodes:
            if node.kind == "symbol" and not self.symbols.is_defined(node.name):
                left.append((position, node))
                continue
            try:
                value = evaluate(node, self.symbols.lookup)
            except Unknown:
                value = None
            if isinstance(value, int):
                values[position] = value
            else:
                left.append((position, self.symbols.bound(node)))
        return tuple(values), tuple(left)

    def _n_words(self, parsed: Parsed) -> int:
        """Return how many words a `ldconst` takes; one where its value is an address that is not known yet."""
        values, left = self._values(parsed)
        return 1 if left or 0 <= values[1] < 1 << SHORT_BITS else 2

    def _long(self, section: Section, parsed: Parsed, line: Line) -> None:
        if self._n_words(parsed) == 1:
            self._put(section, parsed, SOLO, line)
            return
        values, _ = self._values(parsed)
        row = parsed.row(SOLO, values)
        section.rows += [row, (SECOND, *row[1:])]
        section.origins += [line, line]
