"""The C++ reference of scalar loops: the same loops over the same fields."""

from __future__ import annotations

from t10.codelets.cpp_reference import FLOAT_OPS, cpp_body, cpp_constant, cpp_type
from t10.codelets.loops.combining import neutral_text
from t10.codelets.loops.picking import picks_one
from t10.codelets.nest import Level, Split
from t10.core.dtypes import is_float, size_bytes
from t10.core.expression import Combine
from t10.core.scalar import ScalarFunction
from t10.core.task import Task

COMBINATIONS: dict[Combine, str] = {
    "sum": "{a} + {b}",
    "prod": "{a} * {b}",
    "max": "{a} < {b} ? {b} : {a}",
    "min": "{b} < {a} ? {b} : {a}",
    "and": "{a} & {b}",
    "or": "{a} | {b}",
}
EXTREMES: dict[Combine, str] = {
    "max": "arith.maximumf", "min": "arith.minimumf", "maxnum": "arith.maxnumf", "minnum": "arith.minnumf"
}  # fmt: skip
TRUTHS: dict[Combine, str] = {
    "sum": "{a} | {b}", "prod": "{a} & {b}", "max": "{a} | {b}", "min": "{a} & {b}", "and": "{a} & {b}",
    "or": "{a} | {b}",
}  # fmt: skip


def combination(combine: Combine, dtype: str, a: str, b: str) -> str:
    """Return the C++ expression that combines two values of a type."""
    if dtype == "i1":
        return TRUTHS[combine].format(a=a, b=b)
    kind = cpp_type(dtype)
    if is_float(dtype) and combine in EXTREMES:
        return f"({FLOAT_OPS[EXTREMES[combine]].format(a, b)})"
    expression = COMBINATIONS[combine].format(a=a, b=b)
    return f"float(half({expression}))" if dtype == "f16" and combine == "prod" else f"{kind}({expression})"


def share_statements(share: Split) -> list[str]:
    """Return the statements that define a worker's first point and number of points of the shared level."""
    if share.level is None:
        return ["if (worker != 0) return true;"]
    return [
        "const int first = int(worker) * int(share);",
        "const int points = std::min(int(share), int(extent0) - first);",
        "if (points <= 0) return true;",
    ]


def loop_reference(task: Task, nest: tuple[Level, ...], picked: tuple[int, ...], share: Split) -> str:
    """Return the body of `compute`; raises `UnsupportedOpError` for operations that have no C++."""
    n = len(task.operands)
    lines = share_statements(share)
    for i, operand in enumerate(task.operands):
        start = f"first * (stride{i} / {size_bytes(operand.dtype)})" if share.level is not None else "0"
        lines.append(f"int p{i} = {start};")
    n_parallel = sum(not level.is_reduction for level in nest)
    closing: list[str] = []
    indent = ""

    def open_level(k: int) -> None:
        nonlocal indent
        bound = "points" if share.level == k else f"int(extent{k})"
        lines.append(f"{indent}for (int i{k} = 0; i{k} < {bound}; ++i{k}) {{")
        indent += "  "
        steps = [f"p{i} += step{i}_{k} / {size_bytes(task.operands[i].dtype)};" for i in range(n)
                 if not nest[k].is_reduction or i < n - 1]  # fmt: skip
        closing.append(" ".join(steps))

    def close_level() -> None:
        nonlocal indent
        lines.append(f"{indent}{closing.pop()}")
        indent = indent[:-2]
        lines.append(f"{indent}}}")

    for k in range(n_parallel):
        open_level(k)
    lines += [indent + line for line in _before(task)]
    for k in range(n_parallel, len(nest)):
        open_level(k)
    lines += [indent + line for line in _point(task, nest, picked, share)]
    for _ in range(n_parallel, len(nest)):
        close_level()
    lines += [indent + line for line in _after(task)]
    for _ in range(n_parallel):
        close_level()
    lines.append("return true;")
    return "\n".join(lines) + "\n"


def _before(task: Task) -> list[str]:
    if task.combine == "none":
        return []
    dtype = task.output.dtype
    adds_late = task.combine == "sum" and dtype == "f16"
    value = cpp_constant(neutral_text(task.combine, dtype), dtype)
    if not task.initial and not adds_late:
        value = f"{cpp_type(dtype)}(out[p{len(task.inputs)}])"
    return [f"{cpp_type(dtype)} acc = {value};"]


def _point(task: Task, nest: tuple[Level, ...], picked: tuple[int, ...], share: Split) -> list[str]:
    """Return one point: its conditions, one inside the other, around the body."""
    dtypes = [operand.dtype for operand in task.inputs]
    names = [f"in{i}[p{i}]" for i in range(len(task.inputs))]
    index = {
        level.axis: f"(origin{k} + {'first + ' if share.level == k else ''}i{k})"
        for k, level in enumerate(nest)
    }
    lines: list[str] = []
    for s, selector in enumerate(task.selectors):
        chosen = _used_body(selector.index, names, dtypes, index, f"s{s}_")
        axis = selector.axis
        lines += chosen[:-1]
        if axis not in picked:
            lines.append(f"if (({chosen[-1]}) == {index[axis]}) {{")
            continue
        lines.append(f"const long long at{axis} = (long long)({chosen[-1]}) - pick_origin{axis};")
        lines.append(f"if (at{axis} >= 0 && at{axis} < (long long)(pick_extent{axis})) {{")
        index[axis] = f"(at{axis} + pick_origin{axis})"
        for i, operand in enumerate(task.inputs):
            if operand.strides[axis]:
                size = size_bytes(operand.dtype)
                names[i] = names[i].replace("]", f" + int(at{axis}) * (pick_stride{i}_{axis} / {size})]")
    body = _used_body(task.body, names, dtypes, index, "v")
    out = f"out[p{len(task.inputs)}]"
    if task.combine == "none":
        effect = f"{out} = {body[-1]};"
    elif picks_one(task):
        effect = f"acc = {body[-1]};"
    else:
        effect = f"acc = {combination(task.combine, task.output.dtype, 'acc', f'({body[-1]})')};"
    return [*lines, *body[:-1], effect, *(["}" * len(task.selectors)] if task.selectors else [])]


def _used_body(
    function: ScalarFunction, names: list[str], dtypes: list[str], index: dict[int, str], prefix: str
) -> list[str]:
    """Return statements and, last, the expression of the result."""
    body = cpp_body(function, names, dtypes, index, prefix)
    return [*body.statements, body.result]


def _after(task: Task) -> list[str]:
    if task.combine == "none":
        return []
    out = f"out[p{len(task.inputs)}]"
    if task.combine == "sum" and task.output.dtype == "f16" and not task.initial:
        return [f"{out} = half(float(half(acc)) + float({out}));"]
    return [f"{out} = {'half(acc)' if task.output.dtype == 'f16' else 'acc'};"]
