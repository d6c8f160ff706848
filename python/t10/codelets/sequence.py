"""Two codelets for six workers, one after the other in one vertex.

Where the first leaves scratch memory for the second, the supervisor launches all workers, waits for them, and launches
them again, with the same state; else each worker goes on from one to the other. What both point to, such as the scratch
memory between them, is one field: Poplar allows one edge where a vertex writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from t10.codelets.assembly import Assembly
from t10.codelets.digest import named_codelet
from t10.codelets.state_words import is_read_by_word, renumbered
from t10.core.codelet import POINTERS, Codelet, Compiled, Field, FieldKind, Pointer, Scratch, Word
from t10.core.dtypes import size_bytes
from t10.core.tile import N_WORKERS
from t10.errors import T10Error

CODELETS = 4096
LOCAL = "TEXCH_SYNCZONE_LOCAL"
PREFIXES = ("first_", "second_")
CPP_TYPES = {"f16": "half", "f32": "float", "i32": "int"}
NUMBERS = {"u32": "unsigned", "i32": "int", "f32": "float"}
EXIT = "exitz $mzero"
LARGEST_STEP = 0x7FF8
"""What one instruction adds to an address, at most."""
WORKER = re.compile(r" *and (\$m\d+), \1, 7\b")
LOADED = re.compile(r"\bld32 +(\$m\d+), *\$mvertex_base, *\$mzero, *(\d+)\b")
_FOR_ALL = f"for (unsigned n = 0; n < {N_WORKERS}; ++n) part{{part}}(n);"
_FOR_ONE = "part{part}(worker);"


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


@dataclass(frozen=True, slots=True)
class Then:
    """Where the second of two codelets begins: with which worker, and how many bytes behind the first's output."""

    first_worker: int
    n_bytes: int


@dataclass(slots=True)
class _Words:
    """The words of both codelets as they are put together; equal pointers are one."""

    words: list[Word] = field(default_factory=list[Word])
    places: dict[tuple[FieldKind, Word], int] = field(default_factory=dict[tuple[FieldKind, Word], int])

    def part(self, compiled: Compiled, seen: Callable[[Word], Word], bridge: int | None = None) -> _Part:
        """Return a codelet of the two; both see its words as `seen`, its operand `bridge` as scratch memory."""
        bridges: set[int] = set()
        numbers: list[int] = []
        for number, (made, word) in enumerate(zip(compiled.codelet.fields, compiled.words, strict=True)):
            kind: FieldKind = made.kind
            if isinstance(word, Pointer) and word.operand == bridge:
                kind, word = "scratch", Scratch(word.offset_bytes)
                bridges.add(number)
            else:
                word = seen(word)
            place = (
                self.places.setdefault((kind, word), len(self.words)) if kind in POINTERS else len(self.words)
            )
            if place == len(self.words):
                self.words.append(word)
            numbers.append(place)
        return _Part(compiled.codelet, tuple(numbers), frozenset(bridges))


def in_sequence(
    prefix: str, first: Compiled, second: Compiled, n_inputs: int, bridge_bytes: int, summary: str
) -> Compiled:
    """Return a vertex that does `first`, then `second`.

    `first` takes the vertex's `n_inputs` inputs and writes `bridge_bytes` of scratch memory, all that `second` reads;
    that writes the vertex's output.
    """
    own = -(-bridge_bytes // 8) * 8

    def of_first(word: Word) -> Word:
        return Scratch(own + word.offset_bytes) if isinstance(word, Scratch) else word

    def of_second(word: Word) -> Word:
        return Pointer(n_inputs, word.offset_bytes) if isinstance(word, Pointer) else of_first(word)

    united = _Words()
    parts = united.part(first, of_first, n_inputs), united.part(second, of_second, 0)
    codelet = _codelet(prefix, *parts, summary)
    return Compiled(codelet, tuple(united.words), own + max(first.scratch_bytes, second.scratch_bytes))


def moved_inputs(compiled: Compiled, begins: tuple[int, ...]) -> Compiled:
    """Return code whose inputs begin so many bytes later."""

    def moved(word: Word) -> Word:
        if not isinstance(word, Pointer) or word.operand >= len(begins):
            return word
        return replace(word, offset_bytes=word.offset_bytes + begins[word.operand])

    return replace(compiled, words=tuple([moved(word) for word in compiled.words]))


def one_after_another(
    prefix: str, first: Compiled, second: Compiled, output: int, then: Then, summary: str
) -> Compiled:
    """Return code for six workers each of which does its share of `first`, then of `second`.

    Both have the vertex's operands, `output` among them, and neither reads what the other writes.
    """

    def of_second(word: Word) -> Word:
        return Scratch(first.scratch_bytes + word.offset_bytes) if isinstance(word, Scratch) else word

    united = _Words()
    parts = united.part(first, lambda word: word), united.part(second, of_second)
    outputs = [
        n for n, word in enumerate(second.words) if isinstance(word, Pointer) and word.operand == output
    ]
    codelet = _shares(prefix, *parts, tuple(outputs), then, summary)
    return Compiled(codelet, tuple(united.words), first.scratch_bytes + second.scratch_bytes)


@lru_cache(maxsize=CODELETS)
def _codelet(prefix: str, first: _Part, second: _Part, summary: str) -> Codelet:
    """Return the code of two parts whose fields have these numbers, that workers are launched for twice."""
    state = _state(first, second)
    reference = _reference(state, first, second, (_FOR_ALL, _FOR_ALL), {})
    return named_codelet(prefix, "supervisor", state, _assembly(first, second), reference, summary)


@lru_cache(maxsize=CODELETS)
def _shares(
    prefix: str, first: _Part, second: _Part, outputs: tuple[int, ...], then: Then, summary: str
) -> Codelet:
    """Return the code of two parts whose fields have these numbers, of which each worker does its shares.

    `outputs` are the fields of the second that point to what it writes.
    """
    text, then_label, end = Assembly(), ".LThen", ".LNone"
    for line in _worker_lines(first.codelet, first.numbers):
        text.lines.append(f"  bri {then_label}" if line.strip() == EXIT else line)
    text.align()
    text.label(then_label)
    own = {second.numbers[number] for number in outputs}
    found: set[str] = set()
    for line in _again(first, second):
        text.lines.append(line)
        worker, loaded = WORKER.match(line), LOADED.search(line)
        if worker is not None and then.first_worker:
            found.add("worker")
            text.op(f"add {worker[1]}, {worker[1]}, {-then.first_worker}")
            text.op(f"brneg {worker[1]}, {end}")
        if loaded is not None and int(loaded[2]) in own:
            found.add("output")
            for begin in range(0, then.n_bytes, LARGEST_STEP):
                text.op(f"add {loaded[1]}, {loaded[1]}, {min(then.n_bytes - begin, LARGEST_STEP)}")
    if ("worker" not in found and then.first_worker) or "output" not in found:
        raise T10Error(
            f"codelet {second.codelet.name} takes its number or its output's address in another way"
        )
    text.label(end)
    text.op(EXIT)
    state = _state(first, second)
    moved = {second.codelet.fields[number].name: then.n_bytes for number in outputs}
    calls = _FOR_ONE, f"if (worker >= {then.first_worker}) part1(worker - {then.first_worker});"
    reference = _reference(state, first, second, calls, moved)
    return named_codelet(prefix, "multi", state, text, reference, summary)


def _state(first: _Part, second: _Part) -> tuple[Field, ...]:
    """Return the fields of both."""
    fields: dict[int, Field] = {}
    for name, part in zip(PREFIXES, (first, second), strict=True):
        for number, made in zip(part.numbers, part.fields(), strict=True):
            known = fields.get(number)
            if known is None:
                fields[number] = replace(made, name=name + made.name)
            else:
                fields[number] = replace(
                    known,
                    align_bytes=max(known.align_bytes, made.align_bytes),
                    is_interleaved=known.is_interleaved or made.is_interleaved,
                )
    return tuple(fields.values())


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
        text.lines += _again(first, second) if part == 1 else _worker_lines(one.codelet, one.numbers)
    return text


def _again(first: _Part, second: _Part) -> list[str]:
    """Return the instructions of the second part; of one codelet twice, labels would be defined twice."""
    lines = _worker_lines(second.codelet, second.numbers)
    is_same = first.codelet.name == second.codelet.name
    return [line.replace(".L_", ".L_again_") for line in lines] if is_same else lines


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


def _reference(
    state: tuple[Field, ...], first: _Part, second: _Part, calls: tuple[str, str], moved: Mapping[str, int]
) -> str:
    """Return both C++ references over fields without their prefixes, and the calls of each.

    Some fields of the second are `moved` by bytes.
    """
    parts: list[str] = []
    for part, one in enumerate((first, second)):
        lines = [f"const auto part{part} = [&](unsigned worker) {{"]
        bridge = one.codelet.fields[min(one.bridges)].name if one.bridges else None
        for made, number in zip(one.codelet.fields, one.numbers, strict=True):
            source, n_bytes = state[number].name, moved.get(made.name, 0) if part == 1 else 0
            if made.name == bridge or n_bytes:
                kind = CPP_TYPES[made.dtype]
                begin = f"&{source}[{n_bytes // size_bytes(made.dtype)}]" if n_bytes else f"({source})"
                lines.append(f"  {kind} *{made.name} = ({kind} *){begin};")
            else:
                kind = "auto" if made.kind in POINTERS else f"const {NUMBERS[made.kind]}"
                lines.append(f"  {kind} {made.name} = {source};")
            lines.append(f"  (void){made.name};")
        lines += [f"  {line}" for line in one.codelet.cpp_reference.splitlines()]
        lines += ["};", calls[part].format(part=part)]
        parts += lines
    return "\n".join([*parts, "return true;"]) + "\n"
