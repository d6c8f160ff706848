"""Vertices whose output lies where an input does: one field is both.

Poplar allows one edge to what a vertex writes, so the output's field stands for the input's too. The input's word
stays, so that nothing else moves, but holds nothing, and the code loads the output's instead:

```
ld32 $m0, $mvertex_base, $mzero, 0   // in0       ld32 $m0, $mvertex_base, $mzero, 1   // in0
ld32 $m1, $mvertex_base, $mzero, 1   // out  ->   ld32 $m1, $mvertex_base, $mzero, 1   // out
```
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from t10.codelets.state_words import TABLE, is_read_by_word, renumbered
from t10.core.codelet import Compiled, Field, Pointer

CODELETS = 4096


@lru_cache(maxsize=CODELETS)
def in_place(compiled: Compiled, inputs: tuple[int, ...], output: int) -> Compiled:
    """Return the task as code for an output (an operand's number) that lies where `inputs` do, at the same addresses.

    Code that finds its fields in another way than word by word, which only users' does, keeps an edge for each.
    """
    codelet, code = compiled.codelet, compiled.codelet.assembly
    pointers = [
        (number, field, word)
        for number, (field, word) in enumerate(zip(codelet.fields, compiled.words, strict=True))
        if isinstance(word, Pointer)
    ]
    places = {(word.offset_bytes, field.dtype): n for n, field, word in pointers if word.operand == output}
    shared = {
        number: places[word.offset_bytes, field.dtype]
        for number, field, word in pointers
        if word.operand in inputs and (word.offset_bytes, field.dtype) in places
    }
    if not shared or codelet.kind != "multi" or not is_read_by_word(TABLE.sub("", code)):
        return compiled
    fields, words = list(codelet.fields), list(compiled.words)
    names = {fields[number].name: fields[target].name for number, target in shared.items()}
    for number, target in shared.items():
        replaced, kept = codelet.fields[number], fields[target]
        fields[number], words[number] = Field(f"{replaced.name}_unused", "u32"), 0
        fields[target] = replace(
            kept,
            kind="inout",
            align_bytes=max(kept.align_bytes, replaced.align_bytes),
            is_interleaved=kept.is_interleaved or replaced.is_interleaved,
        )
    name = f"{codelet.name}_in_place{''.join(f'_{number}' for number in sorted(shared))}"
    pairs = dict.fromkeys((names.get(a, a), names.get(b, b)) for a, b in codelet.apart)
    aliases = "".join(f"const auto *const {one} = {kept};\n" for one, kept in names.items())
    made = replace(
        codelet,
        name=name,
        fields=tuple(fields),
        assembly=renumbered(code, shared).replace(codelet.name, name),
        cpp_reference=aliases + codelet.cpp_reference,
        apart=tuple((a, b) for a, b in pairs if a != b),
    )
    return Compiled(made, tuple(words), compiled.scratch_bytes)
