"""An operator as a formula: `y[m, n] = sum over k of f(x[m, k], w[k, n])`."""

from __future__ import annotations

from t10.core.expression import AffineDim, Operand, OperatorSpec

ONE_LINE = {ord(each): "?" for each in "\t\n"}
"""What of a name would break a line or its columns; the terminal shows other control characters as `?`, too."""


def formula(spec: OperatorSpec) -> str:
    """Return the tensor expression as one line; `f` and `g` stand for body and epilogue."""
    inputs = ", ".join(indexed(spec, operand) for operand in spec.inputs)
    over = ", ".join(spec.axes[axis].name for axis in spec.reduction_axes)
    value = f"f({inputs})"
    if spec.combine != "none":
        value = f"{spec.combine} over {over} of {value}"
    if spec.epilogue is not None:
        more = "".join(f", {indexed(spec, operand)}" for operand in spec.epilogue_inputs)
        value = f"g({value}{more})"
    return f"{indexed(spec, spec.output)} = {value}"


def indexed(spec: OperatorSpec, operand: Operand) -> str:
    """Return an operand with its indices, e.g. `x[n, 2h + kh - 1]`; on one line, whatever its name holds."""
    return f"{operand.name.translate(ONE_LINE)}[{', '.join(index(spec, dim) for dim in operand.dims)}]"


def index(spec: OperatorSpec, dim: AffineDim) -> str:
    """Return the index of one dim."""
    terms = [
        f"{'' if term.coefficient == 1 else term.coefficient}{spec.axes[term.axis].name}"
        for term in dim.terms
    ]
    text = " + ".join(terms)
    if not text:
        return str(dim.offset)
    return text if dim.offset == 0 else f"{text} {'+' if dim.offset > 0 else '-'} {abs(dim.offset)}"


def by_axis(spec: OperatorSpec, row: tuple[int, ...], default: int) -> dict[str, int]:
    """Return one number per axis by its name, those equal to `default` left out."""
    return {axis.name: number for axis, number in zip(spec.axes, row, strict=True) if number != default}
