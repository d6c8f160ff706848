"""Tracing: a cost function written in numpy is run once on arrays that only record what is done to them.

```
trace_table(lambda boxes: 40 + 6 * -(-boxes[:, 0] * boxes[:, 1] // 24), 2)      the Formula in `formula.py`
```

What can be traced: arithmetic, comparisons, boolean logic, `divmod`, `np.minimum`, `np.maximum`, `np.where`,
`np.select`, `np.clip`, `np.floor`, `np.ceil`, `np.sqrt`, `zeros_like` and its kin, `boxes[:, a]`, `boxes[:, [a, b]]`,
`boxes.T`, and `prod`, `sum`, `max`, `min` along axis 1. Everything else, above all a decision on values, raises
`TraceError`; the function is then called back instead.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from t10.core.geometry import window_chunk_function
from t10.cost.formula import Formula, Opcode
from t10.cost.recorder import Kind, Recorder

N_ROWS = 1021
"""How many rows a traced array says to have: a number that no function has a reason to know."""


class TraceError(Exception):
    """A function does something to its arrays that a formula cannot express."""


def trace_table(
    function: Callable[[Any], object], n_columns: int, fixed: Mapping[int, int] | None = None
) -> Formula:
    """Return `function` of an integer array of shape (n, n_columns) as a formula; `fixed` columns are one number.

    Raises TraceError.
    """
    recorder = Recorder(n_columns)
    values = list(range(n_columns))
    for column, number in (fixed or {}).items():
        values[column] = recorder.constant(number, "int")
    return recorder.formula(_value(recorder, function(Table(recorder, tuple(values)))))


class _Traced(NDArrayOperatorsMixin):
    """What rows and tables share: numpy hands every operation on them to `_operate` or `_FUNCTIONS`."""

    recorder: Recorder

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        operation = _UFUNCS.get(ufunc)
        if method != "__call__" or operation is None or options:
            raise TraceError(f"numpy.{ufunc.__name__} ({method})")
        return operation(*inputs)

    def __array_function__(
        self, function: Callable[..., object], types: object, args: tuple[Any, ...], options: dict[str, Any]
    ) -> object:
        del types
        operation = _FUNCTIONS.get(function)
        if operation is None:
            raise TraceError(f"numpy.{function.__name__}")
        return operation(*args, **options)

    def __array__(self, *_: object, **__: object) -> np.ndarray[Any, Any]:
        raise TraceError("numbers wanted of an array that has none yet")

    def __bool__(self) -> bool:
        raise TraceError("a decision on values")

    def __len__(self) -> int:
        return N_ROWS


class Row(_Traced):
    """A traced array of shape (n,)."""

    ndim = 1
    shape = (N_ROWS,)
    size = N_ROWS

    def __init__(self, recorder: Recorder, value: int) -> None:
        self.recorder = recorder
        self.value = value

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type numpy would use."""
        return np.dtype({"bool": np.bool_, "int": np.int64, "float": np.float64}[self.kind])

    @property
    def kind(self) -> Kind:
        """Return what numpy would hold it in."""
        return self.recorder.kind(self.value)

    def __getitem__(self, key: object) -> Row:
        if key is Ellipsis or (isinstance(key, slice) and key == slice(None)):
            return self
        raise TraceError(f"rows chosen by {key!r}")

    def __iter__(self) -> Iterator[object]:
        raise TraceError("a loop over rows")

    def astype(self, dtype: Any, **_: object) -> Row:
        """Return the row in another type; a fraction is cut off on the way to an integer."""
        kind = _kind_of(np.dtype(dtype))
        if kind == self.kind:
            return self
        if kind == "bool":
            return _truth(self)
        if kind == "int" and self.kind == "float":
            return Row(self.recorder, self.recorder.operation(Opcode.TRUNC, "int", self.value))
        return _emit(self.recorder, Opcode.ADD, kind, self, 0)

    def copy(self) -> Row:
        """Return the row: nothing changes it."""
        return self

    def clip(self, low: object = None, high: object = None) -> Row:
        """Return the row with values outside [low, high] moved to its ends."""
        return cast("Row", _clip(self, low, high))


class Table(_Traced):
    """A traced array of shape (n, columns)."""

    ndim = 2

    def __init__(self, recorder: Recorder, values: tuple[int, ...]) -> None:
        self.recorder = recorder
        self.values = values

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, columns), with the n that traced arrays have."""
        return N_ROWS, len(self.values)

    @property
    def columns(self) -> tuple[Row, ...]:
        """Return its columns."""
        return tuple(Row(self.recorder, value) for value in self.values)

    @property
    def T(self) -> tuple[Row, ...]:  # noqa: N802  # numpy's name
        """Return the transpose: to unpack into columns or to pick one."""
        return self.columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type numpy would use: the widest of the columns."""
        return np.result_type(np.bool_, *(column.dtype for column in self.columns))

    def __getitem__(self, key: object) -> Row | Table:
        whole = slice(None)
        parts = cast("tuple[object, ...]", key) if isinstance(key, tuple) else (key, whole)
        if len(parts) != 2 or not (parts[0] is Ellipsis or parts[0] == whole):
            raise TraceError(f"rows chosen by {key!r}")
        chosen = cast("Any", np.arange(len(self.values))[cast("Any", parts[1])])
        if isinstance(chosen, np.ndarray):
            return Table(self.recorder, tuple(self.values[int(i)] for i in chosen))
        return Row(self.recorder, self.values[int(chosen)])

    def __iter__(self) -> Iterator[object]:
        raise TraceError("a loop over rows")

    def astype(self, dtype: Any, **options: object) -> Table:
        """Return the table in another type."""
        return Table(self.recorder, tuple(c.astype(dtype, **options).value for c in self.columns))

    def copy(self) -> Table:
        """Return the table: nothing changes it."""
        return self

    def prod(self, axis: object = None) -> Row:
        """Return the products of the rows."""
        return _folded(self, axis, operator.mul, 1)

    def sum(self, axis: object = None) -> Row:
        """Return the sums of the rows."""
        return _folded(self, axis, operator.add, 0)

    def max(self, axis: object = None) -> Row:
        """Return the greatest number of every row."""
        return _folded(self, axis, np.maximum, None)

    def min(self, axis: object = None) -> Row:
        """Return the smallest number of every row."""
        return _folded(self, axis, np.minimum, None)


def _folded(table: Table, axis: object, combine: Callable[[Any, Any], object], neutral: int | None) -> Row:
    """Return a table combined along its columns, in their order; integers only, whose order does not matter."""
    if axis not in (1, -1) or any(column.kind != "int" for column in table.columns):
        raise TraceError(f"a reduction along axis {axis!r}, or of fractions")
    if not table.values:
        if neutral is None:
            raise TraceError("the extreme of no columns")
        return Row(table.recorder, table.recorder.constant(neutral, "int"))
    return cast("Row", reduce(combine, table.columns))


# --- values --------------------------------------------------------------------------------------------------------


def _kind_of(dtype: np.dtype[Any]) -> Kind:
    if dtype.kind == "b":
        return "bool"
    if dtype.kind in "iu":
        return "int"
    if dtype == np.float64:
        return "float"
    raise TraceError(f"type {dtype}")


def _value(recorder: Recorder, item: object) -> int:
    """Return the value number of a row, or of anything that is one number in every row."""
    if isinstance(item, Row):
        return item.value
    if type(item) is int:
        return recorder.constant(item, "int")
    if isinstance(item, Table):
        raise TraceError("a table where a row belongs")
    numbers = np.asarray(cast("Any", item))
    if numbers.shape not in ((), (1,), (N_ROWS,)) or np.any(numbers != numbers.flat[0]):
        raise TraceError(f"an array of shape {numbers.shape} among rows")
    return recorder.constant(float(numbers.flat[0]), _kind_of(numbers.dtype))


def _emit(recorder: Recorder, opcode: Opcode, kind: Kind, *items: object) -> Row:
    return Row(recorder, recorder.operation(opcode, kind, *(_value(recorder, item) for item in items)))


def _elementwise(function: Callable[..., Row], items: Sequence[object]) -> Row | Table:
    """Return `function` of rows; where an item is a table, of its columns one after the other."""
    tables = [item for item in items if isinstance(item, Table)]
    if not tables:
        return function(*items)
    n_columns = max(len(table.values) for table in tables)
    columns = [_as_columns(item, n_columns) for item in items]
    rows = [function(*(column[i] for column in columns)) for i in range(n_columns)]
    return Table(tables[0].recorder, tuple(row.value for row in rows))


def _as_columns(item: object, n_columns: int) -> Sequence[object]:
    if isinstance(item, Row):
        raise TraceError("a row beside a table")
    if isinstance(item, Table):
        numbers: Sequence[object] = item.columns
    else:
        array = np.asarray(cast("Any", item))
        if array.ndim == 2 and len(array) == 1:
            array = array[0]
        if array.ndim == 0:
            return [array] * n_columns
        numbers = list(array) if array.ndim == 1 else ()
    if len(numbers) != n_columns:
        raise TraceError("tables of different widths")
    return numbers


def _recorder(items: Sequence[object]) -> Recorder:
    return next(item.recorder for item in items if isinstance(item, _Traced))


def _numeric(
    opcode: Opcode, *, needs_integers: bool = False, gives: Kind | None = None
) -> Callable[..., object]:
    """Return an operation on numbers: the result is a float where an operand is, unless `gives` says otherwise."""

    def row(*items: object) -> Row:
        recorder = _recorder(items)
        values = [_value(recorder, item) for item in items]
        kinds = {recorder.kind(value) for value in values}
        if kinds == {"bool"} or (needs_integers and "float" in kinds):
            raise TraceError(f"{opcode.name} of {sorted(kinds)}")
        kind: Kind = gives or ("float" if "float" in kinds else "int")
        return Row(recorder, recorder.operation(opcode, kind, *values))

    return lambda *items: _elementwise(row, items)


def _compared(opcode: Opcode, *, is_swapped: bool = False) -> Callable[..., object]:
    def row(a: object, b: object) -> Row:
        recorder = _recorder((a, b))
        return _emit(recorder, opcode, "bool", *((b, a) if is_swapped else (a, b)))

    return lambda *items: _elementwise(row, items)


def _truth(item: object) -> Row:
    """Return whether a row is not zero."""
    row = cast("Row", item)
    return row if row.kind == "bool" else _emit(row.recorder, Opcode.NE, "bool", row, 0)


def _logical(opcode: Opcode, *, of_numbers: bool) -> Callable[..., object]:
    """Return an operation on truth values; the bitwise operators are that only where no number is concerned."""

    def row(*items: object) -> Row:
        recorder = _recorder(items)
        rows = [Row(recorder, _value(recorder, item)) for item in items]
        if not of_numbers and any(r.kind != "bool" for r in rows):
            raise TraceError(f"bits of numbers ({opcode.name})")
        return _emit(recorder, opcode, "bool", *(_truth(r) for r in rows))

    return lambda *items: _elementwise(row, items)


def _where(condition: object, a: object, b: object) -> object:
    def row(*items: object) -> Row:
        recorder = _recorder(items)
        choice, first, second = (_value(recorder, item) for item in items)
        kinds = {recorder.kind(first), recorder.kind(second)}
        kind: Kind = "float" if "float" in kinds else "int" if "int" in kinds else "bool"
        return Row(recorder, recorder.operation(Opcode.SELECT, kind, choice, first, second))

    return _elementwise(row, (condition, a, b))


def _select(conditions: Sequence[object], choices: Sequence[object], default: object = 0) -> object:
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = _where(condition, choice, result)
    return result


def _clip(row: object, low: object = None, high: object = None) -> object:
    result = row if low is None else np.maximum(cast("Any", row), cast("Any", low))
    return result if high is None else np.minimum(cast("Any", result), cast("Any", high))


def _power(base: object, exponent: object) -> object:
    if not isinstance(base, _Traced) or not isinstance(exponent, int) or not 1 <= exponent <= 4:
        raise TraceError("a power other than 1 to 4")
    if isinstance(base, Row) and base.kind == "float" and exponent > 2:
        raise TraceError("a higher power of a fraction, which rounds otherwise")
    return reduce(operator.mul, [cast("Any", base)] * exponent)


def _square(base: object) -> object:
    return _power(base, 2)


def _same(item: object) -> object:
    return item


def _along(method: str) -> Callable[..., object]:
    """Return numpy's function of the same name as a method of tables."""

    def reduced(table: Table, axis: object = None) -> object:
        return getattr(table, method)(axis)

    return reduced


def _filled(number: int | None) -> Callable[..., object]:
    def like(array: object, value: Any = number, dtype: Any = None) -> object:
        if not isinstance(array, Row):
            raise TraceError("an array shaped like a table")
        result = np.full(N_ROWS, value, array.dtype if dtype is None else dtype)
        return Row(array.recorder, _value(array.recorder, result))

    return like


def _divmod(a: object, b: object) -> tuple[object, object]:
    return _UFUNCS[np.floor_divide](a, b), _UFUNCS[np.remainder](a, b)


_UFUNCS: dict[np.ufunc, Callable[..., object]] = {
    np.add: _numeric(Opcode.ADD),
    np.subtract: _numeric(Opcode.SUB),
    np.multiply: _numeric(Opcode.MUL),
    np.true_divide: _numeric(Opcode.DIV, gives="float"),
    np.floor_divide: _numeric(Opcode.FLOOR_DIV, needs_integers=True),
    np.remainder: _numeric(Opcode.MOD, needs_integers=True),
    np.divmod: _divmod,
    window_chunk_function: _numeric(Opcode.CHUNK, needs_integers=True),
    np.minimum: _numeric(Opcode.MIN),
    np.maximum: _numeric(Opcode.MAX),
    np.negative: _numeric(Opcode.NEG),
    np.positive: _same,
    np.absolute: _numeric(Opcode.ABS),
    np.floor: _numeric(Opcode.FLOOR, gives="float"),
    np.ceil: _numeric(Opcode.CEIL, gives="float"),
    np.trunc: _numeric(Opcode.TRUNC, gives="float"),
    np.sqrt: _numeric(Opcode.SQRT, gives="float"),
    np.square: _square,
    np.power: _power,
    np.less: _compared(Opcode.LT),
    np.less_equal: _compared(Opcode.LE),
    np.greater: _compared(Opcode.LT, is_swapped=True),
    np.greater_equal: _compared(Opcode.LE, is_swapped=True),
    np.equal: _compared(Opcode.EQ),
    np.not_equal: _compared(Opcode.NE),
    np.logical_and: _logical(Opcode.AND, of_numbers=True),
    np.logical_or: _logical(Opcode.OR, of_numbers=True),
    np.logical_not: _logical(Opcode.NOT, of_numbers=True),
    np.bitwise_and: _logical(Opcode.AND, of_numbers=False),
    np.bitwise_or: _logical(Opcode.OR, of_numbers=False),
    np.invert: _logical(Opcode.NOT, of_numbers=False),
}

_FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {
    np.where: _where,
    np.select: _select,
    np.clip: _clip,
    np.zeros_like: _filled(0),
    np.ones_like: _filled(1),
    np.full_like: _filled(None),
    np.prod: _along("prod"),
    np.sum: _along("sum"),
    np.max: _along("max"),
    np.min: _along("min"),
}
