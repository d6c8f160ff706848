"""The C++ reference of a look-up."""

from __future__ import annotations

from t10.codelets.cpp_reference import cpp_body
from t10.codelets.gather.generator import LookupGenerator
from t10.codelets.loops.cpp_reference import share_statements
from t10.codelets.reduce.cpp_reference import DEALT
from t10.core.dtypes import size_bytes


def lookup_reference(generator: LookupGenerator) -> str:
    """Return the body of `compute` of a look-up that has been generated."""
    lookup, state, task = generator.lookup, generator.state, generator.task
    shape, table, out = lookup.shape, lookup.table, len(task.inputs)
    sizes = [size_bytes(operand.dtype) for operand in task.operands]
    lines = list(DEALT if shape.is_dealt else share_statements(shape.share))
    for i, size in enumerate(sizes):
        lines.append(f"int p{i} = {f'first * (stride{i} / {size})' if state.has(f'stride{i}') else '0'};")
    for k in range(len(shape.parallel)):
        bound = "points" if k == 0 and shape.share.level is not None else f"int(extent{k})"
        lines.append(f"for (int i{k} = 0; i{k} < {bound}; ++i{k}) {{")
    dtypes = [operand.dtype for operand in task.inputs]
    index = cpp_body(lookup.selector.index, [f"in{i}[p{i}]" for i in range(len(dtypes))], dtypes)
    per_access = lookup.access_bytes // sizes[out]
    beyond = 1 if generator.is_paced or lookup.is_added else 0
    n = f"(int(count) + {beyond}) * {lookup.access_bytes} / {sizes[out]}"
    if lookup.has_rest:
        n += f" + {4 // sizes[out] if per_access else 0}"
    lines += index.statements
    lines.append(f"const long long at = (long long)({index.result}) - origin;")
    lines.append("const bool is_here = at >= 0 && at < (long long)(extent);")
    row = f"in{table}[p{table} + int(at) * (stride / {sizes[table]}) + n]"
    target = f"out[p{out} + n]"
    kind = {"f16": "half", "f32": "float"}.get(task.output.dtype, "")
    if lookup.is_added:
        effect = f"if (is_here) {target} = {kind}(float({target}) + float({row}));"
    else:
        effect = f"if (is_here) {target} = {row}; else {target} = 0;"
    lines.append(f"for (int n = 0; n < {n}; ++n) {effect}")
    for k in reversed(range(len(shape.parallel))):
        lines += [
            f"p{i} += step{i}_{k} / {size};" for i, size in enumerate(sizes) if state.has(f"step{i}_{k}")
        ]
        lines.append("}")
    return "\n".join([*lines, "return true;"]) + "\n"
