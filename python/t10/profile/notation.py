"""Operators written as a line of text.

```
"m k, n k -> m n; n"                      dims of the inputs, of the output, and of what the epilogue reads
"x 2h+i 2w+j c, f i j c -> x h w f"       a strided convolution, whose windows are walked by i and j
```

Axes are single letters; those of the output come first. What is computed is written in postfix: numbers name inputs,
`c0.5` is a constant of the type before it, `@m` the index along an axis, `extf>f32` casts, `cmpf:ogt` compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t10.core.expression import (
    AffineDim,
    Axis,
    Combine,
    Operand,
    OperatorKind,
    OperatorSpec,
    Selector,
    Term,
)
from t10.core.scalar import ScalarFunction, ScalarOp

BINARY = frozenset(["addf", "subf", "mulf", "divf", "maximumf", "addi", "muli", "andi", "cmpf", "cmpi"])
MATHEMATICS = frozenset(["absf", "erf", "exp", "log", "sin", "sqrt", "tanh"])


def operator(
    kind: OperatorKind,
    text: str,
    types: str,
    body: str,
    combine: Combine,
    extents: Mapping[str, int],
    *,
    epilogue: str = "",
    narrow: bool = False,
    selected: str = "",
) -> OperatorSpec:
    """Return the operator of a text, with the types of its inputs and the extents of its axes.

    What an epilogue reads has the type of the first input; `narrow` casts what was accumulated to it first. `selected`
    names the axis that the first input indexes.
    """
    expression, _, behind = text.partition(";")
    left, _, result = expression.partition("->")
    inputs, output, others = _rows(left), result.split(), _rows(behind)
    letters = (letter for row in (output, *inputs) for dim in row for letter in dim if letter.isalpha())
    names = list(dict.fromkeys(letters))
    dtypes = types.split()
    function, acc = scalar_function(body, dtypes, names=names)
    after, out = None, acc
    if epilogue:
        after, out = scalar_function(
            epilogue, [acc, *dtypes[:1] * len(others)], cast=f"truncf>{dtypes[0]}" * narrow, names=names
        )

    def operand(row: Sequence[str], dtype: str) -> Operand:
        dims = tuple(_dim(each, names) for each in row)
        shape = tuple(1 + sum(t.coefficient * (extents[names[t.axis]] - 1) for t in d.terms) for d in dims)
        return Operand("", "activation", dtype, shape, dims)

    return OperatorSpec(
        name=f"{kind} {types} to {out}: {text}, {epilogue or (body if combine == 'none' else combine)}",
        kind=kind,
        axes=tuple(
            Axis(name, extents[name], "parallel" if name in output else "reduction") for name in names
        ),
        inputs=tuple(map(operand, inputs, dtypes)),
        output=operand(output, out),
        combine=combine,
        body=function,
        acc_dtype=acc,
        epilogue=after,
        epilogue_inputs=tuple(operand(row, dtypes[0]) for row in others),
        selectors=(Selector(names.index(selected), ScalarFunction(len(inputs), (), 0)),) if selected else (),
    )


def _rows(text: str) -> list[list[str]]:
    """Return the dims of operands with commas between, of none where there is no text."""
    return [each.split() for each in text.split(",")] if text.strip() else []


def _dim(text: str, names: Sequence[str]) -> AffineDim:
    """Return a dim such as `m` or `2h+i`."""
    terms = (Term(names.index(term[-1]), int(term[:-1] or 1)) for term in text.split("+"))
    return AffineDim(tuple(terms))


def scalar_function(
    text: str, dtypes: Sequence[str], cast: str = "", names: Sequence[str] = ()
) -> tuple[ScalarFunction, str]:
    """Return the function of a text in postfix, and the type of its result; the first input may be cast first.

    Axes have `names`.
    """
    n_inputs = len(dtypes)
    types, ops = list(dtypes), list[ScalarOp]()
    stack: list[int] = []
    first = 0
    for number, each in enumerate(f"0 {cast} {text}".split() if cast else text.split()):
        if each.isdigit():
            stack.append(first if each == "0" else int(each))
            continue
        if each[0] == "@":
            stack.append(n_inputs + len(ops))
            types.append("index")
            ops.append(ScalarOp("index", (), "index", str(names.index(each[1:]))))
            continue
        word, _, to = each.partition(">")
        is_constant = word[0] == "c" and not word[1].isalpha()
        name, _, attribute = ("const", "", word[1:]) if is_constant else word.partition(":")
        n = 0 if is_constant else 3 if name == "select" else 2 if name in BINARY else 1
        operands = tuple(stack[len(stack) - n :])
        dtype = to or ("i1" if name.startswith("cmp") else types[stack[-1]])
        opcode = name if is_constant else f"{'math' if name in MATHEMATICS else 'arith'}.{name}"
        del stack[len(stack) - n :]
        stack.append(n_inputs + len(ops))
        types.append(dtype)
        ops.append(ScalarOp(opcode, operands, dtype, attribute))
        if cast and number == 1:
            first = stack.pop()
    return ScalarFunction(n_inputs, tuple(ops), stack[-1]), types[stack[-1]]
