"""The C++ twin: the same blocks in the same order, from the same words."""

from __future__ import annotations

from t10.codelets.matrix.shape import PassKind, Structure

BLOCK = """\
const auto row = [&](long x_byte, long w_byte, long out_byte, int depth, int columns, bool begins) {{
  for (int column = 0; column < columns; ++column) {{
    {out} &sum = out[out_byte / {out_bytes} + column];
    float total = begins ? 0.0f : float(sum);
    for (int k = 0; k < depth; ++k)
      total += float(x[x_byte / {in_bytes} + k]) * float(w[(w_byte + column * long(w_row)) / {in_bytes} + k]);
    sum = {out}(total);
  }}
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
    text = ""
    text += BLOCK.format(out=cpp[engine.out_dtype], out_bytes=engine.out_bytes, in_bytes=engine.in_bytes)
    text += SEGMENTS if structure.has_segments else ROWS
    return text + "".join(_pass(structure, n, kind) for n, kind in enumerate(structure.passes))


def _pass(structure: Structure, number: int, kind: PassKind) -> str:
    engine = structure.engine
    depth = kind.kit.words * engine.word_elements
    columns = kind.kit.stores * engine.store_columns
    begins = "true" if kind.begins else "false"
    lines = [f"{{ // {columns} columns, {depth} deep"]
    at = [f"{name}_byte = {f'{name}_at{number}' if number else 0}" for name in ("x", "w", "out")]
    lines += [f"  long {', '.join(at)};"]
    lines += [f"  bool begins = {begins};"]
    for level in range(kind.levels):
        indent = "  " * (level + 1)
        i = f"i{level}"
        lines.append(f"{indent}for (int {i} = 0; {i} < count{number}_{level}; ++{i}) {{")
        if level < kind.outs:
            lines.append(f"{indent}  begins = {begins};")
    inside = "  " * (kind.levels + 1)
    lines.append(f"{inside}block(x_byte, w_byte, out_byte, {depth}, {columns}, begins);")
    lines.append(f"{inside}begins = false;")
    for level in reversed(range(kind.levels)):
        indent = "  " * (level + 1)
        moved = ("x", "w", "out") if level < kind.outs else ("x", "w")
        steps = " ".join(f"{name}_byte += {name}_step{number}_{level};" for name in moved)
        lines += [f"{indent}  {steps}", f"{indent}}}"]
    return "\n".join([*lines, "}\n"])
