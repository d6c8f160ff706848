"""The vector family's C++ references: the same shares, rows and points as plain C++ loops."""

from __future__ import annotations

from t10.codelets.cpp_reference import cpp_body, cpp_type
from t10.codelets.vector.access import point_parts, pointer_field
from t10.codelets.vector.draft import Draft
from t10.codelets.vector.layout import WordLayout, counts_turns, gap_levels, is_moved, start_halves
from t10.codelets.vector.nest import RowNest, is_moved_by_parts
from t10.core.tile import N_WORKERS


def cpp_reference(draft: Draft, layout: WordLayout) -> str:
    """Return the body of `compute(worker)`: offsets in elements, stepped as the assembly steps its pointers."""
    nest = draft.prepared.nest
    if nest.split == "flat":
        return _flat_reference(nest)
    if nest.split == "parts":
        return _parts_reference(nest)
    is_rows = nest.split == "rows"
    lines = ["if (worker) return true;", "const int first = 0;", f"const int columns = {nest.inner};"]
    if nest.split != "alone":
        lines = _share(draft)
    for number, walk in enumerate(nest.walks):
        if is_rows:
            start = f"first * ({_row_word(nest, number, 0)} / {walk.size_bytes})" if walk.outer[0] else "0"
        else:
            start = f"first * {_stride(nest, number)}" if walk.inner else "0"
        lines.append(f"int o{number} = {start};")
    for j in range(len(nest.outer)):
        last = "mine - 1" if is_rows and j == 0 else f"int(last{j})"
        lines.append("  " * j + f"for (int i{j} = 0; i{j} <= {last}; ++i{j}) {{")
    depth = "  " * len(nest.outer)
    lines.append(f"{depth}for (int i = 0; i < columns; ++i) {{")
    if nest.across:
        lines[-1] += f" for (int lane = 0; lane < {nest.across}; ++lane) {{"
    lines += [f"{depth}  {line}" for line in _point(nest)]
    lines.append(f"{depth}}}" + ("}" if nest.across else ""))
    for j in reversed(range(len(nest.outer))):
        lines += ["  " * (j + 1) + line for line in _steps(draft, layout, j)]
        lines.append("  " * j + "}")
    lines.append("return true;")
    return "\n".join(lines) + "\n"


def _share(draft: Draft) -> list[str]:
    """Return the statements that find a worker's share."""
    is_rows = draft.prepared.nest.split == "rows"
    return [
        "const int first = int(worker * per_worker);",
        f"const int left = int({'n_rows' if is_rows else 'n'}) - first;",
        "const int mine = left < int(per_worker) ? left : int(per_worker);",
        "if (mine <= 0) return true;",
        f"const int columns = {_row_points(draft) if is_rows else 'mine'};",
    ]


def _row_points(draft: Draft) -> str:
    """Return the points of a row."""
    if not counts_turns(draft):
        return "int(n)"
    return f"int(turns) * {draft.points_per_turn}" + (" + int(rest)" if draft.tail is not None else "")


def _row_word(nest: RowNest, number: int, level: int) -> str:
    return f"row{nest.alike[number]}_{level}"


def _flat_reference(nest: RowNest) -> str:
    """Return the body for workers that share all points: every point's indices from its number."""
    lines = [
        "const int first = int(worker * per_worker);",
        "const int past = first + int(per_worker) < int(total) ? first + int(per_worker) : int(total);",
        "for (int q = first; q < past; ++q) {",
        "  const int i = q % int(padded);",
        "  if (i >= int(n)) continue;",
        f"  int rest{len(nest.outer) - 1} = q / int(padded);",
    ]
    for j in reversed(range(1, len(nest.outer))):
        lines.append(f"  const int i{j} = rest{j} % (int(last{j}) + 1);")
        lines.append(f"  const int rest{j - 1} = rest{j} / (int(last{j}) + 1);")
    lines.append("  const int i0 = rest0;")
    for number, walk in enumerate(nest.walks):
        terms = [
            f"i{j} * ({_row_word(nest, number, j)} / {walk.size_bytes})"
            for j in range(len(nest.outer))
            if walk.outer[j]
        ]
        lines.append(f"  const int o{number} = {' + '.join(terms) or '0'};")
    lines += [f"  {line}" for line in _point(nest)]
    return "\n".join([*lines, "}", "return true;"]) + "\n"


def _parts_reference(nest: RowNest) -> str:
    """Return the body for workers that take a part of a row each."""
    per_worker = start_halves(nest)
    words = ", ".join(f"start{w}_{i}" for w in range(N_WORKERS) for i in range(per_worker // 2))
    lines = [
        f"const unsigned starts[] = {{{words}}};",
        f"const unsigned *const own = starts + worker * {per_worker // 2};",
    ]
    halves = [f"int(own[{i // 2}] >> {i % 2 * 16} & 0xffff)" for i in range(1 + len(nest.moved))]
    for number, walk in enumerate(nest.walks):
        moved = is_moved_by_parts(walk)
        begin = f"{halves[1 + nest.moved.index(nest.alike[number])]} / {walk.size_bytes}" if moved else "0"
        lines.append(f"const int o{number} = {begin};")
    lines.append(f"for (int i = 0; i < {halves[0]}; ++i) {{")
    return "\n".join([*lines, *(f"  {line}" for line in _point(nest)), "}", "return true;"]) + "\n"


def _stride(nest: RowNest, number: int) -> str:
    inner = nest.walks[number].inner
    if nest.across and inner:
        parts = point_parts(nest, number)
        return f"((stride{number} + {parts - 1}) * {8 // nest.walks[number].size_bytes})"
    return str(inner) if inner in (0, 1) else f"stride{number}"


def _element(nest: RowNest, number: int) -> str:
    """Return which element of an operand a point is."""
    lane = f" + lane * {nest.walks[number].lane}" if nest.across else ""
    return f"o{number} + i * {_stride(nest, number)}{lane}"


def _point(nest: RowNest) -> list[str]:
    """Return the statements of one point of a row."""
    names = [f"{pointer_field(nest, n)}[{_element(nest, n)}]" for n in range(len(nest.inputs))]
    shared = 0 if nest.split == "rows" else len(nest.outer)
    indices: dict[int, str] = {}
    for axis, position in nest.axes:
        counter = "i" if position == len(nest.outer) else f"i{position}" if position >= 0 else "0"
        start = " + first" if position == shared else ""
        indices[axis] = f"int(origin{axis}) + {counter}{start}"
    dtypes = [walk.dtype for walk in nest.inputs]
    body = cpp_body(nest.function, names, dtypes, indices)
    out = len(nest.walks) - 1
    target = f"out[{_element(nest, out)}]"
    kind = "half" if nest.output.dtype == "f16" else cpp_type(nest.output.dtype)
    return [*body.statements, f"{target} = {kind}({body.result});"]


def _steps(draft: Draft, layout: WordLayout, level: int) -> list[str]:
    """Return the steps of offsets at the end of a point of an outer axis."""
    nest = draft.prepared.nest
    lines: list[str] = []
    for number, walk in enumerate(nest.walks):
        if level not in gap_levels(draft, number):
            continue
        name = f"gap{number}_{level}"
        assert name in layout.by_name
        step = f"{name} / {walk.size_bytes}"
        if level == len(nest.outer) - 1 and nest.split == "rows" and is_moved(draft, number):
            # The word counts from where the row's loads ended; offsets here stay at its beginning.
            step = f"row_step{number}"
            lines.append(f"const int {step} = {_row_step(draft, layout, number)};")
        lines.append(f"o{number} += {step};")
    return lines


def _row_step(draft: Draft, layout: WordLayout, number: int) -> str:
    """Return the distance of two rows in elements, from the word of the gap between them."""
    nest = draft.prepared.nest
    walk = nest.walks[number]
    level = len(nest.outer) - 1
    word = layout.words[layout.number(f"gap{number}_{level}")]
    assert isinstance(word, int)
    consumed = f"({_row_points(draft)}) * {_stride(nest, number)}"
    ahead = walk.outer[level] - word // walk.size_bytes - nest.inner * walk.inner
    turns = ahead // walk.inner
    return f"gap{number}_{level} / {walk.size_bytes} + {consumed}" + (
        f" + {turns} * {_stride(nest, number)}" if turns else ""
    )
