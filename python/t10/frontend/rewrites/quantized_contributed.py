"""Quantised operators that ONNX Runtime adds to ONNX's, written with ONNX's own before anything asks for their types.

    QLinearAdd   y = saturate(round((a - za) * (sa / sy) + (b - zb) * (sb / sy)) + z)
    QLinearMul   y = saturate(round((a - za) * (b - zb) * (sa * sb / sy)) + z)
    QGemm        y = saturate(round((sum of (a - za) * (b - zb) + c) * (alpha * sa * sb / sy)) + z)
    QLinearAveragePool        y = saturate(round(mean of (x - zx) * sx / sy + z))
    QLinearGlobalAveragePool  y = saturate(round(sum of (x - zx) * (sx / (sy * n))) + z)

Without a scale of its result, QGemm makes floats.
"""

from __future__ import annotations

from typing import Any

from t10.frontend.rewrites.apply import rewrite_by
from t10.frontend.rewrites.site import KIND, Rule, Site

DOMAIN = "com.microsoft"

_COERCED = 13
"""Before this opset a Softmax takes the dims from its axis on as one."""


def expand_contributed(model: Any) -> None:
    """Replace ONNX Runtime's quantised operators by ONNX's own, in place; functions that the model defines stay."""
    own = {function.name for function in model.functions if function.domain == DOMAIN}
    rules = {operator: rule for operator, rule in RULES.items() if operator not in own}
    rewrite_by(model, rules, domains=(DOMAIN,))


def _centred(site: Site, place: int, zero: int) -> str:
    """Write integers as f32, their zero point taken off."""
    x = site.cast(site.input(place), KIND.FLOAT)
    return site.op("Sub", x, site.cast(site.input(zero), KIND.FLOAT)) if site.input(zero) else x


def _real(site: Site, place: int) -> str:
    """Write what integers stand for whose scale and zero point are the next two inputs."""
    return site.op("Mul", _centred(site, place, place + 2), site.input(place + 1))


def _quantized(site: Site, value: str, scale: str, zero: int) -> bool:
    """Write a float as the quantised result; without a zero point its type is not known.

    What quantises has a rule in turn: it makes no value of the node's name, which the names here start with.
    """
    if not site.input(zero):
        return False
    site.give(site.op("QuantizeLinear", value, scale, site.input(zero)))
    return True


def _rounded(site: Site, quotient: str, zero: int) -> bool:
    """Write a value in units of the result as the quantised result."""
    return _quantized(site, quotient, site.scalar(1, KIND.FLOAT), zero)


def _add(site: Site) -> bool:
    terms = [
        site.op("Mul", _centred(site, place, place + 2), site.op("Div", site.input(place + 1), site.input(6)))
        for place in (0, 3)
    ]
    return _rounded(site, site.op("Add", *terms), 7)


def _mul(site: Site) -> bool:
    factor = site.op("Div", site.op("Mul", site.input(1), site.input(4)), site.input(6))
    product = site.op("Mul", _centred(site, 0, 2), _centred(site, 3, 5))
    return _rounded(site, site.op("Mul", product, factor), 7)


def _gemm(site: Site) -> bool:
    factors = [site.input(place) for place in (0, 3)]
    for i, name in enumerate(("transA", "transB")):
        if site.option(name, 0):
            factors[i] = site.transpose(factors[i], [1, 0])
    total = site.op("MatMulInteger", *factors, site.input(2), site.input(5))
    if site.input(6):
        total = site.op("Add", total, site.input(6))
    alpha = site.scalar(site.option("alpha", 1.0), KIND.FLOAT)
    scale = site.op("Mul", site.op("Mul", alpha, site.input(1)), site.input(4))
    moved = site.cast(total, KIND.FLOAT)
    if not site.input(7):
        site.give(site.op("Mul", moved, scale))
        return True
    return _rounded(site, site.op("Mul", moved, site.op("Div", scale, site.input(7))), 8)


def _to_float(site: Site) -> bool:
    """Write MatMulIntegerToFloat: an integer product times its scales, and a bias."""
    return _scaled_product(site, site.input(0), site.input(4), (1, 5), (site.input(2), site.input(3)), 6)


def _dynamic(site: Site) -> bool:
    """Write DynamicQuantizeMatMul: the first operand is quantised by what is in it."""
    a, scale, zero = site.several("DynamicQuantizeLinear", [site.input(0)], ("", "", ""))
    return _scaled_product(site, a, zero, (1, 3), (scale, site.input(2)), 4)


def _scaled_product(
    site: Site, a: str, zero: str, b: tuple[int, int], scales: tuple[str, str], bias: int
) -> bool:
    total = site.op("MatMulInteger", a, site.input(b[0]), zero, site.input(b[1]))
    made = site.op("Mul", site.cast(total, KIND.FLOAT), site.op("Mul", *scales))
    site.give(site.op("Add", made, site.input(bias)) if site.input(bias) else made)
    return True


def _pool(site: Site) -> bool:
    """Write a mean of integers; channels that are last go before the pixels and back."""
    rank, is_last = len(site.shape(0) or ()), bool(site.option("channels_last", 0))
    if not site.input(4) or (is_last and rank < 3):
        return False
    is_global = site.node.op_type == "QLinearGlobalAveragePool"
    x = _centred(site, 0, 2) if is_global else _real(site, 0)
    if is_last:
        x = site.transpose(x, (0, rank - 1, *range(1, rank - 1)))
    units = _global_mean(site, x) if is_global else _mean(site, x)
    if is_last:
        units = site.transpose(units, (0, *range(2, rank), 1))
    return _rounded(site, units, 4)


def _mean(site: Site, x: str) -> str:
    """Write round(mean / sy + z) - z: ONNX Runtime adds the zero point before it rounds."""
    options = {name: value for name, value in site.options.items() if name != "channels_last"}
    mean = site.op("AveragePool", x, **options)
    zero = site.cast(site.input(4), KIND.FLOAT)
    level = site.op("Add", site.op("Div", mean, site.input(3)), zero)
    return site.op("Sub", site.op("Round", level), zero)


def _global_mean(site: Site, x: str) -> str:
    """Write sum * (sx / (sy * n)), as ONNX Runtime rounds; the sum of integers is the mean times n, rounded."""
    extents = site.slice(site.op("Shape", x), 0, 2, 1 << 31)
    n = site.cast(site.reduce("ReduceProd", extents, [0], keep=False), KIND.FLOAT)
    total = site.op("Round", site.op("Mul", site.op("GlobalAveragePool", x), n))
    return site.op("Mul", total, site.op("Div", site.input(1), site.op("Mul", site.input(3), n)))


def _function(site: Site) -> bool:
    """Write a function of one operand, such as QLinearSigmoid."""
    made = site.op(site.node.op_type.removeprefix("QLinear"), _real(site, 0), **site.options)
    return _quantized(site, made, site.input(3), 4)


def _softmax(site: Site) -> bool:
    axis, rank = int(site.option("axis", -1)), len(site.shape(0) or ())
    is_last = axis == -1 or (rank > 0 and axis == rank - 1)
    if not is_last and min(int(site.option("opset", _COERCED)), site.facts.opset) < _COERCED:
        return False
    return _quantized(site, site.op("Softmax", _real(site, 0), axis=axis), site.input(3), 4)


def _concat(site: Site) -> bool:
    parts = [_real(site, place) for place in range(2, len(site.node.input), 3)]
    return _quantized(site, site.concat(parts, int(site.option("axis", 0))), site.input(0), 1)


def _where(site: Site) -> bool:
    chosen = site.op("Where", site.input(0), _real(site, 1), _real(site, 4))
    return _quantized(site, chosen, site.input(7), 8)


RULES: dict[str, Rule] = {
    "DynamicQuantizeMatMul": _dynamic,
    "MatMulIntegerToFloat": _to_float,
    "QGemm": _gemm,
    "QLinearAdd": _add,
    "QLinearAveragePool": _pool,
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _pool,
    "QLinearLeakyRelu": _function,
    "QLinearMul": _mul,
    "QLinearSigmoid": _function,
    "QLinearSoftmax": _softmax,
    "QLinearWhere": _where,
}
