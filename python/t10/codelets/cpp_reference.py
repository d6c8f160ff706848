"""Scalar functions as C++: the arithmetic of a codelet's C++ reference, as `t10.sim.scalar_eval` defines it.

Values of type f16 are kept as `float` and rounded through `half` after every operation, which rounds as one
operation on 16 bits does. The text needs `<cmath>`, `<cstdint>` and a type `half` that converts from and to `float`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t10.core.scalar import ScalarFunction, ScalarOp, parse_constant
from t10.errors import UnsupportedOpError

VALUE_TYPES = {
    "f16": "float", "f32": "float", "i1": "bool", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t",
    "i64": "int64_t", "index": "int64_t", "ui8": "uint8_t", "ui16": "uint16_t", "ui32": "uint32_t",
    "ui64": "uint64_t",
}  # fmt: skip
"""C++ type of a value while it is computed with, by element type."""

UNSIGNED_TYPES = {
    "i1": "bool", "i8": "uint8_t", "i16": "uint16_t", "i32": "uint32_t", "i64": "uint64_t",
    "index": "uint64_t",
}  # fmt: skip
BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64, "ui8": 8, "ui16": 16, "ui32": 32, "ui64": 64}

IS_BELOW = "({0} < {1} || ({0} == {1} && std::signbit({0})))"
IS_ABOVE = "({1} < {0} || ({0} == {1} && std::signbit({1})))"
"""How numbers compare where -0 is below +0."""

FLOAT_OPS = {
    "arith.addf": "{0} + {1}", "arith.subf": "{0} - {1}", "arith.mulf": "{0} * {1}", "arith.divf": "{0} / {1}",
    "arith.remf": "std::fmod({0}, {1})", "arith.negf": "-{0}",
    "arith.maximumf": f"({{0}} != {{0}} || {{1}} != {{1}}) ? {{0}} + {{1}} : ({IS_BELOW} ? {{1}} : {{0}})",
    "arith.minimumf": f"({{0}} != {{0}} || {{1}} != {{1}}) ? {{0}} + {{1}} : ({IS_ABOVE} ? {{1}} : {{0}})",
    "arith.maxnumf": f"({{0}} != {{0}} || {IS_BELOW}) ? {{1}} : {{0}}",
    "arith.minnumf": f"({{0}} != {{0}} || {IS_ABOVE}) ? {{1}} : {{0}}",
    "math.absf": "std::fabs({0})", "math.exp": "std::exp({0})", "math.exp2": "std::exp2({0})",
    "math.expm1": "std::expm1({0})", "math.log": "std::log({0})", "math.log2": "std::log2({0})",
    "math.log10": "std::log10({0})", "math.log1p": "std::log1p({0})", "math.sqrt": "std::sqrt({0})",
    "math.cbrt": "std::cbrt({0})", "math.erf": "std::erf({0})", "math.erfc": "std::erfc({0})",
    "math.sin": "std::sin({0})", "math.cos": "std::cos({0})", "math.tan": "std::tan({0})",
    "math.asin": "std::asin({0})", "math.acos": "std::acos({0})", "math.atan": "std::atan({0})",
    "math.atan2": "std::atan2({0}, {1})", "math.sinh": "std::sinh({0})", "math.cosh": "std::cosh({0})",
    "math.tanh": "std::tanh({0})", "math.asinh": "std::asinh({0})", "math.acosh": "std::acosh({0})",
    "math.atanh": "std::atanh({0})", "math.floor": "std::floor({0})", "math.ceil": "std::ceil({0})",
    "math.trunc": "std::trunc({0})", "math.round": "std::round({0})", "math.roundeven": "std::nearbyint({0})",
    "math.powf": "std::pow({0}, {1})", "math.fpowi": "std::pow({0}, float({1}))",
    "math.copysign": "std::copysign({0}, {1})", "math.fma": "float(double({0}) * double({1}) + double({2}))",
}  # fmt: skip
PREDICATES = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
WRAPPING = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*"}
BITWISE = {"arith.andi": "&", "arith.ori": "|", "arith.xori": "^"}
CONVERSIONS = frozenset(
    {
        "arith.extf",
        "arith.truncf",
        "arith.sitofp",
        "arith.uitofp",
        "arith.extsi",
        "arith.extui",
        "arith.trunci",
    }
    | {"arith.index_cast", "arith.index_castui", "arith.fptosi", "arith.fptoui", "arith.bitcast"}
)
OPERATIONS = frozenset({*FLOAT_OPS, *WRAPPING, *BITWISE}) | CONVERSIONS | frozenset(
    f"{dialect}.{name}"
    for dialect, names in (
        ("arith", "ceildivsi cmpf cmpi divsi divui floordivsi maxsi maxui minsi minui remsi remui"),
        ("arith", "select shli shrsi shrui"),
        ("math", "absi ipowi isfinite isinf isnan rsqrt"),
    )
    for name in names.split()
)  # fmt: skip
"""All operations that codelets know."""


@dataclass(frozen=True, slots=True)
class CppBody:
    """A scalar function as C++: statements that define local values, and the expression of its result."""

    statements: tuple[str, ...]
    result: str

    def text(self, indent: str = "  ") -> str:
        """Return the statements, one a line."""
        return "".join(f"{indent}{statement}\n" for statement in self.statements)


def cpp_body(
    function: ScalarFunction,
    input_names: Sequence[str],
    input_dtypes: Sequence[str],
    index_names: Mapping[int, str] | Sequence[str] = (),
    prefix: str = "v",
) -> CppBody:
    """Return a function as C++ over expressions of its inputs; `index_names` gives an axis's global index by axis.

    Input expressions are read once, into locals named by `prefix`. Raises `UnsupportedOpError` for an operation
    that has no C++ here.
    """
    names = [f"{prefix}{i}" for i in range(function.n_inputs + len(function.ops))]
    dtypes = [*input_dtypes, *(op.dtype for op in function.ops)]
    expressions = [*(str(name) for name in input_names)]
    for op in function.ops:
        if op.opcode == "index":
            expressions.append(index_names[int(op.attribute)])
            continue
        operands = tuple(names[v] for v in op.operands)
        expressions.append(cpp_operation(op, operands, tuple(dtypes[v] for v in op.operands)))
    used = _used(function)
    statements = tuple(
        f"const {cpp_type(dtypes[i])} {names[i]} = {expressions[i]};" for i in range(len(names)) if i in used
    )
    return CppBody(statements, names[function.result])


def cpp_type(dtype: str) -> str:
    """Return the C++ type of a value while it is computed with; raises `UnsupportedOpError` for types without one."""
    if dtype not in VALUE_TYPES:
        raise UnsupportedOpError(f"codelets do not compute with elements of type {dtype}")
    return VALUE_TYPES[dtype]


def cpp_constant(attribute: str, dtype: str) -> str:
    """Return a constant's spelling (`core.scalar.parse_constant`) as C++ of a type."""
    value = parse_constant(attribute)
    if dtype not in ("f16", "f32"):
        return f"{cpp_type(dtype)}({int(value)}{'LL' if BITS.get(dtype, 0) == 64 else ''})"
    number = float(value)
    if number != number:
        return "float(NAN)"
    if number in (float("inf"), float("-inf")):
        return "float(INFINITY)" if number > 0 else "-float(INFINITY)"
    return _rounded(f"float({number!r})", dtype)


def cpp_operation(op: ScalarOp, operands: tuple[str, ...], dtypes: tuple[str, ...]) -> str:
    """Return one operation on named values of given types; raises `UnsupportedOpError` if it has no C++ here."""
    code = op.opcode
    if code == "const":
        return cpp_constant(op.attribute, op.dtype)
    if op.dtype == "f16" and code in ("math.exp", "math.exp2"):
        # A finite number has a finite exponential, as the tile's instruction has it; f32 may not hold it.
        finite = f"({operands[0]} > 64.0f && {operands[0]} < float(INFINITY)) ? 64.0f : {operands[0]}"
        return _rounded(FLOAT_OPS[code].format(finite), op.dtype)
    if code in FLOAT_OPS:
        return _rounded(FLOAT_OPS[code].format(*operands), op.dtype)
    if code == "math.rsqrt":
        return _rounded(f"1.0f / {_rounded(f'std::sqrt({operands[0]})', op.dtype)}", op.dtype)
    if code == "arith.select":
        return "{} ? {} : {}".format(*operands)
    if code == "arith.cmpf":
        return _compare_floats(op.attribute, operands)
    if code == "arith.cmpi":
        return _compare_integers(op.attribute, operands, dtypes[0])
    if code in CONVERSIONS:
        return _conversion(code, operands[0], dtypes[0], op.dtype)
    if code in ("math.isnan", "math.isinf", "math.isfinite"):
        return f"std::{code[5:]}({operands[0]})"
    integer = _integer(code, operands, op.dtype)
    if integer is None:
        raise UnsupportedOpError(f"codelets do not know the scalar operation {code}")
    return integer


def _used(function: ScalarFunction) -> frozenset[int]:
    """Return the values that the result depends on."""
    used = {function.result}
    for i in reversed(range(len(function.ops))):
        if function.n_inputs + i in used:
            used.update(function.ops[i].operands)
    return frozenset(used)


def _rounded(expression: str, dtype: str) -> str:
    return f"float(half(float({expression})))" if dtype == "f16" else expression


def _compare_floats(predicate: str, operands: tuple[str, ...]) -> str:
    a, b = operands
    unordered = f"({a} != {a} || {b} != {b})"
    if predicate in ("true", "false"):
        return predicate
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else f"!{unordered}"
    holds = f"{a} {PREDICATES[predicate[1:]]} {b}"
    return f"{unordered} || {holds}" if predicate[0] == "u" else f"!{unordered} && {holds}"


def _compare_integers(predicate: str, operands: tuple[str, ...], dtype: str) -> str:
    a, b = operands
    if predicate in ("eq", "ne"):
        return f"{a} {PREDICATES[predicate]} {b}"
    sign = PREDICATES[predicate[1:]]
    if predicate[0] == "u":
        unsigned = _unsigned(dtype)
        return f"{unsigned}({a}) {sign} {unsigned}({b})"
    return f"-int({a}) {sign} -int({b})" if dtype == "i1" else f"{a} {sign} {b}"


def _unsigned(dtype: str) -> str:
    return UNSIGNED_TYPES.get(dtype) or cpp_type(dtype)


def _conversion(code: str, x: str, source: str, target: str) -> str:
    kind = cpp_type(target)
    if code in ("arith.extf", "arith.truncf"):
        return _rounded(x, target)
    if code == "arith.bitcast":
        return _bitcast(x, source, target)
    if code in ("arith.fptosi", "arith.fptoui"):
        return _float_to_integer(x, target, is_signed=code == "arith.fptosi")
    if code in ("arith.uitofp", "arith.extui", "arith.index_castui"):
        return _rounded(f"{kind}({_unsigned(source)}({x}))", target)
    if source == "i1" and code in ("arith.sitofp", "arith.extsi"):
        return f"{kind}(-int({x}))"
    if code == "arith.trunci" and target == "i1":
        return f"bool({x} & 1)"
    return _rounded(f"{kind}({x})", target)


def _bitcast(x: str, source: str, target: str) -> str:
    """Return the same bits read as another type, through a union as Poplar's compiler takes it."""
    stored = {"f16": "half"}
    a, b = stored.get(source, cpp_type(source)), stored.get(target, cpp_type(target))
    union = f"[&] {{ union {{ {a} from; {b} to; }} u; u.from = {a}({x}); return {b}(u.to); }}()"
    return f"{cpp_type(target)}({union})"


def _float_to_integer(x: str, target: str, *, is_signed: bool) -> str:
    """Return truncation that saturates; a NaN becomes 0."""
    if target == "i1":
        return f"std::trunc({x}) != 0.0f"
    bits = BITS[target]
    is_signed = is_signed and not target.startswith("u")
    high = 2.0 ** (bits - is_signed)
    low = -high if is_signed else 0.0
    kind = cpp_type(target) if is_signed else _unsigned(target)
    top = (
        f"{kind}(~0ULL{' >> 1' if is_signed and bits == 64 else ''})"
        if bits == 64
        else f"{kind}({int(high) - 1})"
    )
    bottom = f"{kind}(1ULL << {bits - 1})" if is_signed else f"{kind}(0)"
    inside = f"{kind}({x})"
    chosen = f"({x} != {x}) ? {kind}(0) : ({x} >= {high!r} ? {top} : ({x} <= {low!r} ? {bottom} : {inside}))"
    return f"{cpp_type(target)}({chosen})"


def _integer(code: str, operands: tuple[str, ...], dtype: str) -> str | None:
    """Return an operation on integers: they wrap, and division by zero is 0; None for an unknown operation."""
    kind, unsigned, a = cpp_type(dtype), _unsigned(dtype), operands[0]
    b = operands[1] if len(operands) > 1 else ""
    if code in WRAPPING:
        if dtype == "i1":
            return f"{a} && {b}" if code == "arith.muli" else f"{a} != {b}"
        return f"{kind}({unsigned}({a}) {WRAPPING[code]} {unsigned}({b}))"
    if code in BITWISE:
        return f"{kind}({a} {BITWISE[code]} {b})"
    if code in ("arith.shli", "arith.shrui", "arith.shrsi"):
        shifted = f"{unsigned}({a})" if code != "arith.shrsi" else a
        return f"{kind}({shifted} {'<<' if code == 'arith.shli' else '>>'} ({b} & {BITS.get(dtype, 1) - 1}))"
    if code in ("arith.maxsi", "arith.minsi"):
        return f"{a} {'<' if code == 'arith.maxsi' else '>'} {b} ? {b} : {a}"
    if code in ("arith.maxui", "arith.minui"):
        return f"{unsigned}({a}) {'<' if code == 'arith.maxui' else '>'} {unsigned}({b}) ? {b} : {a}"
    if code == "math.absi":
        return f"{a} < 0 ? {kind}(-{unsigned}({a})) : {a}"
    if code == "math.ipowi":
        return (
            f"[&] {{ {unsigned} r = 1, x = {unsigned}({a}); for (auto n = {b}; n > 0; n >>= 1, x *= x) "
            f"if (n & 1) r *= x; return {kind}(r); }}()"
        )
    return _division(code, a, b, dtype)


def _division(code: str, a: str, b: str, dtype: str) -> str | None:
    """Return a division or remainder; by zero 0, by -1 a wrapping negation; None for another operation."""
    kind, unsigned = cpp_type(dtype), _unsigned(dtype)
    if code in ("arith.divui", "arith.remui"):
        sign = "/" if code == "arith.divui" else "%"
        return f"{b} == 0 ? {kind}(0) : {kind}({unsigned}({a}) {sign} {unsigned}({b}))"
    if code == "arith.remsi":
        return f"({b} == 0 || {b} == {kind}(-1)) ? {kind}(0) : {kind}({a} % {b})"
    corrections = {
        "arith.divsi": "",
        "arith.floordivsi": f" - ({a} % {b} != 0 && ({a} < 0) != ({b} < 0))",
        "arith.ceildivsi": f" + ({a} % {b} != 0 && ({a} < 0) == ({b} < 0))",
    }
    if code not in corrections:
        return None
    if dtype.startswith("u"):
        return f"{b} == 0 ? {kind}(0) : {kind}({a} / {b}{corrections[code]})"
    negated = f"{kind}(-{unsigned}({a}))"
    quotient = f"{kind}({a} / {b}{corrections[code]})"
    return f"{b} == 0 ? {kind}(0) : ({b} == {kind}(-1) ? {negated} : {quotient})"
