"""Two codelets for six workers, one after the other in one vertex: the first leaves scratch memory for the second.

The supervisor launches all workers, waits for them, and launches them again, with the same state. What both point to,
such as the scratch memory between them, is one field: Poplar allows one edge where a vertex writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from t10.codelets.assembly import Assembly
from t10.codelets.digest import named_codelet
from t10.codelets.state_words import is_read_by_word, renumbered
from t10.core.codelet import POINTERS, Codelet, Compiled, Field, Pointer, Scratch, Word
from t10.core.tile import N_WORKERS
from t10.errors import T10Error

LOCAL = "TEXCH_SYNCZONE_LOCAL"
PREFIXES = ("first_", "second_")
CPP_TYPES = {"f16": "half", "f32": "float", "i32": "int"}
NUMBERS = {"u32": "unsigned", "i32": "int", "f32": "float"}


@dataclass(slots=True)
class _State:
    """The fields and words of both parts; `numbers` are those of each part's own fields, in their order."""

    fields: list[Field] = field(default_factory=list[Field])
    words: list[Word] = field(default_factory=list[Word])
    numbers: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def add(self, part: int, made: Field, word: Word) -> None:
        """Add a field of a part, or what it needs to the field that points to the same."""
        known = self._same(made, word)
        if known is None:
            known = len(self.fields)
            self.fields.append(replace(made, name=PREFIXES[part] + made.name))
            self.words.append(word)
        else:
            align_bytes = max(self.fields[known].align_bytes, made.align_bytes)
            self.fields[known] = replace(self.fields[known], align_bytes=align_bytes)
        self.numbers[part].append(known)

    def _same(self, made: Field, word: Word) -> int | None:
        if made.kind not in POINTERS:
            return None
        return next(
            (n for n, one in enumerate(self.fields) if one.kind == made.kind and self.words[n] == word), None
        )


def in_sequence(
    prefix: str, first: Compiled, second: Compiled, n_inputs: int, bridge_bytes: int, summary: str
) -> Compiled:
    """Return a vertex that does `first`, then `second`.

    `first` takes the vertex's `n_inputs` inputs and writes `bridge_bytes` of scratch memory, all that `second` reads;
    that writes the vertex's output.
    """
    own = -(-bridge_bytes // 8) * 8
    state = _State()
    for part, compiled in enumerate((first, second)):
        bridge = n_inputs if part == 0 else 0
        for made, word in zip(compiled.codelet.fields, compiled.words, strict=True):
            if isinstance(word, Pointer) and word.operand == bridge:
                state.add(part, Field(made.name, "scratch", align_bytes=8), Scratch(word.offset_bytes))
            elif isinstance(word, Pointer):
                state.add(part, made, replace(word, operand=word.operand if part == 0 else n_inputs))
            else:
                state.add(part, made, Scratch(own + word.offset_bytes) if isinstance(word, Scratch) else word)
    cpp_reference = _reference(state, first, second, bridge_name(first, n_inputs), bridge_name(second, 0))
    assembly = _assembly(state, first.codelet, second.codelet)
    codelet = named_codelet(prefix, "supervisor", tuple(state.fields), assembly, cpp_reference, summary)
    return Compiled(codelet, tuple(state.words), own + max(first.scratch_bytes, second.scratch_bytes))


def bridge_name(compiled: Compiled, operand: int) -> str:
    """Return the field that points to an operand."""
    for one, word in zip(compiled.codelet.fields, compiled.words, strict=True):
        if isinstance(word, Pointer) and word.operand == operand:
            return one.name
    raise AssertionError(f"no field points to operand {operand}")


def _assembly(state: _State, first: Codelet, second: Codelet) -> Assembly:
    text = Assembly()
    labels = [f".LPart{part}" for part in range(2)]
    for part in range(2):
        text.op(f"setzi $m1, {labels[part]}")
        if part == 1:
            text.op(f"sync {LOCAL}")
        text.op("runall $m1, $m0, 0")
    text.op(f"sync {LOCAL}")
    text.op("br $lr")
    for part, codelet in enumerate((first, second)):
        text.align()
        text.lines.append(".worker")
        text.label(labels[part])
        lines = _worker_lines(codelet, state.numbers[part])
        if part == 1 and first.name == second.name:
            # One codelet twice: its labels would be defined twice.
            lines = [line.replace(".L_", ".L_again_") for line in lines]
        text.lines += lines
    return text


def _worker_lines(codelet: Codelet, numbers: list[int]) -> list[str]:
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


def _reference(state: _State, first: Compiled, second: Compiled, *bridges: str) -> str:
    """Return both C++ references, each for all workers, over fields without their prefixes."""
    parts: list[str] = []
    for part, (compiled, bridge) in enumerate(zip((first, second), bridges, strict=True)):
        lines = [f"const auto part{part} = [&](unsigned worker) {{"]
        for made, number in zip(compiled.codelet.fields, state.numbers[part], strict=True):
            source = state.fields[number].name
            if made.name == bridge:
                kind = CPP_TYPES[made.dtype]
                lines.append(f"  {kind} *{made.name} = ({kind} *)({source});")
            else:
                kind = "auto" if made.kind in POINTERS else f"const {NUMBERS[made.kind]}"
                lines.append(f"  {kind} {made.name} = {source};")
            lines.append(f"  (void){made.name};")
        lines += [f"  {line}" for line in compiled.codelet.cpp_reference.splitlines()]
        lines += ["};", f"for (unsigned n = 0; n < {N_WORKERS}; ++n) part{part}(n);"]
        parts += lines
    return "\n".join([*parts, "return true;"]) + "\n"
