"""The C++ twin: the same blocks in the same order, from the same words."""

from __future__ import annotations

from t10.codelets.matrix.shape import LINE_WORDS, PassKind, Structure

BLOCK = """\
const auto row = [&](long x_byte, long w_byte, long out_byte, int depth, int columns, bool begins) {{
  for (int column = 0; column < columns; ++column) {{
    {out} &sum = out[out_byte / {out_bytes} + column];
    float total = begins ? 0.0f : float(sum);
    for (int k = 0; k < depth; ++k)
      total += float(xs[x_byte / {in_bytes} + k]) * float(ws[(w_byte + column * long(w_row)) / {in_bytes} + k]);
    sum = {out}(total);
  }}
}};
"""
COPY = """\
const auto copy = [&](const {dtype} *from, long source, long target, int lines, int planes, int line_step,
                      int plane_step, int element_step, int groups, int pitch) {{
  {dtype} *to = view<{dtype}>(scratch) + target / {size};
  for (int plane = 0; plane < planes; ++plane, source += plane_step)
    for (int line = 0; line < lines; ++line, source += line_step, to += pitch / {size})
      for (int k = 0; k < pitch / {size}; ++k)
        to[k] = k < {word} * groups + {rest} ? from[source / {size} + k * element_step] : {dtype}(0.0f);
}};
"""
ROWS = """\
const auto block = [&](long x_byte, long w_byte, long out_byte, int depth, int columns, bool begins) {
  for (int i = 0; i < 6 * share + rest; ++i)
    row(x_byte + i * long(x_row), w_byte, out_byte + i * long(out_row), depth, columns, begins);
};
"""
SEGMENTS = """\
const auto block = [&](long x_byte, long w_byte, long out_byte, int depth, int columns, bool begins) {
  for (int i = 0; i < (6 * share + rest) * unit; ++i) {
    const long segment = i / segment_rows, in_segment = i % segment_rows;
    row(x_byte + segment * x_segment + in_segment * x_row, w_byte,
        out_byte + segment * out_segment + in_segment * out_row, depth, columns, begins);
  }
};
"""


def twin_text(structure: Structure) -> str:
    """Return the body of `compute`."""
    engine = structure.engine
    cpp = {"f16": "half", "f32": "float"}
    text = _copy_text(structure, cpp[engine.in_dtype])
    text += BLOCK.format(out=cpp[engine.out_dtype], out_bytes=engine.out_bytes, in_bytes=engine.in_bytes)
    text += SEGMENTS if structure.has_segments else ROWS
    return text + "".join(_pass(structure, n, kind) for n, kind in enumerate(structure.passes))


def _copy_text(structure: Structure, dtype: str) -> str:
    """Return where inputs are read from, and what copies them."""
    pointers = "".join(
        f"const {dtype} *{name}s = {f'view<const {dtype}>(scratch)' if copied else name};\n"
        for name, copied in (("x", structure.copies_x), ("w", structure.copies_w))
    )
    if structure.stage is None:
        return pointers
    text = pointers + COPY.format(
        dtype=dtype,
        size=structure.engine.in_bytes,
        word=structure.engine.word_elements,
        rest=structure.stage.rest,
    )
    if structure.copies_x:
        text += f"copy(x, 0, 0, {', '.join(f'x_{name}' for name in LINE_WORDS)});\n"
    return text


def _pass(structure: Structure, number: int, kind: PassKind) -> str:
    engine = structure.engine
    depth = kind.kit.words * engine.word_elements
    columns = kind.kit.columns(engine)
    begins = "true" if kind.begins else "false"
    lines = [f"{{ // {columns} columns, {depth} deep"]
    copied = structure.copies_w
    at = [f"{name}_byte = {f'{name}_at{number}' if number else 0}" for name in ("x", "w", "out")]
    at += [f"source = {f'w_at{number}' if number else 0}"] if copied else []
    lines += [f"  long {', '.join(at)};"]
    lines += [f"  bool begins = {begins};"]
    for level in range(kind.levels):
        indent = "  " * (level + 1)
        i = f"i{level}"
        lines.append(f"{indent}for (int {i} = 0; {i} < count{number}_{level}; ++{i}) {{")
        if level < kind.outs:
            lines.append(f"{indent}  begins = {begins};")
        if copied and level == kind.outs - 1:
            numbers = ", ".join(f"w_{name}{number}" for name in LINE_WORDS)
            lines.append(f"{indent}  copy(w, source, w_copy_at, {numbers});")
            lines.append(f"{indent}  w_byte = w_copy_at + w_within{number};")
    inside = "  " * (kind.levels + 1)
    lines.append(f"{inside}block(x_byte, w_byte, out_byte, {depth}, {columns}, begins);")
    lines.append(f"{inside}begins = false;")
    for level in reversed(range(kind.levels)):
        indent = "  " * (level + 1)
        moved = ("x", "w", "out") if level < kind.outs else ("x", "w")
        moves = [(f"{name}_byte", f"{name}_step{number}_{level}") for name in moved]
        if copied and level < kind.outs:
            moves[1] = ("source", moves[1][1])
        steps = " ".join(f"{name} += {step};" for name, step in moves)
        lines += [f"{indent}  {steps}", f"{indent}}}"]
    return "\n".join([*lines, "}\n"])
