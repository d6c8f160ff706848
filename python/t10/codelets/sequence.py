"""Two codelets for six workers, one after the other in one vertex: the first leaves scratch memory for the second.

The supervisor launches all workers, waits for them, and launches them again, with the same state. What both point to,
such as the scratch memory between them, is one field: Poplar allows one edge where a vertex writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from t10.codelets.assembly import Assembly
from t10.codelets.digest import named_codelet
from t10.codelets.state_words import is_read_by_word, renumbered
from t10.core.codelet import POINTERS, Codelet, Compiled, Field, FieldKind, Pointer, Scratch, Word
from t10.core.tile import N_WORKERS
from t10.errors import T10Error

CODELETS = 4096
LOCAL = "TEXCH_SYNCZONE_LOCAL"
PREFIXES = ("first_", "second_")
CPP_TYPES = {"f16": "half", "f32": "float", "i32": "int"}
NUMBERS = {"u32": "unsigned", "i32": "int", "f32": "float"}


@dataclass(frozen=True, slots=True)
class _Part:
    """A codelet of the two: the numbers of its fields among those of both, and which of them point to the bridge."""

    codelet: Codelet
    numbers: tuple[int, ...]
    bridges: frozenset[int]

    def fields(self) -> list[Field]:
        """Return its fields as both see them."""
        return [
            Field(made.name, "scratch", align_bytes=8) if number in self.bridges else made
            for number, made in enumerate(self.codelet.fields)
        ]


def in_sequence(
    prefix: str, first: Compiled, second: Compiled, n_inputs: int, bridge_bytes: int, summary: str
) -> Compiled:
    """Return a vertex that does `first`, then `second`.

    `first` takes the vertex's `n_inputs` inputs and writes `bridge_bytes` of scratch memory, all that `second` reads;
    that writes the vertex's output.
    """
    own = -(-bridge_bytes // 8) * 8
    words: list[Word] = []
    places: dict[tuple[FieldKind, Word], int] = {}
    parts: list[_Part] = []
    for part, compiled in enumerate((first, second)):
        bridge = n_inputs if part == 0 else 0
        bridges: set[int] = set()
        numbers: list[int] = []
        for number, (made, word) in enumerate(zip(compiled.codelet.fields, compiled.words, strict=True)):
            kind: FieldKind = made.kind
            if isinstance(word, Pointer) and word.operand == bridge:
                kind, word = "scratch", Scratch(word.offset_bytes)
                bridges.add(number)
            elif isinstance(word, Pointer):
                word = Pointer(word.operand if part == 0 else n_inputs, word.offset_bytes)
            elif isinstance(word, Scratch):
                word = Scratch(own + word.offset_bytes)
            place = places.setdefault((kind, word), len(words)) if kind in POINTERS else len(words)
            if place == len(words):
                words.append(word)
            numbers.append(place)
        parts.append(_Part(compiled.codelet, tuple(numbers), frozenset(bridges)))
    codelet = _codelet(prefix, parts[0], parts[1], summary)
    return Compiled(codelet, tuple(words), own + max(first.scratch_bytes, second.scratch_bytes))


@lru_cache(maxsize=CODELETS)
def _codelet(prefix: str, first: _Part, second: _Part, summary: str) -> Codelet:
    """Return the code of two parts whose fields have these numbers."""
    fields: dict[int, Field] = {}
    for name, part in zip(PREFIXES, (first, second), strict=True):
        for number, made in zip(part.numbers, part.fields(), strict=True):
            known = fields.get(number)
            if known is None:
                fields[number] = replace(made, name=name + made.name)
            else:
                fields[number] = replace(known, align_bytes=max(known.align_bytes, made.align_bytes))
    state = tuple(fields.values())
    return named_codelet(
        prefix, "supervisor", state, _assembly(first, second), _reference(state, first, second), summary
    )


def _assembly(first: _Part, second: _Part) -> Assembly:
    text = Assembly()
    labels = [f".LPart{part}" for part in range(2)]
    for part in range(2):
        text.op(f"setzi $m1, {labels[part]}")
        if part == 1:
            text.op(f"sync {LOCAL}")
        text.op("runall $m1, $m0, 0")
    text.op(f"sync {LOCAL}")
    text.op("br $lr")
    for part, one in enumerate((first, second)):
        text.align()
        text.lines.append(".worker")
        text.label(labels[part])
        lines = _worker_lines(one.codelet, one.numbers)
        if part == 1 and first.codelet.name == second.codelet.name:
            # One codelet twice: its labels would be defined twice.
            lines = [line.replace(".L_", ".L_again_") for line in lines]
        text.lines += lines
    return text


def _worker_lines(codelet: Codelet, numbers: tuple[int, ...]) -> list[str]:
    """Return the instructions of a codelet, without its header and end, on the words of both; raises `T10Error`."""
    lines = codelet.assembly.splitlines()
    begin = lines.index(f"{codelet.entry}:")
    end = next(i for i, line in enumerate(lines) if line.startswith(".size "))
    code = "\n".join(lines[begin + 1 : end])
    if not is_read_by_word(code):
        raise T10Error(
            f"codelet {codelet.name} does more with its state than load words (expected ld32 only)"
        )
    return renumbered(code, dict(enumerate(numbers))).splitlines()


def _reference(state: tuple[Field, ...], first: _Part, second: _Part) -> str:
    """Return both C++ references, each for all workers, over fields without their prefixes."""
    parts: list[str] = []
    for part, one in enumerate((first, second)):
        lines = [f"const auto part{part} = [&](unsigned worker) {{"]
        bridge = one.codelet.fields[min(one.bridges)].name
        for made, number in zip(one.codelet.fields, one.numbers, strict=True):
            source = state[number].name
            if made.name == bridge:
                kind = CPP_TYPES[made.dtype]
                lines.append(f"  {kind} *{made.name} = ({kind} *)({source});")
            else:
                kind = "auto" if made.kind in POINTERS else f"const {NUMBERS[made.kind]}"
                lines.append(f"  {kind} {made.name} = {source};")
            lines.append(f"  (void){made.name};")
        lines += [f"  {line}" for line in one.codelet.cpp_reference.splitlines()]
        lines += ["};", f"for (unsigned n = 0; n < {N_WORKERS}; ++n) part{part}(n);"]
        parts += lines
    return "\n".join([*parts, "return true;"]) + "\n"
