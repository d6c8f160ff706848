"""Two codelets for six workers, one after the other in one vertex: the first leaves scratch memory for the second.

The supervisor launches all workers, waits for them, and launches them again. The state of the second part follows that
of the first.
"""

from __future__ import annotations

from dataclasses import replace

from t10.codelets.assembly import Assembly
from t10.codelets.digest import named_codelet
from t10.core.codelet import POINTERS, Codelet, Compiled, Field, Pointer, Scratch, Word
from t10.core.tile import N_WORKERS

LOCAL = "TEXCH_SYNCZONE_LOCAL"
PREFIXES = ("first_", "second_")
CPP_TYPES = {"f16": "half", "f32": "float", "i32": "int"}
NUMBERS = {"u32": "unsigned", "i32": "int", "f32": "float"}
WORD_BYTES = 4


def in_sequence(
    prefix: str, first: Compiled, second: Compiled, n_inputs: int, bridge_bytes: int, summary: str
) -> Compiled:
    """Return a vertex that does `first`, then `second`.

    `first` takes the vertex's `n_inputs` inputs and writes `bridge_bytes` of scratch memory, all that `second` reads;
    that writes the vertex's output.
    """
    own = -(-bridge_bytes // 8) * 8
    words: list[Word] = []
    fields: list[Field] = []
    for part, compiled in enumerate((first, second)):
        bridge = n_inputs if part == 0 else 0
        for field, word in zip(compiled.codelet.fields, compiled.words, strict=True):
            name = PREFIXES[part] + field.name
            if isinstance(word, Pointer) and word.operand == bridge:
                fields.append(Field(name, "scratch", align_bytes=8))
                words.append(Scratch(word.offset_bytes))
                continue
            fields.append(replace(field, name=name))
            if isinstance(word, Pointer):
                words.append(replace(word, operand=word.operand if part == 0 else n_inputs))
            else:
                words.append(Scratch(own + word.offset_bytes) if isinstance(word, Scratch) else word)
    cpp_reference = _reference(first, second, bridge_name(first, n_inputs), bridge_name(second, 0))
    assembly = _assembly(first.codelet, second.codelet)
    codelet = named_codelet(prefix, "supervisor", tuple(fields), assembly, cpp_reference, summary)
    return Compiled(codelet, tuple(words), own + max(first.scratch_bytes, second.scratch_bytes))


def bridge_name(compiled: Compiled, operand: int) -> str:
    """Return the field that points to an operand."""
    for field, word in zip(compiled.codelet.fields, compiled.words, strict=True):
        if isinstance(word, Pointer) and word.operand == operand:
            return field.name
    raise AssertionError(f"no field points to operand {operand}")


def _assembly(first: Codelet, second: Codelet) -> Assembly:
    text = Assembly()
    labels = [f".LPart{part}" for part in range(2)]
    for part, codelet in enumerate((first, second)):
        text.op(f"setzi $m1, {labels[part]}")
        if part == 1:
            text.op(f"sync {LOCAL}")
        text.op("runall $m1, $m0, 0")
        if part == 0:
            text.op(f"add $m0, $m0, {WORD_BYTES * len(codelet.fields)}")
    text.op(f"sync {LOCAL}")
    text.op("br $lr")
    for label, codelet in zip(labels, (first, second), strict=True):
        text.align()
        text.lines.append(".worker")
        text.label(label)
        text.lines += _worker_lines(codelet)
    return text


def _worker_lines(codelet: Codelet) -> list[str]:
    """Return the instructions of a codelet, without its header and end."""
    lines = codelet.assembly.splitlines()
    begin = lines.index(f"{codelet.entry}:")
    end = next(i for i, line in enumerate(lines) if line.startswith(".size "))
    return lines[begin + 1 : end]


def _reference(first: Compiled, second: Compiled, *bridges: str) -> str:
    """Return both C++ references, each for all workers, over fields without their prefixes."""
    parts: list[str] = []
    for part, (compiled, bridge) in enumerate(zip((first, second), bridges, strict=True)):
        lines = [f"const auto part{part} = [&](unsigned worker) {{"]
        for field in compiled.codelet.fields:
            source = PREFIXES[part] + field.name
            if field.name == bridge:
                kind = CPP_TYPES[field.dtype]
                lines.append(f"  {kind} *{field.name} = ({kind} *)({source});")
            else:
                kind = "auto" if field.kind in POINTERS else f"const {NUMBERS[field.kind]}"
                lines.append(f"  {kind} {field.name} = {source};")
            lines.append(f"  (void){field.name};")
        lines += [f"  {line}" for line in compiled.codelet.cpp_reference.splitlines()]
        lines += ["};", f"for (unsigned n = 0; n < {N_WORKERS}; ++n) part{part}(n);"]
        parts += lines
    return "\n".join([*parts, "return true;"]) + "\n"
