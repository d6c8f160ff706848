"""The C++ twin: the same blocks in the same order, from the same words."""

from __future__ import annotations

from t10.codelets.matrix.shape import N_WORKERS, PassKind, Structure

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
  for (int share = 0; share < 6; ++share)
    for (int i = 0; i < rows[share]; ++i)
      row(x_byte + x_first[share] + i * long(x_row), w_byte, out_byte + out_first[share] + i * long(out_row), depth,
          columns, begins);
};
"""
SEGMENTS = """\
const auto block = [&](long x_byte, long w_byte, long out_byte, int depth, int columns, bool begins) {
  for (int share = 0; share < 6; ++share) {
    long x_at = x_byte + x_first[share], out_at = out_byte + out_first[share];
    int left = rows[share], length = first_rows[share], way = share;
    while (left > 0) {
      for (int i = 0; i < length; ++i)
        row(x_at + i * long(x_row), w_byte, out_at + i * long(out_row), depth, columns, begins);
      x_at += x_next[way];
      out_at += out_next[way];
      way = 6;
      left -= length;
      length = left < first_rows[6] ? left : first_rows[6];
    }
  }
};
"""


def twin_text(structure: Structure) -> str:
    """Return the body of `compute`."""
    engine = structure.engine
    names = ["x_first", "out_first", "rows"]
    shares = N_WORKERS
    if structure.has_segments:
        names += ["first_rows", "x_next", "out_next"]
        shares += 1
    lines = [
        f"const int {name}[] = {{{', '.join(f'this->{name}{share}' for share in range(shares))}}};\n"
        for name in names
    ]
    cpp = {"f16": "half", "f32": "float"}
    text = "".join(lines)
    text += BLOCK.format(out=cpp[engine.out_dtype], out_bytes=engine.out_bytes, in_bytes=engine.in_bytes)
    text += SEGMENTS if structure.has_segments else ROWS
    return text + "".join(_pass(structure, n, kind) for n, kind in enumerate(structure.passes))


def _pass(structure: Structure, number: int, kind: PassKind) -> str:
    engine = structure.engine
    depth = kind.kit.words * engine.word_elements
    columns = kind.kit.stores * engine.store_columns
    begins = "true" if kind.begins else "false"
    lines = [f"{{ // {columns} columns, {depth} deep"]
    lines += [f"  long x_byte = x_at{number}, w_byte = w_at{number}, out_byte = out_at{number};"]
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
        steps = " ".join(f"{name}_byte += {name}_step{number}_{level};" for name in ("x", "w", "out"))
        lines += [f"{indent}  {steps}", f"{indent}}}"]
    return "\n".join([*lines, "}\n"])
