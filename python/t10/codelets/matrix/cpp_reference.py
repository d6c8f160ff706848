"""The C++ reference: the same blocks in the same order, from the same words."""

from __future__ import annotations

from t10.codelets.matrix.engine import WORD_BYTES
from t10.codelets.matrix.shape import LINE_WORDS, Structure
from t10.core.tile import N_WORKERS

CPP = {"f16": "half", "f32": "float"}

ROW = """\
const auto row = [&](long x_byte, long w_byte, long out_byte, int depth, int from, bool begins) {{
  for (int column = from; column < {columns}; ++column) {{
    {out} &sum = out[out_byte / {out_bytes} + column];
    float total = begins ? 0.0f : float(sum);
    for (int k = 0; k < depth; ++k)
      total += float(xs[x_byte / {in_bytes} + k]) *
               float(ws[(w_byte + (column - from) * long(w_row)) / {in_bytes} + k]);
    sum = {out}(total);
  }}
}};
"""
FIRST_ROW = """\
const auto row = [&](long x_byte, long w_byte, long out_byte, int depth, int from, bool begins, long place) {{
  for (int column = from; column < {columns}; ++column) {{
    {out} &sum = out[out_byte / {out_bytes} + column];
    float total = begins ? float(first[place / {out_bytes} + column]) : float(sum);
    for (int k = 0; k < depth; ++k)
      total += float(xs[x_byte / {in_bytes} + k]) *
               float(ws[(w_byte + (column - from) * long(w_row)) / {in_bytes} + k]);
    sum = {out}(total);
  }}
}};
"""
ROUNDING_ROW = """\
const auto row = [&](long x_byte, long w_byte, long out_byte, int depth, int from, bool begins, int place) {{
  for (int column = from; column < {columns}; ++column) {{
    float &sum = sums[place * {columns} + column];
    if (begins)
      sum = {beginning};
    for (int k = 0; k < depth; ++k)
      sum += float(xs[x_byte / {in_bytes} + k]) *
             float(ws[(w_byte + (column - from) * long(w_row)) / {in_bytes} + k]);
    out[out_byte / {out_bytes} + column] = {out}(sum);
  }}
}};
"""
"""What is rounded before a sum's last block is written again."""
COPY = """\
const auto copy = [&](const {dtype} *from, long source, long target, int lines, int planes, int line_step,
                      int plane_step, int element_step, int groups, int left, int zeros, int pitch) {{
  {dtype} *to = view<{dtype}>(scratch) + target / {size};
  (void)zeros;
  for (int plane = 0; plane < planes; ++plane, source += plane_step)
    for (int line = 0; line < lines; ++line, source += line_step, to += pitch / {size})
      for (int k = 0; k < pitch / {size}; ++k)
        to[k] = k < {word} * groups + left ? from[source / {size} + k * element_step] : {dtype}(0.0f);
}};
"""
ROWS = """\
const auto block = [&](long x_byte, long w_byte, long out_byte, int depth, int from, bool begins) {
  for (int i = 0; i < {workers} * share + rest; ++i)
    row(x_byte + i * long(x_row), w_byte, out_byte + i * long(out_row), depth, from, begins);
};
"""
TWINS = """\
const auto block = [&](long x_byte, long w_byte, long out_byte, int depth, int from, bool begins) {
  for (int i = 0; i < 2 * ({workers} * share + rest); ++i)
    row(x_byte + i * long(x_row / 2), w_byte, out_byte + i * long(out_row / 2), depth, from, begins);
};
"""
SEGMENTS = """\
const auto block = [&](long x_byte, long w_byte, long out_byte, int depth, int from, bool begins) {
  for (int i = 0; i < ({workers} * share + rest) * unit; ++i) {
    const long segment = i / segment_rows, in_segment = i % segment_rows;
    row(x_byte + segment * x_segment + in_segment * x_row, w_byte,
        out_byte + segment * out_segment + in_segment * out_row, depth, from, begins);
  }
};
"""


def reference_text(structure: Structure) -> str:
    """Return the body of `compute`."""
    engine = structure.engine
    text = _copy_text(structure, CPP[engine.in_dtype])
    text += (ROUNDING_ROW if engine.rounding else FIRST_ROW if structure.has_first else ROW).format(
        out=CPP[engine.out_dtype],
        out_bytes=engine.out_bytes,
        in_bytes=engine.in_bytes,
        columns=1 if structure.kit.is_twin else structure.kit.columns(engine),
        beginning=_beginning(structure),
    )
    rows = TWINS if structure.kit.is_twin else SEGMENTS if structure.has_segments else ROWS
    rows = rows.replace("{workers}", str(N_WORKERS))
    place = "i" if engine.rounding else "out_byte"
    is_placed = engine.rounding or structure.has_first
    text += rows.replace("from, begins);", f"from, begins, {place});") if is_placed else rows
    return text + "".join(_pass(structure, number) for number in range(len(structure.passes)))


def _beginning(structure: Structure) -> str:
    """Return what sums that are rounded begin with."""
    if structure.has_first:
        return f"float(first[(out_byte - place * long(out_row)) / {structure.engine.out_bytes} + column])"
    return "0.0f" if structure.begin else f"float(out[out_byte / {structure.engine.out_bytes} + column])"


def _copy_text(structure: Structure, dtype: str) -> str:
    """Return where inputs are read from, and what copies them."""
    text = "".join(
        f"const {dtype} *{name}s = {f'view<const {dtype}>(scratch)' if copied else name};\n"
        for name, copied in (("x", structure.copies_x), ("w", structure.copies_w))
    )
    if structure.stage:
        text += COPY.format(dtype=dtype, size=structure.engine.in_bytes, word=structure.engine.word_elements)
    if structure.copies_x:
        text += f"copy(x, 0, 0, {', '.join(f'x_{name}' for name in LINE_WORDS)});\n"
    return text


def _pass(structure: Structure, number: int) -> str:
    """Return the loops of a pass; `from` is the first column of a block that is not done yet."""
    kind, engine = structure.passes[number], structure.engine
    depth = kind.load.n_words * engine.word_elements
    begins = (
        "adds == 0"
        if structure.has_both and not number
        else str(bool(engine.rounding or (structure.begin and not number))).lower()
    )
    at = [f"x_byte = {f'x_at{number} + {kind.load.first * WORD_BYTES}' if number else 0}"]
    at += [f"w_byte = {f'w_at{number}' if number else 0}", "out_byte = 0"]
    at += [f"source = {f'w_at{number}' if number else 0}"] if structure.copies_w else []
    lines = [
        f"{{ // {depth} deep",
        f"  long {', '.join(at)};",
        "  int from = 0;",
        f"  bool begins = {begins};",
    ]
    for level in range(kind.levels):
        indent, i = "  " * (level + 1), f"i{level}"
        lines.append(f"{indent}for (int {i} = 0; {i} < count{number}_{level}; ++{i}) {{")
        if level < kind.outs:
            lines.append(f"{indent}  begins = {begins};")
        if level == kind.outs - 1 and structure.copies_w:
            numbers = ", ".join(f"w_{name}" for name in LINE_WORDS)
            lines.append(f"{indent}  copy(w, source, w_copy_at, {numbers});")
            within = f" + w_within{number}" if number else ""
            skip = " + (from ? w_skip : 0)" if structure.overlaps else ""
            lines.append(f"{indent}  w_byte = w_copy_at{within}{skip};")
    inside = "  " * (kind.levels + 1)
    lines += [f"{inside}block(x_byte, w_byte, out_byte, {depth}, from, begins);", f"{inside}begins = false;"]
    for level in reversed(range(kind.levels)):
        indent = "  " * (level + 1)
        lines += [f"{indent}  {' '.join(_moves(structure, number, level))}", f"{indent}}}"]
    return "\n".join([*lines, "}\n"])


def _moves(structure: Structure, number: int, level: int) -> list[str]:
    """Return the statements that go on to the next block of a level."""
    kind = structure.passes[number]
    is_out = level < kind.outs
    weights = "source" if structure.copies_w and is_out else "w_byte"
    n_ahead = structure.channels_ahead(kind, level)
    ahead = f" + {n_ahead} * long(w_row)" if n_ahead else ""
    moves = [f"x_byte += x_step{number}_{level};", f"{weights} += w_step{number}_{level}{ahead};"]
    moves += [f"out_byte += out_step{number}_{level};"] if is_out else []
    if structure.overlaps and level == kind.outs - 1:
        is_last = f"i{level} + 2 == count{number}_{level}"
        back = f"out_back / {structure.engine.out_bytes}"
        moves += [f"from = {is_last} && load_at{number} ? {back} : 0;"]
        moves += [f"if ({is_last}) out_byte -= out_back, {weights} -= w_back{number};"]
    return moves
