"""Scales and zero points of quantised operators as typical ones: what is searched for all that differ in them only.

    (x / 0.0127 + 3) * 0.0127   and   (x / 0.0391 + 11) * 0.0391   become   (x / s + z) * s

The code of both is the same but for words that are loaded, so plans take the same cycles. Values are exchanged where
that is proved: in primitive operations the two functions differ in constants alone, equal ones stay equal, and each is
as easy to load and to divide by as before. What tells code by its data (`body.far`, look-ups) keeps its constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import count

import numpy as np

from t10.codelets.body.expand import branches_on_data, expand
from t10.codelets.body.rewrite import has_exact_reciprocal
from t10.core.expression import OperatorSpec
from t10.core.scalar import ScalarFunction, ScalarOp, constant_text, parse_constant

SCALED = frozenset({"arith.mulf", "arith.divf"})
MOVED = frozenset({"arith.addf", "arith.subf"})
IMMEDIATE = 0xFFFFF
"""Bits of a word that one instruction loads: a word without them is loaded by one instruction."""
MOST_WHOLE = 1024.0
LEAST, MOST = 2.0**-60, 2.0**60
"""Magnitudes of scales, far from what has no reciprocal."""
Functions = tuple[ScalarFunction, ...]
Values = dict[float, float]


@lru_cache(maxsize=4096)
def with_typical_constants(spec: OperatorSpec) -> OperatorSpec:
    """Return the operator with typical scales and zero points, or as it is."""
    functions = (spec.body,) if spec.epilogue is None else (spec.body, spec.epilogue)
    types = (
        tuple(operand.dtype for operand in spec.inputs),
        (spec.acc_dtype, *(operand.dtype for operand in spec.epilogue_inputs)),
    )
    typical = _typical(functions)
    if not typical or spec.selectors:
        return spec
    made = tuple(_exchanged(function, typical) for function in functions)
    pairs = [
        (expand(old, dtypes), expand(new, dtypes))
        for old, new, dtypes in zip(functions, made, types, strict=False)
    ]
    is_far = any(branches_on_data(f, dtypes) for f, dtypes in zip(functions, types, strict=False))
    if is_far or not _are_alike(pairs):
        return spec
    return replace(spec, body=made[0], epilogue=made[1] if len(made) > 1 else None)


def _typical(functions: Functions) -> Values:
    """Return what scales and zero points become, in the order in which they appear."""
    uses: dict[float, set[str]] = {}
    for function in functions:
        for number, op in enumerate(function.ops, function.n_inputs):
            if op.opcode == "const" and op.dtype == "f32":
                users = {_use(user) for user in function.ops if number in user.operands}
                uses.setdefault(_f32(op), set()).update(users)
    scales, wholes, simple = _scales(), _wholes(is_simple=False), _wholes(is_simple=True)
    found: Values = {}
    for value, by in uses.items():
        if by == {"moved"} and value.is_integer() and 1 < abs(value) <= MOST_WHOLE:
            found[value] = next(simple if _is_simple(value) else wholes)
        elif by == {"scaled"} and LEAST < abs(value) < MOST and not _is_simple(value):
            found[value] = next(scales)
    return found


def _use(op: ScalarOp) -> str:
    if op.dtype != "f32":
        return op.opcode
    return "scaled" if op.opcode in SCALED else "moved" if op.opcode in MOVED else op.opcode


def _scales() -> Iterator[float]:
    yield from (float(np.float32(1.1 + 0.01 * i)) for i in count())


def _wholes(*, is_simple: bool) -> Iterator[float]:
    """Generate whole numbers that constants of polynomials are not."""
    yield from (float(i) for i in count(17) if _is_simple(i) == is_simple and i & (i - 1))


def _f32(op: ScalarOp) -> float:
    return float(np.float32(parse_constant(op.attribute)))


def _is_simple(value: float) -> bool:
    """Return whether one instruction loads a float."""
    return not int(np.float32(value).view(np.uint32)) & IMMEDIATE


def _exchanged(function: ScalarFunction, typical: Values) -> ScalarFunction:
    def made(op: ScalarOp) -> ScalarOp:
        value = typical.get(_f32(op)) if op.opcode == "const" and op.dtype == "f32" else None
        return op if value is None else replace(op, attribute=constant_text(value))

    return replace(function, ops=tuple(made(op) for op in function.ops))


def _are_alike(pairs: list[tuple[ScalarFunction, ScalarFunction]]) -> bool:
    """Return whether functions differ in constants only, which are as easy to compute with, equal ones equal."""
    new_by_old: Values = {}
    divisors = {_f32(old.ops[n]) for old, _ in pairs for n in _divisors(old)}
    for old, new in pairs:
        if len(old.ops) != len(new.ops) or (old.n_inputs, old.result) != (new.n_inputs, new.result):
            return False
        for a, b in zip(old.ops, new.ops, strict=True):
            if a.opcode != "const" or a.dtype != "f32":
                if a != b:
                    return False
                continue
            if (a.opcode, a.dtype) != (b.opcode, b.dtype):
                return False
            x, y = abs(_f32(a)), abs(_f32(b))
            is_divisor = _f32(a) in divisors
            if not _is_as_easy(x, y, is_divisor=is_divisor) or new_by_old.setdefault(x, y) != y:
                return False
    return len(set(new_by_old.values())) == len(new_by_old)


def _divisors(function: ScalarFunction) -> set[int]:
    """Return the numbers of the constants by which something is divided."""
    operands = {op.operands[1] - function.n_inputs for op in function.ops if op.opcode == "arith.divf"}
    return {n for n in operands if n >= 0 and function.ops[n].opcode == "const"}


def _is_as_easy(x: float, y: float, *, is_divisor: bool) -> bool:
    """Return whether a constant may take the place of another: neither is a 0, and one is no simpler."""
    if x == y:
        return True
    is_exact = [is_divisor and has_exact_reciprocal(value, "f32") for value in (x, y)]
    return 0.0 not in (x, y) and _is_simple(x) == _is_simple(y) and is_exact[0] == is_exact[1]
